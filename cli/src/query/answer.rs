//! An answer to a query.

use dosmos_trace::query::Completeness;
use serde_json::json;

use crate::output::Table;

/// An answer in both forms.
pub(super) struct Answer {
    pub(super) table: Table,
    pub(super) json: serde_json::Value,
    pub(super) completeness: Completeness,
    /// Records were selected, and there is none.
    pub(super) matches_nothing: bool,
}

impl Answer {
    pub(super) fn new(table: Table, json: serde_json::Value, completeness: Completeness) -> Self {
        Self {
            table,
            json,
            completeness,
            matches_nothing: false,
        }
    }

    /// The same, with the number of records that were selected.
    #[must_use]
    pub(super) fn matching(mut self, records: u64) -> Self {
        self.matches_nothing = records == 0;
        self
    }

    /// An answer that is a list under one key.
    pub(super) fn list(
        table: Table,
        key: &str,
        items: &[serde_json::Value],
        completeness: Completeness,
    ) -> Self {
        Self::new(table, json!({ key: items }), completeness)
    }
}
