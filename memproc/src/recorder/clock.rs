//! This process's clock against cluster time, by four-timestamp exchanges with the event manager.
//! Sans-IO.
//!
//! Of the last exchanges the one with the shortest round trip counts: its error is at most half of
//! it. A difference that lies within the error is none: processes of one host share a clock, and
//! correcting it would add noise.

use std::collections::VecDeque;

use dosmos_proto::Nanos;

/// Exchanges remembered: with one a second, drift within them is below a clock's microseconds.
const REMEMBERED: usize = 16;

#[derive(Clone, Copy, Debug)]
struct Sample {
    offset_ns: i64,
    round_trip: u64,
}

/// What is known of the difference.
#[derive(Debug, Default)]
pub(crate) struct ClockOffset {
    samples: VecDeque<Sample>,
}

impl ClockOffset {
    /// An exchange: sent here, received and replied there, and back here.
    pub(crate) fn sample(&mut self, sent: Nanos, received: Nanos, replied: Nanos, back: Nanos) {
        let there = (replied - received).0;
        let Some(round_trip) = (back - sent).0.checked_sub(there) else {
            return; // A clock jumped in between.
        };
        let halves = difference(received, sent) / 2 + difference(replied, back) / 2;
        if self.samples.len() == REMEMBERED {
            self.samples.pop_front();
        }
        self.samples.push_back(Sample {
            offset_ns: halves,
            round_trip,
        });
    }

    /// Cluster time minus this clock, in nanoseconds, and the bound of its error.
    pub(crate) fn estimate(&self) -> (i64, Nanos) {
        match self.samples.iter().min_by_key(|s| s.round_trip) {
            None => (0, Nanos::MAX),
            Some(best) => {
                let error = best.round_trip.div_ceil(2);
                let real = best.offset_ns.unsigned_abs() > error;
                (if real { best.offset_ns } else { 0 }, Nanos(error))
            }
        }
    }
}

fn difference(a: Nanos, b: Nanos) -> i64 {
    a.0.wrapping_sub(b.0) as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_quickest_exchange_counts() {
        let mut c = ClockOffset::default();
        assert_eq!(c.estimate().0, 0);
        let n = Nanos;
        // The event manager is 1,000,000 ahead; the first exchange is slow one way.
        c.sample(n(0), n(1_000_900), n(1_000_910), n(1_010));
        c.sample(n(5_000), n(1_005_050), n(1_005_060), n(5_110));
        assert_eq!(c.estimate(), (1_000_000, n(50)));
    }

    #[test]
    fn a_difference_within_the_error_is_none() {
        let mut c = ClockOffset::default();
        c.sample(Nanos(0), Nanos(70), Nanos(75), Nanos(105));
        assert_eq!(c.estimate(), (0, Nanos(50)));
    }
}
