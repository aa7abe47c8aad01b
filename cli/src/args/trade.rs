//! Grammar of `dosmos export` and `dosmos import`, and of their benchmark.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::SelectArgs;

/// A format of other tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ExportFormat {
    /// One JSON object a line; `dosmos import` reads it back
    Jsonl,
    /// A table, one row per record
    Csv,
    /// Timelines for ui.perfetto.dev
    Perfetto,
    /// A table in columns, for data frames and SQL (needs a build with --features parquet)
    Parquet,
}

#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// Directory of a trace store; may be repeated for the stores of one run
    #[arg(long, value_name = "DIR")]
    pub(crate) store: Vec<PathBuf>,
    /// Directory of a run: all its stores [default: dosmos-run/latest]
    #[arg(long, value_name = "DIR", conflicts_with = "store")]
    pub(crate) run_dir: Option<PathBuf>,
    /// What to write
    #[arg(long, value_enum)]
    pub(crate) format: ExportFormat,
    /// Where to; `-` is standard output
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: PathBuf,
    #[command(flatten)]
    pub(crate) select: SelectArgs,
    /// Only completed accesses, each once: no owners' records, failed operations or waiting notices
    #[arg(long)]
    pub(crate) accesses: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ImportArgs {
    /// A JSONL file; `-` is standard input
    pub(crate) file: PathBuf,
    /// The trace store to make
    #[arg(long, value_name = "DIR")]
    pub(crate) store: PathBuf,
    /// Leave bad lines out instead of stopping at the first; they count as lost records
    #[arg(long)]
    pub(crate) skip_bad: bool,
}
