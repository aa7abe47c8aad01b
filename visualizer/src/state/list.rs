//! Lists of which a part is seen and one entry is selected.

use std::ops::{Deref, Range};

/// The selection in a list. Knows nothing of what is listed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct List {
    selected: usize,
}

impl List {
    /// The selected entry; 0 in an empty list.
    pub fn selected(&self) -> usize {
        self.selected
    }

    /// Selects this entry.
    pub(super) fn select(&mut self, at: usize) {
        self.selected = at;
    }

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

/// Rows of which one is selected.
#[derive(Clone, Debug)]
pub struct Rows<R> {
    rows: Vec<R>,
    list: List,
}

impl<R> Default for Rows<R> {
    fn default() -> Self {
        Self {
            rows: Vec::new(),
            list: List::default(),
        }
    }
}

impl<R> Deref for Rows<R> {
    type Target = [R];

    fn deref(&self) -> &[R] {
        &self.rows
    }
}

impl<R> Rows<R> {
    /// Position of the selected row.
    pub fn position(&self) -> usize {
        self.list.selected
    }

    /// The selected row.
    pub fn selected(&self) -> Option<&R> {
        self.rows.get(self.list.selected)
    }

    /// The rows seen where there is room for `seen`.
    pub fn visible(&self, seen: usize) -> Range<usize> {
        self.list.visible(self.rows.len(), seen)
    }

    /// The selection, and the number of rows.
    pub(super) fn list(&mut self) -> (&mut List, usize) {
        (&mut self.list, self.rows.len())
    }

    /// Shows other rows; the same position stays selected.
    pub(super) fn replace(&mut self, rows: Vec<R>) {
        self.rows = rows;
        self.list.step(0, self.rows.len());
    }

    /// Shows other rows; the row with the same key stays selected.
    pub(super) fn replace_by_key<K: PartialEq>(&mut self, rows: Vec<R>, key: impl Fn(&R) -> K) {
        let selected = self.selected().map(&key);
        let same = |row: &R| Some(key(row)) == selected;
        if let Some(at) = rows.iter().position(same) {
            self.list.select(at);
        }
        self.replace(rows);
    }

    /// Takes the rows away; the position stays, for those that come.
    pub(super) fn clear(&mut self) {
        self.rows.clear();
    }
}

/// The position `by` (1 or -1) from `at` in a ring of `length`, with "none" as one more station if
/// `none_too`.
pub(super) fn cycle(at: Option<usize>, by: isize, length: usize, none_too: bool) -> Option<usize> {
    if length == 0 {
        return None;
    }
    match (at, by > 0) {
        (None, true) => Some(0),
        (None, false) => Some(length - 1),
        (Some(i), true) if i + 1 < length => Some(i + 1),
        (Some(i), false) if i > 0 => Some(i.min(length) - 1),
        _ if none_too => None,
        (_, true) => Some(0),
        (_, false) => Some(length - 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_stays_selected_where_it_is_still_there() {
        let mut rows = Rows::default();
        rows.replace(vec!['a', 'b', 'c']);
        rows.list().0.select(1);
        rows.replace_by_key(vec!['c', 'a', 'b'], |row| *row);
        assert_eq!((rows.position(), rows.selected()), (2, Some(&'b')));
        rows.replace_by_key(vec!['a', 'c'], |row| *row);
        assert_eq!(rows.selected(), Some(&'c'));
    }

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
