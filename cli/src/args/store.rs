//! The grammar of `dosmos store`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::common::Format;

#[derive(Debug, Subcommand)]
pub(crate) enum StoreCommand {
    /// Print what a store contains: event manager, run, records, time, size, completeness, and its writer if any
    #[command(after_help = super::help::STORE_INFO)]
    Info(StoreArgs),
    /// Read a whole store and compare it with its checksums; exit status 1 if anything is damaged
    #[command(after_help = super::help::STORE_VERIFY)]
    Verify(StoreArgs),
    /// Rewrite a store in full chunks to save space; needs free space of the size of the store while it works
    #[command(after_help = super::help::STORE_COMPACT)]
    Compact(StoreArgs),
}

#[derive(Debug, Args)]
pub(crate) struct StoreArgs {
    /// Trace store directory
    pub(crate) store: PathBuf,
    /// Output format
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) format: Format,
}
