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

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::core::replica::testing::{SEAT, object, state};

    const FIRST: MpId = MpId(1);
    const SECOND: MpId = MpId(2);

    fn under_way() -> Merge {
        let mut merge = Merge::new(&[FIRST, SECOND]);
        for mp in [FIRST, SECOND] {
            merge.heard.insert(mp, Default::default());
        }
        merge.left = Some([(FIRST, 5), (SECOND, 6)].into());
        merge
    }

    #[test]
    fn nothing_is_waited_for_of_who_is_no_member_any_more() {
        let mut merge = under_way();
        merge.retain(|mp| *mp == SECOND);
        assert_eq!(merge.asked, [SECOND].into());
        assert!(merge.heard.into_keys().eq([SECOND]));
        assert_eq!(merge.left, Some([(SECOND, 6)].into()));
    }

    #[test]
    fn who_has_what_it_was_sent_is_not_waited_for() {
        let mut merge = under_way();
        merge.acknowledged(FIRST, 6);
        merge.acknowledged(SECOND, 6);
        assert_eq!(merge.left, Some([(FIRST, 5)].into()));
    }

    fn store(states: &[(u32, &State)]) -> Store {
        let mut store = Store::default();
        for (index, state) in states {
            store.put(SEAT, object(*index), (*state).clone());
        }
        store
    }

    #[test]
    fn a_later_version_is_newer_and_of_one_version_the_later_section() {
        let released = State {
            epoch: 2,
            ..state(2)
        };
        let all = [0, 1, 2, 3, 4, 5].map(|index| (index, &released));
        let theirs = [
            (0, (1, 9)),
            (1, (2, 1)),
            (2, (2, 2)),
            (3, (2, 3)),
            (4, (3, 1)),
            (6, (1, 1)),
        ];
        let theirs = theirs.map(|(index, which)| (object(index), which));
        let compared = compare(&store(&all), SEAT, &theirs);
        let newer = [0, 1, 5].map(|index| (object(index), released.clone()));
        assert_eq!(compared.newer, newer);
        assert_eq!(compared.older, [6, 3, 4].map(object));
        assert!(!compared.more);
    }

    #[test]
    fn an_answer_ends_when_its_content_is_more_than_the_most() {
        let of = |bytes: usize| State {
            data: Some(Bytes::from(vec![0; bytes])),
            ..state(1)
        };
        let (most, one) = (of(MAX_ANSWER_BYTES), of(1));
        let all = store(&[(0, &most), (1, &one), (2, &one), (3, &one)]);
        let compared = compare(&all, SEAT, &[]);
        assert!(
            compared
                .newer
                .iter()
                .map(|(o, _)| *o)
                .eq([0, 1].map(object))
        );
        assert!(compared.more);
        let all = store(&[(0, &most), (1, &one)]);
        assert!(!compare(&all, SEAT, &[]).more);
    }
}
