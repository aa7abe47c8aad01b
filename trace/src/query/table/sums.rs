//! Figures of a variable: summed over its objects, and over event managers.

use dosmos_proto::Nanos;

use super::SortKey;
use crate::meta::{Access, OpCounts, OperationTimes, PrimaryMeta, SecondaryMeta};
use crate::record::PerOrigin;

/// Entries of a list of last accesses that [`Sums`] keeps.
const LAST: usize = 4;

/// Figures summed over the objects of a variable.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sums {
    /// Copies whose secondary meta-objects are here.
    pub copies: u64,
    /// Copies that the primary meta-objects know of.
    pub copies_listed: u64,
    /// Accesses to the main copies.
    pub counts: OpCounts,
    /// Cached reads, handed over or not.
    pub reads_on_copies: u64,
    /// Acquires that had to wait.
    pub delayed: u64,
    /// Waits of acquires, summed.
    pub wait: Nanos,
    /// Times from grant to release, summed.
    pub hold: Nanos,
    /// Accesses to the main copies by origin.
    pub origins: PerOrigin<u64>,
    /// The newest acquires of all objects, newest first.
    pub last_acquires: Vec<Access>,
    /// The newest writes, newest first.
    pub last_writes: Vec<Access>,
    /// How long the accesses took.
    pub times: OperationTimes,
}

impl Sums {
    /// Adds an object's.
    pub fn primary(&mut self, p: &PrimaryMeta, copies: u64) {
        self.copies_listed += copies;
        self.counts.add(&p.counts);
        self.reads_on_copies += p.reads_on_copies;
        self.delayed += p.delayed;
        self.wait += p.wait;
        self.hold += p.hold;
        self.add_origins(&p.by_origin.map(OpCounts::total));
        keep_newest(&mut self.last_acquires, &p.last_acquires);
        keep_newest(&mut self.last_writes, &p.last_writes);
    }

    /// Adds a copy's.
    pub fn secondary(&mut self, s: &SecondaryMeta) {
        self.copies += 1;
        self.reads_on_copies += s.reads;
    }

    /// Adds what another event manager knows.
    pub fn add(&mut self, other: &Self) {
        self.copies += other.copies;
        self.copies_listed += other.copies_listed;
        self.counts.add(&other.counts);
        self.reads_on_copies += other.reads_on_copies;
        self.delayed += other.delayed;
        self.wait += other.wait;
        self.hold += other.hold;
        self.add_origins(&other.origins);
        keep_newest(&mut self.last_acquires, &other.last_acquires);
        keep_newest(&mut self.last_writes, &other.last_writes);
        self.times.add(&other.times);
    }

    fn add_origins(&mut self, more: &PerOrigin<u64>) {
        for (origin, n) in more.iter() {
            self.origins[origin] += n;
        }
    }

    /// All accesses, cached reads included.
    pub fn accesses(&self) -> u64 {
        self.origins.total() + self.reads_on_copies
    }

    /// Whether anything is known here of the variable's objects and copies.
    pub(super) fn knows_objects(&self) -> bool {
        self.copies_now() + self.accesses() + self.delayed > 0
    }

    /// Copies there are now.
    pub fn copies_now(&self) -> u64 {
        self.copies.max(self.copies_listed)
    }

    /// Mean wait of an acquire.
    pub fn mean_wait(&self) -> Option<Nanos> {
        self.wait.0.checked_div(self.counts.acquires).map(Nanos)
    }

    /// All reads, cached ones included.
    pub fn reads(&self) -> u64 {
        self.counts.reads + self.reads_on_copies
    }

    /// Mean time from grant to release.
    pub fn mean_hold(&self) -> Option<Nanos> {
        self.hold.0.checked_div(self.counts.releases).map(Nanos)
    }

    /// What a variable of this many objects with these figures is sorted by. What is not there comes
    /// after zero.
    pub fn key(&self, sort: SortKey, objects: u32) -> f64 {
        let mean = |t: Option<Nanos>| t.map_or(-1.0, |t| t.0 as f64);
        match sort {
            SortKey::Name => 0.0,
            SortKey::Time => self.times.total().0 as f64,
            SortKey::Objects => f64::from(objects),
            SortKey::Copies => self.copies_now() as f64,
            SortKey::Reads => self.reads() as f64,
            SortKey::ReadsCopies => self.reads_on_copies as f64,
            SortKey::Writes => self.counts.writes as f64,
            SortKey::Acquires => self.counts.acquires as f64,
            SortKey::Delayed => self.delayed as f64,
            SortKey::Wait => mean(self.mean_wait()),
            SortKey::Hold => mean(self.mean_hold()),
            SortKey::Inter => match self.accesses() {
                0 => -1.0,
                all => self.origins.inter as f64 / all as f64,
            },
        }
    }
}

/// Merges `more`, in any order, into `list`, newest first.
fn keep_newest(list: &mut Vec<Access>, more: &[Access]) {
    list.extend_from_slice(more);
    list.sort_by_key(|a| std::cmp::Reverse(a.at));
    list.truncate(LAST);
}
