//! The intrusion meter: the processor time this process spends on making and encoding records, so that a
//! user sees what watching costs. It is the thread's processor time, so being put aside by the system
//! does not count. Not in it: what the gRPC stack takes to send a batch (one message every 50 ms).
//!
//! Pushing a record takes less time than looking at the clock twice; so one push in [`EVERY`] is timed,
//! less what the looking takes, and counts for all of them. Encoding is timed each time.

use dosmos_node::processor::thread_time;
use dosmos_proto::Nanos;

/// One in this many pushes is timed.
pub(crate) const EVERY: u32 = 64;

/// Times between two looks at the clock, of which the shortest is taken for what a look costs.
const LOOKS: u32 = 32;

/// Time spent on monitoring.
#[derive(Debug)]
pub(crate) struct Meter {
    pushes: u32,
    spent: Nanos,
    /// What a look at the clock costs.
    look: Nanos,
}

impl Default for Meter {
    fn default() -> Self {
        let look = (0..LOOKS).map(|_| {
            let begun = thread_time();
            thread_time() - begun
        });
        Self {
            pushes: 0,
            spent: Nanos::ZERO,
            look: look.min().unwrap_or_default(),
        }
    }
}

impl Meter {
    /// Whether the push that comes now is to be timed.
    pub(crate) fn times_this_push(&mut self) -> bool {
        self.pushes = self.pushes.wrapping_add(1);
        self.pushes.is_multiple_of(EVERY)
    }

    /// A timed push took so long.
    pub(crate) fn push(&mut self, took: Nanos) {
        let took = (took - self.look).0;
        self.spent += Nanos(took.saturating_mul(u64::from(EVERY)));
    }

    /// Encoding took so long.
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
        let mut meter = Meter {
            look: Nanos(2),
            ..Meter::default()
        };
        let timed = (0..10 * EVERY).filter(|_| meter.times_this_push()).count();
        assert_eq!(timed, 10);
        meter.push(Nanos(7));
        meter.push(Nanos(1));
        meter.work(Nanos(1_000));
        assert_eq!(meter.total(), Nanos(5 * u64::from(EVERY) + 1_000));
    }
}
