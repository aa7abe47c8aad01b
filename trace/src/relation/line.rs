//! How far one clock is ahead of another: a line over time, between bounds.

use dosmos_proto::Nanos;

/// Parts of a run, of each of which the narrowest bounds are kept.
const WINDOWS: usize = 64;
/// Two clocks drift apart by at most this part of the time (1,000 ppm: 500 each).
pub(super) const MOST_DRIFT: f64 = 1e-3;
/// Steps of a search for a slope: each leaves two thirds.
const STEPS: usize = 80;
/// Bounds that leave no line, by more than this (nanoseconds), contradict each other; less is rounding.
const ROUNDING: f64 = 1_000.0;

/// At a time since the origin, in nanoseconds: how far ahead at most, or at least.
type Bound = (f64, f64);

#[derive(Clone, Copy, Debug, Default)]
struct Window {
    most: Option<Bound>,
    least: Option<Bound>,
}

/// What is known of how far a clock is ahead of another.
#[derive(Clone, Debug)]
pub(super) struct Bounds {
    /// When the run begins, by the other clock.
    origin: Nanos,
    length: Nanos,
    windows: [Window; WINDOWS],
}

/// A line that keeps within all bounds: after `t` nanoseconds the clock is ahead by `at_origin + drift * t`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Line {
    pub(super) at_origin: f64,
    pub(super) drift: f64,
    /// The least and the most that any line within them drifts.
    drifts: (f64, f64),
}

/// No line keeps within all bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Contradiction;

impl Bounds {
    /// Nothing is known; the run is that long.
    pub(super) fn new(origin: Nanos, length: Nanos) -> Self {
        Self {
            origin,
            length,
            windows: [Window::default(); WINDOWS],
        }
    }

    fn window(&mut self, at: Nanos) -> &mut Window {
        let since = u128::from((at - self.origin).0) * WINDOWS as u128;
        let i = since / u128::from(self.length.0.max(1));
        &mut self.windows[(i as usize).min(WINDOWS - 1)]
    }

    fn since(&self, at: Nanos) -> f64 {
        (i128::from(at.0) - i128::from(self.origin.0)) as f64
    }

    /// At time `at` of the other clock it is ahead by at most `ns`.
    pub(super) fn at_most(&mut self, at: Nanos, ns: f64) {
        let bound = (self.since(at), ns);
        let most = &mut self.window(at).most;
        if most.is_none_or(|(_, before)| ns < before) {
            *most = Some(bound);
        }
    }

    /// At time `at` of the other clock it is ahead by at least `ns`.
    pub(super) fn at_least(&mut self, at: Nanos, ns: f64) {
        let bound = (self.since(at), ns);
        let least = &mut self.window(at).least;
        if least.is_none_or(|(_, before)| ns > before) {
            *least = Some(bound);
        }
    }

    /// What `other` knows is known here too; they are of one run.
    pub(super) fn join(&mut self, other: &Self) {
        for (mine, theirs) in self.windows.iter_mut().zip(&other.windows) {
            let narrower = |a: Bound, b: Option<Bound>, less: bool| match b {
                Some(b) if (b.1 < a.1) == less => b,
                _ => a,
            };
            mine.most = (mine.most).map_or(theirs.most, |m| Some(narrower(m, theirs.most, true)));
            mine.least =
                (mine.least).map_or(theirs.least, |l| Some(narrower(l, theirs.least, false)));
        }
    }

    /// Of lines with this drift: where the lowest and the highest of them begin.
    fn between(&self, drift: f64) -> (f64, f64) {
        let start = |(at, ns): Bound| ns - drift * at;
        let least = self.windows.iter().filter_map(|w| w.least).map(start);
        let most = self.windows.iter().filter_map(|w| w.most).map(start);
        (
            least.fold(f64::NEG_INFINITY, f64::max),
            most.fold(f64::INFINITY, f64::min),
        )
    }

    /// A line that keeps within all bounds: the one without an offset and drift if that does, otherwise one in the middle. None
    /// if there are no bounds on one side.
    pub(super) fn line(&self) -> Result<Option<Line>, Contradiction> {
        let (lowest, highest) = self.between(0.0);
        if lowest.is_infinite() || highest.is_infinite() {
            return Ok(None);
        }
        let room = |drift: f64| {
            let (lowest, highest) = self.between(drift);
            highest - lowest
        };
        let best = highest_of(-MOST_DRIFT, MOST_DRIFT, room);
        let least = room(best).min(0.0);
        if least < -ROUNDING {
            return Err(Contradiction);
        }
        let drifts = (
            edge(best, -MOST_DRIFT, |d| room(d) >= least),
            edge(best, MOST_DRIFT, |d| room(d) >= least),
        );
        let mut line = Line {
            at_origin: 0.0,
            drift: 0.0,
            drifts,
        };
        if !(lowest <= 0.0 && 0.0 <= highest) {
            let (lowest, highest) = self.between(best);
            line.at_origin = f64::midpoint(lowest, highest);
            line.drift = best;
        }
        Ok(Some(line))
    }

    /// How far any other line within the bounds is from this one, in nanoseconds, between two times since the origin.
    pub(super) fn error(&self, line: &Line, (from, to): (f64, f64)) -> f64 {
        let (least, most) = line.drifts;
        let mut error: f64 = 0.0;
        // Lines are farthest apart at the beginning or at the end.
        for at in [from, to] {
            let top = |d: f64| self.between(d).1 + d * at;
            let bottom = |d: f64| -(self.between(d).0 + d * at);
            let top = top(highest_of(least, most, top));
            let bottom = -bottom(highest_of(least, most, bottom));
            let here = line.at_origin + line.drift * at;
            error = error.max(top - here).max(here - bottom);
        }
        error
    }
}

/// Where a function without dents is highest.
fn highest_of(mut from: f64, mut to: f64, f: impl Fn(f64) -> f64) -> f64 {
    for _ in 0..STEPS {
        let third = (to - from) / 3.0;
        let (a, b) = (from + third, to - third);
        if f(a) < f(b) {
            from = a;
        } else {
            to = b;
        }
    }
    f64::midpoint(from, to)
}

/// The farthest place from `inside` towards `end` at which `holds`, which holds at `inside` and between there and the place.
fn edge(inside: f64, end: f64, holds: impl Fn(f64) -> bool) -> f64 {
    if holds(end) {
        return end;
    }
    let (mut good, mut bad) = (inside, end);
    for _ in 0..STEPS {
        let middle = f64::midpoint(good, bad);
        if holds(middle) {
            good = middle;
        } else {
            bad = middle;
        }
    }
    bad
}

#[cfg(test)]
mod tests {
    use rand::rngs::StdRng;
    use rand::{RngExt, SeedableRng};

    use super::*;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn a_line_and_its_error_hold_what_is_true() {
        let mut narrow = 0;
        for seed in 0..200 {
            let mut rng = StdRng::seed_from_u64(seed);
            let length = rng.random_range(1..100 * SECOND);
            let (ahead, drift) = match seed % 4 {
                0 => (0.0, 0.0),
                _ => (
                    rng.random_range(-1e12..1e12),
                    rng.random_range(-0.9e-3..0.9e-3),
                ),
            };
            let mut bounds = Bounds::new(Nanos(SECOND), Nanos(length));
            let n = rng.random_range(2..500);
            for _ in 0..n {
                let at = rng.random_range(0..=length);
                let truth = ahead + drift * at as f64;
                let off = rng.random_range(1_000.0..200_000.0);
                match rng.random_bool(0.5) {
                    true => bounds.at_most(Nanos(SECOND + at), truth + off),
                    false => bounds.at_least(Nanos(SECOND + at), truth - off),
                }
            }
            let Some(line) = bounds.line().unwrap() else {
                continue;
            };
            let error = bounds.error(&line, (0.0, length as f64));
            for at in [0, length / 3, length] {
                let truth = ahead + drift * at as f64;
                let said = line.at_origin + line.drift * at as f64;
                let off = (truth - said).abs();
                assert!(off <= error + 1.0, "seed {seed}: {off}, {line:?}");
            }
            narrow += u32::from(error < 300_000.0);
            assert!(seed % 4 > 0 || (line.at_origin, line.drift) == (0.0, 0.0));
        }
        assert!(narrow > 100, "{narrow} lines are known well");
    }

    #[test]
    fn what_contradicts_itself_gives_no_line_and_one_side_says_nothing() {
        let mut bounds = Bounds::new(Nanos(0), Nanos(10 * SECOND));
        for s in 0..=10 {
            bounds.at_most(Nanos(s * SECOND), 5_000_000.0);
        }
        assert_eq!(bounds.line(), Ok(None));
        for s in 0..=10 {
            bounds.at_least(Nanos(s * SECOND), 5_200_000.0);
        }
        assert_eq!(bounds.line(), Err(Contradiction));
    }

    #[test]
    fn what_others_know_is_known_too() {
        let mut one = Bounds::new(Nanos(0), Nanos(SECOND));
        let mut other = one.clone();
        one.at_most(Nanos(5), 100.0);
        other.at_most(Nanos(6), 90.0);
        other.at_least(Nanos(7), 80.0);
        one.join(&other);
        let (least, most) = (one.windows[0].least, one.windows[0].most);
        assert_eq!((least, most), (Some((7.0, 80.0)), Some((6.0, 90.0))));
    }
}
