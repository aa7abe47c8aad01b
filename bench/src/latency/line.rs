//! One operation in one run.

use dosmos_cli::demo::{CLUSTER, cluster};
use serde::Deserialize;

use crate::run::{json_lines, run_on};

/// A line of the `latency` program: one operation in one run.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Line {
    pub(super) op: String,
    pub(super) bytes: u64,
    pub(super) count: u64,
    pub(super) median_ns: u64,
    pub(super) p99_ns: u64,
    pub(super) min_ns: u64,
    pub(super) max_ns: u64,
}

/// Application processes of the barrier that has a goal, in two groups.
const MANY: usize = 8;

/// The barrier of [`MANY`] processes in one run on a cluster of their own.
pub(super) async fn barrier_of_many(listen: &str, ops: u64) -> anyhow::Result<Vec<Line>> {
    let text = listening(&cluster(2, MANY)?, listen);
    let ops = ops.to_string();
    let said = run_on(&text, &["latency", "--at", "together", "--ops", &ops]).await?;
    let mut lines: Vec<Line> = json_lines(&said)?;
    lines.retain_mut(|line| {
        let barrier = line.op == "together_barrier";
        line.op = format!("barrier_of_{MANY}");
        barrier
    });
    Ok(lines)
}

/// Each operation in one run on the demo's cluster; `more` is added to its file.
pub(super) async fn operations(listen: &str, more: &str, ops: u64) -> anyhow::Result<Vec<Line>> {
    let text = listening(CLUSTER, listen);
    let ops = ops.to_string();
    let said = run_on(&(text + more), &["latency", "--ops", &ops]).await?;
    json_lines(&said)
}

/// The cluster file of a demo whose processes listen there.
fn listening(cluster: &str, listen: &str) -> String {
    let name = "name = \"demo\"\n";
    cluster.replacen(
        name,
        &format!("{name}[defaults]\nlisten = \"{listen}\"\n"),
        1,
    )
}

/// In microseconds.
pub(super) fn micros(ns: f64) -> String {
    format!("{:.1}", ns / 1e3)
}
