//! The writing side: one process, one thread.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use dosmos_proto::MpId;

use super::engine::{Engine, Writes};
use super::index::{ChunkRef, Index};
use super::lock::DirLock;
use super::manifest::{Identity, Manifest, io};
use super::pieces::{Batch, Tail};
use super::replay::{self, Recovered};
use super::{BatchMark, Commit, StoreError, StoreView, keys};
use crate::chunk::Encoder;

/// Size at which the next database is begun, in bytes.
const ROTATE_AT: u64 = 256 << 20;

/// The writing side of a store.
#[derive(Debug)]
pub struct StoreWriter {
    dir: PathBuf,
    manifest: Manifest,
    index: Arc<RwLock<Index>>,
    current: Engine,
    /// Number of the current database.
    database: u32,
    next: u64,
    /// The last chunk of the current database, while it may still grow; its number is `next - 1`.
    tail: Option<Tail>,
    rotate_at: u64,
    encoder: Encoder,
    marks: BTreeMap<MpId, BatchMark>,
    _lock: DirLock,
}

impl StoreWriter {
    /// Opens the store in `dir`, or makes one; whatever a writer before committed is there.
    ///
    /// # Errors
    /// If the directory cannot be used, is in use, or holds another event manager's trace.
    pub fn open(dir: &Path, identity: &Identity) -> Result<(Self, Recovered), StoreError> {
        std::fs::create_dir_all(dir).map_err(|e| io(dir.to_owned(), &e))?;
        let lock = DirLock::exclusive(dir)?;
        let mut manifest = match Manifest::read(dir) {
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
        let Some(lock) = lock else {
            return Err(match manifest.pid {
                Some(_) => manifest.in_use(dir),
                None => StoreError::Busy(dir.to_owned()),
            });
        };
        manifest.pid = Some(std::process::id());
        manifest.live = None;
        manifest.write(dir)?;
        let mut found = replay::databases(dir)?;
        if found.is_empty() {
            found.push((0, dir.join(database_name(0))));
        }
        let database = found[found.len() - 1].0;
        let opened: Result<Vec<Engine>, _> = found.iter().map(|(_, p)| Engine::open(p)).collect();
        let opened = opened?;
        let current = opened[opened.len() - 1].clone();
        let mut loaded = replay::load(opened);
        if let Some(error) = loaded.errors.pop() {
            return Err(error);
        }
        let index = Arc::new(RwLock::new(loaded.index));
        let recovered = Recovered::new(index.clone(), loaded.marks.clone());
        let writer = Self {
            dir: dir.to_owned(),
            manifest,
            index,
            current,
            database,
            next: loaded.next,
            tail: None,
            rotate_at: ROTATE_AT,
            encoder: Encoder::new(),
            marks: loaded.marks,
            _lock: lock,
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

    /// Adds to the log. All of it is durable on return; after an error the same commit may be tried
    /// again; after a crash all of it is there or none.
    ///
    /// # Errors
    /// If a batch was committed before, or the system says no: disk full, directory gone.
    pub fn commit(&mut self, commit: &Commit) -> Result<(), StoreError> {
        let marks = self.newer_marks(&commit.marks)?;
        if self.current.size() >= self.rotate_at {
            self.rotate()?;
        }
        let batch = Batch::of(commit, self.tail.as_ref(), self.next);
        let pieces = batch.pieces();
        let mut writes = Writes::default();
        let mut chunks = Vec::new();
        let database = self.read_index().databases.len() - 1;
        let mut number = batch.first;
        for piece in &pieces {
            let encoded = self.encoder.encode(piece.records);
            if let Some(summary) = encoded.summary {
                writes.put(keys::key(keys::CHUNK, number), &encoded.bytes);
                let bytes = encoded.bytes.len() as u32;
                writes.put(
                    keys::key(keys::SUMMARY, number),
                    &encode(&(bytes, &summary))?,
                );
                chunks.push(ChunkRef {
                    number,
                    database,
                    bytes,
                    summary,
                });
            }
            if !piece.events.is_empty() {
                writes.put(keys::key(keys::EVENTS, number), &encode(&piece.events)?);
            }
            number += 1;
        }
        for mark in marks.values() {
            writes.put(keys::key(keys::MARK, mark.mp.0.into()), &encode(mark)?);
        }
        self.current.commit(writes)?;
        if let Some(last) = pieces.last() {
            self.tail = Tail::of(last);
        }
        self.next = number;
        self.marks.extend(marks);
        let mut index = self.index.write().unwrap_or_else(PoisonError::into_inner);
        chunks.into_iter().for_each(|c| index.chunk(c));
        for (_, event) in &commit.events {
            index.event(event);
        }
        Ok(())
    }

    /// The last mark of each memory process, if every one of `marks` is new.
    fn newer_marks(&self, marks: &[BatchMark]) -> Result<BTreeMap<MpId, BatchMark>, StoreError> {
        let mut newer = BTreeMap::new();
        for mark in marks {
            if let Some(last) = newer.get(&mark.mp).or_else(|| self.marks.get(&mark.mp))
                && !mark.is_after(last)
            {
                return Err(StoreError::Duplicate {
                    mark: *mark,
                    last: *last,
                });
            }
            newer.insert(mark.mp, *mark);
        }
        Ok(newer)
    }

    /// Begins the next database. Marks are carried over, so that each database knows the latest.
    fn rotate(&mut self) -> Result<(), StoreError> {
        let path = self.dir.join(database_name(self.database + 1));
        let next = Engine::open(&path)?;
        let mut writes = Writes::default();
        for mark in self.marks.values() {
            writes.put(keys::key(keys::MARK, mark.mp.0.into()), &encode(mark)?);
        }
        next.commit(writes)?;
        self.current = next.clone();
        self.database += 1;
        self.tail = None;
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
        self.manifest.pid = None;
        self.manifest.write(&self.dir)
    }
}

fn database_name(number: u32) -> String {
    format!("db.{number:03}")
}

fn describe(identity: &Identity) -> String {
    format!("{} of {}", identity.event_manager, identity.topology.name)
}

fn encode<T: serde::Serialize>(value: &T) -> Result<Vec<u8>, StoreError> {
    postcard::to_stdvec(value).map_err(|e| StoreError::Damaged {
        path: PathBuf::new(),
        why: format!("cannot encode an entry: {e}"),
    })
}
