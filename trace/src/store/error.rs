//! Why a store cannot be written or read.

use std::path::{Path, PathBuf};

use super::entry::BatchMark;

/// Why a store cannot be written or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The system refused.
    #[error("{path}: {source}")]
    Io {
        /// Which file or directory.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The storage engine failed.
    #[error("{path}: {source}")]
    Engine {
        /// Which database.
        path: PathBuf,
        /// Why.
        source: sled::Error,
    },
    /// There is no store there.
    #[error(
        "{0} is not a trace store (it has no manifest.json); a store is the directory an event manager wrote"
    )]
    NoStore(PathBuf),
    /// An event manager is writing it.
    #[error("{path} is being written by a running event manager; ask that one: --emp {address}")]
    InUse {
        /// The directory.
        path: PathBuf,
        /// Where the event manager answers.
        address: String,
    },
    /// Somebody reads it, and the engine lets one process at a time.
    #[error("{0} is open in another process that reads it; end that one first")]
    Busy(PathBuf),
    /// A batch was committed before.
    #[error(
        "batch {} of incarnation {} of {} is not newer than the last one stored ({}, {}); nothing was written",
        mark.sequence, mark.incarnation, mark.mp, last.sequence, last.incarnation
    )]
    Duplicate {
        /// The batch.
        mark: BatchMark,
        /// The last one stored of its memory process.
        last: BatchMark,
    },
    /// It belongs to another event manager or run.
    #[error("{path} holds the trace of {found}, not of {wanted}; choose another directory")]
    Foreign {
        /// The directory.
        path: PathBuf,
        /// Whose trace it is.
        found: String,
        /// Whose it should be.
        wanted: String,
    },
    /// Something in it is not what it should be.
    #[error("{path} is damaged: {why}")]
    Damaged {
        /// Which file or entry.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
}

impl StoreError {
    pub(super) fn io(path: PathBuf, source: std::io::Error) -> Self {
        Self::Io { path, source }
    }

    pub(super) fn damaged(path: &Path, why: impl std::fmt::Display) -> Self {
        Self::Damaged {
            path: path.to_owned(),
            why: why.to_string(),
        }
    }
}

/// An entry as bytes.
pub(super) fn encode<T: serde::Serialize>(value: &T) -> Result<Vec<u8>, StoreError> {
    postcard::to_stdvec(value).map_err(|e| StoreError::Damaged {
        path: PathBuf::new(),
        why: format!("cannot encode an entry: {e}"),
    })
}
