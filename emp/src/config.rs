//! What an event manager is told at its start, what it says at its end, and why it could not run.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use dosmos_node::address::PublishError;
use dosmos_node::metrics::MetricsError;
use dosmos_node::serving::ServeError;
use dosmos_proto::transport::Address;
use dosmos_proto::{AddressBook, EmpId, Token, Topology};
use dosmos_trace::run::RunId;
use dosmos_trace::selection::Selection;
use dosmos_trace::store::{Retention, StoreError, StoreView};

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
    /// What else answers from its store, if anything does.
    pub companion: Option<Arc<dyn Companion>>,
}

/// What else answers from the store of an event manager, in its process. It works on threads of its own: what takes a
/// processor for long must not keep records waiting.
pub trait Companion: fmt::Debug + Send + Sync {
    /// Begins to answer. Ends when what is returned is dropped.
    ///
    /// # Errors
    /// What the system says.
    fn start(&self, beside: Beside) -> io::Result<Box<dyn Send>>;
}

/// The event manager that something answers beside.
#[derive(Clone, Debug)]
pub struct Beside {
    /// Its name.
    pub name: String,
    /// Where it answers itself.
    pub address: Address,
    /// What is in its store, now and later.
    pub view: StoreView,
    /// Where addresses are published.
    pub book: AddressBook,
    /// What callers have to show.
    pub token: Token,
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
    /// What answers beside it could not begin.
    #[error("event manager {name} cannot answer from its store otherwise: {source}")]
    Companion {
        /// Its name.
        name: String,
        /// What the system said.
        source: io::Error,
    },
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
