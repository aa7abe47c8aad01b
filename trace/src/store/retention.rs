//! How much of the past a store keeps. What is too much goes a whole log file at a time, the oldest first.

use dosmos_proto::Nanos;
use serde::{Deserialize, Serialize};

use super::index::Index;

/// Size at which the next log file is begun, in bytes, unless retention asks for smaller ones.
const ROTATE_AT: u64 = 256 << 20;
/// Parts in which a store with a bound is kept, at least: so much finer than the bound is what goes at
/// once.
const PARTS: u64 = 8;
/// Smallest size at which the next log file is begun, in bytes.
const LEAST_FILE: u64 = 4 << 20;

/// How much of the past is kept. The current log file always is, and so is one that ends within the bounds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Retention {
    /// No more bytes on disk: a flight recorder, which keeps the newest.
    pub max_bytes: Option<u64>,
    /// Nothing that ended longer ago.
    pub max_age: Option<Nanos>,
}

impl Retention {
    /// The size at which the next log file is to be begun.
    pub(super) fn rotate_at(&self) -> u64 {
        let part = self.max_bytes.map_or(ROTATE_AT, |most| most / PARTS);
        part.clamp(LEAST_FILE, ROTATE_AT)
    }

    /// Whether a database of this age is to be followed by the next.
    pub(super) fn is_to_rotate(&self, age: Nanos) -> bool {
        self.max_age.is_some_and(|most| age.0 >= most.0 / PARTS)
    }

    /// The first log file to be kept, if some before it are to be removed.
    pub(super) fn first_kept(&self, index: &Index, now: Nanos) -> Option<u32> {
        if *self == Self::default() {
            return None;
        }
        let sizes = index.files.values().map(|file| file.size());
        let mut bytes: u64 = sizes.sum();
        let mut kept = None;
        for ((number, file), (next, _)) in index.files.iter().zip(index.files.iter().skip(1)) {
            let its = index.chunks.iter();
            let its = its.filter(|c| c.place.database == *number);
            let end = its.map(|c| c.summary.end).max().unwrap_or_default();
            let too_old = self.max_age.is_some_and(|age| end + age < now);
            let too_much = self.max_bytes.is_some_and(|most| bytes > most);
            if !too_old && !too_much {
                break;
            }
            bytes = bytes.saturating_sub(file.size());
            kept = Some(*next);
        }
        kept
    }
}
