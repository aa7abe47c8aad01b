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
    /// Bound of the error from `since` to `until`.
    pub error: Nanos,
    /// The first exchange that it is made of, by the process's clock.
    pub since: Nanos,
    /// The last one.
    pub until: Nanos,
    /// How much the bound grows before and after them, in nanoseconds per second.
    pub growth_ppb: u64,
}

impl ClockEstimate {
    /// Cluster time when the process's clock says `local`.
    pub fn correct(&self, local: Nanos) -> Nanos {
        local.shifted(self.offset_at(local))
    }

    /// Cluster time minus the process's clock when that says `local`, in nanoseconds.
    pub fn offset_at(&self, local: Nanos) -> i64 {
        let since = i128::from(local.0) - i128::from(self.reference.0);
        let narrow = i64::try_from(since).ok();
        let drifted = match narrow.and_then(|s| s.checked_mul(self.drift_ppb)) {
            Some(product) => product / BILLION,
            // Of years, or of a clock that is out of order.
            None => {
                let drifted = since * i128::from(self.drift_ppb) / i128::from(BILLION);
                i64::try_from(drifted).unwrap_or(0)
            }
        };
        self.offset_ns.saturating_add(drifted)
    }

    /// How far [`correct`](Self::correct) may be off when the process's clock says `local`.
    pub fn error_at(&self, local: Nanos) -> Nanos {
        let beyond = (self.since - local).max(local - self.until);
        self.error + part(beyond, self.growth_ppb)
    }
}

const BILLION: i64 = 1_000_000_000;

/// A number of billionths of a length of time, rounded up.
fn part(of: Nanos, ppb: u64) -> Nanos {
    if let Some(product) = of.0.checked_mul(ppb) {
        return Nanos(product.div_ceil(1_000_000_000));
    }
    let part = (u128::from(of.0) * u128::from(ppb)).div_ceil(1_000_000_000);
    Nanos(u64::try_from(part).unwrap_or(u64::MAX))
}

impl From<ClockEstimate> for wire::ClockEstimate {
    fn from(e: ClockEstimate) -> Self {
        Self {
            reference_ns: e.reference.0,
            offset_ns: e.offset_ns,
            drift_ppb: e.drift_ppb,
            error_ns: e.error.0,
            since_ns: e.since.0,
            until_ns: e.until.0,
            growth_ppb: e.growth_ppb,
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
            since: Nanos(e.since_ns),
            until: Nanos(e.until_ns),
            growth_ppb: e.growth_ppb,
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
            since: Nanos(1_000_000_000),
            until: Nanos(2_000_000_000),
            growth_ppb: 1_000,
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
            growth_ppb: u64::MAX,
            ..e
        };
        assert_eq!(hostile.correct(Nanos::MAX), Nanos::MAX);
        assert_eq!(hostile.error_at(Nanos::MAX), Nanos::MAX);
    }

    #[test]
    fn the_bound_grows_before_the_first_exchange_and_after_the_last() {
        let second = 1_000_000_000;
        let e = ClockEstimate {
            error: Nanos(10),
            since: Nanos(5 * second),
            until: Nanos(7 * second),
            growth_ppb: 1_000,
            drift_ppb: -500,
            ..ClockEstimate::default()
        };
        let error = |at: u64| e.error_at(Nanos(at * second)).0;
        assert_eq!([3, 5, 6, 7, 10].map(error), [2_010, 10, 10, 10, 3_010]);
    }
}
