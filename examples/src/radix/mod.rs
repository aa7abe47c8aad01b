//! Parallel radix sort: digit by digit, with histograms and prefix sums (docs/bibliography.md#memory-hierarchies, section 5.2).
//!
//! Each process has a part of the keys. For each digit it sorts its part by that digit and writes it,
//! with its histogram, to objects of its own memory process; after a barrier it reads all histograms,
//! adds them up to know where the keys of its part of the whole are, and reads them: one range of each
//! other process's part, all requests under way at once. All writes are local, and there are two
//! variables of each kind, written in turns, so that one barrier a digit is enough. The histograms'
//! copies are updated, since everybody reads all of them; the keys' are not, since everybody reads
//! others each time. At the end the keys must be those of a sequential sort.

mod kernel;

use std::ops::Range;

use clap::Args;
use dsm_lib::{Call, CopyPolicy, Dsm, Matrix, Vector, View};
use rand::RngExt;

use crate::app::{Program, patient};
use crate::common::{Pace, dice, enough, same_bits, share};
use crate::error::Result;
use kernel::{Digit, assemble, pieces, sort_by_digit, spans};

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

impl Program for Radix {
    fn run(&self, dsm: &Dsm) -> Result<String> {
        enough(dsm, "radix", "--keys", self.keys, 1)?;
        let worker = Worker::new(self, dsm)?;
        let mut clock = self.pace.start(dsm, "radix", 1)?;
        while clock.runs() {
            worker.sort(self.seed_of(clock.done()))?;
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

impl Radix {
    /// The seed of the keys of an iteration.
    fn seed_of(&self, iteration: usize) -> u64 {
        self.seed.wrapping_add(iteration as u64)
    }

    fn verify(&self, worker: &Worker<'_>, iterations: usize) -> Result<String> {
        if let Some(last) = iterations.checked_sub(1) {
            let mut expected = keys(self.seed_of(last), 0..self.keys);
            expected.sort_unstable();
            same_bits(worker.dsm, "radix", &worker.sorted, &expected)?;
        }
        Ok(format!(
            "radix: {} keys by {} bits, {} processes, {iterations} iterations; equal to a sequential sort",
            self.keys,
            self.bits,
            worker.dsm.size()
        ))
    }
}

/// Some of the keys of `seed`.
fn keys(seed: u64, which: Range<usize>) -> Vec<u32> {
    which.map(|at| dice(seed, at).random()).collect()
}

/// One process, and the shared variables.
struct Worker<'a> {
    radix: &'a Radix,
    dsm: &'a Dsm,
    /// The keys sorted by an even and by an odd digit, each process's in an object.
    parts: [Vector<u32>; 2],
    /// One row per process: how many keys it has of each value of the digit.
    histograms: [Matrix<u32>; 2],
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
        let histogram = |name| {
            dsm.matrix(name, dsm.size(), 1 << radix.bits)
                .split_rows(dsm.size())
                .owner_per_rank()
                .policy(CopyPolicy::Update)
                .declare()
        };
        Ok(Self {
            radix,
            dsm,
            parts: [part("radix.even-keys")?, part("radix.odd-keys")?],
            histograms: [
                histogram("radix.even-histograms")?,
                histogram("radix.odd-histograms")?,
            ],
            sorted: part("radix.sorted")?,
        })
    }

    fn sort(&self, seed: u64) -> Result<()> {
        let rank = self.dsm.rank();
        let mine = share(self.radix.keys, self.dsm.size(), rank);
        let mut part = keys(seed, mine.clone());
        for (pass, digit) in Digit::all(self.radix.bits).enumerate() {
            let (parts, histograms) = (&self.parts[pass % 2], &self.histograms[pass % 2]);
            let (by_digit, histogram) = sort_by_digit(&part, digit);
            let written = parts.object(rank)?.write_async(&by_digit);
            histograms.object(rank)?.write(&histogram)?;
            written.wait()?;
            patient(self.dsm).barrier()?;
            let histograms = histograms.read_all()?;
            let pieces = pieces(&histograms, 1 << self.radix.bits, &mine);
            let spans = spans(&pieces, self.dsm.size());
            part = assemble(&pieces, &spans, &self.fetch(parts, &spans, &by_digit)?);
        }
        Ok(self.sorted.object(rank)?.write(&part)?)
    }

    /// The `spans` of all parts; this process's own, which it has, it does not read.
    fn fetch(
        &self,
        parts: &Vector<u32>,
        spans: &[Range<usize>],
        own: &[u32],
    ) -> Result<Vec<Vec<u32>>> {
        let rank = self.dsm.rank();
        let asked = parts.objects().zip(spans).map(|(part, span)| {
            let needed = part.index() as usize != rank && !span.is_empty();
            needed.then(|| part.read_range_async(span.clone()))
        });
        let asked: Vec<Option<Call<View<u32>>>> = asked.collect();
        let mut keys = Vec::with_capacity(asked.len());
        for call in asked {
            keys.push(call.map_or(Ok(Vec::new()), |c| c.wait().map(View::into_vec))?);
        }
        keys[rank] = own[spans[rank].clone()].to_vec();
        Ok(keys)
    }
}
