//! What was found and measured of each program.

use dosmos_analysis::{Finding, GainFrom, Kind};
use serde::Serialize;

use crate::statistics::interval;

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

/// A measured gain, as a fraction of the run time, and the ends of its 95 % interval. Mean and interval are of the logarithm of
/// the ratio of the run times with and without the cure: a run twice as long then counts as much as one half as long, and no gain
/// is above 1.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Gain {
    pub(super) mean: f64,
    pub(super) low: f64,
    pub(super) high: f64,
}

impl Gain {
    /// From what was saved in each round; none of fewer than two.
    fn of(gains: &[f64]) -> Option<Self> {
        let logarithms: Vec<f64> = gains.iter().map(|gain| (1.0 - gain).ln()).collect();
        let ratio = interval(&logarithms)?;
        let gain = |logarithm: f64| 1.0 - logarithm.exp();
        Some(Self {
            mean: gain(ratio.mean),
            low: gain(ratio.high()),
            high: gain(ratio.low()),
        })
    }
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
    /// In all rounds.
    pub(super) measured: Option<Gain>,
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
        self.measured = Gain::of(&self.gains);
    }

    /// Whether it saves time by more than noise.
    pub(super) fn is_faster(&self) -> bool {
        self.measured.is_some_and(|gain| gain.low > 0.0)
    }

    /// Whether it costs time by more than noise.
    pub(super) fn is_slower(&self) -> bool {
        self.measured.is_some_and(|gain| gain.high < 0.0)
    }

    /// Whether it saves more than `other` does, by more than noise.
    pub(super) fn is_better_than(&self, other: &Self) -> bool {
        // What it saves of the time that the other one takes.
        let rounds = self.gains.iter().zip(&other.gains);
        let saved: Vec<f64> = rounds
            .map(|(own, other)| 1.0 - (1.0 - own) / (1.0 - other))
            .collect();
        Gain::of(&saved).is_some_and(|saved| saved.low > 0.0)
    }

    /// Predicted less measured gain.
    pub(super) fn difference(&self) -> Option<f64> {
        Some(self.predicted_gain? - self.measured?.mean)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn twice_as_long_and_half_as_long_are_no_gain() {
        let mut cure = OfCure::to_be_found(Kind::Imbalance);
        cure.ran(&[1.0, 1.0, 1.0, 1.0], &[2.0, 0.5, 2.0, 0.5]);
        assert_eq!(cure.gains, [-1.0, 0.5, -1.0, 0.5]);
        let gain = cure.measured.unwrap();
        assert!(gain.mean.abs() < 1e-9 && gain.high < 1.0, "{gain:?}");
        assert!(!cure.is_faster() && !cure.is_slower());
        // Hardly any noise.
        cure.ran(&[1.0, 2.0, 1.0, 2.0], &[0.5, 1.0, 0.5, 1.001]);
        let gain = cure.measured.unwrap();
        assert!(
            (gain.mean - 0.5).abs() < 0.001 && gain.low < gain.mean,
            "{gain:?}"
        );
        assert!(cure.is_faster() && !cure.is_better_than(&cure.clone()));
        // One pair has no interval.
        cure.ran(&[1.0, 1.0], &[2.0]);
        assert_eq!(cure.measured, None);
    }
}
