//! Parallel radix sort: digit by digit, with histograms and prefix sums (docs/bibliography.md#memory-hierarchies, section 5.2).
//!
//! Each process has a part of the keys, in private memory. For each digit it counts its keys of each value, writes this
//! histogram to an object of its own, and sorts its part by that digit. Then it reads all histograms and
//! adds them up to know where the keys of its part of the whole are. What of its part belongs to others it writes to an
//! object of its own memory process, and it reads the others': one range of each, all requests under way at once. All
//! writes are local. Two barriers a digit: the histograms are known, the keys are written; while they are under way a
//! process sorts its part and puts its own keys into place. The histograms'
//! copies are updated, since everybody reads all of them; the keys' are not, since everybody reads
//! others each time. At the end the keys must be those of a sequential sort.

mod kernel;

use std::ops::Range;
use std::time::Instant;

use clap::Args;
use dsm_lib::{Cache, CopyPolicy, Dsm, Matrix, Vector};
use rand::RngExt;

use crate::common::{Clock, Pace, dice_from, enough, same_bits, share};
use crate::error::Result;
use crate::figures::{Checksum, Figures};
use crate::program::{Program, Sequential, patient};
use kernel::{Digit, histogram, pieces, place, sort, sort_by_digit, spans};

/// The arguments of the program.
#[derive(Args, Debug, Clone)]
pub struct Radix {
    /// Keys (of 32 bits), at least one per process.
    #[arg(long, default_value_t = 65_536)]
    keys: usize,
    /// Bits of a digit, 1 to 16: a histogram has 2^BITS entries.
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=16))]
    bits: u32,
    /// Seed of the keys; each iteration sorts those of the next one.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    pace: Pace,
}

/// Iterations if nothing is said.
const ITERATIONS: usize = 1;

impl Program for Radix {
    fn run(&self, dsm: &Dsm) -> Result<String> {
        enough(dsm, "radix", "--keys", self.keys, 1)?;
        let worker = Worker::new(self, dsm)?;
        let mut clock = self.pace.start(dsm, "radix", ITERATIONS)?;
        let mut sorted = Vec::new();
        while clock.runs() {
            sorted = worker.sort(self.seed_of(clock.done()))?;
            if !clock.next()? {
                break;
            }
        }
        if clock.done() > 0 {
            worker.sorted.object(dsm.rank())?.write(&sorted)?;
        }
        clock.finish()?;
        match dsm.rank() {
            0 => self.verify(&worker, &clock),
            _ => Ok(String::new()),
        }
    }
}

impl Sequential for Radix {
    fn alone(&self) -> Result<Figures> {
        let mut last = Vec::new();
        let started = Instant::now();
        for i in 0..self.pace.iterations(ITERATIONS) {
            last = keys(self.seed_of(i), 0..self.keys);
            sort(&mut last, self.bits);
        }
        Ok(Figures::new(started.elapsed(), Checksum::of(&last)))
    }
}

impl Radix {
    /// The seed of the keys of an iteration.
    fn seed_of(&self, iteration: usize) -> u64 {
        self.seed.wrapping_add(iteration as u64)
    }

    fn verify(&self, worker: &Worker<'_>, clock: &Clock) -> Result<String> {
        let (iterations, mut expected) = (clock.done(), Vec::new());
        if let Some(last) = iterations.checked_sub(1) {
            expected = keys(self.seed_of(last), 0..self.keys);
            expected.sort_unstable();
            same_bits(worker.dsm, "radix", &worker.sorted, &expected)?;
        }
        let text = format!(
            "radix: {} keys by {} bits, {} processes, {iterations} iterations; equal to a sequential sort",
            self.keys,
            self.bits,
            worker.dsm.size()
        );
        Ok(clock.report(text, Checksum::of(&expected)))
    }
}

/// Some of the keys of `seed`.
fn keys(seed: u64, which: Range<usize>) -> Vec<u32> {
    let mut dice = dice_from(seed, 0, which.start);
    which.map(|_| dice.random()).collect()
}

/// One process, and the shared variables.
struct Worker<'a> {
    radix: &'a Radix,
    dsm: &'a Dsm,
    /// The keys sorted by the last digit, each process's in an object: what others need of them.
    keys: Vector<u32>,
    /// One row per process: how many keys it has of each value of the digit.
    histograms: Matrix<u32>,
    /// The result.
    sorted: Vector<u32>,
}

impl<'a> Worker<'a> {
    fn new(radix: &'a Radix, dsm: &'a Dsm) -> Result<Self> {
        let part = |name| {
            dsm.vector(name, radix.keys)
                .split(dsm.size())
                .owner_per_rank()
                .declare()
        };
        Ok(Self {
            radix,
            dsm,
            keys: part("radix.keys")?,
            histograms: dsm
                .matrix("radix.histograms", dsm.size(), 1 << radix.bits)
                .split_rows(dsm.size())
                .owner_per_rank()
                .policy(CopyPolicy::Update)
                .cache(Cache::Ap)
                .declare()?,
            sorted: part("radix.sorted")?,
        })
    }

    /// Sorts the keys of `seed`; returns this process's part.
    fn sort(&self, seed: u64) -> Result<Vec<u32>> {
        let (dsm, rank) = (patient(self.dsm), self.dsm.rank());
        let mine = share(self.radix.keys, dsm.size(), rank);
        let mut part = keys(seed, mine.clone());
        let mut by_digit = vec![0; part.len()];
        for digit in Digit::all(self.radix.bits) {
            let counts = histogram(&part, digit);
            let histogram = self.histograms.object(rank)?;
            histogram.write_async(&counts).post()?;
            let counted = dsm.barrier_async();
            sort_by_digit(&part, digit, &counts, &mut by_digit);
            counted.wait()?;

            let histograms = self.histograms.read_all()?;
            let pieces = pieces(&histograms, 1 << self.radix.bits, &mine);
            let spans = spans(&pieces, dsm.size());
            self.give(&by_digit, &spans[rank])?;
            let given = dsm.barrier_async();
            let own = (rank, &spans[rank]);
            place(&pieces, own, &by_digit[spans[rank].clone()], &mut part);
            given.wait()?;
            let parts = self.keys.objects().zip(&spans).enumerate();
            let asked = parts.filter(|(process, (_, span))| *process != rank && !span.is_empty());
            let asked: Vec<_> = asked
                .map(|(process, (part, span))| (process, span, part.read_range_async(span.clone())))
                .collect();
            for (process, span, keys) in asked {
                place(&pieces, (process, span), &keys.wait()?, &mut part);
            }
        }
        Ok(part)
    }

    /// Writes the keys that others need: all but `own`.
    fn give(&self, by_digit: &[u32], own: &Range<usize>) -> Result<()> {
        let object = self.keys.object(self.dsm.rank())?;
        let others = [0..own.start, own.end..by_digit.len()];
        for keys in others.into_iter().filter(|keys| !keys.is_empty()) {
            object.write_at_async(keys.start, &by_digit[keys]).post()?;
        }
        Ok(())
    }
}
