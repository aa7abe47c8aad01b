//! Sparse matrix × vector, over and over: the power method (docs/bibliography.md#lopc, sections 3.1 and 4.5).
//!
//! Each process has a share of the rows of the matrix, in memory of its own. The vector is shared, an
//! object for each process, owned with its rows. Each iteration computes y = A x of its rows, and the
//! largest |y| of all processes scales the next x: a maximum, unlike a sum, does not depend on the order.
//! Vector and maxima exist twice, one written while the other is read; so a barrier ends the iteration
//! and there is no data race.
//!
//! Two ways to get at x:
//!
//! * *Objects* (default): every part as a whole, all requests under way at once. The expert's way: one
//!   message a part, and copies of those of the own group, updated at the barrier.
//! * *Elements* (`--gets`): one blocking request for each non-zero of the matrix, as in the LoPC paper. Homogeneous
//!   all-to-any communication: 1/P of the requests are local, and W, the work between two others, is
//!   P/(P-1) multiply-adds. Within a group the memory process then keeps a copy of the part, so requests that
//!   travel each time, as in the LoPC paper, take processes in groups of their own.
//!
//! The result must equal the sequential one bit for bit. The size of the LoPC paper is `--rows 13000 --per-row 50`.

use std::ops::Range;

use clap::Args;
use dsm_lib::{CopyPolicy, Dsm, Vector};
use rand::RngExt;

use crate::app::Program;
use crate::common::{Pace, dice, enough, same_bits, share, unit};
use crate::error::{Error, Result};

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

impl Program for Spmv {
    fn run(&self, dsm: &Dsm) -> Result<String> {
        enough(dsm, "spmv", "--rows", self.rows, 1)?;
        if self.per_row == 0 || self.per_row > self.rows {
            let what = format!("spmv: give --per-row between 1 and --rows, {}", self.rows);
            return Err(Error::Usage(what));
        }
        let shared = Shared::declare(self, dsm)?;
        let matrix = Matrix::new(self, share(self.rows, dsm.size(), dsm.rank()));
        shared.write(0, dsm.rank(), &vec![1.0; matrix.rows()])?;
        let mut clock = self.pace.start(dsm, "spmv", 20)?;
        while clock.runs() {
            let now = clock.done() % 2;
            let scale = 1.0 / largest(&shared.maxima[now].read_all()?);
            let y = if self.gets {
                matrix.times(|j| Ok(shared.x[now].get(j)? * scale))?
            } else {
                let x = shared.x[now].read_all()?;
                matrix.times(|j| Ok(x[j] * scale))?
            };
            shared.write(1 - now, dsm.rank(), &y)?;
            if !clock.next()? {
                break;
            }
        }
        if dsm.rank() > 0 {
            return Ok(String::new());
        }
        let expected = self.sequential(clock.done())?;
        same_bits(dsm, "spmv", &shared.x[clock.done() % 2], &expected)?;
        Ok(format!(
            "spmv: {} x {} with {} non-zeros by {} processes, {} iterations, largest eigenvalue about {:.6}; equal to a sequential run bit for bit",
            self.rows,
            self.rows,
            self.rows * self.per_row,
            dsm.size(),
            clock.done(),
            largest(&expected)
        ))
    }
}

impl Spmv {
    /// The whole computation by one process: y of the last iteration.
    pub(crate) fn sequential(&self, iterations: usize) -> Result<Vec<f64>> {
        let matrix = Matrix::new(self, 0..self.rows);
        let mut x = vec![1.0; self.rows];
        for _ in 0..iterations {
            let scale = 1.0 / largest(&x);
            x = matrix.times(|j| Ok(x[j] * scale))?;
        }
        Ok(x)
    }
}

/// Some rows of the matrix: the non-zeros of each as (column, value).
struct Matrix(Vec<Vec<(usize, f64)>>);

impl Matrix {
    /// Row i has random columns and positive values: the power method converges.
    fn new(spmv: &Spmv, rows: Range<usize>) -> Self {
        let row = |i| {
            let mut dice = dice(spmv.seed, i);
            (0..spmv.per_row)
                .map(|_| (dice.random_range(0..spmv.rows), unit(&mut dice)))
                .collect()
        };
        Self(rows.map(row).collect())
    }

    fn rows(&self) -> usize {
        self.0.len()
    }

    /// These rows of A x; `x` gives an element of x.
    fn times(&self, x: impl Fn(usize) -> Result<f64>) -> Result<Vec<f64>> {
        let product = |row: &Vec<(usize, f64)>| {
            let mut sum = 0.0;
            for (column, value) in row {
                sum += value * x(*column)?;
            }
            Ok(sum)
        };
        self.0.iter().map(product).collect()
    }
}

fn largest(values: &[f64]) -> f64 {
    values.iter().fold(0.0, |max, v| max.max(v.abs()))
}

/// The shared variables, each in two sets.
struct Shared {
    /// The vector, not scaled.
    x: [Vector<f64>; 2],
    /// The largest |x| of each process.
    maxima: [Vector<f64>; 2],
}

impl Shared {
    fn declare(spmv: &Spmv, dsm: &Dsm) -> Result<Self> {
        let vector = |name, elements| {
            let vector = dsm.vector::<f64>(name, elements).split(dsm.size());
            let vector = vector.owner_per_rank();
            vector.policy(CopyPolicy::Update).declare()
        };
        Ok(Self {
            x: [
                vector("spmv.x-even", spmv.rows)?,
                vector("spmv.x-odd", spmv.rows)?,
            ],
            maxima: [
                vector("spmv.max-even", dsm.size())?,
                vector("spmv.max-odd", dsm.size())?,
            ],
        })
    }

    fn write(&self, set: usize, rank: usize, part: &[f64]) -> Result<()> {
        let maximum = self.maxima[set].object(rank)?.write_async(&[largest(part)]);
        self.x[set].object(rank)?.write(part)?;
        Ok(maximum.wait()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_product_by_hand() {
        let matrix = Matrix(vec![vec![(0, 2.0), (2, 1.0)], vec![], vec![(1, -1.0)]]);
        let x = [1.0, 10.0, 100.0];
        assert_eq!(matrix.times(|j| Ok(x[j])).unwrap(), [102.0, 0.0, -10.0]);
        assert_eq!(largest(&[102.0, 0.0, -110.0]), 110.0);
    }

    #[test]
    fn the_power_method_finds_an_eigenvector() {
        let spmv = Spmv {
            rows: 60,
            per_row: 12,
            gets: false,
            seed: 5,
            pace: Pace::default(),
        };
        let matrix = Matrix::new(&spmv, 0..60);
        let y = spmv.sequential(200).unwrap();
        let eigenvalue = largest(&y);
        let x: Vec<f64> = y.iter().map(|v| v / eigenvalue).collect();
        let again = matrix.times(|j| Ok(x[j])).unwrap();
        for (a, b) in again.iter().zip(&x) {
            assert!((a - eigenvalue * b).abs() < 1e-9, "{a} {b}");
        }
    }
}
