//! `dosmos bench`: measures on real processes, several runs each, medians and spread.
//!
//! One module a benchmark; here is what they share: a cluster for a program, its output, the machine.

mod findings;
mod interchange;
mod intrusion;
mod kernels;
mod latency;
mod models;
mod network;
mod paper;
mod predict;
mod query;
mod store;
mod top;

use anyhow::{Context, bail};
use dosmos_proto::ApId;
use serde::de::DeserializeOwned;
use tempfile::TempDir;

use crate::args::BenchCommand;
use crate::config::Cluster;
use crate::launch::{RunDir, Running};

pub(crate) async fn run(command: BenchCommand) -> anyhow::Result<()> {
    match command {
        BenchCommand::Findings(args) => findings::run(&args),
        BenchCommand::Latency(args) => latency::run(args).await,
        BenchCommand::Network(args) => network::run(args).await,
        BenchCommand::Predict(args) => predict::run(args).await,
        BenchCommand::Intrusion(args) => intrusion::run(args).await,
        BenchCommand::Kernels(args) => kernels::run(args).await,
        BenchCommand::Paper(args) => paper::run(args).await,
        BenchCommand::Store(args) => store::run(&args),
        BenchCommand::Query(args) => query::run(&args).await,
        BenchCommand::Interchange(args) => interchange::run(&args),
        BenchCommand::Models(args) => models::run(&args),
        BenchCommand::Top(args) => top::run(args).await,
    }
}

/// What is left of a run: what its first process printed, and its directory until this is dropped.
struct Ran {
    said: String,
    dir: TempDir,
}

/// Runs a built-in program on a cluster of its own; returns what its first process printed.
async fn run_on(cluster: &str, app: &[&str]) -> anyhow::Result<String> {
    Ok(run_prepared(cluster, app, |_| Ok(())).await?.said)
}

/// The same, `prepare` having been called when the cluster was up; its directory is kept.
async fn run_prepared(
    cluster: &str,
    app: &[&str],
    prepare: impl FnOnce(&Running) -> anyhow::Result<()>,
) -> anyhow::Result<Ran> {
    let text = cluster;
    let cluster = Cluster::parse(text).map_err(|e| anyhow::anyhow!(e.join("\n")))?;
    let first = cluster.topology.ap_name(ApId(0));
    let dir = tempfile::Builder::new().prefix("dosmos-bench").tempdir()?;
    let run_dir = RunDir::create(Some(dir.path().to_owned()), "bench")?;
    let file = run_dir.path().join("cluster.toml");
    std::fs::write(&file, text).with_context(|| format!("cannot write {}", file.display()))?;
    let mut running = Running::start(cluster, &file, run_dir).await?;
    prepare(&running)?;
    let program = std::env::current_exe()?.display().to_string();
    let mut command = vec![program, "app".to_owned()];
    command.extend(app.iter().map(ToString::to_string));
    let outcome = running.run_app(&command, false).await?;
    let said = std::fs::read_to_string(running.run_dir.log_path(&first))?;
    running.stop().await;
    if !outcome.failures.is_empty() {
        let kept = dir.keep();
        bail!(
            "{}\nits logs: {}",
            outcome.failures.join("\n"),
            kept.display()
        );
    }
    Ok(Ran { said, dir })
}

/// The JSON objects in what a program printed.
fn json_lines<T: DeserializeOwned>(said: &str) -> anyhow::Result<Vec<T>> {
    let lines = said.lines().filter(|l| l.starts_with('{'));
    lines
        .map(|l| serde_json::from_str(l).with_context(|| format!("the program said {l:?}")))
        .collect()
}

/// Least, median and greatest of some figures.
fn spread(mut values: Vec<f64>) -> [f64; 3] {
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => [f64::NAN; 3],
        n if n % 2 == 1 => [values[0], values[n / 2], values[n - 1]],
        n => [
            values[0],
            (values[n / 2 - 1] + values[n / 2]) / 2.0,
            values[n - 1],
        ],
    }
}

/// Processors, their model, and the kernel.
fn machine() -> String {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let cpuinfo = read("/proc/cpuinfo");
    let model = cpuinfo.lines().find_map(|l| {
        l.strip_prefix("model name")?
            .split_once(": ")
            .map(|(_, m)| m.to_owned())
    });
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    format!(
        "{cores} cores, {}, Linux {}",
        model.unwrap_or_else(|| "unknown processor".to_owned()),
        read("/proc/sys/kernel/osrelease").trim()
    )
}
