//! The storage engine of the store that is being written: sled 0.34.7, and all that is particular to it.
//!
//! It keeps what is looked up by key and changed in place, one small value per key: the last batch of each memory
//! process, the variables and barriers known, and how far the log goes. The records themselves, which are never changed
//! and too large for its pages, stand in log files (`frame.rs`). So a writer has two accounts of what was committed, kept
//! apart: what damage to the log takes of batch numbers and names is given back by the engine, and the log alone is
//! enough where the engine's files are lost.
//!
//! Known and measured: it moves pages over 128 KiB to files that it never syncs, and its flush is no barrier against power
//! loss on Linux, so nothing rests on it that the log does not have; after a write that failed it refuses all others until
//! it is opened again; its lock outlives the last handle by a moment; on files that are not what it wrote it may
//! panic. None of that is seen outside: what cannot be written now is kept and written later.

use std::collections::BTreeMap;
use std::fs::{File, TryLockError};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::disk;
use super::entry::{BatchMark, Event};
use super::ledger::Extent;

/// Name of its directory.
pub(super) const DIRECTORY: &str = "engine";
/// How often, and after how long each time, a locked database is tried again.
const LOCK_TRIES: u32 = 100;
const LOCK_PAUSE: Duration = Duration::from_millis(10);
/// Commits after which a database that failed is opened again.
const RETRY_AFTER: u32 = 64;
/// Largest value: larger ones would not stay in its pages. Only a declaration with very many owners is, and the log has it.
const MOST_BYTES: usize = 64 << 10;

const MARK: u8 = b'M';
const VARIABLE: u8 = b'V';
const BARRIER: u8 = b'B';
const EXTENT: u8 = b'E';

/// What the engine knows of a log.
#[derive(Debug, Default)]
pub(super) struct Known {
    pub(super) marks: Vec<BatchMark>,
    /// Variables and barriers.
    pub(super) names: Vec<Event>,
    pub(super) extent: Option<Extent>,
}

/// The engine's database. What it does is never in the way of a commit.
#[derive(Debug)]
pub(super) struct Engine {
    path: PathBuf,
    db: Option<sled::Db>,
    /// What it does not hold yet.
    unwritten: BTreeMap<[u8; 5], Vec<u8>>,
    failed_since: u32,
}

impl Engine {
    /// Opens the database in `dir`, or makes it anew where it is damaged; and what it knows.
    pub(super) fn open(dir: &Path) -> (Self, Known) {
        let path = dir.join(DIRECTORY);
        if !disk::has_engine() {
            let none = Self {
                path,
                db: None,
                unwritten: BTreeMap::new(),
                failed_since: 0,
            };
            return (none, Known::default());
        }
        wait_until_unlocked(&path);
        let opened = open(&path).and_then(|db| {
            let known = guarded(|| Ok(read(&db)))?;
            Ok((db, known))
        });
        let (db, known) = match opened {
            Ok((db, known)) => (Some(db), known),
            Err(e) => {
                tracing::warn!(
                    "{} is damaged ({e}) and made anew: the log tells the same",
                    path.display()
                );
                let removed = std::fs::remove_dir_all(&path);
                (
                    removed.ok().and_then(|()| open(&path).ok()),
                    Known::default(),
                )
            }
        };
        let engine = Self {
            path,
            db,
            unwritten: BTreeMap::new(),
            failed_since: 0,
        };
        (engine, known)
    }

    /// Takes a batch into account, to be written with the next [`Engine::write`].
    pub(super) fn mark(&mut self, mark: &BatchMark) {
        self.put(MARK, mark.mp.0, mark);
    }

    /// Takes what an event says of names into account.
    pub(super) fn name(&mut self, event: &Event) {
        match event {
            Event::Variable(variable) => self.put(VARIABLE, variable.id().0, event),
            Event::Barrier(barrier) => self.put(BARRIER, barrier.id.0, event),
            _ => {}
        }
    }

    fn put(&mut self, kind: u8, number: u32, value: &impl Serialize) {
        let mut key = [kind; 5];
        key[1..].copy_from_slice(&number.to_be_bytes());
        if let Ok(value) = postcard::to_stdvec(value)
            && value.len() <= MOST_BYTES
        {
            self.unwritten.insert(key, value);
        }
    }

    /// Writes what was taken into account, at once or, if the system refuses, with a later call.
    pub(super) fn write(&mut self, extent: &Extent) {
        if !disk::has_engine() {
            return;
        }
        self.put(EXTENT, 0, extent);
        if self.db.is_none() {
            self.failed_since += 1;
            if self.failed_since < RETRY_AFTER {
                return;
            }
            self.failed_since = 0;
            self.db = open(&self.path).ok();
        }
        let Some(db) = &self.db else { return };
        let mut batch = sled::Batch::default();
        for (key, value) in &self.unwritten {
            batch.insert(&key[..], &value[..]);
        }
        match guarded(|| db.apply_batch(batch)) {
            Ok(()) => self.unwritten.clear(),
            Err(e) => {
                tracing::warn!("{}: {e}; tried again later", self.path.display());
                self.db = None;
            }
        }
    }
}

fn open(path: &Path) -> sled::Result<sled::Db> {
    let config = sled::Config::new()
        .path(path)
        .cache_capacity(16 << 20)
        .flush_every_ms(Some(100));
    guarded(|| config.open())
}

/// What is there and can be read.
fn read(db: &sled::Db) -> Known {
    fn all<T: DeserializeOwned>(db: &sled::Db, kind: u8) -> Vec<T> {
        let values = db.scan_prefix([kind]).values().flatten();
        values
            .filter_map(|value| postcard::from_bytes(&value).ok())
            .collect()
    }
    let mut names = all(db, VARIABLE);
    names.extend(all(db, BARRIER));
    Known {
        marks: all(db, MARK),
        names,
        extent: all(db, EXTENT).pop(),
    }
}

/// Waits, not for long, until no process has the database open.
fn wait_until_unlocked(path: &Path) {
    let Ok(file) = File::open(path.join("db")) else {
        return;
    };
    for _ in 0..LOCK_TRIES {
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => std::thread::sleep(LOCK_PAUSE),
            Ok(()) | Err(TryLockError::Error(_)) => return,
        }
    }
}

/// Calls the engine; its panics are errors.
fn guarded<T>(call: impl FnOnce() -> sled::Result<T>) -> sled::Result<T> {
    catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|_| {
        let what = "the storage engine gave up on its files";
        Err(sled::Error::ReportableBug(what.to_owned()))
    })
}
