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
//!
//! With `--partition` keys travel once instead of once a digit (docs/bibliography.md#partitioned-radix-sort): the histograms are
//! of the highest digit, and say which of its values each process sorts, so that all have about as many keys; each process
//! gives the others theirs, and sorts what it has then by itself.

mod kernel;

use std::mem::take;
use std::ops::Range;
use std::time::Instant;

use clap::Args;
use dsm_lib::{Cache, Call, CopyPolicy, Dsm, Matrix, Vector, View};
use rand::RngExt;

use crate::common::{Clock, Pace, dice_from, enough, same_bits, share};
use crate::error::Result;
use crate::figures::{Checksum, Figures};
use crate::program::{Program, Sequential, patient};
use kernel::{
    Digit, Partition, histogram, histograms, pieces, place, sort, sort_by_digit, sort_counted,
    spans,
};

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
    /// Send each key once, to the process that sorts the keys of its highest digit, instead of once a digit.
    #[arg(long)]
    partition: bool,
    #[command(flatten)]
    pace: Pace,
}

/// Iterations if nothing is said.
const ITERATIONS: usize = 1;

impl Program for Radix {
    fn run(&self, dsm: &Dsm) -> Result<String> {
        enough(dsm, "radix", "--keys", self.keys, 1)?;
        let mut worker = Worker::new(self, dsm)?;
        let mut clock = self.pace.start(dsm, "radix", ITERATIONS)?;
        let mut first = 0;
        while clock.runs() {
            let seed = self.seed_of(clock.done());
            first = match self.partition {
                true => worker.sort_partition(seed)?,
                false => worker.sort(seed)?,
            };
            if !clock.next()? {
                break;
            }
        }
        worker.write(first)?;
        clock.finish()?;
        match dsm.rank() {
            0 => self.verify(&worker, &clock),
            _ => Ok(String::new()),
        }
    }
}

impl Sequential for Radix {
    fn alone(&self) -> Result<Figures> {
        let (mut last, mut spare) = (Vec::new(), Vec::new());
        let started = Instant::now();
        for i in 0..self.pace.iterations(ITERATIONS) {
            keys(self.seed_of(i), 0..self.keys, &mut last);
            sort(&mut last, self.bits, &mut spare);
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
            keys(self.seed_of(last), 0..self.keys, &mut expected);
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

/// Some of the keys of `seed`, in place of those before.
fn keys(seed: u64, which: Range<usize>, keys: &mut Vec<u32>) {
    let mut dice = dice_from(seed, 0, which.start);
    keys.clear();
    keys.extend(which.map(|_| dice.random::<u32>()));
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
    /// This process's part of the keys, and memory for as many.
    part: Vec<u32>,
    spare: Vec<u32>,
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
            part: Vec::new(),
            spare: Vec::new(),
        })
    }

    /// Sorts the keys of `seed` by one digit after another; returns where in the whole this process's part starts.
    fn sort(&mut self, seed: u64) -> Result<usize> {
        let (dsm, rank) = (patient(self.dsm), self.dsm.rank());
        let mine = share(self.radix.keys, dsm.size(), rank);
        let (mut part, mut by_digit) = (take(&mut self.part), take(&mut self.spare));
        keys(seed, mine.clone(), &mut part);
        by_digit.resize(part.len(), 0);
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
            for (process, keys) in self.ask(&spans) {
                let whose = (process, &spans[process]);
                place(&pieces, whose, &keys.wait()?, &mut part);
            }
        }
        (self.part, self.spare) = (part, by_digit);
        Ok(mine.start)
    }

    /// As [`sort`](Self::sort), where this process's part is the keys of some values of the highest digit.
    fn sort_partition(&mut self, seed: u64) -> Result<usize> {
        let (dsm, rank, bits) = (patient(self.dsm), self.dsm.rank(), self.radix.bits);
        let (mut part, mut by_process) = (take(&mut self.part), take(&mut self.spare));
        keys(seed, share(self.radix.keys, dsm.size(), rank), &mut part);
        if dsm.size() == 1 {
            sort(&mut part, bits, &mut by_process);
            (self.part, self.spare) = (part, by_process);
            return Ok(0);
        }
        let digit = Digit::highest(bits);
        let counts = histogram(&part, digit);
        let histogram = self.histograms.object(rank)?;
        histogram.write_async(&counts).post()?;
        dsm.barrier()?;

        let partition = Partition::new(&self.histograms.read_all()?, dsm.size());
        let own = partition.span(rank, rank);
        by_process.resize(part.len(), 0);
        partition.distribute(rank, &part, digit, &mut by_process);
        if own.len() < by_process.len() {
            let object = self.keys.object(rank)?;
            object.write_async(&by_process).post()?;
        }
        let given = dsm.barrier_async();
        part.clear();
        part.extend_from_slice(&by_process[own]);
        let mut sums = histograms(&part, bits);
        given.wait()?;
        let spans: Vec<_> = (0..dsm.size())
            .map(|from| partition.span(from, rank))
            .collect();
        for (_, keys) in self.ask(&spans) {
            let keys = keys.wait()?;
            part.extend_from_slice(&keys);
            for (sums, counts) in sums.iter_mut().zip(histograms(&keys, bits)) {
                sums.iter_mut().zip(counts).for_each(|(sum, n)| *sum += n);
            }
        }
        sort_counted(&mut part, bits, &sums, &mut by_process);
        (self.part, self.spare) = (part, by_process);
        Ok(partition.whole(rank).start)
    }

    /// Asks for a span of each other process's keys, all at once.
    fn ask(&self, spans: &[Range<usize>]) -> Vec<(usize, Call<View<u32>>)> {
        let parts = self.keys.objects().zip(spans).enumerate();
        let asked =
            parts.filter(|(process, (_, span))| *process != self.dsm.rank() && !span.is_empty());
        asked
            .map(|(process, (part, span))| (process, part.read_range_async(span.clone())))
            .collect()
    }

    /// Writes this process's part of the result, from position `first` of the whole on.
    fn write(&self, first: usize) -> Result<()> {
        let (mut at, mut rest) = (first, &self.part[..]);
        while !rest.is_empty() {
            let (object, position) = self.sorted.locate(0, at)?;
            let (now, later) = rest.split_at(rest.len().min(object.len() - position));
            object.write_at(position, now)?;
            (at, rest) = (at + now.len(), later);
        }
        Ok(())
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
