//! What the structure of the source code is, read from the source code. The tests of this crate hold it to
//! `ARCHITECTURE.md`.
//!
//! * [`crates`]: the crates of the workspace and which of them each depends on;
//! * [`modules`]: the modules of a crate, and what each mentions by path;
//! * [`imports`]: from those paths to arrows between files;
//! * [`circles`]: the circles of a graph.
#![allow(clippy::unwrap_used)] // a helper of tests

pub mod circles;
pub mod crates;
pub mod imports;
pub mod modules;
