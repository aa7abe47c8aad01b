//! What each view keeps of its own: its filter, and how far its table is scrolled.

use std::collections::HashMap;

use dosmos_trace::query::table::NamePattern;

use super::screen::Screen;

/// The filters: of a view that has one, only names that it lets through are shown there.
#[derive(Clone, Debug, Default)]
pub struct Filters(HashMap<Screen, NamePattern>);

impl Filters {
    /// The filter of a view.
    pub fn of(&self, screen: Screen) -> Option<&NamePattern> {
        self.0.get(&screen)
    }

    /// What the filter of a view lets through.
    pub(crate) fn passes(&self, screen: Screen) -> impl Fn(&str) -> bool + use<> {
        let matcher = self.of(screen).map(NamePattern::matcher);
        move |name| matcher.as_ref().is_none_or(|m| m(name))
    }

    pub(super) fn set(&mut self, screen: Screen, filter: Option<NamePattern>) {
        match filter {
            Some(filter) => self.0.insert(screen, filter),
            None => self.0.remove(&screen),
        };
    }
}

/// Columns that the tables are scrolled over.
#[derive(Clone, Debug, Default)]
pub struct Scrolled(HashMap<Screen, usize>);

impl Scrolled {
    /// In the table of a view.
    pub fn of(&self, screen: Screen) -> usize {
        self.0.get(&screen).copied().unwrap_or(0)
    }

    /// Scrolls by this number of columns; the last one stays in sight.
    pub(super) fn by(&mut self, screen: Screen, columns: isize) {
        let to = self.of(screen).saturating_add_signed(columns);
        let last = screen.columns().saturating_sub(1);
        self.0.insert(screen, to.min(last));
    }
}
