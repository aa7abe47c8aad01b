//! What the core is told once, at its start, and what it says of itself.

use std::sync::Arc;

use dosmos_proto::{
    ApId, Cache, CopyPolicy, Incarnation, LockKind, MpId, Nanos, Placement, Topology,
};
use serde::{Deserialize, Serialize};

/// What the configuration says of a variable, over what its declaration says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VariableOverride {
    /// Its name, or [`ALL_VARIABLES`].
    pub name: String,
    /// What releases do to copies.
    pub policy: Option<CopyPolicy>,
    /// Owners.
    pub placement: Option<Placement>,
    /// How processes take turns.
    pub lock: Option<LockKind>,
    /// Down to where copies are kept.
    pub cache: Option<Cache>,
    /// At how many other memory processes its released content is kept.
    pub replicas: Option<u32>,
}

/// In place of the name of a variable: all that have no entry of their own that says otherwise.
pub const ALL_VARIABLES: &str = "*";

/// What the core is told once, at its start.
#[derive(Clone, Debug)]
pub struct Settings {
    /// All processes of the cluster.
    pub topology: Arc<Topology>,
    /// Which of them this is.
    pub me: MpId,
    /// Which start of this process it is: different at every start.
    pub incarnation: Incarnation,
    /// The same in all processes.
    pub overrides: Vec<VariableOverride>,
    /// How long an operation may take if the application process does not say.
    pub default_timeout: Nanos,
    /// Memory processes may be within application processes, which go on until all application processes have left: so all are
    /// told who left.
    pub in_application: bool,
}

/// What has been done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Requests of own application processes.
    pub requests: u64,
    /// Requests of other memory processes.
    pub served: u64,
    /// Messages handed on.
    pub forwarded: u64,
    /// Copies held now.
    pub copies: u64,
    /// Objects owned now.
    pub objects: u64,
}

/// What an application process is told when it connects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Welcome {
    /// Its number.
    pub ap: ApId,
    /// Name of this memory process.
    pub memory_process: String,
    /// Which start of this memory process it is.
    pub incarnation: Incarnation,
    /// Path of its group.
    pub group: String,
    /// Its position among all application processes, and their number.
    pub rank: (u32, u32),
    /// Its position among those of its group and sub-groups, and their number.
    pub group_rank: (u32, u32),
    /// Names of all memory processes, by number.
    pub memory_processes: Vec<String>,
}
