//! Opening what a writer left, and reading its log again from the beginning.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};

use dosmos_proto::MpId;

use super::engine::Engine;
use super::index::{ChunkRef, Index};
use super::manifest::{Manifest, io};
use super::{BatchMark, Event, StoreError, keys};
use crate::chunk::{Chunk, Summary};
use crate::record::Record;

/// Opens all databases of a store, in order.
pub(super) fn open_databases(dir: &Path, manifest: &Manifest) -> Result<Vec<Engine>, StoreError> {
    let entries = std::fs::read_dir(dir).map_err(|e| io(dir.to_owned(), &e))?;
    let mut paths = Vec::new();
    for entry in entries {
        let path = entry.map_err(|e| io(dir.to_owned(), &e))?.path();
        let name = path.file_name().and_then(|n| n.to_str());
        if path.is_dir() && name.is_some_and(|n| n.starts_with("db.")) {
            paths.push(path);
        }
    }
    paths.sort();
    paths
        .iter()
        .map(|path| {
            Engine::open(path).map_err(|e| match &manifest.live {
                Some(address) if Engine::is_locked(&e) => StoreError::InUse {
                    path: dir.to_owned(),
                    address: address.clone(),
                },
                _ => e,
            })
        })
        .collect()
}

/// What the databases hold.
pub(super) struct Loaded {
    pub(super) index: Index,
    pub(super) marks: BTreeMap<MpId, BatchMark>,
    pub(super) next: u64,
}

/// Reads summaries, dictionary, counters and marks.
pub(super) fn load(databases: Vec<Engine>) -> Result<Loaded, StoreError> {
    let mut index = Index::default();
    let mut marks = BTreeMap::new();
    let mut next = 0;
    for (database, engine) in databases.iter().enumerate() {
        for entry in engine.all(keys::SUMMARY) {
            let (number, bytes) = entry?;
            next = next.max(number + 1);
            match postcard::from_bytes::<Summary>(&bytes) {
                Ok(summary) => index.chunks.push(ChunkRef {
                    number,
                    database,
                    summary,
                }),
                Err(e) => index.damaged(number, &e.to_string()),
            }
        }
        for entry in engine.all(keys::EVENTS) {
            let (number, bytes) = entry?;
            next = next.max(number + 1);
            match postcard::from_bytes::<Vec<(u32, Event)>>(&bytes) {
                Ok(events) => events.iter().for_each(|(_, e)| index.event(e)),
                Err(e) => index.damaged(number, &e.to_string()),
            }
        }
        for entry in engine.all(keys::MARK) {
            let (_, bytes) = entry?;
            // A mark that cannot be read makes its memory process's batches count as new: the
            // writer must not go on then.
            let mark: BatchMark =
                postcard::from_bytes(&bytes).map_err(|e| StoreError::Damaged {
                    path: engine.path().to_owned(),
                    why: format!("batch mark: {e}"),
                })?;
            marks.insert(mark.mp, mark);
        }
    }
    index.databases = databases;
    index.chunks.sort_by_key(|c| c.number);
    Ok(Loaded { index, marks, next })
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
}

impl Recovered {
    pub(super) fn new(index: Arc<RwLock<Index>>, marks: BTreeMap<MpId, BatchMark>) -> Self {
        Self { index, marks }
    }

    /// The last batch of each memory process.
    pub fn marks(&self) -> &BTreeMap<MpId, BatchMark> {
        &self.marks
    }

    /// Reads the log from the beginning, entry by entry. Chunks that cannot be read are skipped and
    /// noted.
    ///
    /// # Errors
    /// If the engine cannot be read.
    pub fn replay(&self, mut each: impl FnMut(Item<'_>)) -> Result<(), StoreError> {
        let databases = {
            let index = self.index.read().unwrap_or_else(PoisonError::into_inner);
            index.databases.clone()
        };
        for engine in databases {
            self.replay_database(&engine, &mut each)?;
        }
        Ok(())
    }

    fn replay_database(
        &self,
        engine: &Engine,
        each: &mut impl FnMut(Item<'_>),
    ) -> Result<(), StoreError> {
        let mut chunks = engine.all(keys::CHUNK).peekable();
        let mut events = engine.all(keys::EVENTS).peekable();
        loop {
            let number_of = |entry: Option<&Result<(u64, _), StoreError>>| match entry {
                Some(Ok((number, _))) => Some(*number),
                // An error comes out first.
                Some(Err(_)) => Some(0),
                None => None,
            };
            let (chunk_at, events_at) = (number_of(chunks.peek()), number_of(events.peek()));
            let Some(at) = chunk_at.into_iter().chain(events_at).min() else {
                return Ok(());
            };
            let records = match chunks.next_if(|c| number_of(Some(c)) == Some(at)) {
                Some(entry) => self.records(at, &entry?.1),
                None => Vec::new(),
            };
            let between = match events.next_if(|c| number_of(Some(c)) == Some(at)) {
                Some(entry) => self.events(at, &entry?.1),
                None => Vec::new(),
            };
            interleave(&records, &between, each);
        }
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

fn interleave(records: &[Record], events: &[(u32, Event)], each: &mut impl FnMut(Item<'_>)) {
    let mut events = events.iter().peekable();
    for (i, record) in records.iter().enumerate() {
        while let Some((_, event)) = events.next_if(|(at, _)| *at as usize <= i) {
            each(Item::Event(event));
        }
        each(Item::Record(record));
    }
    events.for_each(|(_, event)| each(Item::Event(event)));
}
