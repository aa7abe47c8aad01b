//! Histograms: accesses by origin, over time.

use serde::{Deserialize, Serialize};

use super::{Completeness, Filter, TimeRange};
use crate::record::Origin;

/// Access counts over time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistogramQuery {
    /// Of what. A missing range means the source's extent.
    pub filter: Filter,
    /// Number of buckets, 1 to [`MAX_BUCKETS`].
    pub buckets: u32,
}

/// Most buckets a histogram may have.
pub const MAX_BUCKETS: u32 = 10_000;

/// Counts by origin, of one bucket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OriginCounts {
    /// Local accesses.
    pub local: u64,
    /// Intra-group accesses.
    pub intra: u64,
    /// Inter-group accesses.
    pub inter: u64,
    /// Of the local ones, reads served from a copy.
    pub optimized: u64,
}

impl OriginCounts {
    /// All accesses.
    pub fn total(&self) -> u64 {
        self.local + self.intra + self.inter
    }
    /// Counts one access.
    pub fn count(&mut self, origin: Origin, optimized: bool) {
        match origin {
            Origin::Local => self.local += 1,
            Origin::Intra => self.intra += 1,
            Origin::Inter => self.inter += 1,
        }
        self.optimized += u64::from(optimized);
    }
    /// Adds another's counts.
    pub fn add(&mut self, other: &Self) {
        self.local += other.local;
        self.intra += other.intra;
        self.inter += other.inter;
        self.optimized += other.optimized;
    }
}

/// Access counts in equal buckets over `range`. A record counts in the bucket of its start; the
/// last bucket also takes what starts at the range's end rounding.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Histogram {
    /// What the buckets cover together.
    pub range: TimeRange,
    /// In order of time.
    pub buckets: Vec<OriginCounts>,
    /// What is missing.
    pub completeness: Completeness,
}
