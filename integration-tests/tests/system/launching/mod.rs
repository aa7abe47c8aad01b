//! Launching: who may use a run directory, what becomes of processes that end or are stopped, and that nothing stays behind.

mod advertised;
mod bound;
mod ending;
mod event_managers;
mod run_dirs;
mod secured;
mod stopped;
pub(crate) mod support;
