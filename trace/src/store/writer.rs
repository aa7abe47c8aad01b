//! The writing side: one process, one thread.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use dosmos_proto::{MpId, Nanos};

use super::engine::{Engine, Writes};
use super::entry::{BatchMark, Commit, Event};
use super::error::{StoreError, encode};
use super::index::{ChunkRef, Index};
use super::lock::DirLock;
use super::manifest::{Identity, Manifest};
use super::merge::Merger;
use super::pieces::{Batch, Tail};
use super::replay::{self, Recovered};
use super::retention::Retention;
use super::snapshot::{Position, Snapshot};
use super::view::StoreView;
use super::{keys, snapshot};
use crate::chunk::Encoder;

/// Size at which the next database is begun, in bytes.
pub(super) const ROTATE_AT: u64 = 256 << 20;
/// Entries of the dictionary that are stored together.
const DICTIONARY_PIECE: usize = 64;
/// Log entries after which the state is saved again: about as many as are replayed in half a second.
const SAVE_AFTER: u64 = 2_000_000;
/// Time after which it is, if anything happened.
const SAVE_EVERY: Nanos = Nanos(60_000_000_000);
/// How often retention looks for what has expired.
const LOOK_EVERY: Nanos = Nanos(1_000_000_000);

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
    retention: Retention,
    /// Up to where the log goes, and when the current database was begun.
    end: Position,
    begun: Option<Nanos>,
    /// Log entries since the state was saved; when that was.
    unsaved: u64,
    saved_at: Option<Nanos>,
    looked_at: Nanos,
    /// Chunks below this number may be merged: no replay begins before it.
    settled: Arc<AtomicU64>,
    _lock: DirLock,
}

impl StoreWriter {
    /// Opens the store in `dir`, or makes one; whatever a writer before committed is there.
    ///
    /// # Errors
    /// If the directory cannot be used, is in use, or holds another event manager's trace.
    pub fn open(dir: &Path, identity: &Identity) -> Result<(Self, Recovered), StoreError> {
        std::fs::create_dir_all(dir).map_err(|e| StoreError::io(dir.to_owned(), e))?;
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
        remove_leftovers(dir, &manifest);
        let snapshot = Snapshot::read(dir, &manifest).unwrap_or_else(|e| {
            tracing::warn!("{e}; the whole log is read instead");
            None
        });
        Self::go_on(dir, manifest, lock, snapshot)
    }

    /// Goes on where the databases that count end.
    fn go_on(
        dir: &Path,
        mut manifest: Manifest,
        lock: DirLock,
        snapshot: Option<(Position, Snapshot)>,
    ) -> Result<(Self, Recovered), StoreError> {
        let mut found = replay::databases(dir, &manifest)?;
        if found.is_empty() {
            let first = manifest.first;
            found.push((first, dir.join(manifest.database_name(first))));
        }
        let opened: Result<BTreeMap<u32, Engine>, _> = found
            .iter()
            .map(|(number, path)| Ok((*number, Engine::open(path)?)))
            .collect();
        let opened = opened?;
        let last = opened.last_key_value().map(|(n, e)| (*n, e.clone()));
        let (database, current) = last.ok_or_else(|| StoreError::NoStore(dir.to_owned()))?;
        // This one will be written again.
        manifest.sealed.remove(&database);
        let mut loaded = replay::load(opened, &[], &manifest);
        if let Some(error) = loaded.errors.pop() {
            return Err(error);
        }
        let settled = snapshot.as_ref().map_or(0, |(at, _)| at.number);
        let index = Arc::new(RwLock::new(loaded.index));
        let recovered = Recovered::new(index.clone(), loaded.marks.clone(), snapshot);
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
            retention: Retention::default(),
            end: Position {
                number: loaded.next,
                ..Position::default()
            },
            begun: None,
            unsaved: 0,
            saved_at: None,
            looked_at: Nanos::ZERO,
            settled: Arc::new(AtomicU64::new(settled)),
            _lock: lock,
        };
        Ok((writer, recovered))
    }

    /// What the events so far said.
    pub(super) fn dictionary(&self) -> Vec<Event> {
        self.read_index().dictionary()
    }

    /// A writer of the next generation of this store, which counts when [`StoreWriter::succeed`] says so.
    pub(super) fn next_generation(self) -> Result<Self, StoreError> {
        let mut manifest = self.manifest.clone();
        manifest.generation += 1;
        manifest.first = 0;
        manifest.sealed.clear();
        let (dir, lock) = (self.dir, self._lock);
        remove_generation(&dir, &manifest)?;
        drop(self.current);
        Self::go_on(&dir, manifest, lock, None).map(|(writer, _)| writer)
    }

    /// From now on this generation counts, and the others are removed.
    pub(super) fn succeed(&mut self, snapshot: Option<&Snapshot>) -> Result<(), StoreError> {
        if let Some(snapshot) = snapshot {
            self.save(snapshot)?;
        }
        self.manifest.write(&self.dir)?;
        remove_leftovers(&self.dir, &self.manifest);
        Ok(())
    }

    /// Keeps no more than this. Takes effect in [`maintain`](Self::maintain).
    pub fn retain(&mut self, retention: Retention) {
        self.rotate_at = retention.rotate_at();
        self.retention = retention;
    }

    /// What merges small chunks, on another thread, while this writer goes on.
    pub fn merger(&self) -> Merger {
        Merger::new(self.index.clone(), self.settled.clone())
    }

    /// To be called after commits: begins the next database, saves the state and removes what has expired,
    /// each when it is time. `now` is the time of the records; `state` is what all of the log so far comes
    /// to, asked for only when it is needed.
    ///
    /// # Errors
    /// If the system says no. What was committed is safe.
    pub fn maintain(
        &mut self,
        now: Nanos,
        state: impl FnOnce() -> Snapshot,
    ) -> Result<(), StoreError> {
        let begun = *self.begun.get_or_insert(now);
        let saved_at = *self.saved_at.get_or_insert(now);
        if self.retention.is_to_rotate(now - begun) && !self.is_empty() {
            self.rotate()?;
        }
        let mut expired = Vec::new();
        if now - self.looked_at >= LOOK_EVERY {
            self.looked_at = now;
            expired = self.retention.expired(&self.read_index(), now);
        }
        let due = self.unsaved >= SAVE_AFTER || now - saved_at >= SAVE_EVERY;
        if self.unsaved > 0 && due || !expired.is_empty() {
            self.save(&state())?;
            self.saved_at = Some(now);
        }
        self.remove(&expired)
    }

    /// Saves what all of the log so far comes to: opening the store reads only what follows.
    ///
    /// # Errors
    /// If the system says no.
    pub fn save(&mut self, state: &Snapshot) -> Result<(), StoreError> {
        state.write(&self.dir, &self.manifest, self.end)?;
        self.unsaved = 0;
        // The chunk where the log ends may be the one that still grows.
        self.settled.store(self.end.number, Ordering::Release);
        Ok(())
    }

    /// Whether the current database has no chunk.
    fn is_empty(&self) -> bool {
        let index = self.read_index();
        index
            .chunks
            .last()
            .is_none_or(|c| c.database != self.database)
    }

    /// Removes whole databases, the oldest. First the manifest says so, so that after a crash in between
    /// they do not count.
    fn remove(&mut self, databases: &[u32]) -> Result<(), StoreError> {
        let Some(last) = databases.last() else {
            return Ok(());
        };
        let mut manifest = self.manifest.clone();
        manifest.first = last + 1;
        manifest.sealed.retain(|number, _| number > last);
        for chunk in &self.read_index().chunks {
            if databases.contains(&chunk.database) {
                manifest.removed.records += u64::from(chunk.summary.records);
                manifest.removed.until = manifest.removed.until.max(chunk.summary.end);
            }
        }
        manifest.write(&self.dir)?;
        self.manifest = manifest;
        {
            let mut index = self.index.write().unwrap_or_else(PoisonError::into_inner);
            databases.iter().for_each(|d| index.forget(*d));
            index.removed = self.manifest.removed;
        }
        remove_leftovers(&self.dir, &self.manifest);
        Ok(())
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
        let database = self.database;
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
            self.end = Position {
                number: number - 1,
                records: last.records.len() as u32,
                events: last.events.len() as u32,
            };
        }
        self.unsaved += (commit.records.len() + commit.events.len()) as u64;
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

    /// Begins the next database. Marks and dictionary are carried over, so that it can do without those
    /// before it.
    fn rotate(&mut self) -> Result<(), StoreError> {
        let number = self.database + 1;
        let next = Engine::open(&self.dir.join(self.manifest.database_name(number)))?;
        let mut writes = Writes::default();
        for mark in self.marks.values() {
            writes.put(keys::key(keys::MARK, mark.mp.0.into()), &encode(mark)?);
        }
        let dictionary = self.read_index().dictionary();
        for (piece, events) in (0..).zip(dictionary.chunks(DICTIONARY_PIECE)) {
            writes.put(keys::key(keys::DICTIONARY, piece), &encode(&events)?);
        }
        next.commit(writes)?;
        self.seal();
        self.manifest.write(&self.dir)?;
        self.current = next.clone();
        self.database = number;
        self.begun = None;
        self.tail = None;
        let mut index = self.index.write().unwrap_or_else(PoisonError::into_inner);
        index.databases.insert(number, next);
        Ok(())
    }

    /// Says in the manifest how many records the current database has.
    fn seal(&mut self) {
        let records = self.read_index().records_in(self.database);
        self.manifest.sealed.insert(self.database, records);
    }

    fn read_index(&self) -> std::sync::RwLockReadGuard<'_, Index> {
        self.index.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Closes the store: from now on it is read as a directory.
    ///
    /// # Errors
    /// If the manifest cannot be written.
    pub fn close(mut self) -> Result<(), StoreError> {
        self.seal();
        self.manifest.live = None;
        self.manifest.pid = None;
        self.manifest.write(&self.dir)
    }
}

/// Removes databases and states that do not count: left by a crash, or by somebody who read what was
/// removed. What cannot be removed now is tried again next time.
fn remove_leftovers(dir: &Path, manifest: &Manifest) {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    for path in entries.map(|e| e.path()) {
        let name = path.file_name().and_then(|n| n.to_str()).unwrap_or("");
        let leftover = match path.is_dir() {
            true => name.contains("db.") && manifest.database_number(name).is_none(),
            false => name.ends_with("state") && path != snapshot::path(dir, manifest),
        };
        let removed = match (leftover, path.is_dir()) {
            (false, _) => Ok(()),
            (true, true) => std::fs::remove_dir_all(&path),
            (true, false) => std::fs::remove_file(&path),
        };
        if let Err(e) = removed {
            tracing::warn!("{} cannot be removed: {e}", path.display());
        }
    }
}

/// Removes what an attempt before left of a generation.
fn remove_generation(dir: &Path, manifest: &Manifest) -> Result<(), StoreError> {
    for (_, path) in replay::databases(dir, manifest)? {
        std::fs::remove_dir_all(&path).map_err(|e| StoreError::io(path, e))?;
    }
    Ok(())
}

fn describe(identity: &Identity) -> String {
    format!("{} of {}", identity.event_manager, identity.topology.name())
}
