//! The owner's part in accesses.

use std::collections::BTreeSet;

use dosmos_proto::{ApId, ElementType, ErrorCode, MpId, Nanos, ObjectId, Refusal};
use dosmos_trace::{Op, Record, Side};
use rustc_hash::FxHashMap;

use super::accessor::{Accessor, Served};
use super::acks::Acks;
use super::delegations::Delegations;
use super::lock::{Acquired, Acquirer};
use super::object::Object;
use crate::core::context::Context;
use crate::core::directory::place::Place;
use crate::core::effects::{Caller, Effect};
use crate::core::messages::{
    Access, AccessKind, AtomicOp, ElementRange, Keep, Response, WriteData,
};

/// The owner's state.
#[derive(Debug, Default)]
pub(crate) struct Owner {
    pub(super) objects: FxHashMap<ObjectId, Object>,
    /// Written outside sections and not told to the copies, by writer.
    pub(super) dirty: FxHashMap<ApId, BTreeSet<ObjectId>>,
    /// Published ahead of an arrival at a barrier and perhaps not acknowledged, by writer.
    pub(super) ahead: FxHashMap<ApId, BTreeSet<ObjectId>>,
    pub(super) acks: Acks,
    pub(super) delegations: Delegations,
    /// Until when each memory process may read copies of our objects, at most.
    pub(super) leases: FxHashMap<MpId, Nanos>,
}

pub(super) type Done = Result<(Response, Served), Refusal>;

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
        let place = match self.place(cx, access.object) {
            Ok(place) => place,
            Err(refusal) => return refuse(cx, caller, refusal),
        };
        if !self.admits(cx, who, &place, (&access, &mut want_copy)) {
            return;
        }
        let kind = access.kind;
        let done = match kind {
            AccessKind::Read { range, epoch, keep } => {
                let keep = want_copy.then_some(keep);
                self.read(cx, who, &place, (range, epoch), keep)
            }
            AccessKind::Write { write, epoch } => self.write(cx, who, &place, &write, epoch),
            AccessKind::Atomic {
                element,
                element_type,
                op,
                epoch,
            } => self.atomic(cx, who, &place, (element, element_type, op), epoch),
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

    /// The place of an object of ours, made at its first use.
    fn place<'a>(&mut self, cx: &Context<'a>, object: ObjectId) -> Result<Place<'a>, Refusal> {
        let place = cx.variables.place(cx.cluster, object)?;
        if place.owner != cx.me() {
            return Err(Refusal::new(
                ErrorCode::Invalid,
                format!(
                    "{} is not owned by {} but by {}",
                    place.name(),
                    cx.cluster.mp_name(cx.me()),
                    cx.cluster.mp_name(place.owner)
                ),
            ));
        }
        self.objects
            .entry(object)
            .or_insert_with(|| Object::zeroed(place.bytes()));
        Ok(place)
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
        let range = place.check_range(range)?;
        let in_section = self.check_section(cx, who.ap, place.object, epoch)?;
        let whole = range == (0, place.elements);
        let asks = who.caller.mp;
        let near = asks != cx.me() && cx.cluster.same_group(asks, cx.me());
        let o = self.object(place)?;
        let in_section = in_section || o.lock.is_held_by(who.ap);
        let data = o.visible(in_section).slice(place.bytes_of(range));
        // Nobody but the holder may see its section: such content is never a copy.
        let ours = asks == cx.me();
        let copy = keep.is_some() && (near || ours) && whole && !(in_section && o.is_written());
        if copy && !ours {
            o.add_copy(asks);
        }
        let version = o.version;
        let served = Served {
            op: Op::Read,
            object: place.object,
            accesses: 1,
            with_release: false,
            range,
            bytes: data.len() as u32,
            version,
            atomic: false,
        };
        let delegation = match copy {
            true => self.delegate(cx, who, place, keep.unwrap_or_default()),
            false => None,
        };
        let response = Response::Read {
            version,
            data,
            copy,
            delegation,
        };
        Ok((response, served))
    }

    /// The object at a place that [`place`](Self::place) gave.
    fn object(&mut self, place: &Place) -> Result<&mut Object, Refusal> {
        self.objects
            .get_mut(&place.object)
            .ok_or_else(|| Refusal::new(ErrorCode::Invalid, "no such object"))
    }

    pub(super) fn write(
        &mut self,
        cx: &mut Context,
        who: Accessor,
        place: &Place,
        write: &WriteData,
        epoch: Option<u64>,
    ) -> Done {
        let range = place.check_write(write)?;
        let WriteData {
            ref runs,
            ref data,
            accesses,
            adds,
            ..
        } = *write;
        let in_section = self.check_section(cx, who.ap, place.object, epoch)?;
        let o = self.object(place)?;
        let at = place.bytes_of(range).start;
        match runs {
            None if adds => o.add(at, place.element_type(), data, in_section),
            None => o.write(at, data, in_section),
            Some(runs) => o.write_runs(runs, place.width, data, in_section),
        }
        let version = o.version;
        self.wrote(cx, who, place.object, in_section);
        let served = Served {
            op: Op::Write,
            object: place.object,
            accesses,
            with_release: false,
            range,
            bytes: data.len() as u32,
            version,
            atomic: adds,
        };
        Ok((Response::Written { version }, served))
    }

    fn atomic(
        &mut self,
        cx: &mut Context,
        who: Accessor,
        place: &Place,
        (element, element_type, op): (u32, ElementType, AtomicOp),
        epoch: Option<u64>,
    ) -> Done {
        let range = place.check_atomic(element, element_type, op)?;
        let in_section = self.check_section(cx, who.ap, place.object, epoch)?;
        let o = self.object(place)?;
        let at = place.bytes_of(range).start;
        let (previous, stored) = o.atomic(at, element_type, op, in_section);
        let version = o.version;
        // The sender's copy is gone even if nothing was stored: it dropped it when it sent this.
        self.wrote(cx, who, place.object, in_section || !stored);
        let served = Served {
            op: Op::Write,
            object: place.object,
            accesses: 1,
            with_release: false,
            range,
            bytes: if stored { place.width } else { 0 },
            version,
            atomic: true,
        };
        let response = Response::Atomic {
            previous,
            stored,
            version,
        };
        Ok((response, served))
    }

    /// Whether an access belongs to a section (`true`) or to none; refused if its section is over.
    fn check_section(
        &self,
        cx: &Context,
        ap: ApId,
        object: ObjectId,
        epoch: Option<u64>,
    ) -> Result<bool, Refusal> {
        let Some(epoch) = epoch else {
            return Ok(false);
        };
        let current = self
            .objects
            .get(&object)
            .is_some_and(|o| o.lock.is_section(ap, epoch));
        if current {
            return Ok(true);
        }
        Err(self.stale(cx, ap, object, epoch))
    }

    pub(super) fn stale(&self, cx: &Context, ap: ApId, object: ObjectId, epoch: u64) -> Refusal {
        let now = match self.objects.get(&object).map(|o| &o.lock) {
            None => "is free".to_owned(),
            Some(lock) => match lock.holder() {
                Some(holder) => format!(
                    "is held by {} (epoch {})",
                    cx.cluster.ap_name(holder),
                    lock.epoch()
                ),
                None => format!("is free (last epoch {})", lock.epoch()),
            },
        };
        Refusal::new(
            ErrorCode::StaleEpoch,
            format!(
                "the section of {} on {} (epoch {epoch}) is over; it {now} now; acquire it again",
                cx.cluster.ap_name(ap),
                cx.variables.object_name(object)
            ),
        )
    }

    /// After a write: its sender holds no copy any more, and a write for everyone is remembered until
    /// its writer publishes.
    fn wrote(&mut self, cx: &mut Context, who: Accessor, object: ObjectId, told_at_release: bool) {
        if let Some(o) = self.objects.get_mut(&object) {
            o.remove_copy(who.caller.mp);
        }
        if !told_at_release {
            cx.effect(Effect::Changed { object });
            self.dirty.entry(who.ap).or_default().insert(object);
        }
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
        let acquired = o.lock.acquire(acquirer);
        let version = o.version;
        let name = cx.cluster.ap_name(ap);
        let twice = |how: String| Refusal::new(ErrorCode::AlreadyHeld, how);
        match acquired {
            Acquired::Now(epoch) => self.granted(cx, acquirer, place.object, epoch),
            Acquired::Waits => {
                let mut record = owner_record(cx, ap, caller, Op::Acquire, place.object);
                record.flags.waiting = true;
                record.version = version;
                cx.trace(crate::core::messages::Item::Record(record));
            }
            Acquired::Holds(epoch) => {
                let how = format!(
                    "{name} already holds {} (epoch {epoch}); release it first",
                    place.name()
                );
                refuse(cx, caller, twice(how));
            }
            Acquired::WaitsAlready => {
                let how = format!(
                    "{name} already waits for {}; one acquire at a time",
                    place.name()
                );
                refuse(cx, caller, twice(how));
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
        record_served(
            cx,
            who,
            &Served::of_lock(Op::Acquire, object, version),
            wait,
        );
        let granted = Response::Granted {
            epoch,
            version,
            value,
        };
        cx.respond(caller, granted, wait);
    }

    /// Who holds an object of ours, for a message.
    pub(crate) fn holder_text(&self, cx: &Context, object: ObjectId) -> Option<String> {
        if let Some(ap) = self.delegations.holder(object) {
            let holder = cx.cluster.ap_name(ap);
            return Some(format!(
                "{holder}, which has it to itself, did not give it back"
            ));
        }
        let lock = &self.objects.get(&object)?.lock;
        let holder = cx.cluster.ap_name(lock.holder()?);
        Some(format!("{holder} holds it (epoch {})", lock.epoch()))
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
    cx.trace(crate::core::messages::Item::Record(record));
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
