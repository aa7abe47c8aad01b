//! Stores whose records come from a file: what the file said of them.

use dosmos_proto::Nanos;
use serde::{Deserialize, Serialize};

use crate::query::Completeness;

/// What a file said of the records that a store was made of.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Imported {
    /// Start of the run; times in the file count from it.
    pub start: Nanos,
    /// End of the run, if it was said.
    pub end: Option<Nanos>,
    /// The owners' records are among them. If not, owners and copies are worked out from the requesters'.
    pub owner_records: bool,
    /// What was lacking already; its `recorded` counts only what is not in this store.
    pub lacking: Completeness,
}
