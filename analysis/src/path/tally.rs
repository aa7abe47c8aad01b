//! What a process does, and how long it did what.

use dosmos_proto::{ApId, ObjectId, VarId};
use rustc_hash::FxHashMap;

/// Entries of a tally; beyond them the smallest are put together.
const MOST: usize = 512;

/// What a process does at an instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Doing {
    /// No operation: the program itself.
    Computing,
    /// Reads and writes of a variable, at its own memory process.
    Access(VarId),
    /// The same at other memory processes.
    Remote(VarId),
    /// Acquires and releases of objects of a variable.
    Lock(VarId),
    /// In a release, waits for the acknowledgements of copies.
    Copies(VarId),
    /// At a barrier.
    Barrier(VarId),
    /// Waits for a lock that another holds; none: whoever does.
    HeldBy(ObjectId, Option<ApId>),
    /// Waits at a barrier for the one that arrives last; none: whoever does.
    Late(VarId, Option<ApId>),
    /// Many small things.
    Other,
}

impl Doing {
    /// What it is called on the critical path, on which nobody waits for another.
    pub(super) fn on_path(self) -> Self {
        match self {
            Self::HeldBy(object, _) => Self::Lock(object.var),
            Self::Copies(var) => Self::Lock(var),
            Self::Late(var, _) => Self::Barrier(var),
            other => other,
        }
    }

    /// The same, whoever is waited for.
    fn for_anybody(self) -> Self {
        match self {
            Self::HeldBy(object, _) => Self::HeldBy(object, None),
            Self::Late(var, _) => Self::Late(var, None),
            other => other,
        }
    }

    /// Whether a process is named in it that is waited for.
    fn names(self) -> bool {
        matches!(self, Self::HeldBy(_, Some(_)) | Self::Late(_, Some(_)))
    }
}

/// How long a process did what, nanoseconds. Waits for others are there twice: by whom is waited for, and together.
#[derive(Clone, Debug, Default)]
pub(super) struct Tally {
    computing: u64,
    rest: FxHashMap<Doing, u64>,
}

impl Tally {
    pub(super) fn add(&mut self, doing: Doing, time: u64) {
        if doing == Doing::Computing {
            self.computing += time;
            return;
        }
        *self.rest.entry(doing).or_default() += time;
        if doing.names() {
            *self.rest.entry(doing.for_anybody()).or_default() += time;
        }
        if self.rest.len() > MOST {
            bound(&mut self.rest, MOST, Doing::Other, |doing| !doing.names());
        }
    }

    pub(super) fn of(&self, doing: Doing) -> u64 {
        match doing {
            Doing::Computing => self.computing,
            _ => self.rest.get(&doing).copied().unwrap_or(0),
        }
    }

    /// Everything once: waits for others without their names.
    pub(super) fn once(&self) -> impl Iterator<Item = (Doing, u64)> {
        let rest = self.rest.iter().map(|(doing, time)| (*doing, *time));
        let all = std::iter::once((Doing::Computing, self.computing)).chain(rest);
        all.filter(|(doing, time)| !doing.names() && *time > 0)
    }

    pub(super) fn clear(&mut self) {
        self.computing = 0;
        self.rest.clear();
    }

    /// With the process that was waited for longest, if that was at least half of the time.
    pub(super) fn named(&self, doing: Doing) -> Doing {
        let of_it = self.rest.iter();
        let of_it = of_it.filter(|(d, _)| d.names() && d.for_anybody() == doing);
        let longest = of_it.max_by_key(|(d, time)| (**time, std::cmp::Reverse(**d)));
        match longest {
            Some((named, time)) if 2 * time >= self.of(doing) => *named,
            _ => doing,
        }
    }

    /// What took longest.
    pub(super) fn longest(&self) -> Option<(Doing, u64)> {
        let all = self.once();
        let longest = all.max_by_key(|(doing, time)| (*time, std::cmp::Reverse(*doing)))?;
        Some((self.named(longest.0), longest.1))
    }

    /// What took longest beyond the mean of `others`; barriers do not count. None if nothing took longer.
    pub(super) fn beyond(&self, others: &[&Self]) -> Option<Doing> {
        let own = self.once();
        let own = own.filter(|(doing, _)| !matches!(doing, Doing::Barrier(_)));
        let mut own: Vec<(Doing, u64)> = own.collect();
        own.sort_by_key(|(doing, time)| (std::cmp::Reverse(*time), *doing));
        let mut most: Option<(Doing, f64)> = None;
        for (doing, time) in own {
            // What comes then took less than that.
            if most.is_some_and(|(_, beyond)| time as f64 <= beyond) {
                break;
            }
            let sum: u64 = others.iter().map(|o| o.of(doing)).sum();
            let beyond = time as f64 - sum as f64 / others.len().max(1) as f64;
            if beyond > most.map_or(0.0, |m| m.1) {
                most = Some((doing, beyond));
            }
        }
        most.map(|(doing, _)| self.named(doing))
    }
}

/// Puts all but the largest half of `most` together under `other`, as far as they `count`.
pub(super) fn bound<K: Copy + Eq + std::hash::Hash>(
    sums: &mut FxHashMap<K, u64>,
    most: usize,
    other: K,
    count: impl Fn(&K) -> bool,
) {
    let mut sizes: Vec<u64> = sums.values().copied().collect();
    sizes.sort_unstable_by(|a, b| b.cmp(a));
    let least = sizes.get(most / 2).copied().unwrap_or(0);
    let mut small = 0;
    sums.retain(|what, time| {
        let stays = *time > least;
        small += if stays || !count(what) { 0 } else { *time };
        stays
    });
    *sums.entry(other).or_default() += small;
}
