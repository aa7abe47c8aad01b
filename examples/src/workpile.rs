//! Work pile: clients that fetch chunks of work from servers (docs/bibliography.md#lopc, section 5).
//!
//! The last `--servers` application processes only lend their memory process: each has a pile, a shared
//! counter. The others are clients: they choose a server at random, take the next chunk of its pile,
//! work on it for a highly variable time, and come back. That is the whole sharing: an element that
//! everyone updates, at its owner (`fetch_add`, one request and one reply), or with `--locks` in a
//! section (acquire, read, write, release), which is how a pile that is more than a counter is shared.
//! With `--guided` a client takes several chunks at once while many are left, and so asks less often.
//! A few servers are a bottleneck, many leave few clients to work: `dosmos model lopc` says how many are best.
//!
//! Each client keeps the sum of its chunks' results and writes it, at the end, into an object of its own.
//! The sum wraps, so it does not depend on who did what: it must equal that of a sequential run, and no
//! chunk may be done twice or left out.

use std::ops::Range;
use std::time::{Duration, Instant};

use clap::Args;
use dsm_lib::{Cache, Call, Dsm, Matrix, Object, Vector};
use rand::RngExt;

use crate::common::{Dice, dice, seconds, unit};
use crate::error::{Error, Result};
use crate::figures::{Checksum, Figures};
use crate::program::{Program, Sequential, patient, wrong};

/// The arguments of the program.
#[derive(Args, Debug, Clone)]
pub struct Workpile {
    /// Chunks of work in each pile; without this and --seconds, 500.
    #[arg(long)]
    chunks: Option<u64>,
    /// Work until this much time is up (or the piles are empty).
    #[arg(long)]
    seconds: Option<f64>,
    /// Processes that serve and do not work, fewer than there are; 0 for one pile that the only kind of
    /// process, clients, keeps among itself [default: a quarter].
    #[arg(long)]
    servers: Option<usize>,
    /// Mean work of a chunk, in steps of a few nanoseconds; exponentially distributed.
    #[arg(long, default_value_t = 20_000)]
    work: u64,
    /// Take chunks in a section instead of by fetch-add.
    #[arg(long)]
    locks: bool,
    /// Ask for the next chunk before working on this one (not with --locks).
    #[arg(long, conflicts_with = "locks")]
    ahead: bool,
    /// Take several chunks at once while many are left: a share of half of what is left (guided; not with --locks).
    #[arg(long, conflicts_with = "locks")]
    guided: bool,
    /// Seed of the work.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Print the time of the computation and a checksum of the result, as a line of JSON.
    #[arg(long)]
    json: bool,
}

impl Sequential for Workpile {
    fn alone(&self) -> Result<Figures> {
        let started = Instant::now();
        let piles = self.servers.unwrap_or(0).max(1);
        let sum = self.sequential(&vec![self.limit(); piles]);
        Ok(Figures::new(started.elapsed(), Checksum::of(&[sum])))
    }
}

impl Program for Workpile {
    fn run(&self, dsm: &Dsm) -> Result<String> {
        let servers = self.servers.unwrap_or(dsm.size() / 4);
        if servers >= dsm.size() {
            return Err(Error::Usage(format!(
                "workpile: --servers {servers} leaves no client of {} processes; give fewer",
                dsm.size()
            )));
        }
        let clients = dsm.size() - servers;
        let shared = Shared::declare(dsm, servers)?;
        shared.clear(dsm.rank())?;
        patient(dsm).barrier()?;
        let started = Instant::now();
        if dsm.rank() < clients {
            let done = Client::new(self, dsm.rank(), clients, &shared).work()?;
            shared.results.object(dsm.rank())?.write(&done)?;
        }
        patient(dsm).barrier()?;
        let took = started.elapsed();
        match dsm.rank() {
            0 => self.verify(dsm, &shared, (servers, took)),
            _ => Ok(String::new()),
        }
    }
}

impl Workpile {
    fn limit(&self) -> u64 {
        let endless = self.seconds.map_or(500, |_| u64::MAX);
        self.chunks.unwrap_or(endless)
    }

    /// The result of chunk `chunk` of pile `pile`: numbers that only doing the work gives.
    fn result(&self, pile: usize, chunk: u64) -> u64 {
        let mut dice = dice(self.seed ^ chunk, pile);
        let steps = -(1.0 - unit(&mut dice)).ln() * self.work as f64;
        let start: u64 = dice.random();
        (0..steps as u64).fold(start, |x, step| {
            (x ^ step)
                .wrapping_mul(0x9E37_79B9_7F4A_7C15)
                .rotate_left(23)
        })
    }

    /// The sum of the results of the first chunks of each pile.
    fn sequential(&self, taken: &[u64]) -> u64 {
        let all = taken.iter().enumerate();
        let results = all.flat_map(|(pile, n)| (0..*n).map(move |chunk| self.result(pile, chunk)));
        results.fold(0, u64::wrapping_add)
    }

    fn verify(
        &self,
        dsm: &Dsm,
        shared: &Shared,
        (servers, took): (usize, Duration),
    ) -> Result<String> {
        let mut taken = Vec::new();
        for pile in shared.piles.objects() {
            // Whoever finds a pile empty has counted it up.
            taken.push(pile.get(0)?.min(self.limit()));
        }
        let (mut chunks, mut sum, mut nanos, mut waited) = (0, 0_u64, 0, 0);
        for client in shared.results.objects() {
            let done = client.read()?;
            chunks += done[CHUNKS];
            sum = sum.wrapping_add(done[SUM]);
            nanos = done[NANOS].max(nanos);
            waited += done[WAITED];
        }
        let (should, expected) = (taken.iter().sum::<u64>(), self.sequential(&taken));
        if (chunks, sum) != (should, expected) {
            let what = format!(
                "{chunks} chunks were done with sum {sum}, {should} were taken, and a sequential run gives {expected}"
            );
            return Err(wrong(dsm, "workpile", what));
        }
        if self.json {
            return Ok(Figures::new(took, Checksum::of(&[sum])).line());
        }
        Ok(format!(
            "workpile: {chunks} chunks by clients {} and servers {servers}, {:.0} chunks/s, {:.1} us a request; sum equal to that of a sequential run",
            dsm.size() - servers,
            chunks as f64 / Duration::from_nanos(nanos).as_secs_f64().max(1e-9),
            waited as f64 / 1e3 / chunks.max(1) as f64
        ))
    }
}

/// What a client has done, by position in its object of the results: number of chunks, sum of their
/// results, time it took, time it waited for chunks.
const CHUNKS: usize = 0;
const SUM: usize = 1;
const NANOS: usize = 2;
const WAITED: usize = 3;

/// The shared variables.
struct Shared {
    /// The next chunk of each pile.
    piles: Vector<u64>,
    /// What each client has done.
    results: Matrix<u64>,
}

impl Shared {
    fn declare(dsm: &Dsm, servers: usize) -> Result<Self> {
        let clients = dsm.size() - servers;
        let piles = servers.max(1);
        Ok(Self {
            piles: dsm
                .vector("workpile.piles", piles)
                .split(piles)
                .owner_ranks((0..piles).map(|pile| (clients + pile).min(dsm.size() - 1)))
                .cache(Cache::Ap) // who works alone takes chunks without a message
                .declare()?,
            results: dsm
                .matrix("workpile.results", dsm.size(), WAITED + 1)
                .split_rows(dsm.size())
                .owner_per_rank()
                .declare()?,
        })
    }

    fn clear(&self, rank: usize) -> Result<()> {
        for pile in self.piles.objects().filter(|_| rank == 0) {
            pile.write(&[0])?;
        }
        Ok(self.results.object(rank)?.write(&[0; WAITED + 1])?)
    }
}

/// A client at work.
struct Client<'a> {
    workpile: &'a Workpile,
    rank: usize,
    clients: usize,
    /// The piles that were not empty when last looked at.
    piles: Vec<Pile>,
}

/// A pile as a client knows it.
struct Pile {
    number: usize,
    counter: Object<u64>,
    /// Chunks that were taken when last looked at.
    taken: u64,
}

impl<'a> Client<'a> {
    fn new(workpile: &'a Workpile, rank: usize, clients: usize, shared: &Shared) -> Self {
        let pile = |(number, counter)| Pile {
            number,
            counter,
            taken: 0,
        };
        Self {
            workpile,
            rank,
            clients,
            piles: shared.piles.objects().enumerate().map(pile).collect(),
        }
    }

    /// Works until time is up or all piles are empty; returns what it has done.
    fn work(mut self) -> Result<[u64; WAITED + 1]> {
        let limit = self.workpile.seconds.map(seconds);
        let mut dice = dice(!self.workpile.seed, self.rank);
        let (start, mut waited) = (Instant::now(), Duration::ZERO);
        let mut done = [0_u64; WAITED + 1];
        let mut next = self.choose(&mut dice);
        while let Some((which, asked)) = next {
            let waits = Instant::now();
            let chunks = asked.wait(self.workpile)?;
            waited += waits.elapsed();
            let goes_on = limit.is_none_or(|limit| start.elapsed() < limit);
            let pile = &mut self.piles[which];
            pile.taken = chunks.end;
            let number = pile.number;
            if chunks.start >= self.workpile.limit() {
                self.piles.swap_remove(which);
                next = if goes_on {
                    self.choose(&mut dice)
                } else {
                    None
                };
                continue;
            }
            let ahead = match self.workpile.ahead && goes_on {
                true => self.choose(&mut dice),
                false => None,
            };
            for chunk in chunks.start..chunks.end.min(self.workpile.limit()) {
                let result = self.workpile.result(number, chunk);
                done[CHUNKS] += 1;
                done[SUM] = done[SUM].wrapping_add(result);
            }
            next = match ahead {
                None if goes_on => self.choose(&mut dice),
                ahead => ahead,
            };
        }
        done[NANOS] = start.elapsed().as_nanos() as u64;
        done[WAITED] = waited.as_nanos() as u64;
        Ok(done)
    }

    /// Asks a pile for its next chunk; none if all are empty.
    fn choose(&self, dice: &mut Dice) -> Option<(usize, Asked)> {
        if self.piles.is_empty() {
            return None;
        }
        let which = dice.random_range(0..self.piles.len());
        let pile = &self.piles[which];
        let chunks = self.chunks(pile.taken);
        let asked = match self.workpile.ahead {
            true => Asked::Already(pile.counter.fetch_add_async(0, chunks), chunks),
            false => Asked::Not(pile.counter.clone(), chunks),
        };
        Some((which, asked))
    }

    /// How many chunks to take from a pile of which `taken` were taken.
    fn chunks(&self, taken: u64) -> u64 {
        let left = self.workpile.limit().saturating_sub(taken);
        // A pile without end has no share.
        match self.workpile.guided && self.workpile.limit() < u64::MAX {
            true => (left / (2 * self.clients as u64)).max(1),
            false => 1,
        }
    }
}

/// A request for a chunk.
enum Asked {
    Already(Call<u64>, u64),
    Not(Object<u64>, u64),
}

impl Asked {
    /// The numbers of the chunks.
    fn wait(self, workpile: &Workpile) -> Result<Range<u64>> {
        let (first, chunks) = match self {
            Self::Already(call, chunks) => (call.wait()?, chunks),
            Self::Not(pile, chunks) if !workpile.locks => (pile.fetch_add(0, chunks)?, chunks),
            Self::Not(pile, chunks) => {
                let mut section = pile.acquire()?;
                let first = section.get(0)?;
                section.set(0, first + chunks)?;
                section.release()?;
                (first, chunks)
            }
        };
        Ok(first..first + chunks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workpile() -> Workpile {
        Workpile {
            chunks: None,
            seconds: None,
            servers: None,
            work: 50,
            locks: false,
            ahead: false,
            guided: false,
            seed: 3,
            json: false,
        }
    }

    #[test]
    fn a_chunk_twice_or_none_changes_the_sum() {
        let pile = workpile();
        let whole = pile.sequential(&[4, 2]);
        assert_eq!(whole, pile.sequential(&[4, 2]));
        assert_ne!(whole, pile.sequential(&[4, 1]));
        assert_ne!(whole, pile.sequential(&[2, 4]));
        assert_ne!(whole, whole.wrapping_add(pile.result(0, 0)));
        let single = pile.result(0, 0).wrapping_add(pile.result(0, 1));
        assert_eq!(pile.sequential(&[2]), single);
    }

    #[test]
    fn without_words_piles_are_finite_and_by_the_clock_endless() {
        let timed = Workpile {
            seconds: Some(1.0),
            ..workpile()
        };
        assert_eq!((workpile().limit(), timed.limit()), (500, u64::MAX));
    }
}
