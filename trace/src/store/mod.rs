//! Trace stores: a directory an event manager writes, and anybody reads when it is done.
//!
//! * `manifest.json`: format, run, event manager, topology, and where the event manager that writes it
//!   answers (`manifest.rs`).
//! * `lock`: held by the one who writes, shared by those who read (`lock.rs`).
//! * `db.000`, `db.001` …: databases (`engine.rs`), each a few hundred MB; only the last is written. What is no
//!   longer wanted goes a whole database at a time.
//!
//! What is in them is a log: chunks of records, and between the records the events ([`Event`]) that
//! change what they mean. [`StoreWriter::commit`] adds to it, atomically and durably. Replaying it
//! rebuilds everything an event manager knows ([`Recovered::replay`]). A chunk and the events in it share
//! a number; while a last chunk is small, the next commit writes it again, longer, under that number, so
//! that its first records never change under a reader (`pieces.rs`).
//!
//! Guarantees: what `commit` returned for survives `kill -9` and power loss; a damaged chunk is skipped,
//! counted and named; no bytes on disk make a reader panic.

mod coarse;
mod engine;
mod imported;
mod index;
mod keys;
mod lock;
mod manifest;
mod merge;
mod pieces;
mod replay;
mod retention;
mod scan;
mod snapshot;
mod source;
mod stream;
mod upkeep;
mod view;
mod writer;

#[cfg(test)]
mod tests;

use std::path::PathBuf;

use dosmos_proto::{EmpId, MpId, PhaseTimes, Variable};
use serde::{Deserialize, Serialize};

use crate::meta::{HandOver, SecondaryContent};
use crate::query::BarrierName;
use crate::record::Record;

pub use imported::Imported;
pub use manifest::{Identity, Manifest, Removed};
pub use merge::Merger;
pub use replay::{Item, Recovered};
pub use retention::Retention;
pub use scan::Sighting;
pub use snapshot::Snapshot;
pub use source::StoreSource;
pub use upkeep::{Compacted, Verified, compact};
pub use view::{StoreView, Usage};
pub use writer::StoreWriter;

/// A batch that is in the store: everything up to `sequence` of this incarnation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BatchMark {
    /// The memory process that sent it.
    pub mp: MpId,
    /// Which start of that process.
    pub incarnation: u64,
    /// Number of its last batch stored.
    pub sequence: u64,
}

impl BatchMark {
    /// Whether it is of a later start of its memory process, or a later batch of the same.
    pub fn is_after(&self, other: &Self) -> bool {
        (self.incarnation, self.sequence) > (other.incarnation, other.sequence)
    }
}

/// What a memory process said of its own recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RecordingCounters {
    /// Records made since its start.
    pub recorded: u64,
    /// Records lost to a full buffer since its start.
    pub dropped: u64,
    /// Fraction of accesses recorded.
    pub sampling: f64,
}

/// Something that changes what the records after it mean, or adds to the dictionary.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Event {
    /// A copy's secondary meta-object is handed over.
    HandOver(HandOver),
    /// Another event manager handed a secondary meta-object over.
    Received {
        /// Who.
        from: EmpId,
        /// What.
        content: SecondaryContent,
    },
    /// A variable appeared.
    Variable(Variable),
    /// A barrier appeared.
    Barrier(BarrierName),
    /// State of a memory process's recording; replaces what its incarnation said before.
    Counters {
        /// The memory process.
        mp: MpId,
        /// Which start of it.
        incarnation: u64,
        /// What it said.
        counters: RecordingCounters,
    },
    /// An application process said where its time went.
    Times(PhaseTimes),
    /// The records come from a file, not from memory processes.
    Imported(Imported),
}

/// What one commit adds to the log.
#[derive(Clone, Debug, Default)]
pub struct Commit {
    /// The batches it holds.
    pub marks: Vec<BatchMark>,
    /// Their records, in order.
    pub records: Vec<Record>,
    /// Events, each with the number of records (of this commit) before it; in order.
    pub events: Vec<(u32, Event)>,
}

/// Why a store cannot be written or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The system said no.
    #[error("{path}: {why}")]
    Io {
        /// Which file or directory.
        path: PathBuf,
        /// What the system or the engine said.
        why: String,
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

fn encode<T: serde::Serialize>(value: &T) -> Result<Vec<u8>, StoreError> {
    postcard::to_stdvec(value).map_err(|e| StoreError::Damaged {
        path: PathBuf::new(),
        why: format!("cannot encode an entry: {e}"),
    })
}
