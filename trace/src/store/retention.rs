//! How much of the past a store keeps. What is too much goes a whole database at a time, the oldest first:
//! the engine gives back no space within one.

use dosmos_proto::Nanos;
use serde::{Deserialize, Serialize};

use super::index::Index;
use super::writer::ROTATE_AT;

/// Parts in which a store with a bound is kept, at least: so much finer than the bound is what goes at
/// once.
const PARTS: u64 = 8;
/// Smallest size at which the next database is begun, in bytes.
const LEAST_DATABASE: u64 = 4 << 20;

/// How much of the past is kept. The current database always is, and so is one that ends within the bounds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Retention {
    /// No more bytes on disk: a flight recorder, which keeps the newest.
    pub max_bytes: Option<u64>,
    /// Nothing that ended longer ago.
    pub max_age: Option<Nanos>,
}

impl Retention {
    /// The size at which the next database is to be begun.
    pub(super) fn rotate_at(&self) -> u64 {
        let part = self.max_bytes.map_or(ROTATE_AT, |most| most / PARTS);
        part.clamp(LEAST_DATABASE, ROTATE_AT)
    }

    /// Whether a database of this age is to be followed by the next.
    pub(super) fn is_to_rotate(&self, age: Nanos) -> bool {
        self.max_age.is_some_and(|most| age.0 >= most.0 / PARTS)
    }

    /// The databases to be removed, oldest first.
    pub(super) fn expired(&self, index: &Index, now: Nanos) -> Vec<u32> {
        if *self == Self::default() {
            return Vec::new();
        }
        let mut bytes: u64 = index
            .databases
            .values()
            .map(super::engine::Engine::size)
            .sum();
        let mut expired = Vec::new();
        let all_but_the_last = index.databases.len().saturating_sub(1);
        for (number, engine) in index.databases.iter().take(all_but_the_last) {
            let its = index.chunks.iter().filter(|c| c.database == *number);
            let end = its.map(|c| c.summary.end).max().unwrap_or_default();
            let too_old = self.max_age.is_some_and(|age| end + age < now);
            let too_much = self.max_bytes.is_some_and(|most| bytes > most);
            if !too_old && !too_much {
                break;
            }
            bytes = bytes.saturating_sub(engine.size());
            expired.push(*number);
        }
        expired
    }
}
