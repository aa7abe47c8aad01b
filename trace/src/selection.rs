//! What is recorded: `off | counters | events`, sampling, and filters by variable, operation and
//! process. Set by the cluster file, changeable while running.

use serde::{Deserialize, Serialize};

use crate::record::Op;

/// How much is recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Nothing.
    Off,
    /// Only counters per process: no records, no meta-objects.
    Counters,
    /// Records of the selected accesses.
    #[default]
    Events,
}

/// What is recorded. An empty list means "all"; names may be glob patterns (`*`, `?`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Selection {
    /// How much.
    pub mode: Mode,
    /// Every n-th access of each kind is recorded; 1 = all.
    pub sample_one_in: u32,
    /// Names of variables.
    pub variables: Vec<String>,
    /// Operations.
    pub ops: Vec<Op>,
    /// Names of application processes.
    pub processes: Vec<String>,
}

impl Default for Selection {
    fn default() -> Self {
        Self {
            mode: Mode::Events,
            sample_one_in: 1,
            variables: Vec::new(),
            ops: Vec::new(),
            processes: Vec::new(),
        }
    }
}
