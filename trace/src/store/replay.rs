//! Opening what a writer left, and reading its log again from the beginning.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use dosmos_proto::MpId;

use super::engine::Engine;
use super::entry::{BatchMark, Event};
use super::error::StoreError;
use super::index::{ChunkRef, Index};
use super::keys;
use super::manifest::Manifest;
use super::snapshot::{Position, Snapshot};
use crate::chunk::{Chunk, Summary};
use crate::record::Record;

/// The databases of a store that count, in order, with their numbers.
pub(super) fn databases(
    dir: &Path,
    manifest: &Manifest,
) -> Result<Vec<(u32, PathBuf)>, StoreError> {
    let entries = std::fs::read_dir(dir).map_err(|e| StoreError::io(dir.to_owned(), e))?;
    let mut found = Vec::new();
    for entry in entries {
        let path = entry.map_err(|e| StoreError::io(dir.to_owned(), e))?.path();
        let name = path.file_name().and_then(|n| n.to_str());
        if let Some(number) = name.and_then(|n| manifest.database_number(n))
            && path.is_dir()
        {
            found.push((number, path));
        }
    }
    found.sort();
    Ok(found)
}

/// What the databases hold.
pub(super) struct Loaded {
    pub(super) index: Index,
    pub(super) marks: BTreeMap<MpId, BatchMark>,
    pub(super) next: u64,
    /// Why databases, or parts of them, could not be read: no obstacle to a reader, but to a writer.
    pub(super) errors: Vec<StoreError>,
}

/// Reads summaries, dictionary, counters and marks.
///
/// `unopened` are databases of which it is known already that they cannot be read.
pub(super) fn load(
    databases: BTreeMap<u32, Engine>,
    unopened: &[u32],
    manifest: &Manifest,
) -> Loaded {
    let mut loaded = Loaded {
        index: Index::default(),
        marks: BTreeMap::new(),
        next: 0,
        errors: Vec::new(),
    };
    loaded.index.removed = manifest.removed;
    for (nth, (&database, engine)) in databases.iter().enumerate() {
        loaded.database(database, engine, nth == 0);
    }
    let sealed = manifest.sealed.iter();
    for (&database, &sealed) in sealed.filter(|(number, _)| !unopened.contains(number)) {
        let name = manifest.database_name(database);
        loaded.index.expect(database, &name, sealed);
    }
    loaded.index.databases = databases;
    loaded
}

impl Loaded {
    /// Reads one database; of the first there is, also what those before it said.
    fn database(&mut self, database: u32, engine: &Engine, is_first: bool) {
        for (number, last) in self.readable(engine, keys::MERGED) {
            if let Ok(last) = postcard::from_bytes(&last) {
                self.index.merged.insert(number, last);
            }
        }
        if is_first {
            for (_, bytes) in self.readable(engine, keys::DICTIONARY) {
                match postcard::from_bytes::<Vec<Event>>(&bytes) {
                    Ok(events) => events.iter().for_each(|e| self.index.event(e)),
                    Err(e) => self.errors.push(damaged(engine, "dictionary", &e)),
                }
            }
        }
        let errors = self.errors.len();
        for (number, bytes) in self.readable(engine, keys::SUMMARY) {
            self.next = self.next.max(number + 1);
            match postcard::from_bytes(&bytes).or_else(|_| summarise(engine, number)) {
                Ok((bytes, summary)) => self.index.chunk(ChunkRef {
                    number,
                    database,
                    bytes,
                    summary,
                }),
                Err(why) => self.index.damaged(number, &why),
            }
        }
        if self.errors.len() > errors {
            self.chunks_without_summary(database, engine);
        }
        for (number, bytes) in self.readable(engine, keys::EVENTS) {
            self.next = self.next.max(number + 1);
            match postcard::from_bytes::<Vec<(u32, Event)>>(&bytes) {
                Ok(events) => events.iter().for_each(|(_, e)| self.index.event(e)),
                Err(e) => self.index.damaged(number, &e.to_string()),
            }
        }
        for (_, bytes) in self.readable(engine, keys::MARK) {
            // A mark that cannot be read makes its memory process's batches count as new: the
            // writer must not go on then.
            match postcard::from_bytes::<BatchMark>(&bytes) {
                Ok(mark) => {
                    self.marks.insert(mark.mp, mark);
                }
                Err(e) => self.errors.push(damaged(engine, "batch mark", &e)),
            }
        }
        let merged = self.index.merged.values().map(|last| last + 1);
        self.next = self.next.max(merged.max().unwrap_or(0));
    }

    /// Summaries stand many to a page, and are lost together; the chunks themselves may well be there.
    fn chunks_without_summary(&mut self, database: u32, engine: &Engine) {
        // What cannot be read of them is said already.
        for (number, _) in engine.entries(keys::CHUNK, 0).flatten() {
            self.next = self.next.max(number + 1);
            if self.index.place_of(number).is_some() || self.index.is_merged(number) {
                continue;
            }
            match summarise(engine, number) {
                Ok((bytes, summary)) => self.index.found_again(ChunkRef {
                    number,
                    database,
                    bytes,
                    summary,
                }),
                Err(why) => self.index.damaged(number, &why),
            }
        }
    }

    /// The entries of a kind that can be read; a stretch that cannot is one error.
    fn readable(&mut self, engine: &Engine, kind: u8) -> Vec<(u64, sled::IVec)> {
        let mut read = Vec::new();
        let mut failing = false;
        for entry in engine.entries(kind, 0) {
            match entry {
                Ok(entry) => {
                    failing = false;
                    read.push(entry);
                }
                Err(e) => {
                    if !failing {
                        self.errors.push(e);
                    }
                    failing = true;
                }
            }
        }
        read
    }
}

fn damaged(engine: &Engine, what: &str, error: &postcard::Error) -> StoreError {
    StoreError::Damaged {
        path: engine.path().to_owned(),
        why: format!("{what}: {error}"),
    }
}

/// A summary made anew, of a chunk whose own cannot be read.
fn summarise(engine: &Engine, number: u64) -> Result<(u32, Summary), String> {
    let bytes = engine.get(keys::key(keys::CHUNK, number));
    let bytes = bytes.map_err(|e| e.to_string())?.ok_or("it is not there")?;
    let records = Chunk::open(&bytes).and_then(|c| c.records());
    let summary = Summary::of(&records.map_err(|e| e.to_string())?);
    Ok((bytes.len() as u32, summary.ok_or("it is empty")?))
}

/// One entry of the log.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Item<'a> {
    /// A record.
    Record(&'a Record),
    /// An event.
    Event(&'a Event),
}

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

    /// Reads the log, entry by entry, from the beginning or from the snapshot that was taken. Chunks that
    /// cannot be read are skipped and noted.
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
        let databases = {
            let index = self.index.read().unwrap_or_else(PoisonError::into_inner);
            index.databases.clone()
        };
        for engine in databases.values() {
            self.replay_database(engine, &mut each)?;
        }
        ControlFlow::Continue(())
    }

    fn replay_database(
        &self,
        engine: &Engine,
        each: &mut impl FnMut(Item<'_>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let mut chunks = self.readable(engine, keys::CHUNK).peekable();
        let mut events = self.readable(engine, keys::EVENTS).peekable();
        loop {
            let next = [chunks.peek().map(|c| c.0), events.peek().map(|e| e.0)];
            let Some(at) = next.into_iter().flatten().min() else {
                return ControlFlow::Continue(());
            };
            let records = match chunks.next_if(|c| c.0 == at) {
                Some((_, bytes)) => self.records(at, &bytes),
                None => Vec::new(),
            };
            let between = match events.next_if(|e| e.0 == at) {
                Some((_, bytes)) => self.events(at, &bytes),
                None => Vec::new(),
            };
            let known = match at == self.from.number {
                true => (self.from.records as usize, self.from.events as usize),
                false => (0, 0),
            };
            interleave(&records, &between, known, each)?;
        }
    }

    /// Entries of a kind from where to begin, without those that cannot be read and those that were taken
    /// into others.
    fn readable(&self, engine: &Engine, kind: u8) -> impl Iterator<Item = (u64, sled::IVec)> {
        let entries = engine.entries(kind, self.from.number);
        entries.filter_map(|entry| match entry {
            Ok((number, _)) if self.is_merged(number) => None,
            Ok(entry) => Some(entry),
            Err(e) => {
                self.note_loss(&e);
                None
            }
        })
    }

    fn is_merged(&self, number: u64) -> bool {
        let index = self.index.read().unwrap_or_else(PoisonError::into_inner);
        index.is_merged(number)
    }

    fn note_loss(&self, error: &StoreError) {
        let mut index = self.index.write().unwrap_or_else(PoisonError::into_inner);
        index.lost(error);
    }

    fn records(&self, number: u64, bytes: &[u8]) -> Vec<Record> {
        let read = Chunk::open(bytes).and_then(|c| c.records());
        read.unwrap_or_else(|e| {
            self.note_damage(number, &e.to_string());
            Vec::new()
        })
    }

    fn events(&self, number: u64, bytes: &[u8]) -> Vec<(u32, Event)> {
        postcard::from_bytes(bytes).unwrap_or_else(|e| {
            self.note_damage(number, &e.to_string());
            Vec::new()
        })
    }

    fn note_damage(&self, number: u64, why: &str) {
        let mut index = self.index.write().unwrap_or_else(PoisonError::into_inner);
        index.damaged(number, why);
    }
}

/// Hands out records and events in the order of the log, without the first ones of either.
fn interleave(
    records: &[Record],
    events: &[(u32, Event)],
    known: (usize, usize),
    each: &mut impl FnMut(Item<'_>) -> ControlFlow<()>,
) -> ControlFlow<()> {
    let mut events = events.iter().skip(known.1).peekable();
    for (i, record) in records.iter().enumerate().skip(known.0) {
        while let Some((_, event)) = events.next_if(|(at, _)| *at as usize <= i) {
            each(Item::Event(event))?;
        }
        each(Item::Record(record))?;
    }
    events.try_for_each(|(_, event)| each(Item::Event(event)))
}
