//! An answer to a query.

use dosmos_trace::query::Completeness;
use serde_json::json;

use crate::output::Table;

/// An answer in both forms.
pub(super) struct Answer {
    pub(super) table: Table,
    pub(super) json: serde_json::Value,
    pub(super) completeness: Completeness,
}

impl Answer {
    pub(super) fn new(table: Table, json: serde_json::Value, completeness: Completeness) -> Self {
        Self {
            table,
            json,
            completeness,
        }
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
