//! The grammar of `dosmos sql` and `dosmos archive`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::common::{Format, SourceArgs};

/// `dosmos sql`.
#[derive(Clone, Debug, Args)]
pub struct SqlArgs {
    /// The query, such as "SELECT op, count(*) FROM accesses GROUP BY op"; `SHOW TABLES` lists the tables
    #[arg(value_name = "QUERY")]
    pub query: String,
    /// Where the run is.
    #[command(flatten)]
    pub sources: SourceArgs,
    /// Output format
    #[arg(long, value_enum, default_value = "table")]
    pub format: Format,
}

/// By what the files of an archive are divided, below the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Division {
    /// By operation: run=RUN/op=OPERATION/
    Op,
    /// By minutes since the start of the run: run=RUN/minute=NUMBER/
    Minute,
}

/// `dosmos archive`.
#[derive(Clone, Debug, Args)]
pub struct ArchiveArgs {
    /// Read a trace store directory; may be repeated for the stores of one run
    #[arg(long, value_name = "DIR")]
    pub store: Vec<PathBuf>,
    /// Read all stores of a run directory [default: dosmos-run/latest]
    #[arg(long, value_name = "DIR", conflicts_with = "store")]
    pub run_dir: Option<PathBuf>,
    /// Directory of the archive; may hold other runs already
    #[arg(short, long, value_name = "DIR")]
    pub output: PathBuf,
    /// Divide the files of the run
    #[arg(long, value_enum, default_value = "op")]
    pub by: Division,
}
