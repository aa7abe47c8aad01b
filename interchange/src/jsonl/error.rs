//! What can go wrong with an import.

use std::io;
use std::path::PathBuf;

use dosmos_trace::store::StoreError;

/// Why there is no import. No store is left behind.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImportError {
    /// A line is not as it should be.
    #[error("line {line}: {why}")]
    Line {
        /// Its number, from 1.
        line: u64,
        /// What is wrong with it.
        why: String,
    },
    /// There is something already.
    #[error("{0} exists; an import makes a new store: name another directory")]
    Exists(PathBuf),
    /// The file cannot be read, or the directory not be made.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The store cannot be written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// It was asked to stop.
    #[error("stopped; no store was made")]
    Stopped,
}
