//! How commits become chunks.

use super::entry::Event;
use crate::chunk;
use crate::record::Record;

/// A chunk's worth of a commit.
pub(super) struct Piece<'a> {
    pub(super) records: &'a [Record],
    /// With the number of records of this piece before each.
    pub(super) events: Vec<(u32, &'a Event)>,
}

/// Cuts a commit into pieces of at most a chunk. An event that stands between two pieces goes to the
/// end of the first.
pub(super) fn pieces<'a>(records: &'a [Record], events: &'a [(u32, Event)]) -> Vec<Piece<'a>> {
    let mut events = events.iter().peekable();
    let mut pieces = Vec::new();
    let mut before = 0u32;
    let mut chunks = records.chunks(chunk::MOST_RECORDS).peekable();
    loop {
        let records = chunks.next().unwrap_or_default();
        let last = chunks.peek().is_none();
        let end = before + records.len() as u32;
        let mut here = Vec::new();
        while let Some((at, event)) = events.next_if(|(at, _)| last || *at <= end) {
            here.push(((*at).clamp(before, end) - before, event));
        }
        if !records.is_empty() || !here.is_empty() {
            pieces.push(Piece {
                records,
                events: here,
            });
        }
        before = end;
        if last {
            return pieces;
        }
    }
}
