//! Small chunks become one: while records come slowly, each commit leaves a small chunk. As soon as a run of them has a
//! chunk's worth of records, they are written once more, as one, which takes their place; they stay in the file, for
//! whoever reads them already, and in case the merged one is damaged.

use std::sync::Arc;

use super::frame::{Header, Kind};
use super::index::{ChunkRef, LogFile};
use crate::chunk::{Chunk, MOST_RECORDS};
use crate::record::Record;

/// The last chunks of a file, as long as they fit into one.
#[derive(Clone, Debug, Default)]
pub(super) struct Run {
    chunks: Vec<Arc<ChunkRef>>,
    records: usize,
}

impl Run {
    /// Takes the next chunk. If it does not fit, the run ends before it and is returned, if there is something to merge.
    pub(super) fn take(&mut self, chunk: Arc<ChunkRef>) -> Option<Self> {
        let records = chunk.summary.records as usize;
        let mut full = None;
        if self.records + records > MOST_RECORDS {
            full = Some(std::mem::take(self)).filter(Self::is_worth_merging);
        }
        self.records += records;
        self.chunks.push(chunk);
        full
    }

    /// Whether there is something to merge.
    pub(super) fn is_worth_merging(&self) -> bool {
        self.chunks.len() > 1
    }

    /// The header of the merged chunk.
    pub(super) fn header(&self, commit: u64) -> Option<Header> {
        let (first, last) = (self.chunks.first()?, self.chunks.last()?);
        Some(Header {
            kind: Kind::Chunk,
            first: first.number,
            last: last.number,
            commit,
            records_before: first.records_before,
            events_before: 0,
            records: self.records as u32,
            events: 0,
        })
    }

    /// The records; none if something of them cannot be read.
    pub(super) fn read(&self, file: &LogFile) -> Option<Vec<Record>> {
        let mut records = Vec::with_capacity(self.records);
        for chunk in &self.chunks {
            let bytes = file.read(chunk.place.at, chunk.place.bytes).ok()?;
            records.extend(Chunk::open(&bytes).and_then(|c| c.records()).ok()?);
        }
        Some(records)
    }
}
