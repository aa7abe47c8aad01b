//! What a new holder knows of the members that keep the seat with it, until all of them have the same states.

use std::collections::{BTreeMap, BTreeSet};

use dosmos_proto::{MpId, ObjectId};

use super::seat::{Seat, State};
use super::store::Store;
use crate::core::messages::Compared;

/// An answer has not much more content than this; then it is asked for the rest.
const MAX_ANSWER_BYTES: usize = 16 << 20;

/// Which state of an object: the version of the content, and the section that released it.
pub(super) type Which = (u64, u64);

pub(super) fn which(state: &State) -> Which {
    (state.version, state.epoch)
}

/// How far it is, at the new holder.
#[derive(Debug, Default)]
pub(crate) struct Merge {
    /// Who has not said what it has.
    pub(super) asked: BTreeSet<MpId>,
    /// What the others lack, and what they have that was newer.
    pub(super) heard: BTreeMap<MpId, (BTreeSet<ObjectId>, BTreeMap<ObjectId, Which>)>,
    /// What was sent and is not acknowledged; none before everybody was heard.
    pub(super) left: Option<BTreeSet<(MpId, u64)>>,
}

impl Merge {
    pub(super) fn new(others: &[MpId]) -> Self {
        Self {
            asked: others.iter().copied().collect(),
            ..Self::default()
        }
    }

    /// Only these keep the seat with the holder now.
    pub(super) fn retain(&mut self, is_member: impl Fn(&MpId) -> bool) {
        self.asked.retain(|mp| is_member(mp));
        self.heard.retain(|mp, _| is_member(mp));
        if let Some(left) = &mut self.left {
            left.retain(|(mp, _)| is_member(mp));
        }
    }

    /// A member has what it was sent.
    pub(super) fn acknowledged(&mut self, from: MpId, call: u64) {
        if let Some(left) = &mut self.left {
            left.remove(&(from, call));
        }
    }
}

/// What is here that is newer than what another has, and what is older.
pub(super) fn compare(store: &Store, seat: Seat, theirs: &[(ObjectId, Which)]) -> Compared {
    let theirs: BTreeMap<ObjectId, Which> = theirs.iter().copied().collect();
    let mut compared = Compared::default();
    let mut bytes = 0;
    let ours = store.all(seat);
    let known: BTreeSet<ObjectId> = ours.iter().map(|(object, _)| *object).collect();
    compared.older = theirs
        .keys()
        .filter(|o| !known.contains(o))
        .copied()
        .collect();
    for (object, state) in ours {
        let their = theirs.get(&object).copied();
        if their.is_some_and(|their| which(&state) < their) {
            compared.older.push(object);
        } else if their != Some(which(&state)) {
            if bytes > MAX_ANSWER_BYTES {
                compared.more = true;
                break;
            }
            bytes += state.data.as_ref().map_or(0, bytes::Bytes::len);
            compared.newer.push((object, state));
        }
    }
    compared
}
