//! Who held an object one after another, and what its holders did with it.

use std::collections::{BTreeMap, BTreeSet};

use dosmos_proto::{ApId, Nanos};
use dosmos_trace::record::Record;

/// Who held an object one after another.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HandOvers {
    /// Changes from one holder to another.
    pub count: u64,
    /// Of those, back to the holder before last.
    pub returns: u64,
    /// All that held it.
    pub holders: BTreeSet<ApId>,
    /// Time from asking for the section to having it, of the changes.
    pub taking: Nanos,
    last: Option<ApId>,
    before: Option<ApId>,
    /// Grants not yet counted, by version and time: records come in order of request, not of grant.
    pending: BTreeMap<(u64, Nanos), (ApId, Nanos)>,
}

/// How far grants may come out of order.
const REORDER: usize = 32;

impl HandOvers {
    pub(super) fn granted(&mut self, record: &Record) {
        self.pending
            .insert((record.version, record.end()), (record.ap, record.duration));
        if self.pending.len() > REORDER {
            self.count_first();
        }
    }

    fn count_first(&mut self) {
        let Some((_, (ap, taking))) = self.pending.pop_first() else {
            return;
        };
        self.holders.insert(ap);
        if self.last.is_some_and(|last| last != ap) {
            self.count += 1;
            self.taking += taking;
            self.returns += u64::from(self.before == Some(ap));
            self.before = self.last;
        }
        self.last = Some(ap);
    }

    /// Adds who held it later; the change from one to the other is not known.
    pub(super) fn append(&mut self, later: Self) {
        self.count += later.count;
        self.returns += later.returns;
        self.holders.extend(later.holders);
        self.taking += later.taking;
        (self.last, self.before) = (later.last.or(self.last), later.before);
    }

    pub(super) fn finish(&mut self) {
        while !self.pending.is_empty() {
            self.count_first();
        }
    }
}

/// A section that is held: what lies between its calls. Memory processes record a call from its arrival to its reply, so
/// each gap contains the way to the process and back, which is not work. The shortest gap of the section stands for that.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Section {
    last: Nanos,
    gaps: u64,
    between: Nanos,
    shortest: Nanos,
}

/// Calls of one record told apart.
const MOST_CALLS: u64 = 1_000;

impl Section {
    pub(super) fn granted(at: Nanos) -> Self {
        Self {
            last: at,
            gaps: 0,
            between: Nanos::ZERO,
            shortest: Nanos::MAX,
        }
    }

    /// A call of the holder on the object; its release is the last.
    pub(super) fn call(&mut self, record: &Record) {
        let spread = record.spread();
        for at in (0..spread.count().min(MOST_CALLS)).map(|i| spread.at(i)) {
            let gap = at - self.last;
            self.gaps += 1;
            self.between += gap;
            self.shortest = self.shortest.min(gap);
            self.last = self.last.max(at);
        }
        self.last = self.last.max(record.end());
    }

    pub(super) fn work(&self) -> Nanos {
        Nanos(
            self.between
                .0
                .saturating_sub(self.shortest.0.saturating_mul(self.gaps)),
        )
    }
}
