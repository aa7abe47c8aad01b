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
