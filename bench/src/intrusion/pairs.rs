//! Runs with and without monitoring next to each other, and what monitoring adds.

use super::runs::Run;
use crate::statistics::{Interval, interval};

/// Runs with and without monitoring that were next to each other.
pub(super) struct Pair {
    pub(super) on: Run,
    pub(super) off: Run,
}

/// All pairs of one ratio and one monitored configuration.
pub(crate) struct Row {
    pub(super) ratio: u64,
    pub(super) configuration: usize,
    pub(super) pairs: Vec<Pair>,
}

impl Row {
    /// What monitoring adds to a figure of a run, as a fraction; the interval of a paired t-test of the logarithms, taken back. None
    /// of a single pair.
    pub(super) fn overhead(&self, of: impl Fn(&Run) -> f64) -> Option<Interval> {
        let ratios = self.pairs.iter().map(|p| (of(&p.on) / of(&p.off)).ln());
        let logarithms = interval(&ratios.collect::<Vec<_>>())?;
        // Symmetric within less than a point where it is a few per cent wide.
        let [low, high] = [logarithms.low(), logarithms.high()].map(|l| l.exp() - 1.0);
        Some(Interval {
            mean: logarithms.mean.exp() - 1.0,
            half_width: (high - low) / 2.0,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_monitoring_adds_is_the_mean_ratio_within_pairs() {
        let run = |seconds| Run {
            seconds,
            processor: 2.0 * seconds,
            managers: 0.0,
        };
        let pair = |off: f64, ratio: f64| Pair {
            on: run(off * ratio),
            off: run(off),
        };
        let row = |pairs| Row {
            ratio: 0,
            configuration: 1,
            pairs,
        };
        // A machine that becomes five times slower does not matter.
        let told = row(vec![pair(1.0, 1.1), pair(5.0, 1.1)]).overhead(|r| r.seconds);
        let told = told.unwrap();
        assert!(
            (told.mean - 0.1).abs() < 1e-9 && told.half_width < 1e-9,
            "{told:?}"
        );
        let told = row(vec![pair(1.0, 1.2), pair(1.0, 1.0 / 1.2)]).overhead(|r| r.processor);
        let told = told.unwrap();
        assert!(told.mean.abs() < 1e-9 && told.half_width > 1.0, "{told:?}");
        assert!(row(vec![pair(1.0, 1.2)]).overhead(|r| r.seconds).is_none());
    }
}
