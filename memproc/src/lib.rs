//! Memory processes (MP) and link processes (LP): own shared objects, keep copies, serve application
//! processes, cross groups, and record what happens.
//!
//! * [`core`]: all of it as a state machine, without I/O.
//! * [`wire`]: between its types and the messages of the memory protocol.
//! * [`recorder`]: batches of records, exactly once, to the event manager.
//! * `shell`: connections, timers, start and end; [`run`] is the process.
//!
//! Invariant: the core never awaits, never reads a clock, never touches the network.

mod config;
pub mod core;
pub mod recorder;
mod shell;
pub mod wire;

pub use config::{Config, Error, Start, Summary};
pub use core::{ALL_VARIABLES, VariableOverride};
pub use recorder::{Overflow, Recording};
pub use shell::{Entrance, Replies, Within, run, run_within, within};
