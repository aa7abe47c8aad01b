//! The way from records to an answer: one pass over them, then every detector.
//!
//! [`analyse`] is what the terminal and the report call; `dosmos check` feeds a
//! [`ProfileBuilder`] slice by slice and calls [`conclude`]. The answer serializes as the schema of
//! `dosmos check --format json`.

use std::collections::BTreeMap;

use dosmos_proto::GroupId;
use dosmos_trace::query::{Catalog, TimeRange};
use dosmos_trace::record::Record;
use serde::Serialize;

use crate::detectors;
use crate::efficiency::{self, Efficiency};
use crate::finding::{Dismissed, Finding, RaceSearch, Withheld};
use crate::groups::GroupMatrix;
use crate::oversubscribed::Oversubscribed;
use crate::path::{CriticalPath, Delay};
use crate::profile::{Phases, Profile, ProfileBuilder};
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

/// What is wrong, and how much of the truth that rests on.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Analysis {
    /// Fraction of the accesses that were recorded and read, 0 to 1.
    pub complete: f64,
    /// First instant looked at, nanoseconds of cluster time.
    pub from_ns: u64,
    /// Last instant looked at, nanoseconds of cluster time.
    pub to_ns: u64,
    /// How much of the processes' time was computing; none if they did not say where it went.
    pub efficiency: Option<Efficiency>,
    /// The same as a sentence, and whether the findings explain what is lost.
    pub verdict: String,
    /// The longest chain of dependences: what the length of the run consists of. None without records.
    pub critical_path: Option<CriticalPath>,
    /// What waits for others cost, and why, the largest first.
    pub delays: Vec<Delay>,
    /// By predicted gain, highest first; where none was replayed by severity.
    pub findings: Vec<Finding>,
    /// What stands only if a replay says that its cure gains as much as the threshold of its kind.
    #[serde(skip)]
    pub(crate) suspected: Vec<Finding>,
    /// More application processes than processors, and what that costs; none if that is little, or was not replayed.
    pub oversubscribed: Option<Oversubscribed>,
    /// Findings whose advice does not make the run faster in a replay.
    pub dismissed: Vec<Dismissed>,
    /// What would have been found, had enough been recorded to be sure.
    pub withheld: Vec<Withheld>,
    /// Whether data races were looked for: not by the detectors, but by who knows `verify/`.
    pub races: RaceSearch,
    /// Who uses what, today's assignment to groups against the best one; for the group view.
    #[serde(skip)]
    pub groups: GroupMatrix,
    /// What happened between the barriers of each group (none: of all); for the report.
    #[serde(skip)]
    pub phases: BTreeMap<Option<GroupId>, Phases>,
}

/// Reads the records once and runs every detector. Never fails: too little data gives no findings.
pub fn analyse(input: Input<'_>, thresholds: &Thresholds) -> Analysis {
    let mut builder = ProfileBuilder::new(input.catalog);
    for record in input.records {
        builder.add(&record);
    }
    conclude(&builder.finish(input.window), thresholds)
}

/// Runs every detector over what was gathered.
pub fn conclude(profile: &Profile, thresholds: &Thresholds) -> Analysis {
    let detected = detectors::run(profile, thresholds);
    let efficiency = profile.efficiency.clone();
    Analysis {
        verdict: verdict(
            efficiency.as_ref(),
            thresholds,
            !detected.findings.is_empty(),
        ),
        complete: profile.completeness(),
        from_ns: profile.window.from.0,
        to_ns: profile.window.to.0,
        efficiency,
        critical_path: profile.path.clone(),
        delays: profile.delays.clone(),
        findings: detected.findings,
        suspected: detected.suspected,
        oversubscribed: None,
        dismissed: Vec::new(),
        withheld: detected.withheld,
        races: RaceSearch::default(),
        groups: detected.groups,
        phases: profile.barriers.clone(),
    }
}

pub(crate) fn verdict(
    efficiency: Option<&Efficiency>,
    thresholds: &Thresholds,
    explained: bool,
) -> String {
    let mut text = efficiency::verdict(efficiency, thresholds.efficiency);
    let bad = efficiency.is_some_and(|e| e.parallel < thresholds.efficiency);
    if bad && !explained {
        text += "; no finding explains it (`dosmos query breakdown` shows it by process)";
    }
    text
}
