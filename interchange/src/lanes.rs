//! Slices of one timeline must nest, but operations of a process may overlap: so each kind of slice has as many
//! timelines as it needs, and a slice goes to one that is free.

use std::collections::BTreeMap;

use dosmos_proto::{ApId, MpId};

/// A process that has timelines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Process {
    Ap(ApId),
    Mp(MpId),
}

/// The timelines of one kind of slice of one process.
#[derive(Debug, Default)]
pub(crate) struct Lanes {
    /// Timelines by the end of their last slice, in nanoseconds.
    by_end: BTreeMap<u64, Vec<u64>>,
}

impl Lanes {
    /// The timeline that is free from `begin` on and was occupied last; none if all are occupied.
    pub(crate) fn take(&mut self, begin: u64, end: u64) -> Option<u64> {
        let entry = self.by_end.range_mut(..=begin).next_back()?;
        let lane = entry.1.pop()?;
        let freed = *entry.0;
        if entry.1.is_empty() {
            self.by_end.remove(&freed);
        }
        self.occupy(lane, end);
        Some(lane)
    }

    /// Notes a timeline's last slice.
    pub(crate) fn occupy(&mut self, lane: u64, end: u64) {
        self.by_end.entry(end).or_default().push(lane);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slice_never_goes_where_another_still_is() {
        let mut lanes = Lanes::default();
        assert_eq!(lanes.take(0, 10), None);
        lanes.occupy(1, 10);
        assert_eq!(lanes.take(9, 20), None);
        lanes.occupy(2, 20);
        assert_eq!(lanes.take(10, 15), Some(1));
        assert_eq!(lanes.take(19, 30), Some(1));
        assert_eq!(lanes.take(25, 26), Some(2));
        assert_eq!(lanes.take(25, 26), None);
    }
}
