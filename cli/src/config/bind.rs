//! What of a cluster is bound to processors.

use serde::Deserialize;

/// What runs on processors of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Bind {
    /// Nothing: the system decides.
    None,
    /// Each memory process, if there are several, as many processors, and the system allows it.
    #[default]
    Memory,
    /// Each memory process, together with its application processes.
    Cores,
}
