//! Which records a question is about.

use dosmos_proto::{ApId, VarId};
use serde::{Deserialize, Serialize};

use crate::record::{Op, Origin, Record};
use crate::spread::Spread;
pub use crate::spread::TimeRange;

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
    /// Of which at least one access began in this range; none means all.
    pub range: Option<TimeRange>,
    /// Of records that stand for several accesses, only those of which the first began in the range: so ranges that follow
    /// one another hold each record once.
    pub once: bool,
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
            && self.is_in_range(&record.spread())
    }

    /// Whether accesses that began so are in the range.
    pub(crate) fn is_in_range(&self, spread: &Spread) -> bool {
        let inside = |range: TimeRange| match self.once {
            true => range.contains(spread.at(0)),
            false => spread.within(range) > 0,
        };
        self.range.is_none_or(inside)
    }
}
