//! Merging small chunks in the background.
//!
//! Never in the writer's way: chunks are read, merged and written while it commits, and the index, which
//! they share, is held only to exchange a few entries. Nor in a reader's: the merged chunk begins with what
//! the first one held and has its number; the others stay on disk until nobody who asked before is left.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use super::engine::{Engine, Writes};
use super::entry::Event;
use super::error::{StoreError, encode};
use super::index::{ChunkRef, Index};
use super::keys;
use crate::chunk::{Chunk, Encoder, MOST_RECORDS};
use crate::record::Record;

/// Most events a merged chunk may have.
const MOST_EVENTS: usize = 4096;

/// Merges small chunks of one store.
#[derive(Debug)]
pub struct Merger {
    index: Arc<RwLock<Index>>,
    settled: Arc<AtomicU64>,
    /// Number of the first chunk not looked at yet.
    next: u64,
    /// Taken into others, and still on disk.
    retired: Vec<Arc<ChunkRef>>,
    encoder: Encoder,
}

/// Neighbours that fit into one chunk.
struct Run {
    engine: Engine,
    chunks: Vec<Arc<ChunkRef>>,
}

/// What a run holds together.
struct Contents {
    records: Vec<Record>,
    events: Vec<(u32, Event)>,
}

impl Merger {
    pub(super) fn new(index: Arc<RwLock<Index>>, settled: Arc<AtomicU64>) -> Self {
        Self {
            index,
            settled,
            next: 0,
            retired: Vec::new(),
            encoder: Encoder::new(),
        }
    }

    /// Merges one run of small chunks; false if there is none now.
    ///
    /// # Errors
    /// If the system says no; nothing is lost.
    pub fn step(&mut self) -> Result<bool, StoreError> {
        self.delete_retired()?;
        let Some(run) = self.find() else {
            return Ok(false);
        };
        let (first, last) = (
            run.chunks[0].number,
            run.chunks[run.chunks.len() - 1].number,
        );
        match run.read(last) {
            Some(contents) if contents.events.len() <= MOST_EVENTS => {
                self.merge(&run, last, &contents)?;
            }
            // One that cannot be read is noted by whoever asks for it; these stay as they are.
            _ => self.next = last + 1,
        }
        self.next = self.next.max(first + 1);
        Ok(true)
    }

    /// The next run worth merging.
    fn find(&mut self) -> Option<Run> {
        let settled = self.settled.load(Ordering::Acquire);
        let index = self.index.read().unwrap_or_else(PoisonError::into_inner);
        let begin = index.chunks.partition_point(|c| c.number < self.next);
        let mut run: Vec<Arc<ChunkRef>> = Vec::new();
        let mut records = 0;
        let engine = |run: &[Arc<ChunkRef>]| index.databases.get(&run[0].database).cloned();
        for chunk in index.chunks[begin..]
            .iter()
            .take_while(|c| c.number < settled)
        {
            let fits = records + chunk.summary.records as usize <= MOST_RECORDS;
            let same = run
                .first()
                .is_none_or(|first| first.database == chunk.database);
            if !(fits && same) {
                if run.len() > 1 {
                    let engine = engine(&run)?;
                    return Some(Run {
                        engine,
                        chunks: run,
                    });
                }
                run.clear();
                records = 0;
                self.next = chunk.number;
            }
            records += chunk.summary.records as usize;
            run.push(chunk.clone());
        }
        // What may still grow waits until it is worth it.
        (run.len() > 1 && records > MOST_RECORDS / 2).then(|| {
            Some(Run {
                engine: engine(&run)?,
                chunks: run,
            })
        })?
    }

    fn merge(&mut self, run: &Run, last: u64, contents: &Contents) -> Result<(), StoreError> {
        let first = run.chunks[0].number;
        let encoded = self.encoder.encode(&contents.records);
        let Some(summary) = encoded.summary else {
            return Ok(());
        };
        let bytes = encoded.bytes.len() as u32;
        let mut writes = Writes::default();
        writes.put(keys::key(keys::CHUNK, first), &encoded.bytes);
        let entry = encode(&(bytes, &summary))?;
        writes.put(keys::key(keys::SUMMARY, first), &entry);
        writes.put(keys::key(keys::MERGED, first), &encode(&last)?);
        if !contents.events.is_empty() {
            let events = encode(&contents.events)?;
            writes.put(keys::key(keys::EVENTS, first), &events);
        }
        for number in first + 1..=last {
            // The log is read again only when the store is opened, and summaries too.
            writes.remove(keys::key(keys::EVENTS, number));
            writes.remove(keys::key(keys::SUMMARY, number));
        }
        run.engine.commit(writes)?;
        let merged = ChunkRef {
            number: first,
            database: run.chunks[0].database,
            bytes,
            summary,
        };
        let mut index = self.index.write().unwrap_or_else(PoisonError::into_inner);
        if let (Some(from), Some(to)) = (
            index.place_of(first),
            index.place_of(run.chunks[run.chunks.len() - 1].number),
        ) {
            let replaced = index.chunks.splice(from..=to, [Arc::new(merged)]);
            self.retired.extend(replaced.skip(1));
            index.merged.insert(first, last);
        }
        Ok(())
    }

    /// Deletes chunks that were taken into others and that nobody reads any more.
    fn delete_retired(&mut self) -> Result<(), StoreError> {
        let (free, held): (Vec<_>, Vec<_>) = std::mem::take(&mut self.retired)
            .into_iter()
            .partition(|c| Arc::strong_count(c) == 1);
        self.retired = held;
        for chunk in free {
            let index = self.index.read().unwrap_or_else(PoisonError::into_inner);
            let engine = index.databases.get(&chunk.database).cloned();
            drop(index);
            if let Some(engine) = engine {
                let mut writes = Writes::default();
                writes.remove(keys::key(keys::CHUNK, chunk.number));
                engine.apply(writes)?;
            }
        }
        Ok(())
    }
}

impl Run {
    /// What it holds, with all events up to number `last`; none if something of it cannot be read.
    fn read(&self, last: u64) -> Option<Contents> {
        let first = self.chunks[0].number;
        let mut contents = Contents {
            records: Vec::new(),
            events: Vec::new(),
        };
        let events = self.engine.entries(keys::EVENTS, first);
        let mut events = events
            .take_while(|e| e.as_ref().is_ok_and(|(number, _)| *number <= last))
            .peekable();
        let mut chunks = self.chunks.iter().peekable();
        loop {
            let next_events = events.peek().and_then(|e| e.as_ref().ok()).map(|e| e.0);
            let next_chunk = chunks.peek().map(|c| c.number);
            let Some(at) = next_events.into_iter().chain(next_chunk).min() else {
                return Some(contents);
            };
            let before = contents.records.len() as u32;
            if chunks.next_if(|c| c.number == at).is_some() {
                let bytes = self.engine.get(keys::key(keys::CHUNK, at)).ok()??;
                let records = Chunk::open(&bytes).and_then(|c| c.records()).ok()?;
                contents.records.extend(records);
            }
            if next_events == Some(at) {
                let (_, bytes) = events.next()?.ok()?;
                let here: Vec<(u32, Event)> = postcard::from_bytes(&bytes).ok()?;
                let moved = here.into_iter().map(|(place, e)| (before + place, e));
                contents.events.extend(moved);
            }
        }
    }
}
