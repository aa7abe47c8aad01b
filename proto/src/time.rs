//! Time: nanoseconds, in a type, so that units cannot be mixed up.

use std::fmt;
use std::ops::{Add, AddAssign, Sub};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

/// A point in cluster time (nanoseconds since the Unix epoch) or a length of time (nanoseconds).
///
/// Differences saturate at zero: a clock that stepped back yields an empty interval, not a panic.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Nanos(pub u64);

impl Nanos {
    /// No time at all.
    pub const ZERO: Self = Self(0);
    /// Later than every other point.
    pub const MAX: Self = Self(u64::MAX);

    /// That many milliseconds.
    pub const fn from_millis(ms: u64) -> Self {
        Self(ms.saturating_mul(1_000_000))
    }

    /// The length in seconds.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// Shifted by a signed correction, not below zero.
    pub fn shifted(self, by_ns: i64) -> Self {
        Self(self.0.saturating_add_signed(by_ns))
    }
}

impl Add for Nanos {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}
impl AddAssign for Nanos {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}
impl Sub for Nanos {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}
impl From<Duration> for Nanos {
    fn from(d: Duration) -> Self {
        Self(u64::try_from(d.as_nanos()).unwrap_or(u64::MAX))
    }
}
impl From<Nanos> for Duration {
    fn from(n: Nanos) -> Self {
        Self::from_nanos(n.0)
    }
}

impl fmt::Display for Nanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ns = self.0;
        match ns {
            0..1_000 => write!(f, "{ns} ns"),
            1_000..1_000_000 => write!(f, "{:.1} µs", ns as f64 / 1e3),
            1_000_000..1_000_000_000 => write!(f, "{:.1} ms", ns as f64 / 1e6),
            _ => write!(f, "{:.2} s", ns as f64 / 1e9),
        }
    }
}

/// A process's clock: wall-clock time at its start, carried on by the monotonic clock, so that it
/// never runs backwards. The only place, with the shells' timers, where time is read.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    wall_at_start: Nanos,
    started: Instant,
}

/// How often the system's clocks are read to set a clock.
const LOOKS: usize = 8;

impl Clock {
    /// A clock set by the system's wall clock.
    pub fn start() -> Self {
        Self::set(|| (Instant::now(), SystemTime::now(), Instant::now()))
    }

    /// A process may lose its processor between two readings of clocks, for milliseconds on a busy machine. So the wall clock is
    /// read several times, each time between two readings of the monotonic clock, and the reading that took least counts.
    fn set(mut look: impl FnMut() -> (Instant, SystemTime, Instant)) -> Self {
        let took = |(before, _, after): &(Instant, SystemTime, Instant)| *after - *before;
        let mut best = look();
        for _ in 1..LOOKS {
            let next = look();
            if took(&next) < took(&best) {
                best = next;
            }
        }
        let wall = best.1.duration_since(UNIX_EPOCH).unwrap_or_default();
        Self {
            wall_at_start: wall.into(),
            started: best.0 + took(&best) / 2,
        }
    }

    /// When it was set: what tells it from the clock of another start.
    pub fn set_at(&self) -> Nanos {
        self.wall_at_start
    }

    /// Nanoseconds since the Unix epoch.
    pub fn now(&self) -> Nanos {
        self.wall_at_start + self.started.elapsed().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_is_set_by_the_reading_that_nothing_interrupted() {
        let (begin, wall) = (Instant::now(), UNIX_EPOCH + Duration::from_secs(1_000));
        let mut reading = 0;
        // Each reading of the wall clock but the third is 40 ms late beside the monotonic clock.
        let clock = Clock::set(|| {
            let at = Duration::from_millis(100 * reading);
            let late = Duration::from_millis(if reading == 2 { 0 } else { 40 });
            reading += 1;
            let after = begin + at + late + Duration::from_nanos(200);
            (begin + at, wall + at + late, after)
        });
        let third = Duration::from_millis(200);
        assert_eq!(clock.started, begin + third + Duration::from_nanos(100));
        let wall = (wall + third).duration_since(UNIX_EPOCH).unwrap();
        assert_eq!(clock.set_at(), wall.into());
    }
}
