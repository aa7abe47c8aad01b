//! A whole cluster on this machine: every memory, link and event manager process as an operating-system
//! process of its own, and a program run once per application process.
//!
//! Guarantees:
//!
//! * No process started here outlives this one, however it ends. Memory, link and event manager processes watch their
//!   standard input, whose other end is here. Programs run below a `supervisor`, which does the same for the program
//!   and for all that the program starts.
//! * Processes end in the order in which no record is lost: applications, memory and link processes, event
//!   managers.
//! * An event manager that ends is started again on its store (`event_managers`).
//! * Each store of the run says how the run was started and how it ended (`metadata`).
//! * A run directory holds one run, and one launcher uses it at a time (`run_dir`).

mod binding;
mod child;
mod event_managers;
mod failures;
mod metadata;
mod run_dir;
mod running;
pub(crate) mod supervisor;

pub(crate) use child::{Child, Joining};
pub(crate) use failures::{Failure, lines as failure_lines};
pub(crate) use metadata::Metadata;
pub use run_dir::RunDir;
pub use running::{AppOutcome, Running};
