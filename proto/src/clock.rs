//! A process's clock against cluster time.

use serde::{Deserialize, Serialize};

use crate::time::Nanos;
use crate::wire;

/// What is known of the difference between a process's clock and cluster time: a line through the clock
/// exchanges, and how far it may be off. Records travel with the times of their process's clock; its
/// event manager corrects them by this, once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockEstimate {
    /// When the offset holds, by the process's clock.
    pub reference: Nanos,
    /// Cluster time minus the process's clock at that time, in nanoseconds.
    pub offset_ns: i64,
    /// How much that grows, in nanoseconds per second.
    pub drift_ppb: i64,
    /// Bound of the error at that time.
    pub error: Nanos,
}

impl ClockEstimate {
    /// Cluster time when the process's clock says `local`.
    pub fn correct(&self, local: Nanos) -> Nanos {
        local.shifted(self.offset_at(local))
    }

    /// Cluster time minus the process's clock when that says `local`, in nanoseconds.
    pub fn offset_at(&self, local: Nanos) -> i64 {
        let since = i128::from(local.0) - i128::from(self.reference.0);
        let drifted = since * i128::from(self.drift_ppb) / 1_000_000_000;
        self.offset_ns
            .saturating_add(i64::try_from(drifted).unwrap_or(0))
    }
}

impl From<ClockEstimate> for wire::ClockEstimate {
    fn from(e: ClockEstimate) -> Self {
        Self {
            reference_ns: e.reference.0,
            offset_ns: e.offset_ns,
            drift_ppb: e.drift_ppb,
            error_ns: e.error.0,
        }
    }
}

impl From<wire::ClockEstimate> for ClockEstimate {
    fn from(e: wire::ClockEstimate) -> Self {
        Self {
            reference: Nanos(e.reference_ns),
            offset_ns: e.offset_ns,
            drift_ppb: e.drift_ppb,
            error: Nanos(e.error_ns),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_offset_grows_with_the_drift_and_never_overflows() {
        let e = ClockEstimate {
            reference: Nanos(1_000_000_000),
            offset_ns: -50_000_000,
            drift_ppb: 200_000,
            error: Nanos(10),
        };
        assert_eq!(e.correct(Nanos(1_000_000_000)), Nanos(950_000_000));
        assert_eq!(e.correct(Nanos(3_000_000_000)), Nanos(2_950_400_000));
        assert_eq!(
            e.correct(Nanos::ZERO),
            Nanos::ZERO,
            "not before the beginning"
        );
        let hostile = ClockEstimate {
            offset_ns: i64::MAX,
            drift_ppb: i64::MAX,
            ..e
        };
        assert_eq!(hostile.correct(Nanos::MAX), Nanos::MAX);
    }
}
