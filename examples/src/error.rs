//! Why a program ended badly.

use std::path::PathBuf;

impl<S> From<dsm_lib::ReleaseFailed<S>> for Error {
    fn from(failed: dsm_lib::ReleaseFailed<S>) -> Self {
        Self::Dsm(failed.into())
    }
}

/// Why a program ended badly.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Shared memory failed.
    #[error(transparent)]
    Dsm(#[from] dsm_lib::Error),
    /// No such program.
    #[error("there is no program {name:?}; there are {known}")]
    Unknown {
        /// What was asked for.
        name: String,
        /// What there is.
        known: String,
    },
    /// The arguments make no sense; the text says why and what would.
    #[error("{0}")]
    Usage(String),
    /// The cluster is not large enough.
    #[error("{program} needs {needs}, and the cluster has {has}; add them to the cluster file")]
    TooSmall {
        /// The program.
        program: &'static str,
        /// What it needs.
        needs: String,
        /// What there is.
        has: String,
    },
    /// The result is not what it must be: memory did not keep its contract, or the program is wrong.
    #[error("{program}: wrong result at {process}: {what}")]
    Wrong {
        /// The program.
        program: &'static str,
        /// Name of the application process that found it.
        process: String,
        /// What was found, what was expected, and by which rule.
        what: String,
    },
    /// A file could not be read.
    #[error("cannot read {}: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A file could not be written.
    #[error("cannot write {}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
}

impl std::fmt::Debug for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(self, f)
    }
}

/// Result of a program.
pub(crate) type Result<T, E = Error> = std::result::Result<T, E>;
