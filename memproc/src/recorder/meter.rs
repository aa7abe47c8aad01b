//! The intrusion meter: the time this process spends on monitoring, so that a user sees what watching
//! costs. Everything runs on one thread, so the time between two looks at the clock is the thread's own,
//! except where the system takes the processor away: the meter reads too high rather than too low.
//!
//! Pushing a record takes less time than looking at the clock twice; so one push in [`EVERY`] is timed
//! and counts for all of them. Encoding and sending are timed each time.

use dosmos_proto::Nanos;

/// One push in so many is timed.
pub(crate) const EVERY: u32 = 64;

/// Time spent on monitoring.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    pushes: u32,
    spent: Nanos,
}

impl Meter {
    /// Whether the push that comes now is to be timed.
    pub(crate) fn times_this_push(&mut self) -> bool {
        self.pushes = self.pushes.wrapping_add(1);
        self.pushes.is_multiple_of(EVERY)
    }

    /// A timed push took so long.
    pub(crate) fn push(&mut self, took: Nanos) {
        self.spent += Nanos(took.0.saturating_mul(u64::from(EVERY)));
    }

    /// Encoding or sending took so long.
    pub(crate) fn work(&mut self, took: Nanos) {
        self.spent += took;
    }

    /// All of it so far.
    pub(crate) fn total(&self) -> Nanos {
        self.spent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timed_push_stands_for_all_since_the_last() {
        let mut meter = Meter::default();
        let timed = (0..10 * EVERY).filter(|_| meter.times_this_push()).count();
        assert_eq!(timed, 10);
        meter.push(Nanos(5));
        meter.work(Nanos(1_000));
        assert_eq!(meter.total(), Nanos(5 * u64::from(EVERY) + 1_000));
    }
}
