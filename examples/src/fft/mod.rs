//! Fast Fourier transform in six steps (FFT: docs/bibliography.md#memory-hierarchies, section 5.2): all-to-all exchange by transposing a matrix.
//!
//! The points lie in a square matrix of which each process has a band of rows, in private memory. Transforms of rows need
//! no sharing; between them the matrix is transposed, and for that everyone needs something of everyone.
//! There is a **block** for each pair of processes: block (i, j) belongs to process i, which
//! writes it, transposed, and is read once by process j. So what is read is what is needed, no
//! object has two writers, and all reads of a transposition are under way at once. What stays with a process is not
//! written. There are two sets of blocks, one written while the other is read, and a barrier in each of the three
//! transpositions. At the end each process writes its band.
//!
//! Iterations transform forward and back in turn. The result must equal the sequential one bit for bit,
//! and after an even number of them be the signal again, within 1e-9. The size of the memory hierarchy paper, table 2, is
//! `--side 256`.

mod kernel;

use std::ops::Range;
use std::time::Instant;

use clap::Args;
use dsm_lib::{Dsm, Matrix};

use crate::common::{Clock, Pace, dice, enough, first_difference, share, unit};
use crate::error::{Error, Result};
use crate::figures::{Checksum, Figures};
use crate::program::{Input, Program, Sequential, wrong};
use kernel::{Complex, Transform, sequential, transpose};

/// How far the signal may be from itself after forward and back. Its values are below 1.
const TOLERANCE: f64 = 1e-9;

/// The arguments of the program.
#[derive(Args, Debug, Clone)]
pub struct Fft {
    /// Rows of the square of points: a power of two, at least one per process. There are this × this points.
    #[arg(long, default_value_t = 128)]
    side: usize,
    /// Seed of the signal.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    pace: Pace,
}

/// Iterations if nothing is said.
const ITERATIONS: usize = 10;

impl Program for Fft {
    fn run(&self, dsm: &Dsm) -> Result<String> {
        enough(dsm, "fft", "--side", self.side, 1)?;
        self.check()?;
        let mut worker = Worker::new(self, dsm)?;
        let mut clock = self.pace.start(dsm, "fft", ITERATIONS)?;
        while clock.runs() {
            worker.transform(clock.done() % 2)?;
            worker.send()?;
            let goes_on = clock.next()?;
            worker.receive()?;
            if !goes_on {
                break;
            }
        }
        worker.publish()?;
        clock.finish()?;
        match dsm.rank() {
            0 => self.verify(&worker, &clock),
            _ => Ok(String::new()),
        }
    }
}

impl Sequential for Fft {
    fn alone(&self) -> Result<Figures> {
        self.check()?;
        let signal = self.signal(0..self.side);
        let started = Instant::now();
        let points = sequential(self.side, signal, self.pace.iterations(ITERATIONS));
        let took = started.elapsed();
        Ok(Figures::new(took, Checksum::of(points.as_flattened())))
    }

    fn input(&self) -> Option<Input> {
        let sizes = [self.side, self.pace.iterations(ITERATIONS)].map(|n| n.to_string());
        let signal = self.signal(0..self.side);
        let numbers = signal.as_flattened().iter();
        Some(Input {
            parameters: sizes.into(),
            data: numbers.flat_map(|x| x.to_le_bytes()).collect(),
        })
    }
}

impl Fft {
    fn check(&self) -> Result<()> {
        if !self.side.is_power_of_two() || self.side > 1 << 15 {
            return Err(Error::Usage(format!(
                "fft: --side {} is not a power of two up to 32768",
                self.side
            )));
        }
        Ok(())
    }

    /// The signal, as far as it lies in `rows`.
    fn signal(&self, rows: Range<usize>) -> Vec<Complex> {
        let row = |i| {
            let mut dice = dice(self.seed, i);
            let point = move |_| [unit(&mut dice) - 0.5, unit(&mut dice) - 0.5];
            (0..self.side).map(point)
        };
        rows.flat_map(row).collect()
    }

    fn verify(&self, worker: &Worker<'_>, clock: &Clock) -> Result<String> {
        let iterations = clock.done();
        let signal = self.signal(0..self.side);
        let expected = sequential(self.side, signal.clone(), iterations);
        let expected = expected.as_flattened();
        let result = worker.result.read_all()?;
        if let Some(at) = first_difference(&result, expected) {
            let what = format!(
                "after {iterations} iterations number {at} is {:?}, in a sequential run {:?}",
                result[at], expected[at]
            );
            return Err(wrong(worker.dsm, "fft", what));
        }
        let mut parts = result.iter().zip(signal.as_flattened());
        if iterations.is_multiple_of(2) && parts.any(|(a, b)| (a - b).abs() > TOLERANCE) {
            let what = format!("after {iterations} iterations the signal has not come back");
            return Err(wrong(worker.dsm, "fft", what));
        }
        let text = format!(
            "fft: {} points by {} processes, {iterations} iterations; equal to a sequential run bit for bit",
            self.side * self.side,
            worker.dsm.size()
        );
        Ok(clock.report(text, Checksum::of(expected)))
    }
}

/// One process and the shared variables.
struct Worker<'a> {
    dsm: &'a Dsm,
    side: usize,
    mine: Range<usize>,
    /// The own rows, and room for those of the transposed matrix.
    rows: Vec<Complex>,
    other: Vec<Complex>,
    /// Room for a block.
    block: Vec<Complex>,
    /// Two sets of blocks: block (i, j) has the columns of process i, transposed, that are rows of process j; a row of a
    /// block is as long as the widest, and each complex number is two numbers.
    blocks: [Matrix<f64>; 2],
    /// The set to write next.
    next: usize,
    result: Matrix<f64>,
    transforms: [Transform; 2],
}

impl<'a> Worker<'a> {
    fn new(fft: &Fft, dsm: &'a Dsm) -> Result<Self> {
        let (side, size) = (fft.side, dsm.size());
        let blocks = |name| {
            let most = share(side, size, 0).len();
            dsm.matrix::<f64>(name, most * size, 2 * most * size)
                .split_blocks(size, size)
                .owner_ranks((0..size * size).map(|block| block / size))
                .declare()
        };
        let mine = share(side, size, dsm.rank());
        let rows = fft.signal(mine.clone());
        Ok(Self {
            dsm,
            side,
            mine,
            other: vec![[0.0, 0.0]; rows.len()],
            rows,
            block: Vec::new(),
            blocks: [blocks("fft.even")?, blocks("fft.odd")?],
            next: 0,
            result: dsm
                .matrix("fft.result", side, 2 * side)
                .split_rows(size)
                .owner_per_rank()
                .declare()?,
            transforms: [Transform::new(side, false), Transform::new(side, true)],
        })
    }

    /// One transform of the points but for the last transposition.
    fn transform(&mut self, direction: usize) -> Result<()> {
        self.send()?;
        self.dsm.barrier()?;
        self.receive()?;
        let transform = &self.transforms[direction];
        for (i, row) in self.mine.clone().zip(self.rows.chunks_exact_mut(self.side)) {
            transform.row(row);
            transform.twiddle(i, row);
        }
        self.send()?;
        self.dsm.barrier()?;
        self.receive()?;
        let transform = &self.transforms[direction];
        for row in self.rows.chunks_exact_mut(self.side) {
            transform.row(row);
        }
        Ok(())
    }

    /// Writes what other processes need of the own rows, transposed; what stays here goes to its place meanwhile.
    fn send(&mut self) -> Result<()> {
        let (size, side, rank) = (self.dsm.size(), self.side, self.dsm.rank());
        // Not all at the same owner first.
        for to in (rank + 1..size).chain(0..rank) {
            let block = self.blocks[self.next].object(rank * size + to)?;
            let columns = share(side, size, to);
            let width = block.region().columns as usize / 2;
            self.block.resize(block.len() / 2, [0.0, 0.0]);
            let used = columns.len() * width;
            transpose(
                (&self.rows, side),
                columns,
                (&mut self.block[..used], width),
                0,
            );
            block.write_async(self.block.as_flattened()).post()?;
        }
        let own = self.mine.clone();
        transpose(
            (&self.rows, side),
            own.clone(),
            (&mut self.other, side),
            own.start,
        );
        Ok(())
    }

    /// Reads what others have sent: the own rows are now those of the transposed matrix.
    fn receive(&mut self) -> Result<()> {
        let (size, side, rank) = (self.dsm.size(), self.side, self.dsm.rank());
        let mut under_way = Vec::with_capacity(size);
        for from in (rank + 1..size).chain(0..rank) {
            let block = self.blocks[self.next].object(from * size + rank)?;
            under_way.push((from, block.read_async()));
        }
        for (from, block) in under_way {
            let block = block.wait()?;
            let columns = share(side, size, from);
            for (row, values) in self.other.chunks_exact_mut(side).zip(block.rows()) {
                let values = &values.as_chunks().0[..columns.len()];
                row[columns.clone()].copy_from_slice(values);
            }
        }
        std::mem::swap(&mut self.rows, &mut self.other);
        self.next = 1 - self.next;
        Ok(())
    }

    fn publish(&self) -> Result<()> {
        let own = self.result.object(self.dsm.rank())?;
        Ok(own.write(self.rows.as_flattened())?)
    }
}
