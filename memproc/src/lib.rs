//! Memory processes and link processes.

pub mod core;
