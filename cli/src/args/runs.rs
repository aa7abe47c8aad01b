//! The grammar of `dosmos runs`.

use std::path::PathBuf;

use clap::Args;

use super::common::Format;

#[derive(Debug, Args)]
pub(crate) struct RunsArgs {
    /// Folder whose runs to list [default: dosmos-run]
    #[arg(value_name = "FOLDER")]
    pub(crate) folder: Option<PathBuf>,
    /// Remove runs, those that --keep and --older-than choose, after a question; never one that still runs
    #[arg(long)]
    pub(crate) prune: bool,
    /// With --prune: keep the latest N runs
    #[arg(long, value_name = "N", requires = "prune")]
    pub(crate) keep: Option<usize>,
    /// With --prune: keep runs that were started less than this ago, such as 12h or 7d
    #[arg(long, value_name = "AGE", requires = "prune")]
    pub(crate) older_than: Option<String>,
    /// With --prune: do not ask
    #[arg(long, requires = "prune")]
    pub(crate) yes: bool,
    /// Output format
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) format: Format,
}
