//! Why a run cannot be looked at.

use std::path::PathBuf;

use dosmos_model::ModelError;
use dosmos_proto::access::{CredentialsError, Incomplete};
use dosmos_proto::transport::InvalidAddress;
use dosmos_trace::query::QueryError;
use dosmos_trace::store::StoreError;

/// Why a run cannot be opened, selected from or analysed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Text that is not an address.
    #[error(transparent)]
    Address(#[from] InvalidAddress),
    /// No run was named, and there is no latest one.
    #[error("there is no {} in this directory; name the run with --run-dir DIR, --store DIR or --emp ADDR", .0.display())]
    NoLatestRun(PathBuf),
    /// A directory without the directory `store` that every run has.
    #[error("{} is not a run directory", .path.display())]
    NotARun {
        /// The directory.
        path: PathBuf,
        /// Why its stores cannot be listed.
        #[source]
        source: std::io::Error,
    },
    /// A run directory without a store.
    #[error("{} has no trace store", .0.display())]
    NoStore(PathBuf),
    /// A run that cannot be removed.
    #[error("{} still runs; stop it first", .0.display())]
    Running(PathBuf),
    /// Sources of different runs.
    #[error(
        "{first} and {second} belong to different runs; read one run at a time, or compare two with `dosmos diff`"
    )]
    DifferentRuns {
        /// A source.
        first: String,
        /// One of another run.
        second: String,
    },
    /// A store cannot be opened.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A source does not answer, or the question makes no sense.
    #[error(transparent)]
    Query(#[from] QueryError),
    /// The token of the run cannot be read.
    #[error("the token of the run: {0}")]
    Token(#[from] std::io::Error),
    /// Certificates cannot be read.
    #[error(transparent)]
    Certificates(#[from] CredentialsError),
    /// The environment names some of the files only.
    #[error(transparent)]
    Incomplete(#[from] Incomplete),
    /// What was selected does not exist; says what does.
    #[error("{0}")]
    Selection(String),
    /// A file that cannot be read.
    #[error("{}", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The run cannot be modelled.
    #[error("{why}")]
    Model {
        /// What was tried.
        why: &'static str,
        /// Why it is not possible.
        #[source]
        source: ModelError,
    },
}

impl Error {
    pub(crate) fn file(
        path: &std::path::Path,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        Self::File {
            path: path.to_owned(),
            source: source.into(),
        }
    }
}
