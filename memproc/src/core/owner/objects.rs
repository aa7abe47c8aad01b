//! The objects this process owns, and accesses to their contents.

use bytes::Bytes;
use dosmos_proto::{ApId, ElementType, ErrorCode, MpId, ObjectId, Refusal};
use dosmos_trace::Op;
use rustc_hash::FxHashMap;

use super::accessor::{Accessor, Done, Served};
use super::object::Object;
use crate::core::context::Context;
use crate::core::directory::place::Place;
use crate::core::messages::{AtomicOp, ElementRange, Response, WriteData};
use crate::core::replica::seat::{Seat, State, epochs_of};

/// An object that was never written. The epochs of its sections are higher than those of earlier terms.
fn new_object(cx: &Context, place: &Place) -> Object {
    let mut o = Object::zeroed(place.bytes());
    if let Some(seat) = place.seat {
        o.lock
            .skip_to(epochs_of(cx.variables.seats().holder(seat).0));
    }
    o
}

/// All of them that were ever used.
#[derive(Debug, Default)]
pub(super) struct Objects(FxHashMap<ObjectId, Object>);

impl Objects {
    pub(super) fn get(&self, object: &ObjectId) -> Option<&Object> {
        self.0.get(object)
    }

    pub(super) fn get_mut(&mut self, object: &ObjectId) -> Option<&mut Object> {
        self.0.get_mut(object)
    }

    /// The place of an object of ours, made at its first use.
    pub(super) fn place<'a>(
        &mut self,
        cx: &Context<'a>,
        object: ObjectId,
    ) -> Result<Place<'a>, Refusal> {
        let place = cx.variables.place(cx.cluster, object)?;
        if place.owner != cx.me() && place.seat.is_none() {
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
        self.0
            .entry(object)
            .or_insert_with(|| new_object(cx, &place));
        Ok(place)
    }

    /// This process serves an object from now on, which has this state.
    pub(super) fn restore(&mut self, cx: &Context, object: ObjectId, state: State) {
        let Ok(place) = cx.variables.place(cx.cluster, object) else {
            return;
        };
        let mut o = new_object(cx, &place);
        o.restore(state);
        self.0.insert(object, o);
    }

    /// Another process serves the objects of a seat; what was here of them, in order.
    pub(super) fn remove_seat(&mut self, cx: &Context, seat: Seat) -> Vec<Object> {
        let of = |object: &ObjectId| cx.variables.seat_of(*object) == Some(seat);
        let mut gone: Vec<ObjectId> = self.0.keys().copied().filter(of).collect();
        gone.sort_unstable();
        gone.iter()
            .filter_map(|object| self.0.remove(object))
            .collect()
    }

    /// The object at a place that [`place`](Self::place) gave.
    fn object(&mut self, place: &Place) -> Result<&mut Object, Refusal> {
        self.0
            .get_mut(&place.object)
            .ok_or_else(|| Refusal::new(ErrorCode::Invalid, "no such object"))
    }

    /// What a reader sees, and whether its memory process may keep that as a copy if it can (`keep`).
    pub(super) fn read(
        &mut self,
        cx: &Context,
        who: Accessor,
        place: &Place,
        (range, epoch): (ElementRange, Option<u64>),
        keep: bool,
    ) -> Result<(Bytes, bool, Served), Refusal> {
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
        let copy = keep && (near || ours) && whole && !(in_section && o.is_written());
        if copy && !ours {
            o.add_copy(asks);
        }
        let served = Served {
            range,
            bytes: data.len() as u32,
            ..Served::new(Op::Read, place.object, o.version)
        };
        Ok((data, copy, served))
    }

    /// Writes; the writer's memory process holds no copy any more.
    pub(super) fn write(
        &mut self,
        cx: &Context,
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
        o.remove_copy(who.caller.mp);
        let version = o.version;
        let served = Served {
            accesses,
            range,
            bytes: data.len() as u32,
            atomic: adds,
            ..Served::new(Op::Write, place.object, version)
        };
        Ok((Response::Written { version }, served))
    }

    /// As [`write`](Self::write), of one element that is read in the same step.
    pub(super) fn atomic(
        &mut self,
        cx: &Context,
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
        // The sender's copy is gone even if nothing was stored: it dropped it when it sent this.
        o.remove_copy(who.caller.mp);
        let version = o.version;
        let served = Served {
            range,
            bytes: if stored { place.width } else { 0 },
            atomic: true,
            ..Served::new(Op::Write, place.object, version)
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
            .get(&object)
            .is_some_and(|o| o.lock.is_section(ap, epoch));
        if current {
            return Ok(true);
        }
        Err(self.stale(cx, ap, object, epoch))
    }

    /// The refusal of what belongs to a section that is over.
    pub(super) fn stale(&self, cx: &Context, ap: ApId, object: ObjectId, epoch: u64) -> Refusal {
        let now = match self.get(&object).map(|o| &o.lock) {
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

    /// Which of these application processes hold the locks of which objects or wait for them, in order. Searches all
    /// objects, once: it happens when a process dies.
    pub(super) fn locks_of(&self, aps: &[ApId]) -> Vec<(ApId, ObjectId)> {
        let busy = self.0.iter().filter(|(_, o)| !o.lock.is_idle());
        let mut list: Vec<(ApId, ObjectId)> = busy
            .flat_map(|(id, o)| {
                let concerned = aps.iter().filter(|ap| o.lock.concerns(**ap));
                concerned.map(|ap| (*ap, *id))
            })
            .collect();
        list.sort_unstable();
        list
    }

    /// A memory process is lost: it holds no copies any more; the objects that it had copies of.
    pub(super) fn remove_copies(&mut self, mp: MpId) -> impl Iterator<Item = ObjectId> {
        self.0.iter_mut().filter_map(move |(object, o)| {
            let held = o.remove_copy(mp);
            held.then_some(*object)
        })
    }
}

#[cfg(test)]
impl Objects {
    /// Objects of eight bytes that were never written.
    pub(super) fn of_test(objects: &[ObjectId]) -> Self {
        let zeroed = |object: &ObjectId| (*object, Object::zeroed(8));
        Self(objects.iter().map(zeroed).collect())
    }
}
