//! Opening what a writer left, and reading its log again from the beginning.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use dosmos_proto::MpId;

use super::engine::Engine;
use super::index::{ChunkRef, Index};
use super::manifest::io;
use super::{BatchMark, Event, StoreError, keys};
use crate::chunk::{Chunk, Summary};
use crate::record::Record;

/// The databases of a store, in order, with their numbers.
pub(super) fn databases(dir: &Path) -> Result<Vec<(u32, PathBuf)>, StoreError> {
    let entries = std::fs::read_dir(dir).map_err(|e| io(dir.to_owned(), &e))?;
    let mut found = Vec::new();
    for entry in entries {
        let path = entry.map_err(|e| io(dir.to_owned(), &e))?.path();
        let name = path.file_name().and_then(|n| n.to_str());
        let number = name.and_then(|n| n.strip_prefix("db.")?.parse().ok());
        if let Some(number) = number
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
pub(super) fn load(databases: Vec<Engine>) -> Loaded {
    let mut loaded = Loaded {
        index: Index::default(),
        marks: BTreeMap::new(),
        next: 0,
        errors: Vec::new(),
    };
    for (database, engine) in databases.iter().enumerate() {
        if let Err(e) = load_database(&mut loaded, database, engine) {
            loaded.errors.push(e);
        }
    }
    loaded.index.databases = databases;
    loaded
}

fn load_database(loaded: &mut Loaded, database: usize, engine: &Engine) -> Result<(), StoreError> {
    let index = &mut loaded.index;
    for entry in engine.all(keys::SUMMARY) {
        let (number, bytes) = entry?;
        loaded.next = loaded.next.max(number + 1);
        match postcard::from_bytes(&bytes).or_else(|_| summarise(engine, number)) {
            Ok((bytes, summary)) => index.chunk(ChunkRef {
                number,
                database,
                bytes,
                summary,
            }),
            Err(why) => index.damaged(number, &why),
        }
    }
    for entry in engine.all(keys::EVENTS) {
        let (number, bytes) = entry?;
        loaded.next = loaded.next.max(number + 1);
        match postcard::from_bytes::<Vec<(u32, Event)>>(&bytes) {
            Ok(events) => events.iter().for_each(|(_, e)| index.event(e)),
            Err(e) => index.damaged(number, &e.to_string()),
        }
    }
    for entry in engine.all(keys::MARK) {
        let (_, bytes) = entry?;
        // A mark that cannot be read makes its memory process's batches count as new: the
        // writer must not go on then.
        let mark: BatchMark = postcard::from_bytes(&bytes).map_err(|e| StoreError::Damaged {
            path: engine.path().to_owned(),
            why: format!("batch mark: {e}"),
        })?;
        loaded.marks.insert(mark.mp, mark);
    }
    Ok(())
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
        self.replay_while(|item| {
            each(item);
            ControlFlow::Continue(())
        })
    }

    /// As [`Recovered::replay`], until `each` breaks off.
    pub(super) fn replay_while(
        &self,
        mut each: impl FnMut(Item<'_>) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        let databases = {
            let index = self.index.read().unwrap_or_else(PoisonError::into_inner);
            index.databases.clone()
        };
        for engine in databases {
            if self.replay_database(&engine, &mut each)?.is_break() {
                break;
            }
        }
        Ok(())
    }

    fn replay_database(
        &self,
        engine: &Engine,
        each: &mut impl FnMut(Item<'_>) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>, StoreError> {
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
                return Ok(ControlFlow::Continue(()));
            };
            let records = match chunks.next_if(|c| number_of(Some(c)) == Some(at)) {
                Some(entry) => self.records(at, &entry?.1),
                None => Vec::new(),
            };
            let between = match events.next_if(|c| number_of(Some(c)) == Some(at)) {
                Some(entry) => self.events(at, &entry?.1),
                None => Vec::new(),
            };
            if interleave(&records, &between, each).is_break() {
                return Ok(ControlFlow::Break(()));
            }
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

fn interleave(
    records: &[Record],
    events: &[(u32, Event)],
    each: &mut impl FnMut(Item<'_>) -> ControlFlow<()>,
) -> ControlFlow<()> {
    let mut events = events.iter().peekable();
    for (i, record) in records.iter().enumerate() {
        while let Some((_, event)) = events.next_if(|(at, _)| *at as usize <= i) {
            each(Item::Event(event))?;
        }
        each(Item::Record(record))?;
    }
    events.try_for_each(|(_, event)| each(Item::Event(event)))
}
