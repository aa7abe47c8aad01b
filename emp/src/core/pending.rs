//! Group commit: what was received and is not on disk yet, gathered into one commit.

use std::collections::BTreeMap;

use dosmos_proto::MpId;
use dosmos_trace::record::Record;
use dosmos_trace::store::{BatchMark, Commit, Event};

/// An event with the number of records of its batch before it.
pub type PositionedEvent = (u32, Event);

/// Received and not on disk yet.
#[derive(Debug, Default)]
pub struct Pending {
    records: Vec<Record>,
    events: Vec<PositionedEvent>,
    marks: BTreeMap<MpId, BatchMark>,
}

impl Pending {
    /// Adds a batch.
    pub fn batch(&mut self, mark: BatchMark, records: &[Record], events: Vec<PositionedEvent>) {
        let before = self.records.len() as u32;
        let most = records.len() as u32;
        self.events
            .extend(events.into_iter().map(|(at, e)| (before + at.min(most), e)));
        self.records.extend_from_slice(records);
        self.marks.insert(mark.mp, mark);
    }

    /// Adds an event that came by another way than a batch.
    pub fn event(&mut self, event: Event) {
        self.events.push((self.records.len() as u32, event));
    }

    /// Number of records.
    pub fn records(&self) -> usize {
        self.records.len()
    }

    /// Whether there is nothing to write.
    pub fn is_empty(&self) -> bool {
        self.records.is_empty() && self.events.is_empty() && self.marks.is_empty()
    }

    /// All of it, as one commit.
    pub fn take(&mut self) -> Commit {
        let taken = std::mem::take(self);
        Commit {
            marks: taken.marks.into_values().collect(),
            records: taken.records,
            events: taken.events,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dosmos_proto::EmpId;
    use dosmos_trace::meta::SecondaryContent;

    fn event(sequence: u64) -> Event {
        Event::Received {
            from: EmpId(1),
            content: SecondaryContent {
                sequence,
                object: Default::default(),
                copy_at: MpId(0),
                reads: 0,
                dropped: false,
                fetches: 1,
                by_ap: BTreeMap::new(),
            },
        }
    }

    fn record() -> Record {
        dosmos_trace::wire::decode(&dosmos_proto::wire::RecordColumns {
            start_delta_ns: vec![0].into(),
            duration_ns: vec![1].into(),
            wait_ns: vec![0].into(),
            service_ns: vec![0].into(),
            kind: vec![1 | 1 << 4].into(),
            variable: vec![0].into(),
            object: vec![0].into(),
            ap: vec![0].into(),
            mp: vec![0].into(),
            peer: vec![0].into(),
            bytes: vec![0].into(),
            version: vec![0].into(),
            first: vec![0].into(),
            end: vec![0].into(),
            count: vec![].into(),
            base_ns: 5,
        })
        .unwrap()[0]
    }

    #[test]
    fn batches_join_and_events_keep_their_places() {
        let mut pending = Pending::default();
        let mark = |sequence| BatchMark {
            mp: MpId(0),
            incarnation: 1,
            sequence,
            until: Default::default(),
        };
        pending.batch(mark(1), &[record(); 3], vec![(2, event(1))]);
        pending.event(event(2));
        // A position beyond the batch means its end.
        pending.batch(mark(2), &[record(); 2], vec![(0, event(3)), (99, event(4))]);
        let commit = pending.take();
        assert_eq!(commit.marks, [mark(2)]);
        assert_eq!(commit.records.len(), 5);
        let places: Vec<u32> = commit.events.iter().map(|e| e.0).collect();
        assert_eq!(places, [2, 3, 3, 5]);
        assert!(pending.is_empty());
    }
}
