//! Released states kept here: of seats that this process holds or is a member of.

use std::collections::BTreeMap;

use dosmos_proto::ObjectId;

use super::seat::{Seat, State};

#[derive(Debug, Default)]
struct Kept {
    /// The catching up that it came from: of which start of which holder, and which of its.
    joining: (u64, u64),
    objects: BTreeMap<ObjectId, State>,
}

/// All of them.
#[derive(Debug, Default)]
pub(crate) struct Store(BTreeMap<Seat, Kept>);

impl Store {
    /// An object has this state now. Content that is the same as before is not repeated.
    pub(crate) fn put(&mut self, seat: Seat, object: ObjectId, state: State) {
        let kept = self.0.entry(seat).or_default();
        let entry = kept.objects.entry(object).or_default();
        let data = state.data.or_else(|| entry.data.take());
        *entry = State { data, ..state };
    }

    /// States follow that belong to this catching up: what is here of an earlier one is void.
    pub(crate) fn join(&mut self, seat: Seat, joining: (u64, u64)) {
        let kept = self.0.entry(seat).or_default();
        if kept.joining != joining {
            *kept = Kept {
                joining,
                objects: BTreeMap::new(),
            };
        }
    }

    pub(crate) fn get(&self, seat: Seat, object: ObjectId) -> Option<&State> {
        self.0.get(&seat)?.objects.get(&object)
    }

    /// All states of a seat.
    pub(crate) fn all(&self, seat: Seat) -> Vec<(ObjectId, State)> {
        let objects = self.0.get(&seat).map(|kept| &kept.objects);
        let objects = objects.into_iter().flatten();
        objects.map(|(object, s)| (*object, s.clone())).collect()
    }

    /// This process is not a member. What the holder, of this start, has it catch up with stays: it may become one.
    pub(crate) fn clear(&mut self, seat: Seat, holder: Option<u64>) {
        let joins = |kept: &Kept| Some(kept.joining.0) == holder;
        if !self.0.get(&seat).is_some_and(joins) {
            self.0.remove(&seat);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::replica::testing::{SEAT, object, state};

    /// With an object of this catching up.
    fn joined(joining: (u64, u64)) -> Store {
        let mut store = Store::default();
        store.join(SEAT, joining);
        store.put(SEAT, object(0), state(1));
        store
    }

    #[test]
    fn content_that_is_not_repeated_stays() {
        let mut store = joined((7, 1));
        let same = State {
            data: None,
            ..state(2)
        };
        store.put(SEAT, object(0), same);
        let expected = State {
            version: 2,
            ..state(1)
        };
        assert_eq!(store.get(SEAT, object(0)), Some(&expected));
        assert_eq!(store.get(SEAT, object(1)), None);
    }

    #[test]
    fn what_is_of_another_catching_up_is_void() {
        for (joining, stays) in [((7, 1), true), ((7, 2), false), ((8, 1), false)] {
            let mut store = joined((7, 1));
            store.join(SEAT, joining);
            assert_eq!(store.get(SEAT, object(0)).is_some(), stays, "{joining:?}");
        }
    }

    #[test]
    fn who_is_no_member_keeps_what_it_catches_up_with() {
        for (holder, stays) in [(Some(7), true), (Some(8), false), (None, false)] {
            let mut store = joined((7, 1));
            store.clear(SEAT, holder);
            assert_eq!(store.get(SEAT, object(0)).is_some(), stays, "{holder:?}");
        }
    }
}
