//! The writing side: one process, one thread.

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use super::engine::{Engine, Writes};
use super::index::{ChunkRef, Index};
use super::manifest::{Identity, Manifest, io};
use super::replay::{self, Recovered};
use super::{BatchMark, Commit, Event, StoreError, StoreView, keys};
use crate::chunk::{self, Summary};
use crate::record::Record;

/// Size at which the next database is begun, in bytes.
const ROTATE_AT: u64 = 256 << 20;

/// The writing side of a store.
#[derive(Debug)]
pub struct StoreWriter {
    dir: PathBuf,
    manifest: Manifest,
    index: Arc<RwLock<Index>>,
    current: Engine,
    next: u64,
    rotate_at: u64,
    marks: std::collections::BTreeMap<dosmos_proto::MpId, BatchMark>,
}

impl StoreWriter {
    /// Opens the store in `dir`, or makes one; whatever a writer before committed is there.
    ///
    /// # Errors
    /// If the directory cannot be used, is in use, or holds another event manager's trace.
    pub fn open(dir: &Path, identity: &Identity) -> Result<(Self, Recovered), StoreError> {
        std::fs::create_dir_all(dir).map_err(|e| io(dir.to_owned(), &e))?;
        let manifest = match Manifest::read(dir) {
            Ok(found) if found.identity != *identity => {
                return Err(StoreError::Foreign {
                    path: dir.to_owned(),
                    found: describe(&found.identity),
                    wanted: describe(identity),
                });
            }
            Ok(found) => found,
            Err(StoreError::NoStore(_)) => Manifest::new(identity.clone()),
            Err(e) => return Err(e),
        };
        manifest.write(dir)?;
        let mut databases = replay::open_databases(dir, &manifest)?;
        if databases.is_empty() {
            databases.push(Engine::open(&dir.join("db.000"))?);
        }
        let current = databases[databases.len() - 1].clone();
        let loaded = replay::load(databases)?;
        let index = Arc::new(RwLock::new(loaded.index));
        let recovered = Recovered::new(index.clone(), loaded.marks.clone());
        let writer = Self {
            dir: dir.to_owned(),
            manifest,
            index,
            current,
            next: loaded.next,
            rotate_at: ROTATE_AT,
            marks: loaded.marks,
        };
        Ok((writer, recovered))
    }

    /// Begins the next database at this size instead of 256 MiB.
    pub fn rotate_at(&mut self, bytes: u64) {
        self.rotate_at = bytes;
    }

    /// Says in the manifest where the event manager that writes this store answers.
    ///
    /// # Errors
    /// If the manifest cannot be written.
    pub fn answers_at(&mut self, address: &str) -> Result<(), StoreError> {
        self.manifest.live = Some(address.to_owned());
        self.manifest.write(&self.dir)
    }

    /// What is committed, for readers in this process.
    pub fn view(&self) -> StoreView {
        StoreView::new(self.index.clone(), self.manifest.identity.clone(), true)
    }

    /// Adds to the log. All of it is durable on return, or (after an error or a crash) none.
    ///
    /// # Errors
    /// If the system says no: disk full, directory gone.
    pub fn commit(&mut self, commit: &Commit) -> Result<(), StoreError> {
        if self.current.size() >= self.rotate_at {
            self.rotate()?;
        }
        let mut writes = Writes::default();
        let mut chunks = Vec::new();
        let database = self.read_index().databases.len() - 1;
        let mut number = self.next;
        for piece in pieces(commit) {
            if let Some(summary) = Summary::of(piece.records) {
                writes.put(
                    keys::key(keys::CHUNK, number),
                    &chunk::encode(piece.records),
                );
                writes.put(keys::key(keys::SUMMARY, number), &encode(&summary)?);
                chunks.push(ChunkRef {
                    number,
                    database,
                    summary,
                });
            }
            if !piece.events.is_empty() {
                writes.put(keys::key(keys::EVENTS, number), &encode(&piece.events)?);
            }
            number += 1;
        }
        for mark in &commit.marks {
            writes.put(keys::key(keys::MARK, mark.mp.0.into()), &encode(mark)?);
        }
        self.current.commit(writes)?;
        self.next = number;
        self.marks.extend(commit.marks.iter().map(|m| (m.mp, *m)));
        let mut index = self.index.write().unwrap_or_else(PoisonError::into_inner);
        index.chunks.extend(chunks);
        for (_, event) in &commit.events {
            index.event(event);
        }
        Ok(())
    }

    /// Begins the next database. Marks are carried over, so that each database knows the latest.
    fn rotate(&mut self) -> Result<(), StoreError> {
        let count = self.read_index().databases.len();
        let next = Engine::open(&self.dir.join(format!("db.{count:03}")))?;
        let mut writes = Writes::default();
        for mark in self.marks.values() {
            writes.put(keys::key(keys::MARK, mark.mp.0.into()), &encode(mark)?);
        }
        next.commit(writes)?;
        self.current = next.clone();
        let mut index = self.index.write().unwrap_or_else(PoisonError::into_inner);
        index.databases.push(next);
        Ok(())
    }

    fn read_index(&self) -> std::sync::RwLockReadGuard<'_, Index> {
        self.index.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Closes the store: from now on it is read as a directory.
    ///
    /// # Errors
    /// If the manifest cannot be written.
    pub fn close(mut self) -> Result<(), StoreError> {
        self.manifest.live = None;
        self.manifest.write(&self.dir)
    }
}

fn describe(identity: &Identity) -> String {
    format!("{} of {}", identity.event_manager, identity.topology.name)
}

/// A chunk's worth of a commit.
struct Piece<'a> {
    records: &'a [Record],
    /// With the number of records of this piece before each.
    events: Vec<(u32, &'a Event)>,
}

/// Cuts a commit into pieces of at most a chunk. An event that stands between two pieces goes to the
/// end of the first.
fn pieces(commit: &Commit) -> Vec<Piece<'_>> {
    let mut events = commit.events.iter().peekable();
    let mut pieces = Vec::new();
    let mut before = 0u32;
    let mut chunks = commit.records.chunks(chunk::MOST_RECORDS).peekable();
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

fn encode<T: serde::Serialize>(value: &T) -> Result<Vec<u8>, StoreError> {
    postcard::to_stdvec(value).map_err(|e| StoreError::Damaged {
        path: PathBuf::new(),
        why: format!("cannot encode an entry: {e}"),
    })
}
