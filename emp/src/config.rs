//! What an event manager is told at its start, what it says at its end, and why it could not run.

use std::fmt;
use std::io;
use std::path::PathBuf;

use dosmos_node::address::PublishError;
use dosmos_node::metrics::MetricsError;
use dosmos_node::serving::ServeError;
use dosmos_proto::{EmpId, Topology};
use dosmos_trace::run::RunId;
use dosmos_trace::selection::Selection;
use dosmos_trace::store::{Retention, StoreError};

/// What an event manager has to know.
#[derive(Clone, Debug)]
pub struct Config {
    /// Which run it belongs to.
    pub run: RunId,
    /// The processes.
    pub topology: Topology,
    /// Which of its event managers this is.
    pub me: EmpId,
    /// Directory of its trace store.
    pub store: PathBuf,
    /// Where to serve metrics for Prometheus (`host:port`), if at all; the address is published as `NAME.metrics`.
    pub metrics: Option<String>,
    /// How much of the past the store keeps.
    pub retention: Retention,
    /// What its memory processes record unless they are told otherwise.
    pub selection: Selection,
}

/// What an event manager did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Records in its store.
    pub records: u64,
    /// Size of its store, in bytes.
    pub bytes: u64,
}

/// Why an event manager cannot run.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The topology has no such event manager.
    #[error("the cluster has no event manager {0}")]
    Unknown(EmpId),
    /// It could not tell who belongs to the run.
    #[error("event manager {name} has no token of its run: {source}")]
    Token {
        /// Name of the event manager.
        name: String,
        /// What went wrong.
        source: io::Error,
    },
    /// The store cannot be used.
    #[error("event manager {name} cannot use its store: {source}")]
    Store {
        /// Its name.
        name: String,
        /// What is wrong.
        source: StoreError,
    },
    /// Its address could not be published.
    #[error(transparent)]
    Publish(#[from] PublishError),
    /// Its metrics cannot be served.
    #[error(transparent)]
    Metrics(#[from] MetricsError),
    /// The system gives it no thread to write the store with, or that thread failed.
    #[error("event manager {name} cannot write its store: {source}")]
    Writer {
        /// Its name.
        name: String,
        /// What the system said.
        source: io::Error,
    },
    /// The server ended by itself.
    #[error("event manager {name} cannot serve: {source}")]
    Serve {
        /// Its name.
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
