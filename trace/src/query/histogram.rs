//! Histograms: accesses by origin, over time.

use serde::{Deserialize, Serialize};

use super::{Completeness, Filter, QueryError, TimeRange};
use crate::record::Origin;

/// Access counts over time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistogramQuery {
    /// Of what. A missing range means the source's extent.
    pub filter: Filter,
    /// Number of buckets, 1 to [`MAX_BUCKETS`].
    pub buckets: u32,
}

impl HistogramQuery {
    /// Refuses a number of buckets that no histogram has.
    ///
    /// # Errors
    /// If it is not 1 to [`MAX_BUCKETS`].
    pub fn check(&self) -> Result<(), QueryError> {
        match self.buckets {
            1..=MAX_BUCKETS => Ok(()),
            n => Err(QueryError::BadQuery(format!(
                "{n} buckets; a histogram has 1 to {MAX_BUCKETS}"
            ))),
        }
    }
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
    /// Of the local ones, reads served from a copy at the memory process.
    pub optimized: u64,
    /// Of the local ones, accesses served in the application process itself.
    #[serde(default)]
    pub in_process: u64,
}

impl OriginCounts {
    /// All accesses.
    pub fn total(&self) -> u64 {
        self.local + self.intra + self.inter
    }
    /// Counts `n` accesses from `origin`; served from a copy, and in the application process, or not.
    pub fn count(&mut self, origin: Origin, (optimized, in_process): (bool, bool), n: u64) {
        match origin {
            Origin::Local => self.local += n,
            Origin::Intra => self.intra += n,
            Origin::Inter => self.inter += n,
        }
        if in_process {
            self.in_process += n;
        } else if optimized {
            self.optimized += n;
        }
    }
    /// Adds another's counts.
    pub fn add(&mut self, other: &Self) {
        self.local += other.local;
        self.intra += other.intra;
        self.inter += other.inter;
        self.optimized += other.optimized;
        self.in_process += other.in_process;
    }
}

/// Access counts in equal buckets over `range`. An access counts in the bucket of its start; the
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
