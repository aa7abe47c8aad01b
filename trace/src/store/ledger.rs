//! `ledger`: how far the log of a store that is not closed goes, beside the log, so that damage to the end of the log is
//! not mistaken for its end.
//!
//! Two places, written in turn after each commit has become durable: magic `DSL1`, then commits, blocks, records and
//! events so far (u64 each), then the CRC32 of all that. It need not be synced: it is never ahead of the log, and where it
//! is behind, the log itself shows what was committed.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::disk::DiskFile;
use super::error::StoreError;
use super::frame::MOST_COUNT;

const FILE: &str = "ledger";
const MAGIC: &[u8; 4] = b"DSL1";
const LENGTH: usize = 4 + 4 * 8 + 4;
/// Distance of the two places: they share no sector.
const APART: u64 = 4096;

/// How far a log goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Extent {
    /// Number of the last commit.
    pub(super) commit: u64,
    /// Number of the next block.
    pub(super) next: u64,
    /// Records, also those that retention removed.
    pub(super) records: u64,
    /// Events, also those that retention removed.
    pub(super) events: u64,
}

impl Extent {
    /// Whether a log may go that far.
    pub(super) fn is_possible(&self) -> bool {
        let numbers = [self.commit, self.next, self.records, self.events];
        numbers.iter().all(|n| *n <= MOST_COUNT)
    }

    /// The later of the two.
    pub(super) fn or_later(self, other: Self) -> Self {
        if other.commit > self.commit {
            other
        } else {
            self
        }
    }

    fn encode(&self) -> [u8; LENGTH] {
        let mut bytes = [0; LENGTH];
        bytes[..4].copy_from_slice(MAGIC);
        let numbers = [self.commit, self.next, self.records, self.events];
        for (place, number) in bytes[4..].chunks_mut(8).zip(numbers) {
            place.copy_from_slice(&number.to_le_bytes());
        }
        let checksum = crc32fast::hash(&bytes[..LENGTH - 4]);
        bytes[LENGTH - 4..].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; LENGTH] = bytes.get(..LENGTH)?.try_into().ok()?;
        let number = |i: usize| {
            let mut word = [0; 8];
            word.copy_from_slice(&bytes[4 + i * 8..12 + i * 8]);
            u64::from_le_bytes(word)
        };
        let checksum = crc32fast::hash(&bytes[..LENGTH - 4]).to_le_bytes();
        let extent = Self {
            commit: number(0),
            next: number(1),
            records: number(2),
            events: number(3),
        };
        let whole = bytes[..4] == *MAGIC && bytes[LENGTH - 4..] == checksum;
        Some(extent).filter(|e| whole && e.is_possible())
    }
}

/// The ledger of a store that is being written.
#[derive(Debug)]
pub(super) struct Ledger(DiskFile);

impl Ledger {
    pub(super) fn open(dir: &Path) -> Result<Self, StoreError> {
        DiskFile::open(dir, FILE).map(Self)
    }

    /// Notes how far the log goes now.
    pub(super) fn note(&self, extent: &Extent) -> Result<(), StoreError> {
        self.0.write_at(extent.commit % 2 * APART, &extent.encode())
    }
}

/// What the ledger of the store in `dir` says; none if it says nothing that can be trusted.
pub(super) fn read(dir: &Path) -> Option<Extent> {
    let bytes = std::fs::read(dir.join(FILE)).ok()?;
    let places = [bytes.get(..), bytes.get(APART as usize..)];
    let said = places.into_iter().flatten().filter_map(Extent::decode);
    said.max_by_key(|extent| extent.commit)
}
