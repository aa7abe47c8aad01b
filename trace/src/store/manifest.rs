//! `manifest.json`: whose trace a store holds, and where it is answered while it is written.

use std::fmt;
use std::path::Path;

use dosmos_proto::{EmpId, Nanos, Topology};
use serde::{Deserialize, Serialize};

use super::checked_json;
use super::error::StoreError;
use super::frame::MOST_COUNT;
use super::ledger::Extent;
use crate::run::RunId;

/// Version of the layout of a store.
const FORMAT: u32 = 10;
const FILE: &str = "manifest.json";
/// What a writer that was killed at once may leave.
const BEFORE_MANIFEST: [&str; 2] = ["lock", ".manifest.json.new"];

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

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            run,
            event_manager,
            topology,
            ..
        } = self;
        write!(f, "{event_manager} of {}, run {run}", topology.name())
    }
}

/// What retention removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Removed {
    /// Number of records.
    pub records: u64,
    /// Accesses that they stand for, beyond one each.
    #[serde(default)]
    pub extra: u64,
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
    /// Which set of log files counts: compaction writes the next one beside it.
    #[serde(default)]
    pub(super) generation: u32,
    /// The first log file that counts; retention removes those before it.
    #[serde(default)]
    pub(super) first: u32,
    /// What retention removed.
    #[serde(default)]
    pub removed: Removed,
    /// How far the log goes; none while it is written, or if its writer was killed.
    #[serde(default)]
    pub(super) closed: Option<Extent>,
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
            closed: None,
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
        if !manifest.is_possible() {
            return Err(damaged("it counts more than a log can have".to_owned()));
        }
        Ok(manifest)
    }

    /// Whether a log may have what it says.
    pub(super) fn is_possible(&self) -> bool {
        let Removed { records, extra, .. } = self.removed;
        let kept = self.closed.is_none_or(|extent| {
            let all = extent.records;
            extent.is_possible() && records <= all
        });
        kept && records <= MOST_COUNT && extra <= MOST_COUNT
    }

    /// Whether there is one in the directory `dir`, whatever it says.
    pub fn is_in(dir: &Path) -> bool {
        dir.join(FILE).exists()
    }

    /// The name of a log file that counts.
    pub(super) fn log_name(&self, number: u32) -> String {
        log_name(self.generation, number)
    }

    /// The number in such a name.
    pub(super) fn log_number(&self, name: &str) -> Option<u32> {
        let (generation, number) = log_of(name)?;
        (generation == self.generation && number >= self.first).then_some(number)
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

fn log_name(generation: u32, number: u32) -> String {
    match generation {
        0 => format!("log.{number:03}"),
        generation => format!("g{generation}.log.{number:03}"),
    }
}

/// Generation and number of a log file; none if the name is not exactly one.
fn log_of(name: &str) -> Option<(u32, u32)> {
    let (generation, digits) = match name.strip_prefix("log.") {
        Some(digits) => (0, digits),
        None => {
            let (generation, digits) = name.strip_prefix('g')?.split_once(".log.")?;
            (generation.parse().ok()?, digits)
        }
    };
    let number = digits.parse().ok()?;
    (log_name(generation, number) == name).then_some((generation, number))
}

/// Whether a file of this name is a log file of some generation.
pub(super) fn is_log(name: &str) -> bool {
    log_of(name).is_some()
}

/// Fails if `dir`, which has no manifest, holds anything that a store that was only just begun does not hold.
pub(super) fn refuse_other_files(dir: &Path) -> Result<(), StoreError> {
    let failed = |e| StoreError::io(dir.to_owned(), e);
    for entry in std::fs::read_dir(dir).map_err(failed)? {
        let name = entry.map_err(failed)?.file_name();
        if !BEFORE_MANIFEST.iter().any(|known| name == *known) {
            return Err(StoreError::NotAStore {
                path: dir.to_owned(),
                found: name.to_string_lossy().into_owned(),
            });
        }
    }
    Ok(())
}
