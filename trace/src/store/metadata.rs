//! What a launcher knows of a run, beside the manifest of each of its stores: the file `run.json`
//! (docs/design/store-format.md#run-metadata).

use std::path::Path;

use dosmos_proto::Nanos;
use serde::{Deserialize, Serialize};

use super::checked_json;
use super::error::StoreError;
use crate::run::RunId;

const FILE: &str = "run.json";

/// What is kept of how a run was started and how it ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunMetadata {
    /// Which run.
    pub run: RunId,
    /// Its name.
    pub name: String,
    /// The command that started it, with its arguments.
    pub command: Vec<String>,
    /// The application and its arguments; empty if none was started with the cluster.
    pub application: Vec<String>,
    /// Working directory of the application.
    pub directory: String,
    /// Version of dosmos.
    pub version: String,
    /// Host names, each once.
    pub hosts: Vec<String>,
    /// The cluster file, as it was read.
    pub cluster_file: String,
    /// When it was started (since the Unix epoch).
    pub started: Nanos,
    /// When it had ended; none while it runs, or if whoever started it was killed.
    pub ended: Option<Nanos>,
    /// The application processes, by rank.
    pub ranks: Vec<RankOutcome>,
}

/// What became of an application process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RankOutcome {
    /// Its name in the topology.
    pub name: String,
    /// The host it ran on.
    pub host: String,
    /// How it ended.
    pub exit: Exit,
}

/// How a process ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Exit {
    /// It runs, or nobody was there to see its end.
    Unknown,
    /// It was never started; says why.
    NotStarted(String),
    /// With this exit code; 0 is success.
    Code(i32),
    /// Ended by this signal.
    Signal(i32),
}

impl RunMetadata {
    /// Whether every application process ended with exit code 0.
    pub fn succeeded(&self) -> bool {
        let done = |rank: &RankOutcome| rank.exit == Exit::Code(0);
        self.ended.is_some() && self.ranks.iter().all(done)
    }

    /// Writes it into the store directory `dir`, whole or not at all.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn write(&self, dir: &Path) -> Result<(), StoreError> {
        checked_json::write(dir, FILE, self)
    }

    /// What stands in the store directory `dir`; none if nothing was written.
    ///
    /// # Errors
    /// If it cannot be read or is damaged.
    pub fn read(dir: &Path) -> Result<Option<Self>, StoreError> {
        checked_json::read(dir, FILE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_is_read_back_and_damage_is_an_error() {
        let dir = dosmos_testseeds::scratch();
        assert_eq!(RunMetadata::read(dir.path()).unwrap(), None);
        let metadata = RunMetadata {
            run: RunId::from_bits(7),
            name: "demo".into(),
            command: vec!["dosmos".into(), "up".into()],
            application: vec!["./app".into(), "--size".into(), "9".into()],
            directory: "/home/me".into(),
            version: "0.1.0".into(),
            hosts: vec!["here".into()],
            cluster_file: "[cluster]\nname = \"demo\"\n".into(),
            started: Nanos(1),
            ended: Some(Nanos(2)),
            ranks: vec![RankOutcome {
                name: "ap0".into(),
                host: "here".into(),
                exit: Exit::Code(0),
            }],
        };
        metadata.write(dir.path()).unwrap();
        let read = RunMetadata::read(dir.path()).unwrap().unwrap();
        assert_eq!(read, metadata);
        assert!(read.succeeded());
        let file = dir.path().join(FILE);
        let text = std::fs::read_to_string(&file).unwrap();
        std::fs::write(&file, text.replace("demo", "dema")).unwrap();
        let error = RunMetadata::read(dir.path()).unwrap_err();
        assert!(error.to_string().contains("is damaged"), "{error}");
    }
}
