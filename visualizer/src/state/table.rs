//! The table of variables: the page of it that is here, its order, and the selection by position in that order.

use std::ops::Range;

use dosmos_proto::{Topology, VarId};
use dosmos_trace::query::table::{NamePattern, SortKey, Table, TableQuery};

use super::list::{List, cycle};
use super::screen::{Place, Screen};
use super::variables::{VariableRow, rows};

/// Rows of the table kept around the selected one where a chart is shown, for the next keys.
const NEIGHBOURS: usize = 8;

/// The table of variables.
#[derive(Clone, Debug, Default)]
pub struct VariableTable {
    page: Table,
    rows: Vec<VariableRow>,
    list: List,
    sort: SortKey,
    reverse: bool,
}

impl VariableTable {
    /// The page that is here, as it was answered.
    pub fn page(&self) -> &Table {
        &self.page
    }

    /// Rows of that page.
    pub fn rows(&self) -> &[VariableRow] {
        &self.rows
    }

    /// What the table is sorted by.
    pub fn sort(&self) -> SortKey {
        self.sort
    }

    /// Sorted in reverse.
    pub fn reverse(&self) -> bool {
        self.reverse
    }

    /// Position of the selected variable.
    pub fn position(&self) -> usize {
        self.list.selected()
    }

    /// The selected row, if its page is here.
    pub fn selected(&self) -> Option<&VariableRow> {
        self.at(self.position())
    }

    /// The row at a position of the table's order, if it is here.
    pub fn at(&self, position: usize) -> Option<&VariableRow> {
        self.rows.iter().find(|row| row.position == position)
    }

    /// The positions seen where there is room for `seen`.
    pub fn visible(&self, seen: usize) -> Range<usize> {
        self.list.visible(self.matched(), seen)
    }

    fn matched(&self) -> usize {
        usize::try_from(self.page.matched).unwrap_or(usize::MAX)
    }

    /// The rows that a view shows, and as many around them as half a screen; beside a chart only the neighbours of the
    /// selected one.
    pub(super) fn query(
        &self,
        screen: Screen,
        height: u16,
        pattern: Option<&NamePattern>,
    ) -> Option<TableQuery> {
        let rows = match screen {
            Screen::Variables => usize::from(height),
            Screen::Histogram | Screen::VariableHistory => NEIGHBOURS,
            _ => return None,
        };
        let offset = self.position().saturating_sub(rows);
        // On a grid, so that each step of the selection does not make another question.
        let grid = rows.div_ceil(2).max(1);
        let offset = offset / grid * grid;
        Some(TableQuery {
            pattern: pattern.cloned(),
            sort: self.sort,
            reverse: self.reverse,
            offset: u32::try_from(offset).unwrap_or(u32::MAX),
            limit: u32::try_from(2 * rows + grid).unwrap_or(u32::MAX),
        })
    }

    /// Where the selected variable leads to.
    pub(super) fn opens(&self, here: Place) -> Option<Place> {
        Some(Place {
            screen: Screen::Histogram,
            variable: Some(self.selected()?.id),
            object: None,
            ..here
        })
    }

    /// The selection, and the number of variables in the table.
    pub(super) fn list(&mut self) -> (&mut List, usize) {
        let matched = self.matched();
        (&mut self.list, matched)
    }

    pub(super) fn sort_by(&mut self, key: SortKey, reverse: bool) {
        (self.sort, self.reverse) = (key, reverse);
    }

    /// Sorts by this column; in reverse, or no longer, if the table is sorted by it already.
    pub(super) fn sort_or_reverse(&mut self, key: SortKey) {
        self.sort_by(key, key == self.sort && !self.reverse);
    }

    /// Takes a page. The selected variable is followed where it is on the page.
    pub(super) fn take(&mut self, page: Table, topology: &Topology) {
        let id = self.selected().map(|row| row.id);
        self.rows = rows(&page, topology);
        self.page = page;
        let here = self.rows.iter().find(|row| Some(row.id) == id);
        if let Some(row) = here {
            self.list.select(row.position);
        }
        self.list.step(0, self.matched());
    }

    /// Selects the variable `by` (1 or -1) from the one shown, in a ring: its number. With "none" as one more station if
    /// `none_too`. Nothing if its row is not here yet: then it is with the next answer.
    pub(super) fn cycle(
        &mut self,
        shown: Option<VarId>,
        by: isize,
        none_too: bool,
    ) -> Option<Option<VarId>> {
        let here = self.rows.iter().find(|row| Some(row.id) == shown);
        // One that is not on the page (it was found by name): on from where the selection is.
        let at = shown.map(|_| here.map_or(self.position(), |row| row.position));
        let Some(next) = cycle(at, by, self.matched(), none_too) else {
            return Some(None);
        };
        self.list.select(next);
        self.selected().map(|row| Some(row.id))
    }
}
