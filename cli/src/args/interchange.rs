//! The grammar of `dosmos export` and `dosmos import`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::common::SelectArgs;

/// A format that other tools read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ExportFormat {
    /// One JSON object per line; `dosmos import` reads it back
    Jsonl,
    /// Comma-separated values, one row per record
    Csv,
    /// Timelines for <https://ui.perfetto.dev>
    Perfetto,
    /// An archive of Score-P's Open Trace Format 2 (a directory), for Vampir and Scalasca; `dosmos import` reads it back
    Otf2,
    /// Locks, sections and barriers as spans for OpenTelemetry, one JSON request per line
    Otlp,
    /// Apache Parquet, for data frames and SQL (needs a build with --features parquet)
    Parquet,
}

impl ExportFormat {
    /// Whether it is several files, in a directory.
    pub fn is_directory(self) -> bool {
        self == Self::Otf2
    }
}

#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// Read a trace store directory; may be repeated for the stores of one run
    #[arg(long, value_name = "DIR")]
    pub(crate) store: Vec<PathBuf>,
    /// Read all stores of a run directory [default: dosmos-run/latest]
    #[arg(long, value_name = "DIR", conflicts_with = "store")]
    pub(crate) run_dir: Option<PathBuf>,
    /// Format to write
    #[arg(long, value_enum)]
    pub(crate) format: ExportFormat,
    /// File to write (of otf2: directory to create); - is standard output
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: PathBuf,
    #[command(flatten)]
    pub(crate) select: SelectArgs,
    /// Only completed accesses, each once: no records made by owners, failed operations or waiting notices
    #[arg(long)]
    pub(crate) accesses: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ImportArgs {
    /// JSONL file to read, - is standard input; or an OTF2 archive: its file, or the directory with it
    pub(crate) file: PathBuf,
    /// Directory of the trace store to create; must not exist
    #[arg(long, value_name = "DIR")]
    pub(crate) store: PathBuf,
    /// Skip invalid lines of JSONL instead of stopping at the first; they are counted as dropped records
    #[arg(long)]
    pub(crate) skip_bad: bool,
}
