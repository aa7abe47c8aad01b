//! Who computes which tile: one queue per process, from which others steal.
//!
//! The tiles that a process has still to do are a range, and a range is one number: the first in the
//! upper half, the end in the lower. So a tile is taken, and half of a range stolen, by one
//! compare-exchange at the owner; no lock is held, and nobody waits. A range that comes back as it was means
//! what it meant, so it does no harm that nobody notices.

use std::ops::Range;

use dsm_lib::{Cache, Dsm, Vector};

use crate::error::Result;

/// The queues of all processes.
pub(crate) struct Queues {
    ranges: Vector<u64>,
    rank: usize,
    processes: usize,
    /// What was last seen in each queue: a guess, which the compare-exchange puts right.
    seen: Vec<u64>,
}

fn pack(tiles: &Range<usize>) -> u64 {
    (tiles.start as u64) << 32 | tiles.end as u64
}

fn unpack(word: u64) -> Range<usize> {
    (word >> 32) as usize..(word & u64::from(u32::MAX)) as usize
}

impl Queues {
    pub(crate) fn declare(dsm: &Dsm) -> Result<Self> {
        let ranges = dsm.vector("raytrace.queues", dsm.size());
        Ok(Self {
            ranges: ranges
                .split(dsm.size())
                .owner_per_rank()
                .cache(Cache::Ap) // mostly, each process takes from its own
                .declare()?,
            rank: dsm.rank(),
            processes: dsm.size(),
            seen: vec![0; dsm.size()],
        })
    }

    /// Gives this process `tiles`; nobody must be stealing.
    pub(crate) fn fill(&mut self, tiles: &Range<usize>) -> Result<()> {
        self.seen[self.rank] = pack(tiles);
        Ok(self.ranges.object(self.rank)?.set(0, pack(tiles))?)
    }

    /// A tile to do, of this process's own or stolen; none if there is nothing left to take.
    pub(crate) fn next(&mut self) -> Result<Option<Taken>> {
        if let Some(tile) = self.take(self.rank, |own| own.start..own.start + 1)? {
            return Ok(Some(Taken {
                tile: tile.start,
                stolen: 0,
            }));
        }
        for distance in 1..self.processes {
            let victim = (self.rank + distance) % self.processes;
            let half = |theirs: &Range<usize>| theirs.start + theirs.len() / 2..theirs.end;
            if let Some(stolen) = self.take(victim, half)? {
                // The own queue is empty: nobody takes from it, so it can simply be written.
                let tile = stolen.start;
                self.fill(&(tile + 1..stolen.end))?;
                return Ok(Some(Taken {
                    tile,
                    stolen: stolen.len() as u64,
                }));
            }
        }
        Ok(None)
    }

    /// Takes a part, at one end, of what a process has; none if it has nothing.
    fn take(
        &mut self,
        process: usize,
        part: impl Fn(&Range<usize>) -> Range<usize>,
    ) -> Result<Option<Range<usize>>> {
        let queue = self.ranges.object(process)?;
        loop {
            let seen = self.seen[process];
            let has = unpack(seen);
            let (wanted, left) = match has.start < has.end {
                true => {
                    let wanted = part(&has);
                    let left = match wanted.start == has.start {
                        true => wanted.end..has.end,
                        false => has.start..wanted.start,
                    };
                    (Some(wanted), pack(&left))
                }
                // Nothing is taken; only to see whether it is so.
                false => (None, seen),
            };
            let result = queue.compare_exchange(0, seen, left)?;
            if result.stored {
                self.seen[process] = left;
                return Ok(wanted);
            }
            self.seen[process] = result.previous;
        }
    }
}

/// A tile to do.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Taken {
    pub(crate) tile: usize,
    /// How many were stolen to have it.
    pub(crate) stolen: u64,
}
