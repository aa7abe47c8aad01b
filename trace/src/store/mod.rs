//! Trace stores: a directory that an event manager writes, and that anybody may read when it is done
//! (docs/design/store-format.md).
//!
//! * `manifest.json`: format, run, event manager, topology, and where the event manager that writes it
//!   answers (`manifest.rs`).
//! * `log.000`, `log.001` …: files of a few hundred MB, made of frames with checksums (`frame.rs`); only the last is written.
//!   What is not needed any more is removed one whole file at a time.
//! * `ledger`: how far the log goes (`ledger.rs`).
//! * `engine/`: what the writer looks up by key (`engine.rs`); readers never open it.
//! * `state`: what the log came to when that was last saved (`snapshot.rs`).
//! * `run.json`: how the run was started and how it ended (`metadata.rs`).
//! * `lock`: held by the one who writes, shared by those who read (`lock.rs`).
//!
//! The log is chunks of records, and between the records the events ([`Event`]) that change what they mean.
//! [`StoreWriter::commit`] adds to it, atomically and durably. Replaying it rebuilds everything that an event manager knows
//! ([`Recovered::replay`]).
//!
//! Guarantees: what `commit` returned for survives `kill -9` and a loss of power; reading changes no byte; damage takes
//! what it hits and nothing else, and is counted and named in every answer, also after restarts; no bytes on disk make a
//! reader panic.

mod checked_json;
mod chunks;
mod coarse;
mod completed;
mod disk;
mod engine;
mod entry;
mod error;
mod frame;
mod framing;
mod imported;
mod index;
mod ledger;
mod load;
mod lock;
mod log;
mod manifest;
mod merge;
mod metadata;
mod pieces;
mod replay;
mod retention;
mod scan;
#[cfg(any(test, feature = "simulation"))]
mod simulated;
mod snapshot;
mod source;
mod step;
mod upkeep;
mod view;
mod writer;

#[cfg(test)]
mod tests;

pub use chunks::StoredChunk;
pub use entry::{BatchMark, Commit, Event, Item, RecordingCounters};
pub use error::StoreError;
pub use imported::Imported;
pub use manifest::{Identity, Manifest, Removed};
pub use metadata::{Exit, RankOutcome, RunMetadata};
pub use replay::Recovered;
pub use retention::Retention;
pub use scan::Scanned;
#[cfg(feature = "simulation")]
pub use simulated::SimulatedDisk;
pub use snapshot::Snapshot;
pub use source::StoreSource;
pub use upkeep::{Compacted, Verified, compact};
pub(crate) use view::records_in_order;
pub use view::{StoreView, Usage};
pub use writer::StoreWriter;
