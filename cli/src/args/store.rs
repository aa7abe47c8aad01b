//! The grammar of what concerns trace stores as such: `dosmos store`, and their benchmarks.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::Format;

#[derive(Debug, Subcommand)]
pub(crate) enum StoreCommand {
    /// What is in a store: whose it is, how much, of when, what is lacking, who writes it
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

/// A way of keeping records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Method {
    /// The trace store, full records
    Chunks,
    /// The trace store, the six fields of the papers
    SixFields,
    /// A plain append-only file of fixed-size records
    File,
    /// sled with one key a record
    OneKey,
}

#[derive(Debug, Args)]
pub(crate) struct BenchStoreArgs {
    /// Records of a run
    #[arg(long, default_value_t = 20_000_000)]
    pub(crate) records: u64,
    /// Records of a run for one key a record, which is too slow for all of them
    #[arg(long, default_value_t = 500_000)]
    pub(crate) one_key_records: u64,
    /// Records in a commit
    #[arg(long, default_value_t = 65_536)]
    pub(crate) commit: usize,
    /// Runs, each in a process of its own; medians and spread are taken over them
    #[arg(long, default_value_t = 5)]
    pub(crate) runs: usize,
    /// Only these ways of keeping records
    #[arg(long, value_enum, value_delimiter = ',')]
    pub(crate) method: Vec<Method>,
    /// Seed of the reference workload
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Where to put the stores; they are removed [default: the system's place for temporary files]
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
    /// How to print
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) format: Format,
    /// Measure once, in this process, and print the figures of the one method as JSON
    #[arg(long, hide = true)]
    pub(crate) one_run: bool,
}

#[derive(Debug, Args)]
pub(crate) struct BenchQueryArgs {
    /// Records in the store
    #[arg(long, default_value_t = 100_000_000)]
    pub(crate) records: u64,
    /// How often each question is asked, after a first time that does not count
    #[arg(long, default_value_t = 15)]
    pub(crate) runs: usize,
    /// Seed of the reference workload
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Keep the store here, and use it again if it is there [default: a temporary one]
    #[arg(long, value_name = "DIR")]
    pub(crate) store: Option<PathBuf>,
    /// How to print
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) format: Format,
}
