//! Released states of objects with replicas on their way to those who keep them, and what waits meanwhile.

use std::collections::BTreeMap;

use dosmos_proto::{ApId, MpId, Nanos, ObjectId};
use rustc_hash::FxHashMap;

use super::accessor::{Accessor, Served};
use super::acks::Round;
use super::delegations::Deferred;
use crate::core::messages::{AccessKind, Response};
use crate::core::replica::seat::Seat;

/// A write outside sections that is not responded to.
#[derive(Debug)]
pub(super) struct Written {
    pub(super) who: Accessor,
    pub(super) began: Nanos,
    pub(super) response: Response,
    pub(super) served: Served,
}

/// What happens when a state is kept by others.
#[derive(Debug)]
pub(super) struct Kept {
    pub(super) object: ObjectId,
    /// Its content changed.
    pub(super) changed: bool,
    /// What the copies are told for, and since when somebody waits for it.
    pub(super) told: Round,
}

/// All of that.
#[derive(Debug, Default)]
pub(super) struct Shipping {
    /// Accesses that came while it was not clear whether this process serves, oldest first.
    pub(super) parked: BTreeMap<Seat, Vec<Deferred>>,
    /// Objects with a state on its way, and the accesses that wait for that, oldest first.
    pub(super) waiting: FxHashMap<ObjectId, Vec<Deferred>>,
    pub(super) rounds: BTreeMap<u64, Kept>,
    pub(super) writes: BTreeMap<u64, Written>,
    /// Objects whose lock passes on when this process serves them again.
    pub(super) held_back: Vec<ObjectId>,
    next: u64,
}

impl Shipping {
    pub(super) fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    fn retain(&mut self, stays: impl Fn(&Deferred) -> bool) {
        let lists = self.parked.values_mut().chain(self.waiting.values_mut());
        lists.for_each(|list| list.retain(&stays));
    }

    /// An application process takes an acquire back, or whatever it waits for but writes.
    pub(super) fn abandon(&mut self, ap: ApId, object: Option<ObjectId>) {
        use AccessKind::{Acquire, Atomic, Write};
        self.retain(|d| {
            let write = matches!(d.access.kind, Write { .. } | Atomic { .. });
            let concerned = match object {
                Some(object) => {
                    d.access.object == object && matches!(d.access.kind, Acquire { .. })
                }
                None => !write,
            };
            d.who.ap != ap || !concerned
        });
    }

    /// Nobody waits for what a memory process asked. What it asks again it may ask somebody else.
    pub(super) fn lose(&mut self, mp: MpId) {
        self.retain(|d| d.who.caller.mp != mp);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dosmos_proto::VarId;

    const SEAT: Seat = Seat {
        mp: MpId(0),
        replicas: 1,
    };

    fn object(index: u32) -> ObjectId {
        ObjectId::new(VarId(1), index)
    }

    /// A read, a write and an acquire of objects 0 and 1 by application processes 1 and 2, at memory processes of the same numbers: those of
    /// object 0 wait for its state, those of object 1 for this process to serve again.
    fn waiting() -> Shipping {
        let mut all = Shipping::default();
        for (of, ap) in [(0, 1), (0, 2), (1, 1), (1, 2)] {
            let (read, write) = (AccessKind::read_of_test(), AccessKind::write_of_test());
            let acquire = AccessKind::Acquire { want_value: false };
            for kind in [read, write, acquire] {
                let deferred = Deferred::of_test(ap, object(of), kind);
                match of {
                    0 => all.waiting.entry(object(0)).or_default().push(deferred),
                    _ => all.parked.entry(SEAT).or_default().push(deferred),
                }
            }
        }
        all
    }

    fn left(all: &Shipping) -> [String; 2] {
        [&all.waiting[&object(0)], &all.parked[&SEAT]].map(|list| Deferred::said(list))
    }

    #[test]
    fn an_acquire_that_is_taken_back_is_the_only_thing_that_is() {
        let mut all = waiting();
        all.abandon(ApId(1), Some(object(0)));
        assert_eq!(left(&all), ["r1 w1 r2 w2 a2", "r1 w1 a1 r2 w2 a2"]);
        all.abandon(ApId(2), Some(object(1)));
        assert_eq!(left(&all), ["r1 w1 r2 w2 a2", "r1 w1 a1 r2 w2"]);
    }

    #[test]
    fn of_who_leaves_only_writes_are_still_done() {
        let mut all = waiting();
        all.abandon(ApId(2), None);
        assert_eq!(left(&all), ["r1 w1 a1 w2", "r1 w1 a1 w2"]);
    }

    #[test]
    fn what_a_lost_memory_process_asked_is_asked_again_by_itself() {
        let mut all = waiting();
        all.lose(MpId(1));
        assert_eq!(left(&all), ["r2 w2 a2", "r2 w2 a2"]);
    }
}
