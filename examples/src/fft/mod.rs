//! Fast Fourier transform in six steps (FFT: docs/bibliography.md#memory-hierarchies, section 5.2): all-to-all exchange by transposing a matrix.
//!
//! The points lie in a square matrix of which each process has a band of rows. Transforms of rows need
//! no sharing; between them the matrix is transposed, and for that everyone needs something of everyone.
//! The matrix is split into **blocks**, one for each pair: block (i, j) belongs to process i, which
//! writes it, and is read once by process j, which transposes it. So what is read is what is needed, no
//! object has two writers, and all reads of a transposition are under way at once. There are two
//! matrices, one written while the other is read, and a barrier after each of the three transpositions.
//!
//! Iterations transform forward and back in turn. The result must equal the sequential one bit for bit,
//! and after an even number of them be the signal again, within 1e-9. The size of the memory hierarchy paper, table 2, is
//! `--side 256`.

mod kernel;

use std::ops::Range;

use clap::Args;
use dsm_lib::{Dsm, Matrix};

use crate::app::{Program, wrong};
use crate::common::{Pace, dice, enough, share, unit};
use crate::error::{Error, Result};
use kernel::{Complex, Transform, sequential};

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

impl Program for Fft {
    fn run(&self, dsm: &Dsm) -> Result<String> {
        enough(dsm, "fft", "--side", self.side, 1)?;
        if !self.side.is_power_of_two() || self.side > 1 << 15 {
            return Err(Error::Usage(format!(
                "fft: --side {} is not a power of two up to 32768",
                self.side
            )));
        }
        let worker = Worker::new(self, dsm)?;
        worker.write(0, &self.signal(worker.rows.clone()))?;
        let mut clock = self.pace.start(dsm, "fft", 10)?;
        while clock.runs() {
            // Three exchanges an iteration: the result is in the other matrix.
            worker.transform(clock.done() % 2)?;
            if !clock.next()? {
                break;
            }
        }
        match dsm.rank() {
            0 => self.verify(&worker, clock.done()),
            _ => Ok(String::new()),
        }
    }
}

impl Fft {
    /// The signal, as far as it lies in `rows`.
    fn signal(&self, rows: Range<usize>) -> Vec<Complex> {
        let row = |i| {
            let mut dice = dice(self.seed, i);
            let point = move |_| [unit(&mut dice) - 0.5, unit(&mut dice) - 0.5];
            (0..self.side).map(point)
        };
        rows.flat_map(row).collect()
    }

    fn verify(&self, worker: &Worker<'_>, iterations: usize) -> Result<String> {
        let signal = self.signal(0..self.side);
        let expected = (0..iterations).fold(signal.clone(), |points, i| {
            sequential(self.side, &points, i % 2 == 1)
        });
        let result = worker.whole(iterations % 2)?;
        let differs = |(a, b): (&Complex, &Complex)| a.map(f64::to_bits) != b.map(f64::to_bits);
        if let Some(at) = result.iter().zip(&expected).position(differs) {
            let what = format!(
                "after {iterations} iterations point {at} is {:?}, in a sequential run {:?}",
                result[at], expected[at]
            );
            return Err(wrong(worker.dsm, "fft", what));
        }
        let mut parts = result.iter().flatten().zip(signal.iter().flatten());
        if iterations.is_multiple_of(2) && parts.any(|(a, b)| (a - b).abs() > TOLERANCE) {
            let what = format!("after {iterations} iterations the signal has not come back");
            return Err(wrong(worker.dsm, "fft", what));
        }
        Ok(format!(
            "fft: {} points by {} processes, {iterations} iterations; equal to a sequential run bit for bit",
            self.side * self.side,
            worker.dsm.size()
        ))
    }
}

/// One process and the shared variables.
struct Worker<'a> {
    dsm: &'a Dsm,
    side: usize,
    rows: Range<usize>,
    /// Two matrices of complex numbers, in blocks: block (i, j) has the rows of process i and the columns
    /// of process j, each column two numbers wide.
    points: [Matrix<f64>; 2],
    transforms: [Transform; 2],
}

impl<'a> Worker<'a> {
    fn new(fft: &Fft, dsm: &'a Dsm) -> Result<Self> {
        let (side, size) = (fft.side, dsm.size());
        // A row of a block for each pair: a split of the real numbers could cut a complex one in two.
        let matrix = |name| {
            let widest = share(side, size, 0).len();
            dsm.matrix::<f64>(name, side, 2 * widest * size)
                .split_blocks(size, size)
                .owner_ranks((0..size * size).map(|block| block / size))
                .declare()
        };
        Ok(Self {
            dsm,
            side,
            rows: share(side, size, dsm.rank()),
            points: [matrix("fft.even")?, matrix("fft.odd")?],
            transforms: [Transform::new(side, false), Transform::new(side, true)],
        })
    }

    /// One transform of the points of `from`; the result is in the other matrix. The end of the
    /// iteration is the third barrier.
    fn transform(&self, from: usize) -> Result<()> {
        let transform = &self.transforms[from];
        let mut rows = self.transposed(from)?;
        for (i, row) in self.rows.clone().zip(rows.chunks_exact_mut(self.side)) {
            transform.row(row);
            transform.twiddle(i, row);
        }
        self.write(1 - from, &rows)?;
        self.dsm.barrier()?;
        let mut rows = self.transposed(1 - from)?;
        for row in rows.chunks_exact_mut(self.side) {
            transform.row(row);
        }
        self.write(from, &rows)?;
        self.dsm.barrier()?;
        let rows = self.transposed(from)?;
        self.write(1 - from, &rows)
    }

    /// Own rows of the transposed matrix: what stands in these columns, at everyone.
    fn transposed(&self, which: usize) -> Result<Vec<Complex>> {
        let (size, side) = (self.dsm.size(), self.side);
        let mut under_way = Vec::with_capacity(size);
        for turn in 0..size {
            // Not all at the same owner first.
            let from = (self.dsm.rank() + turn) % size;
            let block = self.points[which].object(from * size + self.dsm.rank())?;
            under_way.push((from, block.read_async()));
        }
        let mut rows = vec![[0.0, 0.0]; self.rows.len() * side];
        for (from, block) in under_way {
            let block = block.wait()?;
            for (column, values) in share(side, size, from).zip(block.rows()) {
                for (row, value) in values
                    .as_chunks()
                    .0
                    .iter()
                    .take(self.rows.len())
                    .enumerate()
                {
                    rows[row * side + column] = *value;
                }
            }
        }
        Ok(rows)
    }

    /// Writes own rows, a block for each process.
    fn write(&self, which: usize, rows: &[Complex]) -> Result<()> {
        let size = self.dsm.size();
        let mut under_way = Vec::with_capacity(size);
        for to in 0..size {
            let block = self.points[which].object(self.dsm.rank() * size + to)?;
            let width = block.region().columns as usize;
            let mut values = vec![0.0; block.len()];
            for (row, block_row) in rows
                .chunks_exact(self.side)
                .zip(values.chunks_exact_mut(width))
            {
                let part = row[share(self.side, size, to)].as_flattened();
                block_row[..part.len()].copy_from_slice(part);
            }
            under_way.push(block.write_async(&values));
        }
        under_way.into_iter().try_for_each(|call| Ok(call.wait()?))
    }

    /// The whole matrix, row by row.
    fn whole(&self, which: usize) -> Result<Vec<Complex>> {
        let (size, side) = (self.dsm.size(), self.side);
        let mut all = vec![[0.0, 0.0]; side * side];
        for (at, block) in self.points[which].objects().enumerate() {
            let block = block.read()?;
            let columns = share(side, size, at % size);
            for (row, values) in share(side, size, at / size).zip(block.rows()) {
                let to = &mut all[row * side..][columns.clone()];
                to.copy_from_slice(&values.as_chunks().0[..columns.len()]);
            }
        }
        Ok(all)
    }
}
