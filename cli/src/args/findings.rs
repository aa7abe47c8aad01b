//! The grammar of `dosmos check`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::common::{Format, SourceArgs};
use crate::check::FailOn;

/// How findings are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum CheckFormat {
    /// Aligned columns, and each finding in words
    Table,
    /// A JSON document
    Json,
    /// Comma-separated values with a header line
    Csv,
    /// Log records for OpenTelemetry, as one JSON request
    Otlp,
}

#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    #[command(flatten)]
    pub(crate) sources: SourceArgs,
    /// Exit with status 1 only for these findings: a kind (ping-pong), a minimum severity (5% or 0.05), or both
    /// (bottleneck:10%); may be repeated [default: every finding]
    #[arg(long, value_name = "KIND|SEVERITY", value_delimiter = ',')]
    pub(crate) fail_on: Vec<FailOn>,
    /// Thresholds of the detectors (TOML); missing keys keep their defaults
    #[arg(long, value_name = "FILE")]
    pub(crate) thresholds: Option<PathBuf>,
    /// Output of an earlier `dosmos check --format json`: exit with status 1 only for findings that are new or worse
    #[arg(long, value_name = "FILE")]
    pub(crate) baseline: Option<PathBuf>,
    /// Start of the time range: +1.5s (since the start of the run), 12:03:04.5 (UTC), or RFC 3339
    #[arg(long, value_name = "TIME")]
    pub(crate) from: Option<String>,
    /// End of the time range, in the same formats
    #[arg(long, value_name = "TIME")]
    pub(crate) to: Option<String>,
    /// Costs of messages as measured by `dosmos-bench network -o FILE.json`, for projected gains [default: those of a
    /// typical machine]
    #[arg(long, value_name = "FILE.json")]
    pub(crate) network: Option<PathBuf>,
    /// Instead of the findings, write the cluster file with the patch of finding N applied (1 is the first)
    #[arg(long, value_name = "N", conflicts_with_all = ["fail_on", "baseline", "format"])]
    pub(crate) apply: Option<usize>,
    /// With --apply: cluster file to change (TOML) [default: that of the run]
    #[arg(short, long, value_name = "FILE", requires = "apply")]
    pub(crate) cluster: Option<PathBuf>,
    /// With --apply: file to write, which must not exist; - is standard output [default: -]
    #[arg(short, long, value_name = "FILE", requires = "apply")]
    pub(crate) output: Option<PathBuf>,
    /// Output format
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) format: CheckFormat,
}

#[derive(Debug, Args)]
pub(crate) struct VerifyArgs {
    #[command(flatten)]
    pub(crate) sources: SourceArgs,
    /// Do not look for data races, for programs that race on purpose
    #[arg(long)]
    pub(crate) no_races: bool,
    /// How far clocks that one event manager corrects may be apart, in milliseconds [default: what the run says of its
    /// clocks; 10 where it says nothing]
    #[arg(long, value_name = "MS")]
    pub(crate) clock_error: Option<u64>,
    /// Output format
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) format: Format,
}

#[derive(Debug, Args)]
pub(crate) struct DiffArgs {
    /// First run: a run directory, a store directory, or the address of a running event manager
    #[arg(value_name = "RUN1")]
    pub(crate) first: String,
    /// Second run, compared with the first
    #[arg(value_name = "RUN2")]
    pub(crate) second: String,
    /// Thresholds of the detectors (TOML); missing keys keep their defaults
    #[arg(long, value_name = "FILE")]
    pub(crate) thresholds: Option<PathBuf>,
    /// Output format
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) format: Format,
}
