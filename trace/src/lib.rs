//! What dosmos records, and how it is kept and asked for.
//!
//! * [`record`]: one access, as its memory process saw it.
//! * [`meta`]: primary and secondary meta-objects: monitoring state of objects and of their copies.
//! * [`query`]: the questions a visualization process asks, their answers, and [`query::TraceSource`],
//!   answered alike by live event managers and by store directories.
//! * [`clock`]: how times were corrected, and how far they may be off.
//! * [`relation`]: the clocks of event managers, related by what the records of remote accesses and barriers say.
//! * [`run`]: the identity of a run.
//! * [`pattern`]: patterns of names.
//! * [`selection`]: which accesses are recorded.
//! * [`chunk`]: records as compressed columns, with a summary.
//! * [`store`]: the trace on disk: written by an event manager, read by anybody.
//! * [`wire`]: all of these as messages of the monitoring protocol.
//!
//! Invariant: nothing here knows of sockets or of running processes.

pub mod chunk;
pub mod clock;
pub mod meta;
pub mod pattern;
pub mod query;
pub mod record;
pub mod relation;
pub mod run;
pub mod selection;
mod spread;
pub mod store;
pub mod wire;

#[cfg(test)]
mod testing;

pub use record::{Op, Origin, PerOrigin, Record, Side};
pub use spread::Spread;
