//! Which records a question is about.

use dosmos_proto::{ApId, Nanos, VarId};
use serde::{Deserialize, Serialize};

use crate::record::{Op, Origin, Record};

/// A time range `[from, to)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimeRange {
    /// First instant.
    pub from: Nanos,
    /// The instant after the last.
    pub to: Nanos,
}

impl TimeRange {
    /// What is answered about where there is nothing: not empty, so that it has buckets.
    pub const NOTHING: Self = Self {
        from: Nanos::ZERO,
        to: Nanos(1),
    };

    /// All of time.
    pub const ALL: Self = Self {
        from: Nanos::ZERO,
        to: Nanos::MAX,
    };

    /// Whether `at` lies in it.
    pub fn contains(&self, at: Nanos) -> bool {
        self.from <= at && at < self.to
    }

    /// Its length.
    pub fn length(&self) -> Nanos {
        self.to - self.from
    }
}

/// Which records a question is about. Empty lists mean "all". By default only requesters' records
/// count, each access once; failed ones and waiting notices are never matched unless `everything`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Filter {
    /// Of these variables (or barriers).
    pub variables: Vec<VarId>,
    /// Only this object, an index into the one variable named.
    pub object: Option<u32>,
    /// By these application processes.
    pub aps: Vec<ApId>,
    /// These operations.
    pub ops: Vec<Op>,
    /// From these origins.
    pub origins: Vec<Origin>,
    /// Started in this range; none means all.
    pub range: Option<TimeRange>,
    /// Also owners' records, failed operations and waiting notices.
    pub everything: bool,
}

impl Filter {
    /// Whether `record` is asked for.
    pub fn matches(&self, record: &Record) -> bool {
        fn among<T: PartialEq>(list: &[T], item: &T) -> bool {
            list.is_empty() || list.contains(item)
        }
        (self.everything || record.is_access())
            && among(&self.variables, &record.object.var)
            && self.object.is_none_or(|o| o == record.object.index)
            && among(&self.aps, &record.ap)
            && among(&self.ops, &record.op)
            && among(&self.origins, &record.origin)
            && self.range.is_none_or(|r| r.contains(record.start))
    }
}
