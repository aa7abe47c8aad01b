//! The way from records to an answer: one pass over them, then every detector.
//!
//! [`analyse`] is what `dosmos check`, the terminal and the report call; its answer serializes as the
//! schema of `dosmos check --format json`.

use dosmos_trace::query::{Catalog, TimeRange};
use dosmos_trace::record::Record;
use serde::Serialize;

use crate::detectors;
use crate::finding::Finding;
use crate::groups::GroupMatrix;
use crate::profile::ProfileBuilder;
use crate::thresholds::Thresholds;

/// What is to be analysed: a live window or a whole store.
pub struct Input<'a> {
    /// Names, processes, groups, and how complete the records are.
    pub catalog: Catalog,
    /// All records of the window (`Filter { everything: true, .. }`: owners' records, failed operations
    /// and waiting notices too), in order of their start. Read once.
    pub records: &'a mut dyn Iterator<Item = Record>,
    /// What the records cover; none: from the start of the first to the end of the last.
    pub window: Option<TimeRange>,
}

impl std::fmt::Debug for Input<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Input")
            .field("window", &self.window)
            .finish_non_exhaustive()
    }
}

/// What is wrong, and how much of the truth that rests on. Serialized: `{"complete","findings"}`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Analysis {
    /// Fraction of the accesses that were recorded and read, 0 to 1.
    pub complete: f64,
    /// By severity, highest first.
    pub findings: Vec<Finding>,
    /// Who uses what, today's assignment to groups against the best one; for the group view.
    #[serde(skip)]
    pub groups: GroupMatrix,
}

/// Reads the records once and runs every detector. Never fails: too little data gives no findings.
pub fn analyse(input: Input<'_>, thresholds: &Thresholds) -> Analysis {
    let mut builder = ProfileBuilder::new(input.catalog);
    for record in input.records {
        builder.add(&record);
    }
    let profile = builder.finish(input.window);
    Analysis {
        complete: profile.completeness(),
        findings: detectors::detect(&profile, thresholds),
        groups: detectors::group_matrix(&profile, thresholds),
    }
}
