//! The storage engine: sled 0.34.7, and all that is particular to it.
//!
//! Known and measured: its flush is no barrier against power loss on Linux, so [`Engine::commit`] also
//! syncs the database file; deletes give no space back and its cache limit does not hold, so
//! databases are kept small and removed whole.

use std::fs::File;
use std::path::{Path, PathBuf};

use super::StoreError;

/// One database.
#[derive(Clone, Debug)]
pub(super) struct Engine {
    db: sled::Db,
    path: PathBuf,
}

/// Writes that become visible and durable together.
#[derive(Debug, Default)]
pub(super) struct Writes(sled::Batch);

impl Writes {
    pub(super) fn put(&mut self, key: [u8; 9], value: &[u8]) {
        self.0.insert(&key[..], value);
    }
}

impl Engine {
    /// Opens the database in directory `path`, or makes it.
    pub(super) fn open(path: &Path) -> Result<Self, StoreError> {
        let db = sled::Config::new()
            .path(path)
            .cache_capacity(16 << 20)
            .flush_every_ms(Some(100))
            .open()
            .map_err(|e| failed(path, &e))?;
        Ok(Self {
            db,
            path: path.to_owned(),
        })
    }

    /// Whether the database in `path` is open in some process.
    pub(super) fn is_locked(error: &StoreError) -> bool {
        matches!(error, StoreError::Io { why, .. } if why.contains("could not acquire lock"))
    }

    /// Applies `writes`; on return they survive a crash.
    pub(super) fn commit(&self, writes: Writes) -> Result<(), StoreError> {
        let fails = |e: &sled::Error| failed(&self.path, e);
        self.db.apply_batch(writes.0).map_err(|e| fails(&e))?;
        self.db.flush().map_err(|e| fails(&e))?;
        let file = self.path.join("db");
        File::open(&file)
            .and_then(|f| f.sync_data())
            .map_err(|e| StoreError::Io {
                path: file,
                why: e.to_string(),
            })
    }

    pub(super) fn get(&self, key: [u8; 9]) -> Result<Option<sled::IVec>, StoreError> {
        self.db.get(key).map_err(|e| failed(&self.path, &e))
    }

    /// All entries of a kind, in order of their number.
    pub(super) fn all(
        &self,
        kind: u8,
    ) -> impl Iterator<Item = Result<(u64, sled::IVec), StoreError>> + use<> {
        let path = self.path.clone();
        self.db.scan_prefix([kind]).map(move |entry| {
            let (key, value) = entry.map_err(|e| failed(&path, &e))?;
            let number = super::keys::number(&key).ok_or_else(|| StoreError::Damaged {
                path: path.clone(),
                why: format!("key {key:?}"),
            })?;
            Ok((number, value))
        })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Size on disk, in bytes.
    pub(super) fn size(&self) -> u64 {
        self.db.size_on_disk().unwrap_or(0)
    }
}

fn failed(path: &Path, error: &sled::Error) -> StoreError {
    StoreError::Io {
        path: path.to_owned(),
        why: error.to_string(),
    }
}
