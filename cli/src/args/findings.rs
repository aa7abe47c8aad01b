//! The grammar of `dosmos check`.

use std::path::PathBuf;

use clap::Args;

use super::{Format, SourceArgs};
use crate::check::FailOn;

#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    #[command(flatten)]
    pub(crate) sources: SourceArgs,
    /// Exit with 1 only for these: a kind of finding, a severity (`0.05` or `5%`), or a kind from a severity on
    /// (`bottleneck:10%`); may be repeated [default: every finding]
    #[arg(long, value_name = "KIND|SEVERITY", value_delimiter = ',')]
    pub(crate) fail_on: Vec<FailOn>,
    /// Thresholds of the detectors, TOML; those left out keep their defaults
    #[arg(long, value_name = "FILE")]
    pub(crate) thresholds: Option<PathBuf>,
    /// An earlier answer (`--format json`): exit with 1 only for what is new or worse since
    #[arg(long, value_name = "FILE")]
    pub(crate) baseline: Option<PathBuf>,
    /// Look at the run from then on: `+1.5s` into the run, `12:03:04.5`, or RFC 3339
    #[arg(long, value_name = "TIME")]
    pub(crate) from: Option<String>,
    /// Until then
    #[arg(long, value_name = "TIME")]
    pub(crate) to: Option<String>,
    /// What messages cost where it ran (`dosmos-bench network -o FILE`), for predicted gains; a typical machine's
    /// unless given
    #[arg(long, value_name = "FILE.json")]
    pub(crate) network: Option<PathBuf>,
    /// How to print
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) format: Format,
}

#[derive(Debug, Args)]
pub(crate) struct DiffArgs {
    /// A run directory, a store directory, or the address of a running event manager
    #[arg(value_name = "RUN1")]
    pub(crate) first: String,
    /// The run to compare with it
    #[arg(value_name = "RUN2")]
    pub(crate) second: String,
    /// Thresholds of the detectors, TOML; those left out keep their defaults
    #[arg(long, value_name = "FILE")]
    pub(crate) thresholds: Option<PathBuf>,
    /// How to print
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) format: Format,
}
