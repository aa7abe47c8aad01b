//! When accesses began of which only the first and the last time is known: at equal distances. All counts are integers
//! that add up exactly, however time is cut.

use dosmos_proto::Nanos;
use serde::{Deserialize, Serialize};

/// A time range `[from, to)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimeRange {
    /// First instant.
    pub from: Nanos,
    /// The instant after the last.
    pub to: Nanos,
}

impl TimeRange {
    /// What is answered about where there is nothing: not empty, so that it has buckets.
    pub const NOTHING: Self = Self {
        from: Nanos::ZERO,
        to: Nanos(1),
    };

    /// All of time.
    pub const ALL: Self = Self {
        from: Nanos::ZERO,
        to: Nanos::MAX,
    };

    /// Whether `at` lies in it.
    pub fn contains(&self, at: Nanos) -> bool {
        self.from <= at && at < self.to
    }

    /// Its length.
    pub fn length(&self) -> Nanos {
        self.to - self.from
    }

    /// The bucket of an instant, of `count` equal ones; none outside the range.
    pub fn bucket(&self, count: u32, at: Nanos) -> Option<usize> {
        if !self.contains(at) {
            return None;
        }
        let into = u128::from((at - self.from).0) * u128::from(count);
        Some((into / u128::from(self.length().0)) as usize)
    }

    /// The first instant of a bucket, of `count` equal ones; of the one after the last, the end.
    fn edge(&self, count: u32, bucket: usize) -> Nanos {
        let into = bucket as u128 * u128::from(self.length().0);
        self.from + Nanos(into.div_ceil(u128::from(count.max(1))) as u64)
    }
}

/// Accesses at equal distances.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spread {
    start: Nanos,
    /// From the first to the last.
    length: u64,
    count: u64,
}

impl Spread {
    /// `count` accesses (at least one), the last of them `length` after the first.
    pub fn new(start: Nanos, length: Nanos, count: u64) -> Self {
        Self {
            start,
            // What lies beyond the end of time is at its end.
            length: if count > 1 {
                length.0.min(Nanos::MAX.0 - start.0)
            } else {
                0
            },
            count: count.max(1),
        }
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// When the last one began.
    pub fn last(&self) -> Nanos {
        self.start + Nanos(self.length)
    }

    /// When number `i` of them began, from 0 on.
    pub fn at(&self, i: u64) -> Nanos {
        let gaps = u128::from((self.count - 1).max(1));
        let into = u128::from(self.length) * u128::from(i.min(self.count - 1)) / gaps;
        self.start + Nanos(into as u64)
    }

    /// How many began before `at`.
    pub fn before(&self, at: Nanos) -> u64 {
        if at <= self.start {
            return 0;
        }
        if at > self.last() {
            return self.count;
        }
        // Here the length is not zero. Number i began before `at` if i · length / gaps, rounded down, is less than `into`.
        let into = u128::from((at - self.start).0);
        let gaps = u128::from(self.count - 1);
        (into * gaps).div_ceil(u128::from(self.length)) as u64
    }

    /// How many began in `range`.
    pub fn within(&self, range: TimeRange) -> u64 {
        self.before(range.to) - self.before(range.from).min(self.before(range.to))
    }

    /// Those that began in `range`; none if there are none.
    pub fn part(&self, range: TimeRange) -> Option<Part> {
        let (from, to) = (self.before(range.from), self.before(range.to));
        let whole = *self;
        (from < to).then_some(Part { whole, from, to })
    }

    /// Hands out the equal parts of `range`, of `parts`, in which any began, with those.
    pub fn over(&self, range: TimeRange, parts: u32, mut each: impl FnMut(usize, Part)) {
        let (first, last) = (self.start.max(range.from), self.last());
        let last = last.min(Nanos(range.to.0.saturating_sub(1)));
        let (Some(first), Some(last)) = (range.bucket(parts, first), range.bucket(parts, last))
        else {
            return;
        };
        let whole = *self;
        let mut from = self.before(range.from);
        for bucket in first..=last {
            let to = self.before(range.edge(parts, bucket + 1));
            if to > from {
                each(bucket, Part { whole, from, to });
                from = to;
            }
        }
    }
}

/// Some of the accesses, one after another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    whole: Spread,
    from: u64,
    /// The one after the last.
    to: u64,
}

impl Part {
    /// How many.
    pub fn count(&self) -> u64 {
        self.to - self.from
    }

    /// Whether these are all.
    pub fn is_whole(&self) -> bool {
        self.count() == self.whole.count
    }

    /// When the first of them began.
    pub fn start(&self) -> Nanos {
        self.whole.at(self.from)
    }

    /// From the first to the last.
    pub fn length(&self) -> Nanos {
        self.whole.at(self.to - 1) - self.start()
    }

    /// Their share of a sum over all. The shares of parts that make up the whole add up to the sum.
    pub fn share(&self, sum: u64) -> u64 {
        let until = |n: u64| u128::from(sum) * u128::from(n) / u128::from(self.whole.count);
        (until(self.to) - until(self.from)) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn range(from: u64, length: u64) -> TimeRange {
        TimeRange {
            from: Nanos(from),
            to: Nanos(from + length),
        }
    }

    proptest! {
        #![proptest_config(dosmos_testseeds::config(256))]

        #[test]
        fn counting_equals_looking_at_each(
            start in 0u64..1_000, length in 0u64..1_000, count in 1u64..200,
            from in 0u64..2_500, long in 1u64..2_500, parts in 1u32..50,
        ) {
            let spread = Spread::new(Nanos(start), Nanos(length), count);
            let range = range(from, long);
            let each: Vec<Nanos> = (0..count).map(|i| spread.at(i)).collect();
            prop_assert!(each.is_sorted());
            let inside = each.iter().filter(|at| range.contains(**at)).count() as u64;
            prop_assert_eq!(spread.within(range), inside);
            let mut expected = vec![0; parts as usize];
            for at in each {
                if let Some(bucket) = range.bucket(parts, at) {
                    expected[bucket] += 1;
                }
            }
            let mut found = vec![0; parts as usize];
            let mut shared = 0;
            spread.over(range, parts, |bucket, part| {
                found[bucket] += part.count();
                shared += part.share(1_001);
                assert!(range.bucket(parts, part.start() + part.length()) == Some(bucket));
            });
            prop_assert_eq!(found, expected);
            let inside = spread.part(range);
            prop_assert_eq!(shared, inside.map_or(0, |part| part.share(1_001)));
            if inside.is_some_and(|part| part.is_whole()) {
                prop_assert_eq!(shared, 1_001);
            }
        }

        #[test]
        fn no_numbers_overflow(start in any::<u64>(), length in any::<u64>(), count in any::<u64>(), at in any::<u64>()) {
            let spread = Spread::new(Nanos(start), Nanos(length), count);
            prop_assert!(spread.before(Nanos(at)) <= spread.count());
            prop_assert!(spread.at(at) <= spread.last());
            let mut sum = 0;
            spread.over(TimeRange { from: Nanos(0), to: Nanos(at.max(1)) }, 7, |_, part| sum += part.count());
            prop_assert_eq!(sum, spread.before(Nanos(at.max(1))));
        }
    }
}
