//! How commits become chunks: cut where they are long, joined to the chunk before where that is short.

use std::borrow::Cow;

use super::entry::{Commit, Event};
use crate::chunk;
use crate::record::Record;

/// A last chunk of fewer records, with fewer events, is written again with what the next commit adds,
/// so that a low rate of records does not leave many small chunks.
const FULL_ENOUGH: usize = 1024;

/// What a commit writes: itself, after what is in the tail.
#[derive(Debug)]
pub(super) struct Batch<'a> {
    /// Number of its first piece.
    pub(super) first: u64,
    records: Cow<'a, [Record]>,
    events: Cow<'a, [(u32, Event)]>,
}

impl<'a> Batch<'a> {
    /// `commit`, to be written from number `next` on, or again from `next - 1` where `tail` is.
    pub(super) fn of(commit: &'a Commit, tail: Option<&Tail>, next: u64) -> Self {
        let adds = !commit.records.is_empty() || !commit.events.is_empty();
        let Some(tail) = tail.filter(|_| adds) else {
            return Self {
                first: next,
                records: Cow::Borrowed(&commit.records),
                events: Cow::Borrowed(&commit.events),
            };
        };
        let before = tail.records.len() as u32;
        let mut records = tail.records.clone();
        records.extend_from_slice(&commit.records);
        let mut events = tail.events.clone();
        let added = commit.events.iter();
        events.extend(added.map(|(at, e)| (before.saturating_add(*at), e.clone())));
        Self {
            first: next - 1,
            records: records.into(),
            events: events.into(),
        }
    }

    /// Cut into chunks.
    pub(super) fn pieces(&self) -> Vec<Piece<'_>> {
        pieces(&self.records, &self.events)
    }
}

/// A chunk that may still grow.
#[derive(Debug)]
pub(super) struct Tail {
    records: Vec<Record>,
    events: Vec<(u32, Event)>,
}

/// A chunk's worth of a commit.
pub(super) struct Piece<'a> {
    pub(super) records: &'a [Record],
    /// With the number of records of this piece before each.
    pub(super) events: Vec<(u32, &'a Event)>,
}

impl Tail {
    /// A piece that may still grow.
    pub(super) fn of(piece: &Piece<'_>) -> Option<Self> {
        let grows = piece.records.len() < FULL_ENOUGH && piece.events.len() < FULL_ENOUGH;
        grows.then(|| Self {
            records: piece.records.to_vec(),
            events: piece
                .events
                .iter()
                .map(|(at, e)| (*at, (*e).clone()))
                .collect(),
        })
    }
}

/// Cuts a commit into pieces of at most a chunk. An event that stands between two pieces goes to the
/// end of the first.
fn pieces<'a>(records: &'a [Record], events: &'a [(u32, Event)]) -> Vec<Piece<'a>> {
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
