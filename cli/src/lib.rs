//! The dosmos command line.

pub mod config;
