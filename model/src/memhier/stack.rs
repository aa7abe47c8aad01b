//! Stack distances: how many other items were used since an item's last use.
//!
//! A store of C items under LRU hits a reference exactly if its distance is less than C, so that one
//! pass gives the hit rates of all sizes at once. O(log m) a reference and O(m) memory, m the number
//! of distinct items, however long the trace.

use std::collections::HashMap;

/// Stack distances of a stream of references.
#[derive(Debug, Clone)]
pub struct StackDistances {
    /// Slot of each item's last reference; slots rise with time.
    last: HashMap<u64, usize>,
    /// Marks the slots in `last`.
    marks: Fenwick,
    /// The next free slot.
    next: usize,
}

/// The smallest number of slots; more are made as items appear.
const SLOTS: usize = 1024;

impl Default for StackDistances {
    fn default() -> Self {
        Self {
            last: HashMap::new(),
            marks: Fenwick::new(SLOTS),
            next: 0,
        }
    }
}

impl StackDistances {
    /// Takes the next reference: the number of *other* distinct items since the last reference to this
    /// one (0 for an immediate repeat), `None` for the first.
    pub fn push(&mut self, item: u64) -> Option<u64> {
        if self.next == self.marks.len() {
            self.compact();
        }
        let live = self.last.len() as u64;
        let slot = self.next;
        self.next += 1;
        let before = self.last.insert(item, slot);
        self.marks.add(slot, 1);
        let before = before?;
        let not_since = self.marks.prefix(before);
        self.marks.add(before, -1);
        Some(live - not_since)
    }

    /// Distinct items so far.
    #[must_use]
    pub fn distinct(&self) -> u64 {
        self.last.len() as u64
    }

    /// Renumbers the live slots from 0, with as many again free: its cost is spread over the
    /// references that fill them.
    fn compact(&mut self) {
        let mut live: Vec<&mut usize> = self.last.values_mut().collect();
        live.sort_unstable();
        for (i, slot) in live.iter_mut().enumerate() {
            **slot = i;
        }
        self.next = live.len();
        let slots = (2 * self.next).max(SLOTS);
        self.marks = Fenwick::with_ones(slots, self.next);
    }
}

/// Stack distances of a whole trace, `None` for first references.
#[must_use]
pub fn stack_distances(trace: &[u64]) -> Vec<Option<u64>> {
    let mut distances = StackDistances::default();
    trace.iter().map(|&item| distances.push(item)).collect()
}

/// Prefix sums under changes of single entries (Fenwick's binary indexed tree).
#[derive(Debug, Clone)]
struct Fenwick {
    sums: Vec<i64>,
}

impl Fenwick {
    fn new(len: usize) -> Self {
        Self { sums: vec![0; len] }
    }

    /// `ones` entries of 1, then 0.
    fn with_ones(len: usize, ones: usize) -> Self {
        let mut tree = Self::new(len);
        for i in 0..ones {
            tree.add(i, 1);
        }
        tree
    }

    fn len(&self) -> usize {
        self.sums.len()
    }

    fn add(&mut self, mut i: usize, change: i64) {
        while let Some(sum) = self.sums.get_mut(i) {
            *sum += change;
            i |= i + 1;
        }
    }

    /// Sum of the entries 0..=i.
    fn prefix(&self, i: usize) -> u64 {
        let mut total = 0;
        let mut end = i + 1;
        while end > 0 {
            total += self.sums[end - 1];
            end &= end - 1;
        }
        total.unsigned_abs()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// By the definition, in O(n²).
    fn slowly(trace: &[u64]) -> Vec<Option<u64>> {
        let distance = |(i, item): (usize, &u64)| {
            let last = trace[..i].iter().rposition(|x| x == item)?;
            let mut between = trace[last + 1..i].to_vec();
            between.sort_unstable();
            between.dedup();
            Some(between.len() as u64)
        };
        trace.iter().enumerate().map(distance).collect()
    }

    proptest! {
        #![proptest_config(dosmos_testseeds::config(256))]

        #[test]
        fn agrees_with_the_definition(trace in prop::collection::vec(0u64..40, 0..300)) {
            prop_assert_eq!(stack_distances(&trace), slowly(&trace));
        }
    }

    #[test]
    fn slots_are_renumbered_without_a_trace_of_it() {
        // 700 items in turn, many times over the number of slots: every distance is 699.
        let mut distances = StackDistances::default();
        for i in 0..50_000u64 {
            let wanted = (i >= 700).then_some(699);
            assert_eq!(distances.push(i % 700), wanted, "reference {i}");
        }
        assert!(distances.marks.len() <= 1400, "{}", distances.marks.len());
    }
}
