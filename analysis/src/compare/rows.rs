//! What was done to each variable in both runs.

use std::collections::BTreeSet;

use dosmos_trace::record::Op;
use serde::Serialize;

use super::phased::{Sums, Table};

/// One variable and operation in both runs; none: not in that run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// Name of the variable or barrier.
    pub variable: String,
    /// The operation.
    pub op: Op,
    /// In the first run.
    pub first: Option<Sums>,
    /// In the second run.
    pub second: Option<Sums>,
}

impl Row {
    /// The time in the first run and in the second one, nanoseconds.
    pub fn time_ns(&self) -> (u64, u64) {
        let time = |s: &Option<Sums>| s.as_ref().map_or(0, |s| s.times.total.0);
        (time(&self.first), time(&self.second))
    }
}

/// Those of both tables.
pub(super) fn rows(first: &Table, second: &Table) -> Vec<Row> {
    let keys: BTreeSet<&(String, Op)> = first.keys().chain(second.keys()).collect();
    keys.into_iter()
        .map(|key| Row {
            variable: key.0.clone(),
            op: key.1,
            first: first.get(key).cloned(),
            second: second.get(key).cloned(),
        })
        .collect()
}
