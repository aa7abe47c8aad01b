//! What is to be different from the recorded run.

use std::collections::{BTreeMap, BTreeSet};

use dosmos_proto::{ApId, CopyPolicy, MpId, ObjectId, Topology, VarId};

/// What is to be different; nothing by default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Change {
    /// The processes of another cluster file, matched by name; then memory processes below are numbered as there. One that
    /// it does not have stays at number 0.
    pub topology: Option<Topology>,
    /// New memory processes of application processes.
    pub homes: BTreeMap<ApId, MpId>,
    /// New owners.
    pub owners: BTreeMap<ObjectId, MpId>,
    /// New copy policies.
    pub policies: BTreeMap<VarId, CopyPolicy>,
    /// Objects that are not shared any more: no access to them is a message.
    pub private: BTreeSet<ObjectId>,
    /// Objects of which each process has one of its own instead, at its own memory process.
    pub split: BTreeSet<ObjectId>,
    /// Barriers that cost nothing but waiting: everyone goes on when the last has arrived.
    pub free_barriers: BTreeSet<VarId>,
    /// Variables of which a process reads (or writes: `true`) neighbours in one access instead of one by one.
    pub together: BTreeSet<(VarId, bool)>,
    /// Objects of which processes are told that they have changed, and to what, at no cost, instead of reading them until
    /// then.
    pub awaited: BTreeSet<ObjectId>,
    /// Objects that these processes read without acquiring them, once in place of each section.
    pub unlocked: BTreeSet<(ObjectId, ApId)>,
    /// These processes divide their computing evenly, phase by phase.
    pub balanced: BTreeSet<ApId>,
    /// These processes are without a processor no longer than the mean of `others` in the same phase.
    pub unhindered: BTreeSet<ApId>,
    /// Whom they are compared with.
    pub others: BTreeSet<ApId>,
    /// Number of processors of the machine; none: as it was.
    pub processors: Option<usize>,
}

/// How processors and links differ from those of the run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Technology {
    /// Processors compute that many times as fast.
    pub speed: f64,
    /// Processor time of messages over what they take in the run.
    pub software: f64,
    /// What the way between two memory processes takes more, ns; below 0: less.
    pub way_ns: f64,
    /// The same of each byte of content.
    pub way_ns_per_byte: f64,
}

impl Default for Technology {
    /// As it was.
    fn default() -> Self {
        Self {
            speed: 1.0,
            software: 1.0,
            way_ns: 0.0,
            way_ns_per_byte: 0.0,
        }
    }
}

impl Change {
    /// Whether nothing is different.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }
}
