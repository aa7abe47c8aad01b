//! How unevenly times are spread over processes.

use dosmos_proto::Nanos;

/// Largest and mean times over processes, summed over phases, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spread {
    /// Σ largest.
    pub max: f64,
    /// Σ mean.
    pub mean: f64,
    /// Σ over processes of largest − own: time lost to waiting for the slowest.
    pub lost: f64,
}

impl Spread {
    /// (max − mean) / max; 0 if nobody did anything.
    pub fn imbalance(&self) -> f64 {
        (self.max - self.mean) / self.max.max(1.0)
    }

    /// That of one phase.
    pub fn over(times: impl Iterator<Item = Nanos> + Clone) -> Self {
        let mut spread = Self::default();
        spread.add(times);
        spread
    }

    /// Phases that came later.
    pub(super) fn join(&mut self, later: &Self) {
        self.max += later.max;
        self.mean += later.mean;
        self.lost += later.lost;
    }

    pub(super) fn add(&mut self, times: impl Iterator<Item = Nanos> + Clone) {
        let max = times.clone().max().unwrap_or_default().0 as f64;
        let (sum, n) = times.fold((0.0, 0.0), |(s, n), t| (s + t.0 as f64, n + 1.0));
        self.max += max;
        self.mean += sum / f64::max(n, 1.0);
        self.lost += max * n - sum;
    }
}
