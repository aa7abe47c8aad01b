//! A process's clock: set at its start by a wall clock that may be wrong, and drifting since.

use dosmos_proto::Nanos;

/// When simulations begin, by a right clock.
const EPOCH: u64 = 1_750_000_000_000_000_000;

/// The clock of one start of a process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    /// True time at which it was set.
    set: u64,
    /// By how much it was ahead then.
    ahead_ns: i64,
    /// What it gains, in millionths.
    ppm: i64,
}

impl Clock {
    pub(crate) fn new(set: u64, ahead_ns: i64, ppm: i64) -> Self {
        Self { set, ahead_ns, ppm }
    }

    /// What it says at a true time.
    pub(crate) fn says(&self, now: u64) -> Nanos {
        let since = i128::from(now) - i128::from(self.set);
        let gained = (since * i128::from(self.ppm) / 1_000_000) as i64;
        Nanos((EPOCH + now).saturating_add_signed(self.ahead_ns + gained))
    }

    /// Which clock it is.
    pub(crate) fn set_at(&self) -> u64 {
        self.says(self.set).0
    }

    /// True time at which it said that.
    pub(crate) fn said(&self, says: Nanos) -> u64 {
        let since = i128::from(says.0) - i128::from(self.set_at());
        let since = since * 1_000_000 / i128::from(1_000_000 + self.ppm);
        self.set.saturating_add_signed(since as i64)
    }

    /// True time at which it will say that, or a little later.
    pub(crate) fn when(&self, says: Nanos, now: u64) -> u64 {
        let left = says.0.saturating_sub(self.says(now).0);
        // As if it were slow by a thousandth.
        now + left + left / 1000 + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_drifts_says_what_it_is_waited_for() {
        for ppm in [-500, -1, 0, 20, 500] {
            let clock = Clock::new(7_000, -3_000_000, ppm);
            let now = 5_000_000_000;
            for then in [0, 7_000, 1_000_000, now] {
                assert!(clock.said(clock.says(then)).abs_diff(then) <= 1, "{ppm}");
            }
            let awaited = clock.says(now) + Nanos::from_millis(60_000);
            let then = clock.when(awaited, now);
            assert!(clock.says(then) >= awaited, "{ppm}");
            assert!(
                clock.says(then) < awaited + Nanos::from_millis(100),
                "{ppm}"
            );
        }
    }
}
