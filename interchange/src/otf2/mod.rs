//! [Open Trace Format 2](https://www.vi-hps.org/projects/score-p): the archives that Score-P writes and Vampir and
//! Scalasca read; written, and read into a store.
//!
//! An archive is a directory: `traces.otf2` (what it is, and its properties), `traces.def` (names and structure), and for each
//! *location* (a timeline) `traces/N.evt` with its events and `traces/N.def`. Files are made of chunks of a fixed size that begin with
//! a header; numbers are compressed to as many bytes as they need ([`put`], [`take`]).
//!
//! * **Written** ([`Otf2`]): each application process is a process with a location (several where its operations overlap), each memory
//!   process one for what it served. Operations are regions with attributes; accesses that took a message are one-sided (RMA) operations on a window
//!   per variable, with the memory process that owns the object as target; sections are its locks, barriers are collective operations.
//! * **Read** ([`import()`]): an archive that was written here gives back its accesses ([`own`]); of one of another program its
//!   one-sided operations become accesses to a variable per window ([`rma`]).
//!
//! Guarantees: an archive gets its name when it is whole; a damaged one is refused with the file and the place, whatever its bytes
//! are; what an archive has and a store has no place for is said in the store's completeness.

mod archive;
mod chunks;
mod definitions;
mod error;
mod events;
mod export;
mod ids;
mod import;
mod merge;
mod own;
mod put;
mod rma;
mod take;

pub use error::Otf2Error;
pub use export::Otf2;
pub use import::{Imported, Importing, import};
