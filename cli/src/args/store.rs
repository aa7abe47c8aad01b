//! The grammar of what concerns trace stores as such: `dosmos store`, and their benchmarks.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::Format;

#[derive(Debug, Subcommand)]
pub(crate) enum StoreCommand {
    /// What is in a store: whose it is, how much, which time, what is missing, who writes it
    Info(StoreArgs),
    /// Read all of a store and compare it with its checksums (exit status 1 if anything is damaged)
    Verify(StoreArgs),
    /// Write a store anew, in full chunks and without wasted space; needs as much space again meanwhile
    Compact(StoreArgs),
}

#[derive(Debug, Args)]
pub(crate) struct StoreArgs {
    /// Directory of the trace store
    pub(crate) store: PathBuf,
    /// How to print
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) format: Format,
}
