//! Objects with replicas (docs/design/consistency.md#replicas).
//!
//! Guarantees: they are served only while a majority of the group says that nobody else does; while a released
//! state is on its way to those who keep it, no access to its object is served, so nobody sees what could
//! still be lost; a lock is granted only under both conditions.

use std::collections::BTreeMap;

use dosmos_proto::{ErrorCode, Nanos, ObjectId, Refusal};

use super::accessor::{Accessor, Done};
use super::acks::{Round, Then};
use super::delegations::Deferred;
use super::role::{Owner, record_served, refuse};
use super::shipping::{Kept, Written};
use crate::core::context::Context;
use crate::core::effects::{Caller, Effect};
use crate::core::messages::{Access, Response};
use crate::core::replica::seat::{Seat, Shipment, State};
use crate::core::replica::seats::Standing;

impl Owner {
    /// Whether an access can be served now. If not, it waits, or hears who serves the object.
    pub(super) fn may_serve(
        &mut self,
        cx: &mut Context,
        who: Accessor,
        (seat, access): (Seat, &Access),
        want_copy: bool,
    ) -> bool {
        let deferred = || Deferred {
            who,
            access: access.clone(),
            want_copy,
        };
        match cx.standing(seat) {
            Standing::Elsewhere => {
                say_where(cx, who.caller, seat);
                false
            }
            Standing::Unsure => {
                self.shipping
                    .parked
                    .entry(seat)
                    .or_default()
                    .push(deferred());
                false
            }
            Standing::Serves(_) => match self.shipping.waiting.get_mut(&access.object) {
                Some(waiting) => {
                    waiting.push(deferred());
                    false
                }
                None => true,
            },
        }
    }

    /// Whether the lock of an object may pass on now. If not, it does when it may.
    pub(super) fn may_grant(&mut self, cx: &Context, object: ObjectId) -> bool {
        let Some(seat) = cx.variables.seat_of(object) else {
            return true;
        };
        let serves = matches!(cx.standing(seat), Standing::Serves(_));
        let may = serves && !self.shipping.waiting.contains_key(&object);
        if !may {
            self.shipping.held_back.push(object);
        }
        may
    }

    /// A write outside sections was done: others keep it, and copies hear of it, before it is responded to.
    pub(super) fn ship_write(
        &mut self,
        cx: &mut Context,
        who: Accessor,
        (seat, object): (Seat, ObjectId),
        done: Done,
    ) {
        let (mut response, mut served) = match done {
            Ok(done) => done,
            Err(refusal) => return refuse(cx, who.caller, refusal),
        };
        let Some(o) = self.objects.get_mut(&object) else {
            return;
        };
        o.version += 1;
        served.version = o.version;
        if let Response::Written { version } | Response::Atomic { version, .. } = &mut response {
            *version = o.version;
        }
        let number = self.shipping.number();
        let written = Written {
            who,
            began: cx.now,
            response,
            served,
        };
        self.shipping.writes.insert(number, written);
        self.ship_release(cx, (seat, object), true, Then::Write(number));
    }

    /// A write outside sections is kept by others, and all copies know.
    pub(super) fn written(&mut self, cx: &mut Context, number: u64) {
        if let Some(written) = self.shipping.writes.remove(&number) {
            let wait = cx.now - written.began;
            record_served(cx, written.who, &written.served, wait);
            cx.respond(written.who.caller, written.response, wait);
        }
    }

    /// An object has a new released state: others keep it before anything else happens to it.
    pub(super) fn ship_release(
        &mut self,
        cx: &mut Context,
        (seat, object): (Seat, ObjectId),
        changed: bool,
        then: Then,
    ) {
        let Some(o) = self.objects.get(&object) else {
            return;
        };
        let state = State {
            version: o.version,
            epoch: o.lock.epoch(),
            data: changed.then(|| o.released().clone()),
        };
        let number = self.shipping.number();
        let told = Round {
            began: cx.now,
            then,
        };
        let kept = Kept {
            object,
            changed,
            told,
        };
        self.shipping.rounds.insert(number, kept);
        self.shipping.waiting.entry(object).or_default();
        cx.effect(Effect::Ship(Shipment {
            seat,
            object,
            state,
            round: number,
        }));
    }

    /// Others keep a released state: copies hear of it, and what waited goes on.
    pub(crate) fn shipped(&mut self, cx: &mut Context, round: u64) {
        let Some(kept) = self.shipping.rounds.remove(&round) else {
            return;
        };
        let object = kept.object;
        let waiting = self.shipping.waiting.remove(&object);
        let changed = kept.changed.then_some(object);
        self.tell_and_wait(cx, changed.as_slice(), kept.told);
        self.grant_held_back(cx);
        self.resume_waiting(cx, waiting.unwrap_or_default());
    }

    /// Locks that could not pass on do, if they may.
    fn grant_held_back(&mut self, cx: &mut Context) {
        for object in std::mem::take(&mut self.shipping.held_back) {
            self.pass_on(cx, object);
        }
    }

    fn resume_waiting(&mut self, cx: &mut Context, waiting: Vec<Deferred>) {
        for d in waiting {
            self.access(cx, d.who.caller, d.who.ap, d.access, d.want_copy);
        }
    }

    /// Until some time nobody else serves a seat: what waited for that goes on.
    pub(crate) fn serve_again(&mut self, cx: &mut Context, seat: Seat) {
        if cx.lease_of(seat).is_some() {
            self.grant_held_back(cx);
            let parked = self.shipping.parked.remove(&seat);
            self.resume_waiting(cx, parked.unwrap_or_default());
        }
    }

    /// This process serves a seat from now on.
    pub(crate) fn promoted(
        &mut self,
        cx: &mut Context,
        seat: Seat,
        states: Vec<(ObjectId, State)>,
    ) {
        // Used before it served them, they were made empty.
        self.objects.remove_seat(cx, seat);
        for (object, state) in states {
            self.objects.restore(cx, object, state);
        }
    }

    /// Another process serves a seat: whatever was here of it is void.
    pub(crate) fn deposed(&mut self, cx: &mut Context, seat: Seat) {
        for mut o in self.objects.remove_seat(cx, seat) {
            for waiting in o.lock.take_queue() {
                say_where(cx, waiting.caller, seat);
            }
        }
        let of = |object: &ObjectId| cx.variables.seat_of(*object) == Some(seat);
        let mut waiting: Vec<(ObjectId, Vec<Deferred>)> = Vec::new();
        let objects: Vec<ObjectId> = self.shipping.waiting.keys().copied().collect();
        for object in objects.into_iter().filter(of) {
            let list = self.shipping.waiting.remove(&object);
            waiting.push((object, list.unwrap_or_default()));
        }
        waiting.sort_unstable_by_key(|(object, _)| *object);
        self.shipping.held_back.retain(|object| !of(object));
        let rounds = std::mem::take(&mut self.shipping.rounds);
        let (lost, rest): (BTreeMap<_, _>, _) =
            rounds.into_iter().partition(|(_, r)| of(&r.object));
        self.shipping.rounds = rest;
        for kept in lost.into_values() {
            self.unclear(cx, seat, &kept);
        }
        let parked = self.shipping.parked.remove(&seat);
        let waiting = waiting.into_iter().flat_map(|(_, list)| list);
        for d in waiting.chain(parked.into_iter().flatten()) {
            say_where(cx, d.who.caller, seat);
        }
    }

    /// Nobody can say any more whether others keep a state.
    fn unclear(&mut self, cx: &mut Context, seat: Seat, kept: &Kept) {
        let caller = match kept.told.then {
            Then::Release { caller, .. } => Some(caller),
            Then::Write(number) => self.shipping.writes.remove(&number).map(|w| w.who.caller),
            Then::Flush(_) | Then::Nothing => None,
        };
        let Some(caller) = caller else {
            return;
        };
        let config = cx.variables.seats().config(seat);
        let why = format!(
            "{} serves {} no more, {} does; it may have taken effect there",
            cx.cluster.mp_name(cx.me()),
            cx.variables.object_name(kept.object),
            cx.cluster.mp_name(config.holder())
        );
        refuse(cx, caller, Refusal::new(ErrorCode::Deadline, why));
    }
}

/// Tells who serves an object; nothing was done.
fn say_where(cx: &mut Context, caller: Caller, seat: Seat) {
    let config = cx.variables.seats().config(seat);
    cx.respond(caller, Response::Moved(config), Nanos::ZERO);
}
