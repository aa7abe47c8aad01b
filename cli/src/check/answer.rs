//! What `dosmos check` answers.

use dosmos_analysis::{
    CriticalPath, Delay, Dismissed, Efficiency, Finding, Oversubscribed, RaceSearch, Withheld,
};
use dosmos_trace::store::RunMetadata;
use serde::Serialize;

use super::baseline::Change;

/// A finding, and what became of it since the baseline.
#[derive(Debug, Serialize)]
pub(super) struct Judged<'a> {
    #[serde(flatten)]
    pub(super) finding: &'a Finding,
    pub(super) change: Option<Change>,
}

/// An answer: that of the analysis, with its findings judged.
#[derive(Debug, Serialize)]
pub(super) struct Answer<'a> {
    /// How the run was started and how it ended; null if nobody wrote it.
    pub(super) run: Option<&'a RunMetadata>,
    /// Why not everything could be looked at.
    pub(super) incomplete: &'a [String],
    pub(super) complete: f64,
    pub(super) from_ns: u64,
    pub(super) to_ns: u64,
    /// How much of the processes' time was computing; null if they did not say where it went.
    pub(super) efficiency: Option<&'a Efficiency>,
    /// The same as a sentence.
    pub(super) verdict: &'a str,
    /// The longest chain of dependences; null without records.
    pub(super) critical_path: Option<&'a CriticalPath>,
    /// What waits for others cost, and why.
    pub(super) delays: &'a [Delay],
    pub(super) findings: Vec<Judged<'a>>,
    /// More application processes than processors; null if it costs little, or the run has several hosts.
    pub(super) oversubscribed: Option<&'a Oversubscribed>,
    /// Whose advice does not make the run faster in a replay.
    pub(super) dismissed: &'a [Dismissed],
    pub(super) withheld: &'a [Withheld],
    /// Whether data races were looked for.
    pub(super) races: &'a RaceSearch,
}
