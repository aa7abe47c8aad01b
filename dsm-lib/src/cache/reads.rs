//! Reads that a [`Reader`](crate::Reader) does by itself, and how its slot learns of them.
//!
//! The reader alone writes these numbers, and the slot reads them: so to count takes no atomic operation that other processors
//! have to hear of. They only grow, but for the range, which the reader begins anew while it has the slot's lock.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::held::{Elements, Hits, hull};

/// Reads by one reader.
#[derive(Debug, Default)]
pub(crate) struct Reads {
    count: AtomicU64,
    bytes: AtomicU64,
    /// The smallest range that holds all elements that were read since it was begun: its first, and its end in the lower half.
    elements: AtomicU64,
}

fn pack((first, end): Elements) -> u64 {
    u64::from(first) << 32 | u64::from(end)
}

fn unpack(packed: u64) -> Elements {
    ((packed >> 32) as u32, packed as u32)
}

impl Reads {
    /// One more, by its reader: of these elements and this size.
    #[inline]
    pub(crate) fn add(&self, elements: Elements, bytes: u64) {
        let more = |number: &AtomicU64, by| {
            number.store(number.load(Ordering::Relaxed) + by, Ordering::Relaxed);
        };
        let before = self.elements.load(Ordering::Relaxed);
        let all = pack(hull(unpack(before), elements));
        if all != before {
            self.elements.store(all, Ordering::Relaxed);
        }
        more(&self.bytes, bytes);
        // Last, and so whoever sees it sees the rest.
        let count = self.count.load(Ordering::Relaxed) + 1;
        self.count.store(count, Ordering::Release);
    }

    /// The range begins anew: by the reader, while nobody takes from it.
    pub(super) fn begin(&self) {
        self.elements.store(0, Ordering::Relaxed);
    }
}

/// A reader as its slot knows it.
#[derive(Debug)]
pub(super) struct Known {
    reads: Arc<Reads>,
    /// What was taken before.
    count: u64,
    bytes: u64,
}

impl Known {
    pub(super) fn new(reads: &Arc<Reads>) -> Self {
        Self {
            count: reads.count.load(Ordering::Acquire),
            bytes: reads.bytes.load(Ordering::Relaxed),
            reads: Arc::clone(reads),
        }
    }

    pub(super) fn is(&self, reads: &Arc<Reads>) -> bool {
        Arc::ptr_eq(&self.reads, reads)
    }

    /// What was read since the last time, of this version.
    pub(super) fn take(&mut self, version: u64) -> Option<Hits> {
        let count = self.reads.count.load(Ordering::Acquire);
        if count == self.count {
            // The size of a read that is not counted yet comes with it.
            return None;
        }
        let bytes = self.reads.bytes.load(Ordering::Relaxed);
        Some(Hits {
            count: count - std::mem::replace(&mut self.count, count),
            bytes: bytes - std::mem::replace(&mut self.bytes, bytes),
            version,
            elements: unpack(self.reads.elements.load(Ordering::Relaxed)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_read_is_taken_once() {
        let reads = Arc::new(Reads::default());
        reads.add((7, 9), 16);
        let mut known = Known::new(&reads);
        assert_eq!(known.take(1), None, "it was there before");
        reads.begin();
        reads.add((3, 4), 8);
        reads.add((1, 2), 8);
        let hits = |count, bytes, version, elements| Hits {
            count,
            bytes,
            version,
            elements,
        };
        assert_eq!(known.take(5), Some(hits(2, 16, 5, (1, 4))));
        assert_eq!(known.take(5), None);
        // The reader is in the middle of a read.
        reads.bytes.store(40, Ordering::Relaxed);
        assert_eq!(known.take(5), None);
        reads.count.store(4, Ordering::Release);
        assert_eq!(known.take(5), Some(hits(1, 8, 5, (1, 4))));
        reads.begin();
        reads.add((u32::MAX - 1, u32::MAX), 8);
        assert_eq!(known.take(6), Some(hits(1, 8, 6, (u32::MAX - 1, u32::MAX))));
        assert!(known.is(&reads) && !known.is(&Arc::default()));
    }
}
