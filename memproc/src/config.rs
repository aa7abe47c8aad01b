//! What a memory or link process is told at its start, what it says at its end, and why it could not run.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use dosmos_node::address::PublishError;
use dosmos_node::incarnation::IncarnationError;
use dosmos_node::metrics::MetricsError;
use dosmos_node::serving::ServeError;
use dosmos_proto::access::Files;
use dosmos_proto::transport::Address;
use dosmos_proto::{Malformed, MpId, Nanos, ProcessCounters, Topology};

use serde::{Deserialize, Serialize};

use crate::core::VariableOverride;
use crate::recorder::Recording;

/// What a memory or link process is told at its start.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Config {
    /// All processes of the cluster.
    pub topology: Topology,
    /// Which of them this is.
    pub me: MpId,
    /// What is recorded.
    pub recording: Recording,
    /// What the configuration says of variables; the same in all processes.
    pub overrides: Vec<VariableOverride>,
    /// How long an operation may take if the application process does not say; zero means a minute.
    pub default_deadline: Nanos,
    /// Memory processes of the cluster may be within application processes ([`run_within`](crate::run_within)).
    pub in_application: bool,
    /// Where to serve metrics for Prometheus (`host:port`), if at all; the address is published as `NAME.metrics`.
    pub metrics: Option<String>,
}

/// A memory process that a program is to be, as whoever starts the program writes it to a file: what it is told, and where it is.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Start {
    /// What it is told.
    pub config: Config,
    /// Where it listens.
    pub listen: Address,
    /// It takes calls of this host over a Unix socket as well.
    pub open_to_same_host: bool,
    /// Addresses that are known beforehand, by name.
    pub addresses: Vec<(String, Address)>,
    /// Where the others are found.
    pub run_dir: PathBuf,
    /// Its certificates, if the cluster takes TLS.
    pub certificates: Option<Files>,
}

impl Start {
    /// Reads what was written.
    ///
    /// # Errors
    /// If the file cannot be read, or is something else.
    pub fn read(file: &Path) -> io::Result<Self> {
        let malformed = |e: serde_json::Error| io::Error::new(io::ErrorKind::InvalidData, e);
        serde_json::from_slice(&std::fs::read(file)?).map_err(malformed)
    }

    /// Writes it. Who else may read it is for the directory to say.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn write(&self, file: &Path) -> io::Result<()> {
        std::fs::write(file, serde_json::to_vec(self)?)
    }
}

/// What a process did, at its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// What it counted.
    pub counters: ProcessCounters,
    /// All records that were made and not dropped are durable.
    pub drained: bool,
}

/// Why a process could not run.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The topology is not one.
    #[error("the cluster file cannot be used: {0}")]
    Topology(#[from] Malformed),
    /// The topology has no such process.
    #[error("the cluster has no memory or link process {0}")]
    Unknown(MpId),
    /// Without a run directory the starts of a process cannot be counted.
    #[error("{name} needs a run directory")]
    NoRunDirectory {
        /// The process.
        name: String,
    },
    /// This start could not be counted.
    #[error(transparent)]
    Incarnation(#[from] IncarnationError),
    /// It could not tell who belongs to the run.
    #[error("{name} has no token of its run: {source}")]
    Token {
        /// The process.
        name: String,
        /// What went wrong.
        source: std::io::Error,
    },
    /// It could not begin within an application process.
    #[error("{name} cannot begin: {source}")]
    Begin {
        /// The process.
        name: String,
        /// What went wrong.
        source: std::io::Error,
    },
    /// Its address could not be published.
    #[error(transparent)]
    Publish(#[from] PublishError),
    /// Its metrics cannot be served.
    #[error(transparent)]
    Metrics(#[from] MetricsError),
    /// The server ended by itself.
    #[error("{name} cannot serve: {source}")]
    Serve {
        /// The process.
        name: String,
        /// What went wrong.
        source: ServeError,
    },
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
