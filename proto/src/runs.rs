//! Which elements of an object a write changes: one range, or several with gaps between them.

use std::ops::Range;

use crate::Malformed;

/// Ranges of elements `[first, end)`, ascending, none empty, with a gap between any two; at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Runs(Vec<(u32, u32)>);

impl Runs {
    /// Elements `[first, end)`; nothing if there are none.
    pub fn one(first: u32, end: u32) -> Option<Self> {
        (first < end).then(|| Self(vec![(first, end)]))
    }

    /// Those of `elements` for which `differs`; nothing if there are none.
    pub fn where_differs(elements: Range<u32>, differs: impl Fn(usize) -> bool) -> Option<Self> {
        let mut runs = Vec::new();
        let mut begin = None;
        let end = elements.end;
        for at in elements {
            match (differs(at as usize), begin) {
                (true, None) => begin = Some(at),
                (false, Some(first)) => {
                    runs.push((first, at));
                    begin = None;
                }
                _ => {}
            }
        }
        runs.extend(begin.map(|first| (first, end)));
        (!runs.is_empty()).then_some(Self(runs))
    }

    /// The same elements in parts of at most `most` runs each.
    pub fn parts(&self, most: usize) -> impl Iterator<Item = Self> + '_ {
        let parts = self.0.chunks(most.max(1));
        parts.map(|part| Self(part.to_vec()))
    }

    /// The runs, ascending.
    pub fn iter(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        self.0.iter().copied()
    }

    /// From the first element to the last.
    pub fn hull(&self) -> (u32, u32) {
        let first = self.0.first().map_or(0, |r| r.0);
        (first, self.0.last().map_or(first, |r| r.1))
    }

    /// Number of runs.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// Whether there is no gap.
    pub fn is_one(&self) -> bool {
        self.0.len() == 1
    }

    /// Number of elements.
    pub fn elements(&self) -> u64 {
        self.iter().map(|(first, end)| u64::from(end - first)).sum()
    }

    /// As lengths in a message: of the first run, of the gap behind it, of the next run and so on.
    pub fn to_wire(&self) -> Vec<u32> {
        let mut lengths = Vec::with_capacity(2 * self.0.len());
        let mut last = None;
        for (first, end) in self.iter() {
            lengths.extend(last.map(|last| first - last));
            lengths.push(end - first);
            last = Some(end);
        }
        lengths
    }

    /// From the first element and the lengths in a message.
    ///
    /// # Errors
    /// If they are not those of runs: an even number of them, a length of zero, or an end past 2³².
    pub fn from_wire(first: u32, lengths: &[u32]) -> Result<Self, Malformed> {
        let bad = |why: &str| Err(Malformed::new("element ranges", why));
        if lengths.len().is_multiple_of(2) {
            return bad("ranges and gaps do not alternate");
        }
        let mut runs = Vec::with_capacity(lengths.len() / 2 + 1);
        let mut at = first;
        for (i, length) in lengths.iter().enumerate() {
            let end = match (*length, at.checked_add(*length)) {
                (0, _) => return bad("one of them is empty"),
                (_, None) => return bad("they go beyond the largest object"),
                (_, Some(end)) => end,
            };
            if i.is_multiple_of(2) {
                runs.push((at, end));
            }
            at = end;
        }
        Ok(Self(runs))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_survive_the_wire() {
        let changed = [1, 2, 5, 9];
        let runs = Runs::where_differs(0..10, |at| changed.contains(&at)).unwrap();
        assert_eq!(runs.iter().collect::<Vec<_>>(), [(1, 3), (5, 6), (9, 10)]);
        assert_eq!((runs.hull(), runs.elements()), ((1, 10), 4));
        let lengths = runs.to_wire();
        assert_eq!(lengths, [2, 2, 1, 3, 1]);
        assert_eq!(Runs::from_wire(1, &lengths).unwrap(), runs);
        let parts: Vec<Runs> = runs.parts(2).collect();
        assert_eq!((parts.len(), parts[1].hull()), (2, (9, 10)));
        assert_eq!(Runs::where_differs(0..3, |_| false), None);
        assert!(Runs::one(3, 7).unwrap().is_one());
    }

    #[test]
    fn lengths_that_are_not_those_of_runs_are_refused() {
        for lengths in [&[][..], &[1, 2], &[0], &[1, 0, 1], &[1, u32::MAX, 1]] {
            assert!(Runs::from_wire(1, lengths).is_err(), "{lengths:?}");
        }
    }
}
