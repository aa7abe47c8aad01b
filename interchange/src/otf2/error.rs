//! What can go wrong with reading an archive.

use std::io;
use std::path::{Path, PathBuf};

use crate::jsonl::{BadLine, ImportError};

/// Why an archive was not imported. No store is left behind.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Otf2Error {
    /// A file cannot be read.
    #[error("cannot read {path}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The path does not name an archive.
    #[error(
        "{0} is not an OTF2 archive; name its file ….otf2, or the directory with one such file"
    )]
    NoArchive(PathBuf),
    /// An archive that is stored in a way that is not read here.
    #[error(
        "{path}: {what} is not read here; have it recorded to plain files, without compression (in Score-P these are the defaults)"
    )]
    Unsupported {
        /// The file.
        path: PathBuf,
        /// What.
        what: &'static str,
    },
    /// A file is not as the format says.
    #[error("{path}, byte {at}: {why}")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Where in it.
        at: u64,
        /// What is wrong.
        why: String,
    },
    /// Nothing in it is access to shared memory.
    #[error(
        "{path} has no one-sided operations (RmaGet, RmaPut, RmaAtomic, locks of windows), and only those access shared memory{others}"
    )]
    NothingShared {
        /// The archive.
        path: PathBuf,
        /// What it has instead, if that is known.
        others: String,
    },
    /// Something in it contradicts itself, or has no place in a store.
    #[error("{path}: {why}")]
    Meaning {
        /// The file.
        path: PathBuf,
        /// What.
        #[source]
        why: BadLine,
    },
    /// The store cannot be made.
    #[error(transparent)]
    Import(#[from] ImportError),
}

impl Otf2Error {
    pub(super) fn read(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        |source| Self::Read { path, source }
    }
}
