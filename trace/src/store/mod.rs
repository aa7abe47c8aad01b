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

mod checked_json;
mod coarse;
mod completed;
mod disk;
mod engine;
mod entry;
mod error;
mod imported;
mod index;
mod keys;
mod lock;
mod manifest;
mod merge;
mod metadata;
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

pub use entry::{BatchMark, Commit, Event, RecordingCounters};
pub use error::StoreError;
pub use imported::Imported;
pub use manifest::{Identity, Manifest, Removed};
pub use merge::Merger;
pub use metadata::{Exit, RankOutcome, RunMetadata};
pub use replay::{Item, Recovered};
pub use retention::Retention;
pub use scan::Sighting;
pub use snapshot::Snapshot;
pub use source::StoreSource;
pub use upkeep::{Compacted, Verified, compact};
pub use view::{StoreView, Usage};
pub use writer::StoreWriter;
