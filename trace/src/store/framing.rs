//! From a commit to the frames of one write, and to what the index is to know of them.

use std::sync::Arc;

use super::error::{StoreError, encode};
use super::frame::{HEADER, Header, Kind};
use super::index::{ChunkRef, EventsRef, LogFile, Place};
use super::ledger::Extent;
use super::load;
use super::merge::Run;
use super::pieces::Piece;
use crate::chunk::Encoder;
use crate::record::Record;

/// Frames that are to be written at once.
#[derive(Debug)]
pub(super) struct Framing {
    pub(super) bytes: Vec<u8>,
    /// The chunks among them, each with the last block it stands for.
    pub(super) chunks: Vec<(Arc<ChunkRef>, u64)>,
    pub(super) events: Vec<EventsRef>,
    /// The log file, and the place in it where the first frame will stand.
    file: u32,
    begin: u64,
}

impl Framing {
    /// No frames yet, for this place of a log file.
    pub(super) fn at(file: u32, begin: u64) -> Self {
        Self {
            bytes: Vec::new(),
            chunks: Vec::new(),
            events: Vec::new(),
            file,
            begin,
        }
    }

    /// Adds a frame that holds neither records nor events.
    pub(super) fn plain(&mut self, extent: &Extent, kind: Kind, body: &[u8]) {
        header(extent, kind).put(body, &mut self.bytes);
    }

    /// Adds a piece of a commit, as a chunk and the events between its records; the chunk, if there is one.
    pub(super) fn piece(
        &mut self,
        piece: &Piece<'_>,
        extent: &mut Extent,
        encoder: &mut Encoder,
    ) -> Result<Option<Arc<ChunkRef>>, StoreError> {
        let header = Header {
            records: piece.records.len() as u32,
            ..header(extent, Kind::Chunk)
        };
        let chunk = self.chunk(&header, piece.records, encoder)?;
        if !piece.events.is_empty() {
            let header = Header {
                kind: Kind::Events,
                records: 0,
                events: piece.events.len() as u32,
                ..header
            };
            self.events(&header, &encode(&piece.events)?);
        }
        extent.next += 1;
        extent.records += piece.records.len() as u64;
        extent.events += piece.events.len() as u64;
        Ok(chunk)
    }

    /// Adds the chunks of a run of this file once more, as one. What cannot be read of them stays as it is.
    pub(super) fn merged(
        &mut self,
        run: &Run,
        file: &LogFile,
        commit: u64,
        encoder: &mut Encoder,
    ) -> Result<(), StoreError> {
        if let (Some(records), Some(header)) = (run.read(file), run.header(commit)) {
            self.chunk(&header, &records, encoder)?;
        }
        Ok(())
    }

    fn chunk(
        &mut self,
        header: &Header,
        records: &[Record],
        encoder: &mut Encoder,
    ) -> Result<Option<Arc<ChunkRef>>, StoreError> {
        let encoded = encoder.encode(records);
        let Some(summary) = encoded.summary else {
            return Ok(None);
        };
        let said = encode(&summary)?;
        let place = self.place(load::chunk_begins(&said), encoded.bytes.len());
        let mut body = (said.len() as u32).to_le_bytes().to_vec();
        body.extend_from_slice(&said);
        body.extend_from_slice(&encoded.bytes);
        header.put(&body, &mut self.bytes);
        let chunk = Arc::new(ChunkRef {
            number: header.first,
            place,
            records_before: header.records_before,
            summary,
        });
        self.chunks.push((chunk.clone(), header.last));
        Ok(Some(chunk))
    }

    fn events(&mut self, header: &Header, body: &[u8]) {
        let place = self.place(HEADER as u64, body.len());
        header.put(body, &mut self.bytes);
        self.events.push(EventsRef {
            number: header.first,
            place,
            events: header.events,
            records_before: header.records_before,
            events_before: header.events_before,
        });
    }

    /// What begins `after` the frames so far.
    fn place(&self, after: u64, length: usize) -> Place {
        Place {
            database: self.file,
            at: self.begin + self.bytes.len() as u64 + after,
            bytes: length as u32,
        }
    }
}

/// The header of what comes next.
fn header(extent: &Extent, kind: Kind) -> Header {
    Header {
        kind,
        first: extent.next,
        last: extent.next,
        commit: extent.commit,
        records_before: extent.records,
        events_before: extent.events,
        records: 0,
        events: 0,
    }
}
