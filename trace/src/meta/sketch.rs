//! Distributions of times, in a few words each.

use dosmos_proto::Nanos;

use serde::{Deserialize, Serialize};

/// Each power of two has this many buckets: a value and the upper edge of its bucket differ by at most a quarter.
const PER_OCTAVE: usize = 4;
/// Buckets of all values that there are.
const BUCKETS: usize = PER_OCTAVE * 63;

/// Distribution of a time: counts by quarter of a power of two, from the smallest bucket that holds something to the
/// largest. Times below 8 ns have buckets of their own.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sketch {
    first: u8,
    counts: Vec<u64>,
}

/// Where a value is counted.
fn bucket(value: u64) -> usize {
    match value.checked_ilog2() {
        Some(log @ 2..) => {
            let log = log as usize;
            PER_OCTAVE * (log - 1) + ((value >> (log - 2)) as usize & (PER_OCTAVE - 1))
        }
        _ => value as usize,
    }
}

/// The largest value of a bucket.
fn upper_edge(bucket: usize) -> u64 {
    match (bucket / PER_OCTAVE, (bucket % PER_OCTAVE) as u128) {
        (0, value) => value as u64,
        (octave, quarter) => {
            let next = (PER_OCTAVE as u128 + quarter + 1).checked_shl(octave as u32 - 1);
            next.map_or(u64::MAX, |next| u64::try_from(next - 1).unwrap_or(u64::MAX))
        }
    }
}

impl Sketch {
    /// From the parts of [`Sketch::parts`]; counts beyond the largest value that there is are left out.
    pub fn from_parts(first: u32, mut counts: Vec<u64>) -> Self {
        let first = (first as usize).min(BUCKETS);
        counts.truncate(BUCKETS - first);
        match counts.is_empty() {
            true => Self::default(),
            false => Self {
                first: first as u8,
                counts,
            },
        }
    }

    /// The number of the first bucket, and the counts from there on.
    pub fn parts(&self) -> (u32, &[u64]) {
        (self.first.into(), &self.counts)
    }

    /// Counts a value `n` times.
    pub fn count(&mut self, value: Nanos, n: u64) {
        *self.at(bucket(value.0)) += n;
    }

    /// The count of a bucket, which is there afterwards.
    fn at(&mut self, bucket: usize) -> &mut u64 {
        if self.counts.is_empty() {
            self.first = bucket as u8;
        }
        let first = usize::from(self.first);
        if bucket < first {
            let missing = std::iter::repeat_n(0, first - bucket);
            self.counts.splice(0..0, missing);
            self.first = bucket as u8;
        }
        let at = bucket - usize::from(self.first);
        if self.counts.len() <= at {
            self.counts.resize(at + 1, 0);
        }
        &mut self.counts[at]
    }

    /// Number of values.
    pub fn total(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Number of values below `value`, a power of two of at least 4.
    pub fn below(&self, value: Nanos) -> u64 {
        let end = bucket(value.0).saturating_sub(self.first.into());
        self.counts.iter().take(end).sum()
    }

    /// A value that at least the fraction `q` of the values do not exceed: the upper edge of its
    /// bucket, so at most a quarter above the true quantile. None if there are no values.
    pub fn quantile(&self, q: f64) -> Option<Nanos> {
        let rank = (q.clamp(0.0, 1.0) * self.total() as f64).ceil().max(1.0) as u64;
        let mut seen = 0;
        let at = self.counts.iter().position(|n| {
            seen += n;
            seen >= rank
        })?;
        Some(Nanos(upper_edge(usize::from(self.first) + at)))
    }

    /// Adds another's counts.
    pub fn add(&mut self, other: &Self) {
        for (i, n) in other.counts.iter().enumerate() {
            let here = self.at(usize::from(other.first) + i);
            *here = here.saturating_add(*n);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_is_in_a_bucket_whose_edge_is_at_most_a_quarter_above() {
        let near_powers = (2..64u32).flat_map(|log| {
            let power = 1u64 << log;
            [
                power - 1,
                power,
                power + 1,
                power + power / 4,
                power + power / 2,
            ]
        });
        let mut last = 0;
        for value in (0..100).chain(near_powers).chain([u64::MAX]) {
            let edge = upper_edge(bucket(value));
            assert!(edge >= value, "{value}: {edge}");
            assert!(edge - value <= value / 4, "{value}: {edge}");
            if value > last {
                assert!(bucket(value) >= bucket(last), "{value}");
                last = value;
            }
        }
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn quantiles_and_counts_below_powers_of_two() {
        let mut sketch = Sketch::default();
        assert_eq!(sketch.quantile(0.5), None);
        for (value, n) in [(5000, 90), (100, 9), (1_000_000, 1)] {
            sketch.count(Nanos(value), n);
        }
        assert_eq!(sketch.total(), 100);
        assert_eq!(sketch.quantile(0.05), Some(Nanos(111)));
        assert_eq!(sketch.quantile(0.5), Some(Nanos(5119)));
        assert_eq!(sketch.quantile(1.0), Some(Nanos(1_048_575)));
        assert_eq!(sketch.below(Nanos(64)), 0);
        assert_eq!(sketch.below(Nanos(4096)), 9);
        assert_eq!(sketch.below(Nanos(8192)), 99);
        assert_eq!(sketch.below(Nanos(1 << 20)), 100);
    }

    #[test]
    fn sketches_add_up_in_any_order() {
        let of = |values: &[u64]| {
            let mut sketch = Sketch::default();
            values.iter().for_each(|v| sketch.count(Nanos(*v), 1));
            sketch
        };
        let (mut a, b) = (of(&[1000, 7]), of(&[3, 1 << 40]));
        let mut other_way = b.clone();
        other_way.add(&a);
        a.add(&b);
        assert_eq!(a, of(&[3, 7, 1000, 1 << 40]));
        assert_eq!(other_way, a);
    }

    #[test]
    fn parts_that_cannot_be_are_cut() {
        let cut = Sketch::from_parts(u32::MAX, vec![1; 300]);
        assert_eq!(cut, Sketch::default());
        let most = Sketch::from_parts(250, vec![1; 300]);
        assert_eq!(most.total(), 2);
        assert_eq!(most.quantile(1.0), Some(Nanos(u64::MAX)));
    }
}
