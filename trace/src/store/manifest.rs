//! `manifest.json`: whose trace a store holds, and where it is answered while it is written.

use std::collections::BTreeMap;
use std::path::Path;

use dosmos_proto::{EmpId, Nanos, Topology};
use serde::{Deserialize, Serialize};

use super::checked_json;
use super::error::StoreError;
use crate::run::RunId;

/// Version of the layout of a store.
const FORMAT: u32 = 2;
const FILE: &str = "manifest.json";

/// Whose trace a store holds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Identity {
    /// Which run. As many stores belong to it as its topology has event managers.
    pub run: RunId,
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
        let manifest: Option<Self> = checked_json::read(dir, FILE)?;
        let manifest = manifest.ok_or_else(|| StoreError::NoStore(dir.to_owned()))?;
        let damaged = |why: String| StoreError::damaged(&path, why);
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
        checked_json::write(dir, FILE, self)
    }
}
