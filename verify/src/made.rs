//! Versions of an object that were made, as far as they are known: whether all up to one are is asked before it is waited for what made them.

use std::collections::VecDeque;

use dosmos_proto::Nanos;
use dosmos_trace::Record;

/// The latest that are kept one by one.
const KEPT: usize = 64;

/// What made versions.
#[derive(Clone, Copy, Debug)]
struct Maker {
    /// The version made, or one before it.
    version: u64,
    /// When it began to be made.
    start: Nanos,
    count: u64,
}

/// Versions made, the older ones counted only.
#[derive(Debug, Default)]
pub(crate) struct Made {
    /// In order of their versions.
    latest: VecDeque<Maker>,
    older: u64,
    /// The highest version among the older ones.
    counted: u64,
    all: u64,
}

impl Made {
    /// `by` made `count` versions, up to `version` or a higher one.
    pub(crate) fn add(&mut self, version: u64, by: &Record, count: u64) {
        let maker = Maker {
            version,
            start: by.start,
            count,
        };
        self.all += count;
        // The last one, but for what came late.
        let later = self
            .latest
            .iter()
            .rev()
            .take_while(|m| m.version > version)
            .count();
        self.latest.insert(self.latest.len() - later, maker);
        if self.latest.len() > KEPT
            && let Some(oldest) = self.latest.pop_front()
        {
            self.older += oldest.count;
            self.counted = self.counted.max(oldest.version);
        }
    }

    /// The number of versions that were made in all.
    pub(crate) fn all(&self) -> u64 {
        self.all
    }

    /// The number of versions up to that of a grant that were made, at most: no higher ones, and none that began to be made after the grant, since
    /// who made it may have been followed farther than the process of the grant. 0 if the grant is so old that it is not known.
    pub(crate) fn before(&self, grant: &Record) -> u64 {
        if grant.version < self.counted {
            return 0;
        }
        let before = |m: &&Maker| m.version <= grant.version && m.start < grant.end();
        let latest = self.latest.iter().filter(before).map(|m| m.count);
        self.older + latest.sum::<u64>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::of_test;

    fn record(version: u64, start: u64) -> Record {
        Record {
            start: Nanos(start),
            duration: Nanos(10),
            version,
            ..of_test()
        }
    }

    #[test]
    fn what_was_made_later_did_not_make_what_a_grant_starts_from() {
        let mut made = Made::default();
        made.add(3, &record(0, 300), 1);
        made.add(1, &record(0, 100), 1);
        made.add(2, &record(0, 350), 2);
        assert_eq!((made.all(), made.before(&record(3, 1_000))), (4, 4));
        // A higher version, and what began after the end of the grant.
        assert_eq!(made.before(&record(2, 1_000)), 3);
        assert_eq!(made.before(&record(2, 340)), 1);
        assert_eq!(made.before(&record(2, 341)), 3);
        assert_eq!(made.before(&record(0, 1_000)), 0);
    }

    #[test]
    fn older_versions_are_counted_only() {
        let mut made = Made::default();
        let last = KEPT as u64 + 10;
        for version in 1..=last {
            made.add(version, &record(0, version), 1);
        }
        assert_eq!(made.latest.len(), KEPT);
        let late = |made: &Made, version| made.before(&record(version, 1_000));
        assert_eq!(
            [last, last + 1, 10].map(|v| late(&made, v)),
            [last, last, 10]
        );
        assert_eq!(late(&made, 9), 0);
        // Also behind one that came late.
        made.add(3, &record(0, 3), 1);
        assert_eq!(late(&made, 9), 0);
    }
}
