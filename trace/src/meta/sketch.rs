//! Distributions of times, in a few words each.

use dosmos_proto::Nanos;

use serde::{Deserialize, Serialize};

/// Distribution of a time: counts by power of two. Entry `i` counts values in `[2^i, 2^(i+1))`
/// nanoseconds, entry 0 also zero; the list is as long as the largest value needs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sketch(pub Vec<u64>);

impl Sketch {
    /// Counts a value `n` times.
    pub fn count(&mut self, value: Nanos, n: u64) {
        let bucket = value.0.checked_ilog2().unwrap_or(0) as usize;
        if self.0.len() <= bucket {
            self.0.resize(bucket + 1, 0);
        }
        self.0[bucket] += n;
    }

    /// Number of values.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// A value that at least the fraction `q` of the values do not exceed: the upper edge of its
    /// bucket, so at most twice the true quantile. None if there are no values.
    pub fn quantile(&self, q: f64) -> Option<Nanos> {
        let rank = (q.clamp(0.0, 1.0) * self.total() as f64).ceil().max(1.0) as u64;
        let mut seen = 0;
        let bucket = self.0.iter().position(|n| {
            seen += n;
            seen >= rank
        })?;
        Some(Nanos(2u64.saturating_pow(bucket as u32 + 1) - 1))
    }

    /// Adds another's counts.
    pub fn add(&mut self, other: &Self) {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        for (mine, theirs) in self.0.iter_mut().zip(&other.0) {
            *mine += theirs;
        }
    }
}
