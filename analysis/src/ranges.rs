//! Sets of element indices as sorted disjoint ranges, bounded in size.

use std::fmt;

/// Ranges kept at most; beyond that the two nearest are joined, so the set only ever grows. That
/// can hide false sharing but never invents it.
const MOST: usize = 64;

/// A set of element indices.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RangeSet {
    ranges: Vec<(u32, u32)>,
}

impl RangeSet {
    /// Adds the elements `[first, end)`; an empty range adds nothing.
    pub fn insert(&mut self, (mut first, mut end): (u32, u32)) {
        if first >= end {
            return;
        }
        // All ranges that touch the new one melt into it.
        let from = self.ranges.partition_point(|r| r.1 < first);
        let to = self.ranges.partition_point(|r| r.0 <= end);
        if let Some(touched) = self.ranges.get(from..to).filter(|t| !t.is_empty()) {
            first = first.min(touched[0].0);
            end = end.max(touched[touched.len() - 1].1);
        }
        self.ranges.splice(from..to.max(from), [(first, end)]);
        if self.ranges.len() > MOST {
            self.join_nearest();
        }
    }

    fn join_nearest(&mut self) {
        let gap = |i: usize| self.ranges[i + 1].0 - self.ranges[i].1;
        if let Some(i) = (0..self.ranges.len() - 1).min_by_key(|&i| gap(i)) {
            self.ranges[i].1 = self.ranges[i + 1].1;
            self.ranges.remove(i + 1);
        }
    }

    /// Adds the elements of another set.
    pub fn join(&mut self, other: &Self) {
        other.ranges.iter().for_each(|range| self.insert(*range));
    }

    /// Whether no element was added.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// The ranges, in order.
    pub fn as_slice(&self) -> &[(u32, u32)] {
        &self.ranges
    }

    /// Whether any of the elements `[first, end)` is in the set.
    pub fn touches(&self, (first, end): (u32, u32)) -> bool {
        let after = self.ranges.partition_point(|r| r.1 <= first);
        first < end && self.ranges.get(after).is_some_and(|r| r.0 < end)
    }

    /// Whether the two sets have an element in common.
    pub fn intersects(&self, other: &Self) -> bool {
        let (mut i, mut j) = (0, 0);
        while let (Some(a), Some(b)) = (self.ranges.get(i), other.ranges.get(j)) {
            if a.0 < b.1 && b.0 < a.1 {
                return true;
            }
            if a.1 <= b.1 {
                i += 1;
            } else {
                j += 1;
            }
        }
        false
    }
}

impl fmt::Display for RangeSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, (first, end)) in self.ranges.iter().enumerate() {
            let comma = if i == 0 { "" } else { ", " };
            match end - first {
                1 => write!(f, "{comma}{first}")?,
                _ => write!(f, "{comma}{first}..{end}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #![proptest_config(dosmos_testseeds::config(256))]

        #[test]
        fn behaves_as_a_set(
            a in prop::collection::vec((0u32..300, 0u32..20), 0..40),
            b in prop::collection::vec((0u32..300, 0u32..20), 0..40),
        ) {
            let build = |list: &[(u32, u32)]| {
                let (mut set, mut model) = (RangeSet::default(), BTreeSet::new());
                for &(first, length) in list {
                    set.insert((first, first + length));
                    model.extend(first..first + length);
                }
                (set, model)
            };
            let ((a, ma), (b, mb)) = (build(&a), build(&b));
            let members: BTreeSet<u32> = a.as_slice().iter().flat_map(|r| r.0..r.1).collect();
            prop_assert_eq!(&members, &ma);
            prop_assert!(a.as_slice().windows(2).all(|w| w[0].1 < w[1].0));
            prop_assert_eq!(a.intersects(&b), !ma.is_disjoint(&mb));
            for &range in b.as_slice() {
                prop_assert_eq!(a.touches(range), (range.0..range.1).any(|i| ma.contains(&i)));
            }
        }
    }

    #[test]
    fn stays_bounded_and_only_grows() {
        let mut set = RangeSet::default();
        for i in 0..1000 {
            set.insert((i * 10, i * 10 + 1));
        }
        assert!(set.as_slice().len() <= MOST);
        let mut single = RangeSet::default();
        single.insert((5000, 5001));
        assert!(set.intersects(&single));
    }
}
