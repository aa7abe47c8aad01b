//! The library against a fake memory process.
#![allow(clippy::unwrap_used)] // helpers of tests are tests

mod calls;
mod delegation;
mod fake;
mod reader;
mod sections;
mod session;
mod structs;
