//! `dosmos metrics`: what Prometheus and Grafana need to watch a run (docs/guide/metrics.md).

mod prometheus;
mod targets;
#[cfg(test)]
mod tests;

use std::io::Write;

use anyhow::Context;

use crate::args::{MetricsCommand, PrometheusArgs, TargetsArgs};
use crate::export::Target;
use crate::output;
use prometheus::Certificates;
use targets::Watched;

/// The dashboard, as it is in the repository.
const DASHBOARD: &str = include_str!("../../../docs/grafana/dosmos.json");

pub(crate) fn run(command: &MetricsCommand) -> anyhow::Result<()> {
    match command {
        MetricsCommand::Prometheus(args) => prometheus(args),
        MetricsCommand::Targets(args) => write_targets(args),
        MetricsCommand::Grafana => {
            output::text(DASHBOARD);
            Ok(())
        }
    }
}

fn prometheus(args: &PrometheusArgs) -> anyhow::Result<()> {
    let watched = Watched::of(args.run_dir.as_deref())?;
    let certificates = Certificates::of(&watched, args.tls.as_deref())?;
    let file = args.targets.as_deref();
    let text = prometheus::configuration(&watched, file, certificates.as_ref())?;
    output::text(&text);
    Ok(())
}

fn write_targets(args: &TargetsArgs) -> anyhow::Result<()> {
    let watched = Watched::of(args.run_dir.as_deref())?;
    let text = serde_json::to_string_pretty(watched.targets())? + "\n";
    let to = Target::open(&args.output)?;
    let written = to.writer()?.write_all(text.as_bytes());
    written.with_context(|| format!("cannot write {}", args.output.display()))?;
    to.keep(&args.output)
}
