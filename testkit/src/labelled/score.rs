//! Precision and recall of the detectors, by kind.

use dosmos_analysis::{Finding, Kind, ProfileBuilder, Thresholds, conclude};
use dosmos_trace::query::Breakdown;
use serde::Serialize;

use super::trace::{Label, Labelled};

/// What became of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct KindScore {
    /// Which.
    pub kind: Kind,
    /// Planted pathologies.
    pub planted: u64,
    /// Of those, found.
    pub found: u64,
    /// Findings that name nothing planted.
    pub wrong: u64,
    /// Planted so that they hardly matter: not counted.
    pub slight: u64,
}

impl KindScore {
    /// Fraction of the findings that name something planted; 1 without findings.
    pub fn precision(&self) -> f64 {
        self.found as f64 / (self.found + self.wrong).max(1) as f64
            + f64::from(u8::from(self.found + self.wrong == 0))
    }

    /// Fraction of what was planted that was found; 1 if nothing was.
    pub fn recall(&self) -> f64 {
        self.found as f64 / self.planted.max(1) as f64 + f64::from(u8::from(self.planted == 0))
    }
}

/// A finding too many, or one too few.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Mistake {
    /// Seed of the trace.
    pub seed: u64,
    /// What was found and is not there, or is there and was not found.
    pub what: String,
}

/// The score over many traces.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Score {
    /// Traces analysed.
    pub traces: u64,
    /// Of those, with nothing planted.
    pub healthy: u64,
    /// Of the healthy ones, those with a finding.
    pub healthy_with_finding: u64,
    /// Records in all.
    pub records: u64,
    /// By kind.
    pub kinds: Vec<KindScore>,
    /// What went wrong.
    pub mistakes: Vec<Mistake>,
}

/// Analyses every trace, with what the processes say of their time, and compares.
pub fn score_with_times(traces: impl Iterator<Item = Labelled>, thresholds: &Thresholds) -> Score {
    score_by(traces, |trace| {
        findings(trace, trace.times.clone(), thresholds)
    })
}

/// Analyses every trace and compares.
pub fn score(traces: impl Iterator<Item = Labelled>, thresholds: &Thresholds) -> Score {
    score_by(traces, |trace| {
        findings(trace, Breakdown::default(), thresholds)
    })
}

fn findings(trace: &Labelled, times: Breakdown, thresholds: &Thresholds) -> Vec<Finding> {
    let mut profile = ProfileBuilder::new(trace.catalog.clone());
    trace.records.iter().for_each(|record| profile.add(record));
    profile.times(times);
    conclude(&profile.finish(None), thresholds).findings
}

/// Compares what is found in every trace with what is there.
pub fn score_by(
    traces: impl Iterator<Item = Labelled>,
    find: impl Fn(&Labelled) -> Vec<Finding>,
) -> Score {
    let mut score = Score::default();
    for trace in traces {
        score.add(&trace, &find(&trace));
    }
    score
}

impl Default for Score {
    /// Of no traces.
    fn default() -> Self {
        let nothing = |kind| KindScore {
            kind,
            planted: 0,
            found: 0,
            wrong: 0,
            slight: 0,
        };
        Self {
            traces: 0,
            healthy: 0,
            healthy_with_finding: 0,
            records: 0,
            kinds: Kind::ALL.map(nothing).to_vec(),
            mistakes: Vec::new(),
        }
    }
}

impl Score {
    fn add(&mut self, trace: &Labelled, findings: &[Finding]) {
        self.traces += 1;
        self.records += trace.records.len() as u64;
        if trace.planted.is_empty() && trace.slight.is_empty() {
            self.healthy += 1;
            self.healthy_with_finding += u64::from(!findings.is_empty());
        }
        for label in &trace.slight {
            self.of(label.kind).slight += 1;
        }
        for label in &trace.planted {
            let found = findings.iter().any(|f| names(f, label));
            let kind = self.of(label.kind);
            kind.planted += 1;
            kind.found += u64::from(found);
            if !found {
                let (own, all) = (100.0 * label.gain.0, 100.0 * label.gain.1);
                let what = format!(
                    "not found: {} of {} (its cure saves {own:.1} % of the processes' time, {all:.1} % of all)",
                    label.kind,
                    label.variables.join(" "),
                );
                self.mistake(trace.seed, what);
            }
        }
        for finding in findings {
            let mut there = trace.planted.iter().chain(&trace.slight);
            if !there.any(|label| names(finding, label)) {
                self.of(finding.kind).wrong += 1;
                let what = format!(
                    "not there: {} of {} ({:.1} %)",
                    finding.kind,
                    finding.target(),
                    100.0 * finding.severity
                );
                self.mistake(trace.seed, what);
            }
        }
    }

    /// Adds another score.
    pub fn merge(&mut self, other: Self) {
        self.traces += other.traces;
        self.healthy += other.healthy;
        self.healthy_with_finding += other.healthy_with_finding;
        self.records += other.records;
        for (own, more) in self.kinds.iter_mut().zip(other.kinds) {
            own.planted += more.planted;
            own.found += more.found;
            own.wrong += more.wrong;
            own.slight += more.slight;
        }
        self.mistakes.extend(other.mistakes);
    }

    fn of(&mut self, kind: Kind) -> &mut KindScore {
        &mut self.kinds[kind as usize]
    }

    fn mistake(&mut self, seed: u64, what: String) {
        self.mistakes.push(Mistake { seed, what });
    }
}

/// Whether the finding is about what the label is about. A finding without a variable is about the program.
fn names(finding: &Finding, label: &Label) -> bool {
    finding.kind == label.kind
        && (label.variables.is_empty()
            || finding
                .variable
                .as_ref()
                .is_none_or(|v| label.variables.contains(v)))
}
