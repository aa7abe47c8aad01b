//! One operation in one run.

use serde::Deserialize;

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
