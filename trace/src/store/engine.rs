//! The storage engine: sled 0.34.7, and all that is particular to it.
//!
//! A leaf of its trees is written again, whole, every ten writes and whenever it splits, at seventeen entries. For
//! chunks, tens of kilobytes each, that would be all of them three or four times. So chunks are kept in many small trees,
//! [`Runs`], each begun before the leaf of the one before would be rewritten: a chunk is written once.
//!
//! Known and measured: its flush is no barrier against power loss on Linux, so [`Engine::commit`] also
//! syncs the database file; deletes give no space back and its cache limit does not hold, so
//! databases are kept small and removed whole. A database is open in one process at a time. Its lock
//! outlives the last handle by a moment (its own threads hold it), so [`Engine::open`] asks again for
//! a while. On files that are not what it wrote it may panic; that is caught and is an error.

use std::collections::BTreeMap;
use std::fs::{File, TryLockError};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use sled::transaction::{ConflictableTransactionError, TransactionError, Transactional};

use super::error::StoreError;
use super::keys;

/// How often, and after how long each time, a locked database is tried again.
const LOCK_TRIES: u32 = 100;
const LOCK_PAUSE: Duration = Duration::from_millis(10);

/// Longest jump over entries that cannot be read.
const MOST_SKIPPED: u64 = 1 << 20;

/// Writes to a tree after which the next one rewrites its leaf.
const RUN_WRITES: usize = 9;
/// A run with this many bytes ends before its leaf is rewritten; one with fewer is not worth a tree of its own.
const RUN_BYTES: usize = 128 << 10;
/// A run ends with this, however few its writes.
const MOST_RUN_BYTES: usize = 384 << 10;

/// One database. Clones share it.
#[derive(Clone, Debug)]
pub(super) struct Engine {
    db: sled::Db,
    runs: Arc<RwLock<Runs>>,
    file: Arc<File>,
    path: PathBuf,
}

/// The trees of the chunks, each by the number of the first one in it; and how far the last one is.
#[derive(Debug, Default)]
struct Runs {
    trees: BTreeMap<u64, sled::Tree>,
    /// How far the last one is, if this process has written to it.
    last: Option<Last>,
}

/// How far the last run is.
#[derive(Clone, Copy, Debug)]
struct Last {
    writes: usize,
    bytes: usize,
    /// Its highest number.
    highest: u64,
}

impl Last {
    /// Of a run that another process wrote: full, and up to the number it says, or, if that cannot be read, to the
    /// end of all numbers, so that nothing is ever put where it would hide something.
    fn of(tree: &sled::Tree) -> Self {
        let key = catch_unwind(AssertUnwindSafe(|| tree.last()));
        let key = key.ok().and_then(Result::ok).flatten();
        Self {
            writes: RUN_WRITES,
            bytes: MOST_RUN_BYTES,
            highest: key
                .and_then(|(key, _)| keys::number(&key))
                .unwrap_or(u64::MAX),
        }
    }

    fn is_full(&self, bytes: usize) -> bool {
        self.writes >= RUN_WRITES && self.bytes >= RUN_BYTES || self.bytes + bytes > MOST_RUN_BYTES
    }
}

impl Runs {
    fn open(db: &sled::Db) -> sled::Result<Self> {
        let mut runs = Self::default();
        for name in db.tree_names() {
            if let (Some(&keys::CHUNK), Some(first)) = (name.first(), keys::number(&name)) {
                runs.trees.insert(first, db.open_tree(name)?);
            }
        }
        Ok(runs)
    }

    /// The tree that has chunk `number`, if any does.
    fn of(&self, number: u64) -> Option<&sled::Tree> {
        self.trees.range(..=number).next_back().map(|(_, t)| t)
    }

    /// Where to look for chunks from `number` on; and the first number of the tree after that.
    fn from(&self, number: u64) -> Option<(&sled::Tree, Option<u64>)> {
        let here = self.trees.range(..=number).next_back();
        let (first, tree) = here.or_else(|| self.trees.first_key_value())?;
        let after = self.trees.range(first + 1..).next();
        Some((tree, after.map(|(first, _)| *first)))
    }

    /// The tree to write chunk `number` to.
    fn place(&mut self, db: &sled::Db, number: u64, bytes: usize) -> sled::Result<sled::Tree> {
        let last = self.last.or_else(|| {
            let (_, tree) = self.trees.last_key_value()?;
            Some(Last::of(tree))
        });
        let begin = last.is_none_or(|last| number > last.highest && last.is_full(bytes));
        self.last = match last {
            Some(last) if !begin => Some(last),
            _ => Some(Last {
                writes: 0,
                bytes: 0,
                highest: number,
            }),
        };
        // Before all others: nobody writes that, but it would have a place.
        if begin || self.of(number).is_none() {
            let tree = db.open_tree(keys::key(keys::CHUNK, number))?;
            self.trees.insert(number, tree);
        }
        let (first, tree) = self.trees.range(..=number).next_back().ok_or_else(|| {
            sled::Error::ReportableBug(format!("there is no tree for chunk {number}"))
        })?;
        let is_last = self.trees.last_key_value().is_some_and(|(l, _)| l == first);
        if let (true, Some(last)) = (is_last, &mut self.last) {
            last.writes += 1;
            last.bytes += bytes;
            last.highest = last.highest.max(number);
        }
        Ok(tree.clone())
    }
}

/// Writes that become visible and durable together.
#[derive(Debug, Default)]
pub(super) struct Writes(Vec<([u8; 9], Option<sled::IVec>)>);

impl Writes {
    pub(super) fn put(&mut self, key: [u8; 9], value: &[u8]) {
        self.0.push((key, Some(value.into())));
    }

    pub(super) fn remove(&mut self, key: [u8; 9]) {
        self.0.push((key, None));
    }
}

impl Engine {
    /// Opens the database in directory `path`, or makes it.
    pub(super) fn open(path: &Path) -> Result<Self, StoreError> {
        wait_until_unlocked(path)?;
        let config = sled::Config::new()
            .path(path)
            .cache_capacity(16 << 20)
            .flush_every_ms(Some(100));
        let db = guarded(path, || config.open())?;
        let runs = guarded(path, || Runs::open(&db))?;
        let file = path.join("db");
        let opened = File::open(&file).map_err(|e| StoreError::io(file.clone(), e))?;
        Ok(Self {
            db,
            runs: Arc::new(RwLock::new(runs)),
            file: Arc::new(opened),
            path: path.to_owned(),
        })
    }

    /// Applies `writes`; on return they survive a crash.
    pub(super) fn commit(&self, writes: Writes) -> Result<(), StoreError> {
        self.apply(writes)?;
        guarded(&self.path, || self.db.flush())?;
        self.file
            .sync_data()
            .map_err(|e| StoreError::io(self.path.join("db"), e))
    }

    /// Applies `writes`, to be durable some time later.
    pub(super) fn apply(&self, writes: Writes) -> Result<(), StoreError> {
        guarded(&self.path, || {
            let (trees, batches): (Vec<_>, Vec<_>) = self.by_tree(writes)?.into_iter().unzip();
            let outcome = trees[..].transaction(|trees| {
                let both = trees.iter().zip(&batches);
                both.into_iter()
                    .try_for_each(|(tree, batch)| tree.apply_batch(batch))?;
                Ok::<_, ConflictableTransactionError<()>>(())
            });
            outcome.map_err(|e| match e {
                TransactionError::Storage(e) => e,
                TransactionError::Abort(()) => {
                    sled::Error::Unsupported("a write was given up".to_owned())
                }
            })
        })
    }

    /// What goes to each tree.
    fn by_tree(&self, writes: Writes) -> sled::Result<Vec<(sled::Tree, sled::Batch)>> {
        let mut runs = self.runs.write().unwrap_or_else(PoisonError::into_inner);
        let mut all: Vec<(sled::Tree, sled::Batch)> =
            vec![((*self.db).clone(), sled::Batch::default())];
        for (key, value) in writes.0 {
            let tree = match (chunk(&key), &value) {
                (Some(number), Some(value)) => Some(runs.place(&self.db, number, value.len())?),
                (Some(number), None) => runs.of(number).cloned(),
                (None, _) => None,
            };
            let at = tree.map_or(0, |tree| {
                let known = all.iter().position(|(t, _)| t.name() == tree.name());
                known.unwrap_or_else(|| {
                    all.push((tree, sled::Batch::default()));
                    all.len() - 1
                })
            });
            match value {
                Some(value) => all[at].1.insert(&key[..], value),
                None => all[at].1.remove(&key[..]),
            }
        }
        Ok(all)
    }

    pub(super) fn get(&self, key: [u8; 9]) -> Result<Option<sled::IVec>, StoreError> {
        let run = chunk(&key).and_then(|number| self.read_runs().of(number).cloned());
        guarded(&self.path, || match &run {
            Some(tree) => tree.get(key),
            None => self.db.get(key),
        })
    }

    fn read_runs(&self) -> std::sync::RwLockReadGuard<'_, Runs> {
        self.runs.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// The tree that has entries of a kind from a number on, and the number to go on with in the next tree.
    fn tree_from(&self, kind: u8, number: u64) -> (sled::Tree, Option<u64>) {
        if kind == keys::CHUNK
            && let Some((tree, after)) = self.read_runs().from(number)
        {
            return (tree.clone(), after);
        }
        ((*self.db).clone(), None)
    }

    /// Entries of a kind, in order of their number, from number `from` on. One that cannot be read is an
    /// error in its place, and so are those that share its page; the next that can be read follows.
    pub(super) fn entries(&self, kind: u8, from: u64) -> Entries {
        Entries {
            engine: self.clone(),
            kind,
            next: Some(from),
            open: None,
            step: 1,
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Size on disk, in bytes.
    pub(super) fn size(&self) -> u64 {
        self.db.size_on_disk().unwrap_or(0)
    }
}

/// See [`Engine::entries`].
pub(super) struct Entries {
    engine: Engine,
    kind: u8,
    /// Where to go on; none: at the end.
    next: Option<u64>,
    /// What is being read, and the number to go on with after it.
    open: Option<(sled::Iter, Option<u64>)>,
    /// How far to jump over what cannot be read.
    step: u64,
}

impl Entries {
    fn read(&mut self, mut from: u64) -> Result<Option<(u64, sled::IVec)>, StoreError> {
        let (key, value) = loop {
            let Self { engine, kind, .. } = self;
            let (entries, after) = self.open.get_or_insert_with(|| {
                let (tree, after) = engine.tree_from(*kind, from);
                let range = keys::key(*kind, from)..=keys::key(*kind, u64::MAX);
                (tree.range(range), after)
            });
            match (
                guarded(&engine.path, || entries.next().transpose())?,
                *after,
            ) {
                (Some(entry), _) => break entry,
                (None, None) => return Ok(None),
                (None, Some(first)) => {
                    from = first;
                    self.next = Some(first);
                    self.open = None;
                }
            }
        };
        let number = keys::number(&key).ok_or_else(|| StoreError::Damaged {
            path: self.engine.path.clone(),
            why: format!("key {key:?}"),
        })?;
        Ok(Some((number, value)))
    }
}

impl Iterator for Entries {
    type Item = Result<(u64, sled::IVec), StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        match self.read(self.next?) {
            Ok(None) => {
                self.next = None;
                None
            }
            Ok(Some((number, value))) => {
                self.next = number.checked_add(1);
                self.step = 1;
                Some(Ok((number, value)))
            }
            Err(e) => {
                let from = self.next?;
                // Wider and wider jumps, each from a fresh look: entries are numbered without large gaps.
                self.open = None;
                self.next = from
                    .checked_add(self.step)
                    .filter(|_| self.step <= MOST_SKIPPED);
                self.step *= 2;
                Some(Err(e))
            }
        }
    }
}

/// The number of the chunk that a key is of.
fn chunk(key: &[u8; 9]) -> Option<u64> {
    keys::number(key).filter(|_| key[0] == keys::CHUNK)
}

/// Waits, not for long, until no process has the database in `path` open.
fn wait_until_unlocked(path: &Path) -> Result<(), StoreError> {
    let path = path.join("db");
    for _ in 0..LOCK_TRIES {
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            Err(e) => return Err(StoreError::io(path.clone(), e)),
        };
        match file.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::WouldBlock) => std::thread::sleep(LOCK_PAUSE),
            Err(TryLockError::Error(e)) => return Err(StoreError::io(path.clone(), e)),
        }
    }
    Err(StoreError::Busy(path))
}

/// Calls the engine; its errors name `path`, and so do its panics.
fn guarded<T>(path: &Path, call: impl FnOnce() -> Result<T, sled::Error>) -> Result<T, StoreError> {
    let outcome = catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|_| {
        Err(sled::Error::ReportableBug(
            "the storage engine gave up on this database; its files are damaged".to_owned(),
        ))
    });
    outcome.map_err(|source| StoreError::Engine {
        path: path.to_owned(),
        source,
    })
}
