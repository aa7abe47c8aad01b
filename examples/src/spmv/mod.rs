//! Sparse matrix × vector, over and over: the power method (docs/bibliography.md#lopc, sections 3.1 and 4.5).
//!
//! Each process has a share of the rows of the matrix, in private memory. The vector is shared, an
//! object for each process, owned with its rows. Each iteration computes y = A x of its rows, and the
//! largest |y| of all processes scales the next x: a maximum, unlike a sum, does not depend on the order. So the object
//! of a process has its part of the vector and, at the end, the largest |y| in it: one access brings both.
//! The variable exists twice, one written while the other is read; so a barrier ends the iteration
//! and there is no data race.
//!
//! Two ways to get at x:
//!
//! * *Objects* (default): the parts of the others as a whole, all requests under way at once. The expert's way: one
//!   message a part, and copies of those of the own group, updated at the barrier.
//! * *Elements* (`--gets`): one blocking request for each non-zero of the matrix, as in the LoPC paper. Homogeneous
//!   all-to-any communication: 1/P of the requests are local, and there is hardly any work between two. Within a group the memory process then keeps a copy of the part, so requests that
//!   travel each time, as in the LoPC paper, take processes in groups of their own.
//!
//! The result must equal the sequential one bit for bit. The size of the LoPC paper is `--rows 13000 --per-row 50`.

mod kernel;

use std::ops::Range;
use std::time::Instant;

use clap::Args;
use dsm_lib::{Cache, CopyPolicy, Dsm, Matrix};

use crate::common::{Pace, enough, first_difference, share};
use crate::error::{Error, Result};
use crate::figures::{Checksum, Figures};
use crate::program::{Input, Program, Sequential, wrong};
use kernel::{Rows, iterate, largest};

/// The arguments of the program.
#[derive(Args, Debug, Clone)]
pub struct Spmv {
    /// Rows and columns of the matrix, at least one per process.
    #[arg(long, default_value_t = 2000)]
    rows: usize,
    /// Non-zeros a row.
    #[arg(long, default_value_t = 50)]
    per_row: usize,
    /// Get x element by element, as LoPC's example does, instead of by objects.
    #[arg(long)]
    gets: bool,
    /// Seed of the matrix.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    pace: Pace,
}

/// Iterations if nothing is said.
const ITERATIONS: usize = 20;

impl Program for Spmv {
    fn run(&self, dsm: &Dsm) -> Result<String> {
        enough(dsm, "spmv", "--rows", self.rows, 1)?;
        self.check()?;
        let mut worker = Worker::new(self, dsm)?;
        worker.write(0)?;
        let mut clock = self.pace.start(dsm, "spmv", ITERATIONS)?;
        while clock.runs() {
            let now = clock.done() % 2;
            let scale = 1.0 / worker.fetch(now)?;
            worker.multiply(scale);
            worker.write(1 - now)?;
            if !clock.next()? {
                break;
            }
        }
        if dsm.rank() > 0 {
            return Ok(String::new());
        }
        let (is, expected) = (
            worker.whole(clock.done() % 2)?,
            self.sequential(clock.done()),
        );
        if let Some(at) = first_difference(&is, &expected) {
            let what = format!(
                "element {at} of the vector is {:?}, in a sequential run {:?}",
                is[at], expected[at]
            );
            return Err(wrong(dsm, "spmv", what));
        }
        let text = format!(
            "spmv: {} x {} with {} non-zeros by {} processes, {} iterations, largest eigenvalue about {:.6}; equal to a sequential run bit for bit",
            self.rows,
            self.rows,
            self.rows * self.per_row,
            dsm.size(),
            clock.done(),
            largest(&expected)
        );
        Ok(clock.report(text, Checksum::of(&expected)))
    }
}

impl Sequential for Spmv {
    fn alone(&self) -> Result<Figures> {
        self.check()?;
        let matrix = self.matrix(0..self.rows);
        let started = Instant::now();
        let x = self.iterate(&matrix, self.pace.iterations(ITERATIONS));
        Ok(Figures::new(started.elapsed(), Checksum::of(&x)))
    }

    fn input(&self) -> Option<Input> {
        let iterations = self.pace.iterations(ITERATIONS);
        let sizes = [self.rows, self.per_row, iterations].map(|n| n.to_string());
        let matrix = self.matrix(0..self.rows);
        let columns = matrix.columns().iter().flat_map(|c| c.to_le_bytes());
        let values = matrix.values().iter().flat_map(|v| v.to_le_bytes());
        Some(Input {
            parameters: sizes.into(),
            data: columns.chain(values).collect(),
        })
    }
}

impl Spmv {
    fn check(&self) -> Result<()> {
        if self.per_row == 0 || self.per_row > self.rows {
            let what = format!("spmv: give --per-row between 1 and --rows, {}", self.rows);
            return Err(Error::Usage(what));
        }
        Ok(())
    }

    fn matrix(&self, rows: Range<usize>) -> Rows {
        Rows::new(self.seed, self.rows, self.per_row, rows)
    }

    /// The whole computation by one process: y of the last iteration.
    fn sequential(&self, iterations: usize) -> Vec<f64> {
        self.iterate(&self.matrix(0..self.rows), iterations)
    }

    fn iterate(&self, matrix: &Rows, iterations: usize) -> Vec<f64> {
        let (mut x, mut y) = (vec![1.0; self.rows], vec![0.0; self.rows]);
        for _ in 0..iterations {
            iterate(matrix, &x, &mut y);
            std::mem::swap(&mut x, &mut y);
        }
        x
    }
}

/// One process, and the shared variables.
struct Worker<'a> {
    spmv: &'a Spmv,
    dsm: &'a Dsm,
    /// The rows of this process, and which they are.
    matrix: Rows,
    mine: Range<usize>,
    /// The vector, not scaled; of the elements of others, those that were fetched.
    x: Vec<f64>,
    /// This process's part of the next vector, as it is shared: its largest absolute value is at the end.
    y: Vec<f64>,
    /// Two sets of parts of the vector, a row and an object for each process, and its largest absolute value at the end.
    parts: [Matrix<f64>; 2],
}

impl<'a> Worker<'a> {
    fn new(spmv: &'a Spmv, dsm: &'a Dsm) -> Result<Self> {
        let size = dsm.size();
        let mine = share(spmv.rows, size, dsm.rank());
        let parts = |name| {
            let parts = dsm.matrix(name, size, share(spmv.rows, size, 0).len() + 1);
            let parts = parts.split_rows(size).owner_per_rank();
            let parts = parts.policy(CopyPolicy::Update).cache(Cache::Ap);
            parts.declare()
        };
        let parts: [Matrix<f64>; 2] = [parts("spmv.x-even")?, parts("spmv.x-odd")?];
        let mut y = vec![0.0; parts[0].columns()];
        y[..mine.len()].fill(1.0);
        Ok(Self {
            spmv,
            dsm,
            matrix: spmv.matrix(mine.clone()),
            x: vec![0.0; spmv.rows],
            y,
            mine,
            parts,
        })
    }

    /// Writes this process's part of the vector.
    fn write(&mut self, set: usize) -> Result<()> {
        let most = largest(&self.y[..self.mine.len()]);
        if let Some(last) = self.y.last_mut() {
            *last = most;
        }
        let own = self.parts[set].object(self.dsm.rank())?;
        Ok(own.write_async(&self.y).post()?)
    }

    /// Fetches the vector; returns its largest absolute value.
    fn fetch(&mut self, set: usize) -> Result<f64> {
        if self.spmv.gets {
            return self.fetch_elements(set);
        }
        self.fetch_objects(set)
    }

    /// The parts of all others, and the own one, which is here.
    fn fetch_objects(&mut self, set: usize) -> Result<f64> {
        let rank = self.dsm.rank();
        let asked: Vec<_> = self.parts[set]
            .objects()
            .enumerate()
            .filter(|(process, _)| *process != rank)
            .map(|(process, part)| (process, part.read_async()))
            .collect();
        let (own, rest) = self.y.split_at(self.mine.len());
        self.x[self.mine.clone()].copy_from_slice(own);
        let mut most = largest(rest);
        for (process, part) in asked {
            let part = part.wait()?;
            let theirs = share(self.spmv.rows, self.dsm.size(), process);
            let (elements, rest) = part.split_at(theirs.len());
            self.x[theirs].copy_from_slice(elements);
            most = largest(rest).max(most);
        }
        Ok(most)
    }

    /// Each element that a non-zero needs, for each of them again.
    fn fetch_elements(&mut self, set: usize) -> Result<f64> {
        let parts = &self.parts[set];
        let parts: Vec<_> = parts.objects().collect();
        let shares = (0..parts.len()).map(|r| share(self.spmv.rows, parts.len(), r));
        let shares: Vec<Range<usize>> = shares.collect();
        for column in self.matrix.columns() {
            let column = *column as usize;
            let process = shares.partition_point(|s| s.end <= column);
            self.x[column] = parts[process].get(column - shares[process].start)?;
        }
        let mut most: f64 = 0.0;
        for part in parts {
            most = most.max(part.get(part.len() - 1)?);
        }
        Ok(most)
    }

    /// The vector as it stands in shared memory.
    fn whole(&self, set: usize) -> Result<Vec<f64>> {
        let mut whole = Vec::with_capacity(self.spmv.rows);
        for (process, part) in self.parts[set].objects().enumerate() {
            let rows = share(self.spmv.rows, self.dsm.size(), process).len();
            whole.extend_from_slice(&part.read()?[..rows]);
        }
        Ok(whole)
    }

    /// The next y, of this process's rows.
    fn multiply(&mut self, scale: f64) {
        let own = &mut self.y[..self.mine.len()];
        self.matrix.times(&self.x, scale, own);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_the_matrix_are_those_of_the_whole() {
        let (whole, part) = (Rows::new(2, 9, 4, 0..9), Rows::new(2, 9, 4, 3..5));
        assert_eq!(part.columns(), &whole.columns()[12..20]);
        assert_eq!(part.values(), &whole.values()[12..20]);
    }
}
