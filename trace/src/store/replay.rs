//! Reading the log again, from the beginning or from where a state was saved.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::{Arc, PoisonError, RwLock};

use dosmos_proto::MpId;

use super::entry::{BatchMark, Event, Item};
use super::index::{ChunkRef, EventsRef, Index, Place};
use super::snapshot::{Position, Snapshot};
use crate::chunk::Chunk;
use crate::record::Record;

/// What a writer before left in a store.
#[derive(Clone, Debug)]
pub struct Recovered {
    index: Arc<RwLock<Index>>,
    marks: BTreeMap<MpId, BatchMark>,
    snapshot: Option<(Position, Snapshot)>,
    from: Position,
}

impl Recovered {
    pub(super) fn new(
        index: Arc<RwLock<Index>>,
        marks: BTreeMap<MpId, BatchMark>,
        snapshot: Option<(Position, Snapshot)>,
    ) -> Self {
        Self {
            index,
            marks,
            snapshot,
            from: Position::default(),
        }
    }

    #[cfg(test)]
    pub(super) fn clone_without_snapshot(&self) -> Self {
        Self {
            snapshot: None,
            from: Position::default(),
            ..self.clone()
        }
    }

    /// The last batch of each memory process.
    pub fn marks(&self) -> &BTreeMap<MpId, BatchMark> {
        &self.marks
    }

    /// What the log up to some place comes to, if that was saved; [`replay`](Self::replay) then begins at
    /// that place.
    pub fn take_snapshot(&mut self) -> Option<Snapshot> {
        let (at, snapshot) = self.snapshot.take()?;
        self.from = at;
        Some(snapshot)
    }

    /// Reads the log, entry by entry, from the beginning or from the snapshot that was taken. What cannot be read is
    /// skipped and noted.
    pub fn replay(&self, mut each: impl FnMut(Item<'_>)) {
        let _ = self.replay_while(|item| {
            each(item);
            ControlFlow::Continue(())
        });
    }

    /// As [`Recovered::replay`], until `each` breaks off.
    pub(super) fn replay_while(
        &self,
        mut each: impl FnMut(Item<'_>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let (chunks, events) = {
            let index = self.index.read().unwrap_or_else(PoisonError::into_inner);
            (index.chunks.clone(), index.events.clone())
        };
        let after = |before: u64, count: u32, from: u64| before + u64::from(count) > from;
        let events = events
            .iter()
            .filter(|e| after(e.events_before, e.events, self.from.events));
        let mut events = events.flat_map(|e| self.events_of(e)).peekable();
        let chunks = chunks
            .iter()
            .filter(|c| after(c.records_before, c.summary.records, self.from.records));
        for chunk in chunks {
            for (at, record) in (chunk.records_before..).zip(self.records_of(chunk)) {
                while let Some((_, event)) = events.next_if(|(place, _)| *place <= at) {
                    each(Item::Event(&event))?;
                }
                if at >= self.from.records {
                    each(Item::Record(&record))?;
                }
            }
        }
        events
            .by_ref()
            .try_for_each(|(_, event)| each(Item::Event(&event)))
    }

    fn records_of(&self, chunk: &ChunkRef) -> Vec<Record> {
        let read = self.read(chunk.place).and_then(|bytes| {
            let records = Chunk::open(&bytes).and_then(|c| c.records());
            records.map_err(|e| e.to_string())
        });
        read.unwrap_or_else(|why| {
            let mut index = self.index.write().unwrap_or_else(PoisonError::into_inner);
            index.damaged(chunk.number, &why);
            Vec::new()
        })
    }

    /// The events of a block, each with the number of records of the log before it; without those before the snapshot.
    fn events_of(&self, events: &EventsRef) -> Vec<(u64, Event)> {
        let read = self.read(events.place).and_then(|bytes| {
            postcard::from_bytes::<Vec<(u32, Event)>>(&bytes).map_err(|e| e.to_string())
        });
        let read = read.unwrap_or_else(|why| {
            let mut index = self.index.write().unwrap_or_else(PoisonError::into_inner);
            index.damaged_log(format!("events of block {}: {why}", events.number));
            Vec::new()
        });
        let known = self.from.events.saturating_sub(events.events_before);
        let new = read.into_iter().skip(known as usize);
        new.map(|(at, event)| (events.records_before + u64::from(at), event))
            .collect()
    }

    fn read(&self, place: Place) -> Result<Vec<u8>, String> {
        let file = {
            let index = self.index.read().unwrap_or_else(PoisonError::into_inner);
            index.files.get(&place.database).cloned()
        };
        let file = file.ok_or("its file was removed")?;
        file.read(place.at, place.bytes).map_err(|e| e.to_string())
    }
}
