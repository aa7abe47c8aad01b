//! Event manager processes: they take the records of their memory processes, keep meta-objects, write
//! the trace store and answer questions (001 §5.1).
//!
//! * [`core`]: exactly-once bookkeeping, group commit, exchange of meta-object content: state machines
//!   without I/O.
//! * `shell`: gRPC, the writer thread, dialling other event managers.
//!
//! Invariant: nothing is acknowledged before it is on disk, and what an event manager knows is a function
//! of its log, so that after `kill -9` it knows the same again.

pub mod core;
mod shell;

use std::path::PathBuf;

use dosmos_proto::{EmpId, Topology};
use dosmos_trace::run::RunId;
use dosmos_trace::store::{Retention, StoreError};

pub use shell::run;

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
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The topology has no such event manager.
    #[error("the cluster has no event manager {0}")]
    Unknown(EmpId),
    /// The store cannot be used.
    #[error("event manager {name} cannot use its store: {source}")]
    Store {
        /// Its name.
        name: String,
        /// What is wrong.
        source: StoreError,
    },
    /// The system said no.
    #[error("event manager {name}: {why}")]
    System {
        /// Its name.
        name: String,
        /// What the system said.
        why: String,
    },
}
