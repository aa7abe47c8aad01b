//! What was found and measured of each program.

use dosmos_analysis::{Finding, GainFrom, Kind};
use serde::Serialize;

use crate::statistics::{Interval, interval};

/// A program, and the cures that were tried.
#[derive(Clone, Debug, Serialize)]
pub(super) struct OfProgram {
    /// What it is called.
    pub(super) program: String,
    /// With its arguments.
    pub(super) command: String,
    /// Length of the run that was analysed, µs.
    pub(super) checked_us: Option<f64>,
    /// Length of each run without a cure, µs; none if no cure was tried.
    pub(super) run_us: Vec<f64>,
    /// Number of findings.
    pub(super) findings: usize,
    /// Number of those with a patch.
    pub(super) patches: usize,
    /// The cures: of findings in their order, then what should have been found.
    pub(super) cures: Vec<OfCure>,
    /// Why it could not be measured.
    pub(super) failed: Option<String>,
}

/// How a cure was carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum How {
    /// The patch of the finding, applied to the cluster file.
    Patch,
    /// The program with `--healthy`.
    Healthy,
    /// It is a change of the program that nobody made.
    None,
}

/// A cure.
#[derive(Clone, Debug, Serialize)]
pub(super) struct OfCure {
    /// Which finding it is of, from 1; none if it should have been found.
    pub(super) rank: Option<usize>,
    pub(super) kind: Kind,
    pub(super) target: String,
    pub(super) how: How,
    pub(super) patch: Option<String>,
    /// Fraction of the run time.
    pub(super) predicted_gain: Option<f64>,
    pub(super) gain_from: Option<GainFrom>,
    /// Fraction of the run time saved in each round.
    pub(super) gains: Vec<f64>,
    /// Mean of those, with its interval.
    pub(super) measured: Option<Interval>,
    /// Why it could not be measured.
    pub(super) failed: Option<String>,
}

impl OfCure {
    /// The cure of a finding.
    pub(super) fn of(rank: usize, finding: &Finding, how: How) -> Self {
        Self {
            rank: Some(rank),
            kind: finding.kind,
            target: finding.target(),
            how,
            patch: finding.patch.clone(),
            predicted_gain: finding.predicted_gain,
            gain_from: finding.gain_from,
            gains: Vec::new(),
            measured: None,
            failed: None,
        }
    }

    /// The cure of a pathology that has no finding, or none whose cure was tried.
    pub(super) fn to_be_found(kind: Kind) -> Self {
        Self {
            rank: None,
            kind,
            target: "the program".to_owned(),
            how: How::Healthy,
            patch: None,
            predicted_gain: None,
            gain_from: None,
            gains: Vec::new(),
            measured: None,
            failed: None,
        }
    }

    /// Takes the lengths of the runs without it and with it.
    pub(super) fn ran(&mut self, without_us: &[f64], with_us: &[f64]) {
        let pairs = without_us.iter().zip(with_us);
        self.gains = pairs.map(|(without, with)| 1.0 - with / without).collect();
        self.measured = interval(&self.gains);
    }

    /// Whether it saves time by more than noise.
    pub(super) fn is_faster(&self) -> bool {
        self.measured.is_some_and(|gain| gain.low() > 0.0)
    }

    /// Whether it costs time by more than noise.
    pub(super) fn is_slower(&self) -> bool {
        self.measured.is_some_and(|gain| gain.high() < 0.0)
    }

    /// Whether it saves more than `other` does, by more than noise.
    pub(super) fn is_better_than(&self, other: &Self) -> bool {
        let rounds = self.gains.iter().zip(&other.gains);
        let more: Vec<f64> = rounds.map(|(own, other)| own - other).collect();
        interval(&more).is_some_and(|more| more.low() > 0.0)
    }

    /// Predicted less measured gain.
    pub(super) fn difference(&self) -> Option<f64> {
        Some(self.predicted_gain? - self.measured?.mean)
    }
}
