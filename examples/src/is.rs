//! Integer sort: the ranks of many small integers, by counting (IS: docs/bibliography.md#dvsm, "Choice of applications").
//!
//! Each process has a share of the keys, in private memory, and each iteration changes two of them
//! and ranks all again: the rank of a key is the number of smaller keys. Two phases with two patterns
//! of sharing:
//!
//! * *Count.* The processes count their keys privately and add the counts to the shared buckets. The
//!   buckets are split into an object for each process; a process goes round them, beginning with its
//!   own, and adds in a section: the objects **migrate** from one to the next, and all are busy at once. With
//!   `--accumulate` the owner adds: one message for each object, which nobody waits for before the barrier. With `--gather`
//!   nobody adds for others: each process gives away its counts, which the others have when they leave the barrier.
//! * *Rank.* After a barrier everyone reads all buckets (**read-only**: copies, within the group) and
//!   ranks its own keys. At the end it writes the ranks into its own object.
//!
//! There are three sets of buckets, used in turn, so one barrier an iteration is enough: each process clears its object of the next
//! while one is counted into and the third may still be read. All is integers, so the result must equal the sequential one exactly. The size of the DVSM paper,
//! table 1, is `--keys 1048576 --buckets 512`.

use std::time::Instant;

use clap::Args;
use dsm_lib::{Cache, CopyPolicy, Dsm, Matrix, Object, Vector};

use crate::common::{Pace, dice, enough, same_bits, share, unit};
use crate::error::Result;
use crate::figures::{Checksum, Figures};
use crate::program::{Input, Program, Sequential};

/// The arguments of the program.
#[derive(Args, Debug, Clone)]
pub struct Is {
    /// Keys to rank, at least one per process.
    #[arg(long, default_value_t = 65_536)]
    keys: usize,
    /// Values that a key can have, from 0; at least one per process.
    #[arg(long, default_value_t = 512)]
    buckets: usize,
    /// Seed of the keys.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Have the owners add the counts (accumulate), instead of adding in sections.
    #[arg(long)]
    accumulate: bool,
    /// Give away the counts instead of adding them: everyone adds up what all have counted.
    #[arg(long, conflicts_with = "accumulate")]
    gather: bool,
    #[command(flatten)]
    pace: Pace,
}

impl Program for Is {
    fn run(&self, dsm: &Dsm) -> Result<String> {
        enough(dsm, "is", "--keys", self.keys, 1)?;
        enough(dsm, "is", "--buckets", self.buckets, 1)?;
        let shared = Shared::declare(self, dsm)?;
        let mine = share(self.keys, dsm.size(), dsm.rank());
        let mut keys: Vec<u32> = mine.clone().map(|at| self.key(at)).collect();
        for set in 0..SETS {
            shared.clear(set, dsm.rank())?;
        }
        shared.have_rows(dsm)?;
        let ranks = shared.ranks.object(dsm.rank())?;
        let mut clock = self.pace.start(dsm, "is", ITERATIONS)?;
        while clock.runs() {
            for (at, key) in self.changes(clock.done()) {
                if mine.contains(&at) {
                    keys[at - mine.start] = key;
                }
            }
            let set = clock.done() % SETS;
            let counts = histogram(&keys, self.buckets);
            // Whoever read the next set last has been at a barrier since, and who adds to it comes from one.
            shared.clear((set + 1) % SETS, dsm.rank())?;
            shared.add(set, dsm, &counts)?;
            let goes_on = clock.next()?;
            let starts = starts(&shared.sums(set, dsm, counts)?);
            let mut ranks = ranks.edit()?;
            rank(&keys, &starts, &mut ranks);
            ranks.finish()?;
            if !goes_on {
                break;
            }
        }
        clock.finish()?;
        if dsm.rank() > 0 {
            return Ok(String::new());
        }
        let expected = match clock.done() {
            0 => vec![0; self.keys],
            done => self.sequential(done),
        };
        same_bits(dsm, "is", &shared.ranks, &expected)?;
        let text = format!(
            "is: {} keys in {} buckets by {} processes, {} iterations; equal to a sequential run",
            self.keys,
            self.buckets,
            dsm.size(),
            clock.done()
        );
        Ok(clock.report(text, Checksum::of(&expected)))
    }
}

/// Sets of buckets.
const SETS: usize = 3;

/// Iterations if nothing is said.
const ITERATIONS: usize = 10;

impl Sequential for Is {
    fn alone(&self) -> Result<Figures> {
        let mut keys = self.all_keys();
        let mut ranks = vec![0; keys.len()];
        let started = Instant::now();
        for i in 0..self.pace.iterations(ITERATIONS) {
            for (at, key) in self.changes(i) {
                keys[at] = key;
            }
            rank(&keys, &starts(&histogram(&keys, self.buckets)), &mut ranks);
        }
        Ok(Figures::new(started.elapsed(), Checksum::of(&ranks)))
    }

    fn input(&self) -> Option<Input> {
        let iterations = self.pace.iterations(ITERATIONS);
        let sizes = [self.keys, self.buckets, iterations].map(|n| n.to_string());
        let keys = self.all_keys().into_iter();
        Some(Input {
            parameters: sizes.into(),
            data: keys.flat_map(u32::to_le_bytes).collect(),
        })
    }
}

impl Is {
    fn all_keys(&self) -> Vec<u32> {
        (0..self.keys).map(|at| self.key(at)).collect()
    }

    /// Key `at`: the sum of four random numbers, so that values in the middle are frequent.
    fn key(&self, at: usize) -> u32 {
        let mut dice = dice(self.seed, at);
        let sum: f64 = (0..4).map(|_| unit(&mut dice)).sum();
        (sum / 4.0 * self.buckets as f64) as u32
    }

    /// The keys that iteration `i` changes: where, and to what; so no iteration is like another.
    fn changes(&self, i: usize) -> [(usize, u32); 2] {
        let (first, second) = (i % self.keys, (i + self.keys / 2) % self.keys);
        let value = i % self.buckets;
        [
            (first, value as u32),
            (second, (self.buckets - 1 - value) as u32),
        ]
    }

    /// The whole computation by one process: the rank of each key after `iterations`.
    fn sequential(&self, iterations: usize) -> Vec<u32> {
        let mut keys = self.all_keys();
        for (at, key) in (0..iterations).flat_map(|i| self.changes(i)) {
            keys[at] = key;
        }
        let mut ranks = vec![0; keys.len()];
        rank(&keys, &starts(&histogram(&keys, self.buckets)), &mut ranks);
        ranks
    }
}

/// How many keys have each value. Frequent values follow each other, so four counters take turns: an addition need not wait for
/// the one before.
fn histogram(keys: &[u32], buckets: usize) -> Vec<u32> {
    let mut counts = [(); 4].map(|()| vec![0_u32; buckets]);
    let (fours, rest) = keys.as_chunks::<4>();
    for keys in fours {
        for (counts, key) in counts.iter_mut().zip(keys) {
            counts[*key as usize] += 1;
        }
    }
    let [mut sum, others @ ..] = counts;
    for key in rest {
        sum[*key as usize] += 1;
    }
    for other in others {
        sum.iter_mut().zip(other).for_each(|(sum, n)| *sum += n);
    }
    sum
}

/// The number of smaller keys, for each key.
#[inline(never)] // where it is inlined it takes half as long again
fn rank(keys: &[u32], starts: &[u32], ranks: &mut [u32]) {
    for (rank, key) in ranks.iter_mut().zip(keys) {
        *rank = starts[*key as usize];
    }
}

/// How many keys have a smaller value, for each value.
fn starts(counts: &[u32]) -> Vec<u32> {
    let smaller = |sum: &mut u32, count: &u32| {
        let start = *sum;
        *sum += count;
        Some(start)
    };
    counts.iter().scan(0, smaller).collect()
}

/// The shared variables.
struct Shared {
    counts: Counts,
    /// The rank of each key.
    ranks: Vector<u32>,
}

/// How many keys have each value, by sets.
enum Counts {
    /// Each process adds to the buckets of all: in sections, or the owners do it.
    Buckets {
        sets: [Vector<u32>; SETS],
        accumulate: bool,
    },
    /// Each process writes down what it has counted, and reads what the others have.
    Rows([Matrix<u32>; SETS]),
}

impl Shared {
    fn declare(is: &Is, dsm: &Dsm) -> Result<Self> {
        let split = |name, elements| {
            let vector = dsm.vector::<u32>(name, elements).split(dsm.size());
            vector.owner_per_rank()
        };
        let rows = |name| {
            let rows = dsm.matrix::<u32>(name, dsm.size(), is.buckets);
            let rows = rows.split_rows(dsm.size()).owner_ranks(0..dsm.size());
            rows.policy(CopyPolicy::Update).cache(Cache::Ap).declare()
        };
        let buckets = |name| split(name, is.buckets).declare();
        let counts = if is.gather {
            Counts::Rows([
                rows("is.counts-0")?,
                rows("is.counts-1")?,
                rows("is.counts-2")?,
            ])
        } else {
            Counts::Buckets {
                sets: [
                    buckets("is.buckets-0")?,
                    buckets("is.buckets-1")?,
                    buckets("is.buckets-2")?,
                ],
                accumulate: is.accumulate,
            }
        };
        // Each process writes its own in place, and the first reads them at the end.
        let ranks = split("is.ranks", is.keys).cache(Cache::Ap).declare()?;
        Ok(Self { counts, ranks })
    }

    /// Has a process's own buckets of a set hold nothing. Rows are written as a whole.
    fn clear(&self, set: usize, rank: usize) -> Result<()> {
        let Counts::Buckets { sets, .. } = &self.counts else {
            return Ok(());
        };
        let own = sets[set].object(rank)?;
        Ok(own.write_async(&vec![0; own.len()]).post()?)
    }

    /// Has copies of the others' rows, which each barrier brings up to date from now on: nobody has to ask one that computes.
    fn have_rows(&self, dsm: &Dsm) -> Result<()> {
        if let Counts::Rows(sets) = &self.counts {
            for row in sets.iter().flat_map(|rows| others(rows, dsm)) {
                row.read()?;
            }
        }
        Ok(())
    }

    /// Adds the counts of this process.
    fn add(&self, set: usize, dsm: &Dsm, counts: &[u32]) -> Result<()> {
        let part_of = |part| share(counts.len(), dsm.size(), part);
        match &self.counts {
            Counts::Rows(sets) => sets[set].object(dsm.rank())?.write_async(counts).post()?,
            Counts::Buckets { sets, accumulate } if *accumulate => {
                for (part, object) in sets[set].objects().enumerate() {
                    object.accumulate_async(&counts[part_of(part)]).post()?;
                }
            }
            Counts::Buckets { sets, .. } => {
                // Part by part, beginning with its own.
                for turn in 0..dsm.size() {
                    let part = (dsm.rank() + turn) % dsm.size();
                    let mut section = sets[set].object(part)?.acquire()?;
                    let mine = &counts[part_of(part)];
                    for (sum, count) in section.values_mut()?.iter_mut().zip(mine) {
                        *sum += count;
                    }
                    section.release()?;
                }
            }
        }
        Ok(())
    }

    /// The sums of what all have counted; `counts` are this process's.
    fn sums(&self, set: usize, dsm: &Dsm, counts: Vec<u32>) -> Result<Vec<u32>> {
        let rows = match &self.counts {
            Counts::Buckets { sets, .. } => return Ok(sets[set].read_all()?),
            Counts::Rows(sets) => &sets[set],
        };
        let mut sums = counts;
        for row in others(rows, dsm) {
            let theirs = row.read()?;
            sums.iter_mut().zip(&*theirs).for_each(|(sum, n)| *sum += n);
        }
        Ok(sums)
    }
}

/// The rows of the other processes.
fn others(rows: &Matrix<u32>, dsm: &Dsm) -> impl Iterator<Item = Object<u32>> {
    let own = dsm.rank();
    rows.objects()
        .filter(move |row| row.index() as usize != own)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rank_is_the_number_of_smaller_keys() {
        let keys = [3, 0, 3, 1, 7];
        let starts = starts(&histogram(&keys, 8));
        let ranks = keys.map(|k| starts[k as usize]);
        assert_eq!(ranks, [2, 0, 2, 1, 4]);
    }

    #[test]
    fn ranks_sort_the_keys() {
        #[derive(clap::Parser)]
        struct Line {
            #[command(flatten)]
            is: Is,
        }
        use clap::Parser;
        let is = Line::parse_from(["is", "--keys", "1000", "--buckets", "40"]).is;
        let ranks = is.sequential(3);
        let mut keys: Vec<u32> = (0..1000).map(|at| is.key(at)).collect();
        for (at, key) in (0..3).flat_map(|i| is.changes(i)) {
            keys[at] = key;
        }
        let mut sorted = keys.clone();
        sorted.sort_unstable();
        for (key, rank) in keys.iter().zip(ranks) {
            assert_eq!(sorted.partition_point(|k| k < key), rank as usize);
        }
        // Frequent in the middle, rare at the ends.
        let counts = histogram(&keys, 40);
        assert!(counts[20] > 4 * counts[2], "{counts:?}");
    }
}
