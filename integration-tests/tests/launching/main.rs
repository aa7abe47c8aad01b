//! Launching: who may use a run directory, what becomes of processes that end, and that nothing stays behind.

#![allow(clippy::unwrap_used)] // a test may

mod ending;
mod event_managers;
mod run_dirs;
mod support;
