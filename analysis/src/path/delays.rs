//! Who was waited for, where and why: sums over the run, in a table that does not grow with it.

use dosmos_proto::{ApId, ObjectId, VarId};
use rustc_hash::FxHashMap;

use super::tally::Doing;

/// Rows at most; beyond them the smallest are given up.
const MOST: usize = 4_096;

/// Where it was waited.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum At {
    /// At a barrier.
    Barrier(VarId),
    /// For a lock.
    Lock(ObjectId),
    /// In releases, for copies.
    Copies(VarId),
}

/// A row: what is summed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Key {
    /// Who was waited for, if one process was.
    pub(super) process: Option<ApId>,
    /// Where.
    pub(super) at: At,
    /// What that process did meanwhile.
    pub(super) because: Doing,
}

/// A row: the sums.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Waited {
    /// By all together, nanoseconds.
    pub(super) time: u64,
    /// How often.
    pub(super) times: u64,
    /// Who waited, by the numbers of the processes of this table.
    waiting: Vec<u64>,
}

impl Waited {
    /// Numbers of those that waited.
    pub(super) fn waiting(&self) -> impl Iterator<Item = usize> {
        let words = self.waiting.iter().enumerate();
        words.flat_map(|(at, word)| {
            let set = (0..64).filter(move |bit| word >> bit & 1 == 1);
            set.map(move |bit| 64 * at + bit)
        })
    }

    fn waits(&mut self, process: usize) {
        if self.waiting.len() <= process / 64 {
            self.waiting.resize(process / 64 + 1, 0);
        }
        self.waiting[process / 64] |= 1 << (process % 64);
    }
}

/// The sums.
#[derive(Clone, Debug, Default)]
pub(super) struct Delays {
    rows: FxHashMap<Key, Waited>,
}

impl Delays {
    /// Once more these processes waited, this long together.
    pub(super) fn add(&mut self, key: Key, time: u64, waiting: impl Iterator<Item = usize>) {
        if time == 0 {
            return;
        }
        if self.rows.len() >= MOST && !self.rows.contains_key(&key) {
            self.shrink();
        }
        let row = self.rows.entry(key).or_default();
        row.time += time;
        row.times += 1;
        waiting.for_each(|process| row.waits(process));
    }

    /// The rows, the largest first.
    pub(super) fn largest(&self) -> Vec<(&Key, &Waited)> {
        let mut rows: Vec<_> = self.rows.iter().collect();
        rows.sort_by_key(|(key, row)| (std::cmp::Reverse(row.time), **key));
        rows
    }

    fn shrink(&mut self) {
        let mut sizes: Vec<u64> = self.rows.values().map(|row| row.time).collect();
        sizes.sort_unstable_by(|a, b| b.cmp(a));
        let least = sizes.get(MOST / 2).copied().unwrap_or(0);
        self.rows.retain(|_, row| row.time > least);
    }
}
