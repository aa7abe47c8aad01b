//! `manifest.json`: whose trace a store holds, and where it is answered while it is written.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use dosmos_proto::{EmpId, Nanos, Topology};
use serde::{Deserialize, Serialize};

use super::StoreError;

/// Version of the layout of a store.
const FORMAT: u32 = 2;
const FILE: &str = "manifest.json";

/// Whose trace a store holds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Identity {
    /// Name of the event manager.
    pub event_manager: String,
    /// Its number.
    pub emp: EmpId,
    /// The processes.
    pub topology: Topology,
}

/// What retention removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Removed {
    /// Number of records.
    pub records: u64,
    /// End of the last of them.
    pub until: Nanos,
}

/// The manifest of a store.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    format: u32,
    /// Whose trace it is.
    #[serde(flatten)]
    pub identity: Identity,
    /// Where the event manager that writes it answers; none once it has closed it.
    #[serde(default)]
    pub live: Option<String>,
    /// Number of the process that writes it; none once it has closed it. One that is there although
    /// nobody holds the directory's lock was left by a crash.
    #[serde(default)]
    pub(super) pid: Option<u32>,
    /// Which set of databases counts: compaction writes the next one beside it.
    #[serde(default)]
    pub(super) generation: u32,
    /// The first database that counts; retention removes those before it.
    #[serde(default)]
    pub(super) first: u32,
    /// What retention removed.
    #[serde(default)]
    pub removed: Removed,
    /// Number of records in each database that is not written any more: the engine may lose the end of a
    /// damaged file without a word.
    #[serde(default)]
    pub(super) sealed: BTreeMap<u32, u64>,
}

impl Manifest {
    /// The manifest of a store nobody writes.
    pub fn new(identity: Identity) -> Self {
        Self {
            format: FORMAT,
            identity,
            live: None,
            pid: None,
            generation: 0,
            first: 0,
            removed: Removed::default(),
            sealed: BTreeMap::new(),
        }
    }

    /// Reads the manifest of the store in `dir`.
    ///
    /// # Errors
    /// If there is none, or it is of another format or damaged.
    pub fn read(dir: &Path) -> Result<Self, StoreError> {
        let path = dir.join(FILE);
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
                return Err(StoreError::NoStore(dir.to_owned()));
            }
            Err(e) => return Err(io(path, &e)),
        };
        let damaged = |why: String| StoreError::Damaged {
            path: path.clone(),
            why,
        };
        let manifest: Self = serde_json::from_str(&text).map_err(|e| damaged(e.to_string()))?;
        if manifest.format != FORMAT {
            return Err(damaged(format!(
                "format {}, this program reads {FORMAT}",
                manifest.format
            )));
        }
        Ok(manifest)
    }

    /// The name of a database that counts.
    pub(super) fn database_name(&self, number: u32) -> String {
        match self.generation {
            0 => format!("db.{number:03}"),
            generation => format!("g{generation}.db.{number:03}"),
        }
    }

    /// The number in such a name.
    pub(super) fn database_number(&self, name: &str) -> Option<u32> {
        let digits = name.rsplit_once('.')?.1;
        let number = digits.parse().ok()?;
        (number >= self.first && self.database_name(number) == name).then_some(number)
    }

    /// What to say to who finds its directory locked by a writer.
    pub(super) fn in_use(&self, dir: &Path) -> StoreError {
        StoreError::InUse {
            path: dir.to_owned(),
            address: match &self.live {
                Some(address) => address.clone(),
                None => "ADDR (it has not said yet where it answers)".to_owned(),
            },
        }
    }

    /// Writes the manifest into `dir`, whole or not at all.
    ///
    /// # Errors
    /// If the system says no.
    pub fn write(&self, dir: &Path) -> Result<(), StoreError> {
        let path = dir.join(FILE);
        let text = serde_json::to_string_pretty(self).map_err(|e| StoreError::Damaged {
            path: path.clone(),
            why: e.to_string(),
        })?;
        replace(dir, &path, text.as_bytes())
    }
}

/// Writes a file of `dir`, whole or not at all; on return it survives a crash.
pub(super) fn replace(dir: &Path, path: &Path, bytes: &[u8]) -> Result<(), StoreError> {
    let name = path.file_name().and_then(|n| n.to_str()).unwrap_or("file");
    let temporary = dir.join(format!(".{name}.new"));
    std::fs::write(&temporary, bytes)
        .and_then(|()| std::fs::File::open(&temporary)?.sync_all())
        .and_then(|()| std::fs::rename(&temporary, path))
        .and_then(|()| std::fs::File::open(dir)?.sync_all())
        .map_err(|e| io(temporary, &e))
}

pub(super) fn io(path: PathBuf, error: &std::io::Error) -> StoreError {
    StoreError::Io {
        path,
        why: error.to_string(),
    }
}
