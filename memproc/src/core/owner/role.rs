//! The owner's part in accesses.

use dosmos_proto::{ApId, MpId, Nanos, ObjectId, Refusal};
use dosmos_trace::{Op, Record, Side};

use super::accessor::{Accessor, Done, Served};
use super::acks::Acks;
use super::delegations::Delegations;
use super::lock::{Acquired, Acquirer};
use super::objects::Objects;
use super::shipping::Shipping;
use super::unpublished::Unpublished;
use crate::core::context::Context;
use crate::core::directory::place::Place;
use crate::core::effects::Caller;
use crate::core::messages::{Access, AccessKind, ElementRange, Item, Keep, Response};

/// The owner's state.
#[derive(Debug, Default)]
pub(crate) struct Owner {
    pub(super) objects: Objects,
    pub(super) unpublished: Unpublished,
    pub(super) acks: Acks,
    pub(super) delegations: Delegations,
    pub(super) shipping: Shipping,
}

impl Owner {
    /// An access of an application process, of this memory process or another.
    pub(crate) fn access(
        &mut self,
        cx: &mut Context,
        caller: Caller,
        ap: ApId,
        access: Access,
        mut want_copy: bool,
    ) {
        let who = Accessor { ap, caller };
        let place = match self.objects.place(cx, access.object) {
            Ok(place) => place,
            Err(refusal) => {
                return match cx.variables.lost_seat(cx.cluster, access.object) {
                    Some(seat) => cx.respond(caller, Response::lost(seat), Nanos::ZERO),
                    None => refuse(cx, caller, refusal),
                };
            }
        };
        let admitted = match place.seat {
            Some(seat) => self.may_serve(cx, who, (seat, &access), want_copy),
            None => self.admits(cx, who, &place, (&access, &mut want_copy)),
        };
        if !admitted {
            return;
        }
        let kind = access.kind;
        let done = match kind {
            AccessKind::Read { range, epoch, keep } => {
                let keep = want_copy.then_some(keep);
                self.read(cx, who, &place, (range, epoch), keep)
            }
            AccessKind::Write { write, epoch } => {
                let done = self.objects.write(cx, who, &place, &write, epoch);
                if done.is_ok() && epoch.is_none() {
                    if let Some(seat) = place.seat {
                        return self.ship_write(cx, who, (seat, place.object), done);
                    }
                    self.unpublished.wrote(cx, ap, place.object);
                }
                done
            }
            AccessKind::Atomic {
                element,
                element_type,
                op,
                epoch,
            } => {
                let change = (element, element_type, op);
                let done = self.objects.atomic(cx, who, &place, change, epoch);
                if let Ok((Response::Atomic { stored: true, .. }, _)) = done
                    && epoch.is_none()
                {
                    if let Some(seat) = place.seat {
                        return self.ship_write(cx, who, (seat, place.object), done);
                    }
                    self.unpublished.wrote(cx, ap, place.object);
                }
                done
            }
            AccessKind::Acquire { want_value } => {
                return self.acquire(cx, who, &place, want_value);
            }
            AccessKind::Release { epoch, write } => {
                return self.release(cx, who, &place, (epoch, write.as_ref()));
            }
        };
        match done {
            Ok((response, served)) => {
                // For an object that was delegated.
                let wait = cx.now - caller.received;
                record_served(cx, who, &served, wait);
                cx.respond(caller, response, wait);
            }
            Err(refusal) => refuse(cx, caller, refusal),
        }
    }

    /// `keep` is none if the reader's memory process would have no copy.
    fn read(
        &mut self,
        cx: &mut Context,
        who: Accessor,
        place: &Place,
        (range, epoch): (ElementRange, Option<u64>),
        keep: Option<Keep>,
    ) -> Done {
        let read = (range, epoch);
        let (data, copy, served) = self.objects.read(cx, who, place, read, keep.is_some())?;
        let delegation = match copy {
            true => self.delegate(cx, who, place, keep.unwrap_or_default()),
            false => None,
        };
        let response = Response::Read {
            version: served.version,
            data,
            copy,
            delegation,
            lease: place.seat.and_then(|seat| cx.lease_of(seat)),
        };
        Ok((response, served))
    }

    fn acquire(&mut self, cx: &mut Context, who: Accessor, place: &Place, want_value: bool) {
        let Accessor { ap, caller } = who;
        let Some(o) = self.objects.get_mut(&place.object) else {
            return;
        };
        let acquirer = Acquirer {
            ap,
            caller,
            want_value,
        };
        let acquired = o.lock.acquire(cx.now, acquirer);
        let version = o.version;
        match acquired {
            Acquired::Now(epoch) => self.granted(cx, acquirer, place.object, epoch),
            Acquired::Waits => {
                let mut record = owner_record(cx, ap, caller, Op::Acquire, place.object);
                record.flags.waiting = true;
                record.version = version;
                cx.trace(Item::Record(record));
            }
            Acquired::Holds(epoch) => {
                refuse(cx, caller, cx.held_already(ap, &place.name(), epoch));
            }
            Acquired::WaitsAlready => {
                refuse(cx, caller, cx.awaited_already(ap, &place.name()));
            }
        }
    }

    pub(super) fn granted(&mut self, cx: &mut Context, to: Acquirer, object: ObjectId, epoch: u64) {
        let Acquirer { ap, caller, .. } = to;
        let who = Accessor { ap, caller };
        let o = self.objects.get(&object);
        let version = o.map_or(0, |o| o.version);
        let value = o.filter(|_| to.want_value).map(|o| o.released().clone());
        let wait = cx.now - who.caller.received;
        record_served(cx, who, &Served::new(Op::Acquire, object, version), wait);
        let granted = Response::Granted {
            epoch,
            version,
            value,
        };
        cx.respond(caller, granted, wait);
    }

    /// Who holds an object of ours, since when, and what of ours it waits for itself: for a message.
    pub(crate) fn holder_text(&self, cx: &Context, object: ObjectId) -> Option<String> {
        if let Some(d) = self.delegations.by_object.get(&object) {
            let (holder, asked) = (cx.cluster.ap_name(d.ap), cx.now - d.since);
            return Some(format!(
                "{holder}, which has it to itself, did not give it back (asked {asked} ago)"
            ));
        }
        let lock = &self.objects.get(&object)?.lock;
        let ap = lock.holder()?;
        let holder = cx.cluster.ap_name(ap);
        let mut text = format!(
            "{holder} holds it (for {}, epoch {})",
            cx.now - lock.since(),
            lock.epoch()
        );
        if let Some((other, its_holder)) = self.awaited_by(ap) {
            let its_holder = cx.cluster.ap_name(its_holder);
            let other = cx.variables.object_name(other);
            text += &format!(", and waits for {other}, which {its_holder} holds");
        }
        Some(text)
    }

    /// An object of ours that an application process waits for, and who holds that.
    fn awaited_by(&self, ap: ApId) -> Option<(ObjectId, ApId)> {
        let locks = self.objects.locks_of(&[ap]);
        locks.into_iter().find_map(|(_, object)| {
            let lock = &self.objects.get(&object)?.lock;
            let holder = lock.holder().filter(|_| lock.is_awaited_by(ap))?;
            Some((object, holder))
        })
    }
}

pub(super) fn refuse(cx: &mut Context, caller: Caller, refusal: Refusal) {
    cx.respond(caller, Response::Refused(refusal), Nanos::ZERO);
}

/// The owner's record of an access that another memory process sent. Those of this process's own
/// application processes are recorded by the requester.
pub(super) fn record_served(cx: &mut Context, who: Accessor, served: &Served, wait: Nanos) {
    if who.caller.mp == cx.me() {
        return;
    }
    let mut record = owner_record(cx, who.ap, who.caller, served.op, served.object);
    record.wait = wait;
    record.count = served.accesses;
    record.flags.in_process = served.with_release;
    record.flags.atomic = served.atomic;
    record.range = served.range;
    record.bytes = served.bytes.into();
    record.version = served.version;
    cx.trace(Item::Record(record));
}

fn owner_record(cx: &Context, ap: ApId, caller: Caller, op: Op, object: ObjectId) -> Record {
    of_owner(cx, cx.record(ap, caller.received, op, object), caller.mp)
}

/// Makes a record one of the owner's side, about a request of `from`.
pub(super) fn of_owner(cx: &Context, record: Record, from: MpId) -> Record {
    Record {
        side: Side::Owner,
        mp: from,
        origin: cx.cluster.origin(from, cx.me()),
        ..record
    }
}
