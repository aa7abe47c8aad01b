//! Primary and secondary meta-objects, and what event managers exchange about them.

use std::collections::BTreeMap;

use dosmos_proto::{ApId, EmpId, GroupId, MpId, Nanos, ObjectId};
use serde::{Deserialize, Serialize};

use super::sketch::Sketch;
use crate::record::{Op, PerOrigin};

/// How many entries each list of last accesses keeps.
pub const LAST_ACCESSES: usize = 16;

/// Number of accesses by operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpCounts {
    /// Reads.
    pub reads: u64,
    /// Writes.
    pub writes: u64,
    /// Acquires that were granted.
    pub acquires: u64,
    /// Releases.
    pub releases: u64,
}

impl OpCounts {
    /// All of them.
    pub fn total(&self) -> u64 {
        self.reads + self.writes + self.acquires + self.releases
    }
    /// Adds another's counts.
    pub fn add(&mut self, other: &Self) {
        self.reads += other.reads;
        self.writes += other.writes;
        self.acquires += other.acquires;
        self.releases += other.releases;
    }
    /// Counts `n` accesses; barriers are not accesses to an object.
    pub fn count(&mut self, op: Op, n: u64) {
        match op {
            Op::Read => self.reads += n,
            Op::Write => self.writes += n,
            Op::Acquire => self.acquires += n,
            Op::Release => self.releases += n,
            Op::Barrier => {}
        }
    }
}

/// Who accessed an object: the triplet of docs/design/monitoring.md#meta-objects, with its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Access {
    /// Application process that issued the operation.
    pub ap: ApId,
    /// Memory process that received it.
    pub mp: MpId,
    /// Group of the application process.
    pub group: GroupId,
    /// When.
    pub at: Nanos,
    /// How long it waited (acquires).
    pub wait: Nanos,
}

/// Monitoring state of one object, kept at the event manager of its owner.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PrimaryMeta {
    /// The object (name and layout: in the catalog).
    pub object: ObjectId,
    /// Group the variable belongs to.
    pub group: GroupId,
    /// Memory process that owns it.
    pub owner: MpId,
    /// Memory processes that hold a copy now, as the owner's event manager knows it.
    pub copies_at: Vec<MpId>,
    /// Accesses to the main copy.
    pub counts: OpCounts,
    /// Cached reads, handed over by the secondary meta-objects so far.
    pub reads_on_copies: u64,
    /// The last granted acquires, newest last.
    pub last_acquires: Vec<Access>,
    /// The last writes, newest last.
    pub last_writes: Vec<Access>,
    /// The last acquires that had to wait, newest last; without a wait while they do.
    pub delayed_acquires: Vec<Access>,
    /// Number of acquires that had to wait.
    pub delayed: u64,
    /// Accesses to the main copy by origin. Cached reads (`reads_on_copies`)
    /// are not among them; they are local to their readers.
    pub by_origin: PerOrigin<OpCounts>,
    /// Accesses by application process; cached reads included once handed over.
    pub by_ap: BTreeMap<ApId, OpCounts>,
    /// Time spent waiting for the lock.
    pub wait: Nanos,
    /// Time the lock was held.
    pub hold: Nanos,
    /// Distribution of the waits of granted acquires.
    pub wait_sketch: Sketch,
    /// Distribution of the hold times.
    pub hold_sketch: Sketch,
    /// Releases so far.
    pub version: u64,
}

/// Monitoring state of one copy, kept at the event manager of the copy's memory process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SecondaryMeta {
    /// The object copied.
    pub object: ObjectId,
    /// Memory process that holds the copy.
    pub copy_at: MpId,
    /// Event manager that keeps the primary meta-object.
    pub primary_emp: EmpId,
    /// Reads on this copy since its content was last handed over.
    pub reads: u64,
    /// The same by application process.
    pub by_ap: BTreeMap<ApId, u64>,
}

/// A memory process tells that a copy was invalidated or updated: the content of the copy's secondary
/// meta-object is to go to the primary's event manager.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HandOver {
    /// The object copied.
    pub object: ObjectId,
    /// Memory process that holds (or held) the copy.
    pub copy_at: MpId,
    /// Event manager of the object's owner.
    pub primary_emp: EmpId,
    /// The copy is gone, not merely updated.
    pub dropped: bool,
}

/// The content of a secondary meta-object on its way to the primary.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SecondaryContent {
    /// 1, 2, 3 … for each pair of event managers.
    pub sequence: u64,
    /// The object copied.
    pub object: ObjectId,
    /// Memory process that holds (or held) the copy.
    pub copy_at: MpId,
    /// Reads on the copy since the last time.
    pub reads: u64,
    /// The copy is gone, not merely updated.
    pub dropped: bool,
    /// If the copy is gone: how many reads had made it (again) since it was gone last. The owner's
    /// event manager has counted the same reads, so it can tell a copy that is gone from one that was
    /// made anew before this content arrived. 0: not known.
    pub fetches: u64,
    /// The reads by application process.
    pub by_ap: BTreeMap<ApId, u64>,
}
