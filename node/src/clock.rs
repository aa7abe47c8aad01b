//! What a process's clock lacks to cluster time, by four-timestamp exchanges. Sans-IO.
//!
//! An exchange bounds the offset at its instant: the error is at most half of its round trip. Of the
//! exchanges remembered those with short round trips count (minimum-delay filter); through them goes a
//! line, whose slope is the drift. Until they span long enough for a slope, the best single exchange
//! counts, with an error that grows with its age. A difference that lies within the error is not corrected:
//! processes of one host share a clock, and correcting it would add noise. It may be there all the same, so it
//! counts as error. A new start of the event manager has a new clock, and exchanges with the old one do not count.

use std::collections::VecDeque;

use dosmos_proto::Nanos;
use dosmos_proto::clock::ClockEstimate;

/// Exchanges remembered: with one per second, a minute.
const REMEMBERED: usize = 64;
/// A line goes through exchanges that span at least this long, and are at least this many.
const LEAST_SPAN: Nanos = Nanos::from_millis(8_000);
const LEAST_SAMPLES: usize = 6;
/// Clocks that drift by more are broken, in nanoseconds per second.
const MOST_DRIFT_PPB: i64 = 1_000_000;
/// What an unknown drift may be, for the error of an exchange that grows old.
const USUAL_DRIFT_PPB: u64 = 500_000;
/// During a round trip clocks drift by at most this part of it.
const LEAST_PART: u64 = 1_000;

#[derive(Clone, Copy, Debug)]
struct Sample {
    /// By this process's clock, half-way.
    at: Nanos,
    offset_ns: i64,
    /// Half the round trip, and what clocks drift meanwhile.
    error: Nanos,
}

impl Sample {
    /// The error of its offset at `now`, if the drift is not known.
    fn error_at(&self, now: Nanos) -> Nanos {
        let age = u128::from((now - self.at).0);
        let drifted = age * u128::from(USUAL_DRIFT_PPB) / 1_000_000_000;
        self.error + Nanos(u64::try_from(drifted).unwrap_or(u64::MAX))
    }
}

/// The exchanges of one process with its event manager.
#[derive(Debug, Default)]
pub struct ClockEstimator {
    samples: VecDeque<Sample>,
    /// The clock at the other end.
    other: Option<u64>,
}

impl ClockEstimator {
    /// The exchanges that follow are with the clock of this number; those with another do not count any more.
    pub fn with_clock(&mut self, number: u64) {
        if self.other.replace(number) != Some(number) {
            self.samples.clear();
        }
    }

    /// An exchange: sent here, received and replied there, and back here.
    pub fn sample(&mut self, sent: Nanos, received: Nanos, replied: Nanos, back: Nanos) {
        let there = (replied - received).0;
        let Some(round_trip) = (back - sent).0.checked_sub(there) else {
            return; // A clock jumped in between.
        };
        if self.samples.len() == REMEMBERED {
            self.samples.pop_front();
        }
        self.samples.push_back(Sample {
            at: sent + Nanos((back - sent).0 / 2),
            offset_ns: difference(received, sent) / 2 + difference(replied, back) / 2,
            error: Nanos(round_trip.div_ceil(2) + round_trip / LEAST_PART),
        });
    }

    /// The best estimate at `now`, by this process's clock; none before the first exchange.
    pub fn estimate(&self, now: Nanos) -> Option<ClockEstimate> {
        let best = self.samples.iter().min_by_key(|s| s.error_at(now))?;
        let line = self.line().unwrap_or(ClockEstimate {
            reference: best.at,
            offset_ns: best.offset_ns,
            drift_ppb: 0,
            error: best.error,
            since: best.at,
            until: best.at,
            growth_ppb: USUAL_DRIFT_PPB,
        });
        let offset = |at: Nanos| Nanos(line.offset_at(at).unsigned_abs());
        let first = self.samples.front().map_or(now, |s| s.at);
        if offset(first) > line.error_at(first) || offset(now) > line.error_at(now) {
            return Some(line);
        }
        let ends = [first, now, line.since, line.until].map(offset);
        Some(ClockEstimate {
            offset_ns: 0,
            drift_ppb: 0,
            error: ends.into_iter().fold(Nanos::ZERO, Nanos::max) + line.error,
            growth_ppb: line.growth_ppb + line.drift_ppb.unsigned_abs(),
            ..line
        })
    }

    /// The line through the exchanges with short round trips.
    fn line(&self) -> Option<ClockEstimate> {
        let mut errors: Vec<Nanos> = self.samples.iter().map(|s| s.error).collect();
        errors.sort_unstable();
        // A quarter of them at least, so that there are enough where all round trips are long.
        let quarter = errors.get((errors.len() / 4).max(LEAST_SAMPLES - 1))?;
        let most = (*quarter).max(errors[0] + errors[0]);
        let good = || self.samples.iter().filter(move |s| s.error <= most);
        let (first, last) = (good().next()?.at, good().next_back()?.at);
        let n = good().count();
        if n < LEAST_SAMPLES || last - first < LEAST_SPAN {
            return None;
        }
        // Relative to one of the samples, so that nothing is lost in 64-bit floating point.
        let (at, offset) = (last, good().next_back()?.offset_ns);
        let points = || good().map(|s| (-((at - s.at).0 as f64), (s.offset_ns - offset) as f64));
        let mean = |of: fn((f64, f64)) -> f64| points().map(of).sum::<f64>() / n as f64;
        let (mx, my) = (mean(|p| p.0), mean(|p| p.1));
        let varies: f64 = points().map(|(x, _)| (x - mx).powi(2)).sum();
        let slope = points().map(|(x, y)| (x - mx) * (y - my)).sum::<f64>() / varies;
        let drift_ppb = (slope * 1e9).round() as i64;
        if drift_ppb.abs() > MOST_DRIFT_PPB {
            return None;
        }
        let here = my - slope * mx;
        let mut line = ClockEstimate {
            reference: at,
            offset_ns: offset + here.round() as i64,
            drift_ppb,
            error: Nanos::ZERO,
            since: self.samples.front()?.at,
            until: self.samples.back()?.at,
            growth_ppb: 0,
        };
        (line.error, line.growth_ppb) = self.error_of(&line, good().next()?, good().next_back()?);
        Some(line)
    }

    /// How far `line` may be off anywhere between the first exchange and the last, and by how much more beyond, in
    /// nanoseconds per second. At an exchange it is off by no more than the error of that and the distance from it; so it
    /// is bounded at two exchanges, and as clocks drift evenly, in between and, growing, beyond.
    fn error_of(
        &self,
        line: &ClockEstimate,
        first_good: &Sample,
        last_good: &Sample,
    ) -> (Nanos, u64) {
        let at = |s: &Sample| s.error.0 + s.offset_ns.abs_diff(line.offset_at(s.at));
        let (Some(first), Some(last)) = (self.samples.front(), self.samples.back()) else {
            return (Nanos::MAX, 0);
        };
        let ends = at(first).max(at(last));
        let (a, b) = (at(first_good), at(last_good));
        let beyond = (first_good.at - first.at).max(last.at - last_good.at);
        let span = (last_good.at - first_good.at).0.max(1);
        let grows = (a + b) as f64 / span as f64;
        let good = a.max(b) as f64 + grows * beyond.0 as f64;
        // A microsecond for the rounding of what is halved and fitted.
        let error = Nanos(ends.min(good.ceil() as u64) + 1_000);
        (error, (grows * 1e9).ceil() as u64)
    }
}

fn difference(a: Nanos, b: Nanos) -> i64 {
    a.0.wrapping_sub(b.0) as i64
}

#[cfg(test)]
mod tests {
    use rand::rngs::StdRng;
    use rand::{RngExt, SeedableRng};

    use super::*;

    #[test]
    fn the_quickest_exchange_counts() {
        let mut c = ClockEstimator::default();
        assert_eq!(c.estimate(Nanos(0)), None);
        let n = Nanos;
        // The event manager is 1,000,000 ahead; the first exchange is slow one way.
        c.sample(n(0), n(1_000_900), n(1_000_910), n(1_010));
        c.sample(n(5_000), n(1_005_050), n(1_005_060), n(5_110));
        let estimate = c.estimate(n(5_110)).unwrap();
        assert_eq!((estimate.offset_ns, estimate.error), (1_000_000, n(50)));
    }

    #[test]
    fn a_difference_within_the_error_is_not_corrected_and_counts_as_error() {
        let mut c = ClockEstimator::default();
        c.sample(Nanos(0), Nanos(70), Nanos(75), Nanos(105));
        let estimate = c.estimate(Nanos(105)).unwrap();
        assert_eq!((estimate.offset_ns, estimate.error), (0, Nanos(70)));
    }

    #[test]
    fn exchanges_with_an_event_manager_that_was_started_again_stand_alone() {
        let mut c = ClockEstimator::default();
        let n = Nanos;
        c.with_clock(1);
        c.sample(n(0), n(1_000_050), n(1_000_060), n(110));
        // Its clock is set anew, and the exchange is slower.
        c.with_clock(2);
        c.sample(n(5_000), n(3_005_100), n(3_005_110), n(5_210));
        c.with_clock(2);
        let estimate = c.estimate(n(5_210)).unwrap();
        assert_eq!((estimate.offset_ns, estimate.error), (3_000_000, n(100)));
    }

    /// A clock that is `ahead` of cluster time by so much at the start, and gains `ppm`.
    #[derive(Clone, Copy)]
    struct Skewed {
        ahead_ns: i64,
        ppm: i64,
    }

    impl Skewed {
        fn says(self, cluster: Nanos) -> Nanos {
            let gained = i128::from(cluster.0 - START.0) * i128::from(self.ppm) / 1_000_000;
            cluster.shifted(self.ahead_ns + gained as i64)
        }
    }

    const START: Nanos = Nanos(1_700_000_000_000_000_000);

    /// A minute of exchanges, one per second, over links of 20 to 400 µs that differ one way and the other.
    fn a_minute(clock: Skewed, random: &mut StdRng) -> (ClockEstimator, Nanos) {
        let mut estimator = ClockEstimator::default();
        let mut now = START;
        for second in 0..60 {
            now = START + Nanos(second * 1_000_000_000);
            let sent = clock.says(now);
            let mut delay = || Nanos(random.random_range(20_000..400_000));
            let received = now + delay();
            let replied = received + Nanos(3_000);
            now = replied + delay();
            estimator.sample(sent, received, replied, clock.says(now));
        }
        (estimator, now)
    }

    #[test]
    fn skewed_and_drifting_clocks_are_corrected_within_the_bound() {
        for seed in 0..20 {
            let mut random = StdRng::seed_from_u64(seed);
            for (ahead_ns, ppm) in [
                (50_000_000, 200),
                (-50_000_000, 200),
                (50_000_000, -200),
                (-50_000_000, -200),
                (0, 0),
                // Within the error of the exchanges, so perhaps not corrected.
                (150_000, 0),
                (-250_000, 1),
            ] {
                let clock = Skewed { ahead_ns, ppm };
                let (estimator, now) = a_minute(clock, &mut random);
                let estimate = estimator.estimate(clock.says(now)).unwrap();
                assert!(
                    estimate.error < Nanos(1_000_000),
                    "seed {seed}: {estimate:?}"
                );
                // Records of the last minute.
                for second in 0..60 {
                    let true_time = START + Nanos(second * 1_000_000_000);
                    let corrected = estimate.correct(clock.says(true_time));
                    let off = difference(corrected, true_time).unsigned_abs();
                    assert!(
                        off <= estimate.error_at(clock.says(true_time)).0,
                        "seed {seed}, {ahead_ns} ns, {ppm} ppm: off by {off} ns, {estimate:?}"
                    );
                }
            }
        }
    }
}
