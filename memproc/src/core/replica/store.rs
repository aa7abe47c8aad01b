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
