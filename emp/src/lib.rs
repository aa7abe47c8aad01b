//! Event manager processes: they take the records of their memory processes, keep meta-objects, write
//! the trace store and answer questions (docs/design/overview.md#processes).
//!
//! * [`core`]: exactly-once bookkeeping, group commit, exchange of meta-object content: state machines
//!   without I/O.
//! * `shell`: gRPC, the writer thread, dialling other event managers.
//!
//! Invariant: nothing is acknowledged before it is on disk, and what an event manager knows is a function
//! of its log, so that after `kill -9` it knows the same again.

mod config;
pub mod core;
mod shell;

pub use config::{Beside, Companion, Config, Error, Summary};
pub use shell::run;
