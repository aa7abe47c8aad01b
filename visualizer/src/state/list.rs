//! A list of which a part is seen and one entry is selected. Knows nothing of what is listed.

use std::ops::Range;

/// The selection in a list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct List {
    /// The selected entry; 0 in an empty list.
    pub selected: usize,
}

impl List {
    /// Moves the selection by `by` entries, to the ends at most.
    pub fn step(&mut self, by: isize, length: usize) {
        let to = self.selected.saturating_add_signed(by);
        self.selected = to.min(length.saturating_sub(1));
    }

    /// The entries seen where there is room for `seen` of `length`: the selected one in the middle,
    /// except near the ends.
    pub fn visible(&self, length: usize, seen: usize) -> Range<usize> {
        let selected = self.selected.min(length.saturating_sub(1));
        let first = selected
            .saturating_sub(seen / 2)
            .min(length.saturating_sub(seen));
        first..(first + seen).min(length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_selection_stays_in_sight() {
        let mut list = List::default();
        assert_eq!(list.visible(100, 10), 0..10);
        list.step(12, 100);
        assert_eq!(list.visible(100, 10), 7..17);
        list.step(isize::MAX, 100);
        assert_eq!(list.selected, 99);
        assert_eq!(list.visible(100, 10), 90..100);
        assert_eq!(list.visible(4, 10), 0..4);
        assert_eq!(list.visible(0, 10), 0..0);
        assert_eq!(list.visible(5, 0).len(), 0);
        list.step(isize::MIN, 100);
        assert_eq!(list.selected, 0);
        list.step(5, 0);
        assert_eq!(list.selected, 0);
    }
}
