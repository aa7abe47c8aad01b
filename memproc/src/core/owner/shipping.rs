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
