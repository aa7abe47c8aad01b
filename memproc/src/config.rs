//! What a memory or link process is told at its start, what it says at its end, and why it could not run.

use std::fmt;

use dosmos_node::address::PublishError;
use dosmos_node::incarnation::IncarnationError;
use dosmos_node::metrics::MetricsError;
use dosmos_node::serving::ServeError;
use dosmos_proto::{Malformed, MpId, Nanos, ProcessCounters, Topology};

use crate::core::VariableOverride;
use crate::recorder::Recording;

/// What a memory or link process is told at its start.
#[derive(Clone, Debug)]
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
    /// Where to serve metrics for Prometheus (`host:port`), if at all; the address is published as `NAME.metrics`.
    pub metrics: Option<String>,
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
