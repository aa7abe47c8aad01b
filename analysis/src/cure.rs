//! What following an advice changes, in the terms of a replay, and what the gain of that was predicted from.

use std::collections::{BTreeMap, BTreeSet};

use dosmos_proto::{ApId, CopyPolicy, MpId, ObjectId, VarId};
use dosmos_replay::Change;
use serde::Serialize;

/// What a predicted gain was predicted from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum GainFrom {
    /// A replay of the whole run, as it was and after the change.
    Replay,
    /// What the accesses concerned cost in the window.
    Costs,
}

/// What following an advice changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cure {
    /// Objects and application processes are at other memory processes.
    Move {
        /// New owners.
        owners: BTreeMap<ObjectId, MpId>,
        /// New memory processes.
        processes: BTreeMap<ApId, MpId>,
    },
    /// The objects are not shared any more.
    Private(BTreeSet<ObjectId>),
    /// Each process has objects of its own instead of these.
    Split(BTreeSet<ObjectId>),
    /// The processes divide their work evenly.
    Balance(BTreeSet<ApId>),
    /// The variable has another copy policy.
    Policy(VarId, CopyPolicy),
    /// Neighbours of the variable are read (or written: `true`) in one access instead of one by one.
    Together(VarId, bool),
    /// Who reads these objects until they have changed is told instead, at no cost.
    Wait(BTreeSet<ObjectId>),
    /// Passing these barriers costs nothing but waiting.
    FreeBarriers(BTreeSet<VarId>),
    /// These processes are not longer without a processor than the others.
    Unhindered {
        /// The processes.
        slow: BTreeSet<ApId>,
        /// The others, which meet them at barriers.
        others: BTreeSet<ApId>,
    },
    /// These processes read these objects without acquiring them.
    Unlocked(BTreeSet<(ObjectId, ApId)>),
}

impl Cure {
    /// Objects have other owners.
    pub(crate) fn owners(owners: BTreeMap<ObjectId, MpId>) -> Self {
        Self::Move {
            owners,
            processes: BTreeMap::new(),
        }
    }

    /// Whether what is replayed is an ideal, which a change of the program comes near at best.
    pub(crate) fn is_ideal(&self) -> bool {
        matches!(
            self,
            Self::Balance(_) | Self::Wait(_) | Self::FreeBarriers(_)
        )
    }

    /// The same in the terms of a replay.
    #[must_use]
    pub fn change(&self) -> Change {
        let mut change = Change::default();
        match self {
            Self::Move { owners, processes } => {
                change.owners.clone_from(owners);
                change.homes.clone_from(processes);
            }
            Self::Private(objects) => change.private.clone_from(objects),
            Self::Split(objects) => change.split.clone_from(objects),
            Self::Balance(aps) => change.balanced.clone_from(aps),
            Self::Policy(variable, policy) => {
                change.policies.insert(*variable, *policy);
            }
            Self::Together(variable, writes) => {
                change.together.insert((*variable, *writes));
            }
            Self::Wait(objects) => change.awaited.clone_from(objects),
            Self::FreeBarriers(barriers) => change.free_barriers.clone_from(barriers),
            Self::Unhindered { slow, others } => {
                change.unhindered.clone_from(slow);
                change.others.clone_from(others);
            }
            Self::Unlocked(readers) => change.unlocked.clone_from(readers),
        }
        change
    }
}
