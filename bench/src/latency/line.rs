//! One operation in one run.

use dosmos_cli::demo::CLUSTER;
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
    let mut text = format!("name = \"many\"\n[defaults]\nlisten = \"{listen}\"\n");
    for group in 0..2 {
        text += &format!(
            "[[group]]\nname = \"g{group}\"\n[[emp]]\nname = \"emp{group}\"\n\
             [[lp]]\nname = \"lp{group}\"\ngroup = \"g{group}\"\n"
        );
    }
    for i in 0..MANY {
        let group = 2 * i / MANY;
        text += &format!(
            "[[mp]]\nname = \"mp{i}\"\ngroup = \"g{group}\"\nemp = \"emp{group}\"\n\
             [[ap]]\nname = \"ap{i}\"\nmp = \"mp{i}\"\n"
        );
    }
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
    let text = CLUSTER.replacen(
        "name = \"demo\"\n",
        &format!("name = \"demo\"\n[defaults]\nlisten = \"{listen}\"\n"),
        1,
    );
    let ops = ops.to_string();
    let said = run_on(&(text + more), &["latency", "--ops", &ops]).await?;
    json_lines(&said)
}

/// In microseconds.
pub(super) fn micros(ns: f64) -> String {
    format!("{:.1}", ns / 1e3)
}
