//! `manifest.json`: whose trace a store holds, and where it is answered while it is written.

use std::path::{Path, PathBuf};

use dosmos_proto::{EmpId, Topology};
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
}

impl Manifest {
    /// The manifest of a store nobody writes.
    pub fn new(identity: Identity) -> Self {
        Self {
            format: FORMAT,
            identity,
            live: None,
            pid: None,
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
        let topology = manifest.identity.topology.clone().check();
        topology.map_err(|e| damaged(e.to_string()))?;
        Ok(manifest)
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
        let temporary = dir.join(".manifest.json.new");
        let text = serde_json::to_string_pretty(self).map_err(|e| StoreError::Damaged {
            path: temporary.clone(),
            why: e.to_string(),
        })?;
        std::fs::write(&temporary, text)
            .and_then(|()| std::fs::File::open(&temporary)?.sync_all())
            .and_then(|()| std::fs::rename(&temporary, dir.join(FILE)))
            .and_then(|()| std::fs::File::open(dir)?.sync_all())
            .map_err(|e| io(temporary, &e))
    }
}

pub(super) fn io(path: PathBuf, error: &std::io::Error) -> StoreError {
    StoreError::Io {
        path,
        why: error.to_string(),
    }
}
