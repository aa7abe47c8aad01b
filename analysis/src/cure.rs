//! What following an advice changes, in the terms of a model, and what the gain of that was predicted from.

use std::collections::{BTreeMap, BTreeSet};

use dosmos_model::inputs::{Change, Placement};
use dosmos_proto::{ApId, MpId, ObjectId};
use dosmos_trace::query::Catalog;
use serde::Serialize;

/// What a predicted gain was predicted from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum GainFrom {
    /// The phase model of the whole run, now and after the change.
    Model,
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
    /// Nobody waits for a section on these objects.
    Free(BTreeSet<ObjectId>),
    /// The processes divide their work evenly.
    Balance(BTreeSet<ApId>),
}

impl Cure {
    /// Objects have other owners.
    pub(crate) fn owners(owners: BTreeMap<ObjectId, MpId>) -> Self {
        Self::Move {
            owners,
            processes: BTreeMap::new(),
        }
    }

    /// The same in the terms of the model, for a run with these processes.
    #[must_use]
    pub fn change(&self, catalog: &Catalog) -> Change {
        let mut change = Change::default();
        match self {
            Self::Move { owners, processes } => {
                let moves = processes.iter().map(|(ap, mp)| (*ap, *mp));
                let moved = catalog.topology.with_homes(moves);
                change.placement = Some(Placement {
                    // A move to a process that serves no application is none.
                    topology: moved.unwrap_or_else(|_| catalog.topology.clone()),
                    objects: owners.clone(),
                    ..Placement::default()
                });
            }
            Self::Private(objects) => change.sharing.private.clone_from(objects),
            Self::Split(objects) => change.sharing.split.clone_from(objects),
            Self::Free(objects) => change.sharing.free.clone_from(objects),
            Self::Balance(aps) => change.balanced.clone_from(aps),
        }
        change
    }
}
