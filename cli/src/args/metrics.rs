//! The grammar of `dosmos metrics`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::help;

#[derive(Debug, Subcommand)]
pub(crate) enum MetricsCommand {
    /// Print a configuration with which Prometheus scrapes the processes of a running program
    #[command(after_help = help::METRICS_PROMETHEUS)]
    Prometheus(PrometheusArgs),
    /// Print the addresses and labels of these processes as JSON, for a Prometheus that runs on (file_sd_configs)
    #[command(after_help = help::METRICS_TARGETS)]
    Targets(TargetsArgs),
    /// Print a dashboard for Grafana, to import there
    #[command(after_help = help::METRICS_GRAFANA)]
    Grafana,
}

#[derive(Debug, Args)]
pub(crate) struct PrometheusArgs {
    /// Directory of the run [default: dosmos-run/latest]
    #[arg(long, value_name = "DIR")]
    pub(crate) run_dir: Option<PathBuf>,
    /// Read the processes from this file, which `dosmos metrics targets -o FILE` writes, again whenever it changes
    /// [default: those that run now, in the configuration itself]
    #[arg(long, value_name = "FILE")]
    pub(crate) targets: Option<PathBuf>,
    /// Folder of the certificate that Prometheus shows, of an observer, where the cluster uses certificates
    /// [default: DOSMOS_TLS]
    #[arg(long, value_name = "DIR")]
    pub(crate) tls: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct TargetsArgs {
    /// Directory of the run [default: dosmos-run/latest]
    #[arg(long, value_name = "DIR")]
    pub(crate) run_dir: Option<PathBuf>,
    /// File to write or replace, as a whole; - is standard output
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    pub(crate) output: PathBuf,
}
