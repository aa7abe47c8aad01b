//! The storage engine: sled 0.34.7, and all that is particular to it.
//!
//! Known and measured: its flush is no barrier against power loss on Linux, so [`Engine::commit`] also
//! syncs the database file; deletes give no space back and its cache limit does not hold, so
//! databases are kept small and removed whole. A database is open in one process at a time. Its lock
//! outlives the last handle by a moment (its own threads hold it), so [`Engine::open`] asks again for
//! a while. On files that are not what it wrote it may panic; that is caught and is an error.

use std::fs::{File, TryLockError};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::StoreError;

/// How often, and after how long each time, a locked database is tried again.
const LOCK_TRIES: u32 = 100;
const LOCK_PAUSE: Duration = Duration::from_millis(10);

/// Longest jump over entries that cannot be read.
const MOST_SKIPPED: u64 = 1 << 20;

/// One database. Clones share it.
#[derive(Clone, Debug)]
pub(super) struct Engine {
    db: sled::Db,
    file: Arc<File>,
    path: PathBuf,
}

/// Writes that become visible and durable together.
#[derive(Debug, Default)]
pub(super) struct Writes(sled::Batch);

impl Writes {
    pub(super) fn put(&mut self, key: [u8; 9], value: &[u8]) {
        self.0.insert(&key[..], value);
    }

    pub(super) fn remove(&mut self, key: [u8; 9]) {
        self.0.remove(&key[..]);
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
        let file = path.join("db");
        let opened = File::open(&file).map_err(|e| io(&file, &e))?;
        Ok(Self {
            db,
            file: Arc::new(opened),
            path: path.to_owned(),
        })
    }

    /// Applies `writes`; on return they survive a crash.
    pub(super) fn commit(&self, writes: Writes) -> Result<(), StoreError> {
        guarded(&self.path, || {
            self.db.apply_batch(writes.0)?;
            self.db.flush()
        })?;
        self.file
            .sync_data()
            .map_err(|e| io(&self.path.join("db"), &e))
    }

    /// Applies `writes`, to be durable some time later.
    pub(super) fn apply(&self, writes: Writes) -> Result<(), StoreError> {
        guarded(&self.path, || self.db.apply_batch(writes.0))
    }

    pub(super) fn get(&self, key: [u8; 9]) -> Result<Option<sled::IVec>, StoreError> {
        guarded(&self.path, || self.db.get(key))
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
    open: Option<sled::Iter>,
    /// How far to jump over what cannot be read.
    step: u64,
}

impl Entries {
    fn read(&mut self, from: u64) -> Result<Option<(u64, sled::IVec)>, StoreError> {
        let Self {
            engine, kind, open, ..
        } = self;
        let entry = guarded(&engine.path, || {
            let range = super::keys::key(*kind, from)..=super::keys::key(*kind, u64::MAX);
            let entries = open.get_or_insert_with(|| engine.db.range(range));
            entries.next().transpose()
        });
        let Some((key, value)) = entry? else {
            return Ok(None);
        };
        let number = super::keys::number(&key).ok_or_else(|| StoreError::Damaged {
            path: engine.path.clone(),
            why: format!("key {key:?}"),
        })?;
        Ok(Some((number, value)))
    }
}

impl Iterator for Entries {
    type Item = Result<(u64, sled::IVec), StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        let from = self.next?;
        match self.read(from) {
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

/// Waits, not for long, until no process has the database in `path` open.
fn wait_until_unlocked(path: &Path) -> Result<(), StoreError> {
    let path = path.join("db");
    for _ in 0..LOCK_TRIES {
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            Err(e) => return Err(io(&path, &e)),
        };
        match file.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::WouldBlock) => std::thread::sleep(LOCK_PAUSE),
            Err(TryLockError::Error(e)) => return Err(io(&path, &e)),
        }
    }
    Err(StoreError::Busy(path))
}

/// Calls the engine; its errors name `path`, and so do its panics.
fn guarded<T>(path: &Path, call: impl FnOnce() -> Result<T, sled::Error>) -> Result<T, StoreError> {
    let failed = |why: String| StoreError::Io {
        path: path.to_owned(),
        why,
    };
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(result) => result.map_err(|e| failed(e.to_string())),
        Err(_) => Err(failed(
            "the storage engine gave up on this database; its files are damaged".to_owned(),
        )),
    }
}

fn io(path: &Path, error: &std::io::Error) -> StoreError {
    StoreError::Io {
        path: path.to_owned(),
        why: error.to_string(),
    }
}
