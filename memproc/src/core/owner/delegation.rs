//! Objects that are delegated to an application process of this memory process: it reads and changes them
//! itself, and they are recalled when anybody else needs them
//! (docs/design/consistency.md#exclusive-delegation).
//!
//! Guarantees: while an object is delegated nobody has a copy of it and no access to it is served here, but
//! reads of elements that the application process publishes whenever it synchronises (*watched*); what
//! arrives meanwhile waits, in order, for the return of the object.

use dosmos_proto::{ApId, CopyPolicy, Nanos, ObjectId};

use super::accessor::Accessor;
use super::delegations::{Deferred, Delegation, Delegations, covers, recall};
use super::publish::section_ended;
use super::role::Owner;
use crate::core::context::Context;
use crate::core::directory::place::Place;
use crate::core::effects::Effect;
use crate::core::lease::MAX_SILENCE;
use crate::core::messages::{
    Access, AccessKind, Delegated, Keep, LocalAccesses, LocalKind, Return, Wanted,
};

impl Owner {
    /// Delegates an object to one of our application processes, if nobody else has anything of it and
    /// experience does not speak against it.
    pub(super) fn delegate(
        &mut self,
        cx: &mut Context,
        who: Accessor,
        place: &Place,
        keep: Keep,
    ) -> Option<Delegated> {
        let object = place.object;
        let ours = who.caller.mp == cx.me();
        let updates = place.variable.spec().policy() == CopyPolicy::Update;
        if keep != Keep::Exclusive || !ours || updates || place.seat.is_some() {
            return None;
        }
        let epoch = self
            .objects
            .get(&object)
            .filter(|o| o.is_alone())?
            .lock
            .epoch();
        if self.acks.concerns(object) || !self.delegations.admit(object) {
            return None;
        }
        let number = self.delegations.grant(object, who.ap, cx.now);
        Some(Delegated { number, epoch })
    }

    /// Whether an access can be served now: its object is not delegated, or the elements that it reads are
    /// published. If not, it waits for the return of the object, which is asked for.
    pub(super) fn admits(
        &mut self,
        cx: &mut Context,
        who: Accessor,
        place: &Place,
        (access, want_copy): (&Access, &mut bool),
    ) -> bool {
        let Some(d) = self.delegations.by_object.get_mut(&place.object) else {
            return true;
        };
        let wanted = match access.kind {
            AccessKind::Read { range, .. } if who.ap != d.ap => match place.check_range(range) {
                // It is refused.
                Err(_) => return true,
                Ok(range) => d.wanted(range, place.elements),
            },
            _ => Some(Wanted::Everything),
        };
        let Some(wanted) = wanted else {
            *want_copy = false;
            return true;
        };
        let deferred = Deferred {
            who,
            access: access.clone(),
            want_copy: *want_copy,
        };
        let waiting = self.delegations.waiting.entry(place.object).or_default();
        if waiting.is_empty() {
            d.since = cx.now;
        }
        waiting.push(deferred);
        d.ask(cx, place.object, wanted);
        false
    }

    /// Whether an object is delegated to this application process, in its delegation `number`.
    pub(crate) fn has_delegated(&self, ap: ApId, object: ObjectId, number: u64) -> bool {
        let delegation = self.delegations.by_object.get(&object);
        delegation.is_some_and(|d| d.ap == ap && d.number == number)
    }

    /// Notes the versions that sections of delegated objects made. Those of an object that was taken from the
    /// application process, which did not know yet, made none.
    pub(crate) fn hear_of_sections(&mut self, ap: ApId, accesses: &mut [LocalAccesses]) {
        for a in accesses.iter_mut().filter(|a| a.kind == LocalKind::Section) {
            let delegation = self.delegations.by_object.get_mut(&a.object);
            match delegation.filter(|d| d.ap == ap) {
                Some(d) => d.reported = d.reported.max(a.version),
                None => (a.from_version, a.version) = (0, 0),
            }
        }
    }

    /// What an application process made of an object that is delegated to it.
    pub(crate) fn returned(&mut self, cx: &mut Context, ap: ApId, back: &Return) {
        let object = back.object;
        let current = |d: &&mut Delegation| d.ap == ap && d.number == back.delegation;
        let Some(d) = self.delegations.by_object.get_mut(&object).filter(current) else {
            // It was taken from the application process.
            if back.in_section {
                section_ended(cx, ap, object, back.version);
            }
            return;
        };
        let (Ok(place), Some(o)) = (
            cx.variables.place(cx.cluster, object),
            self.objects.get_mut(&object),
        ) else {
            return;
        };
        let ranges = back.parts.iter();
        let ranges = ranges.map(|(first, data)| place.check_contiguous(*first, data.len()));
        let Ok(ranges) = ranges.collect::<Result<Vec<_>, _>>() else {
            return self.revoke(cx, object);
        };
        for (range, (_, data)) in ranges.iter().zip(&back.parts) {
            o.write(place.bytes_of(*range).start, data, false);
        }
        o.version = o.version.max(back.version);
        o.lock
            .resume(cx.now, back.epoch, back.in_section.then_some(ap));
        let waiting = self.delegations.waiting.remove(&object);
        let waiting = waiting.unwrap_or_default();
        if back.kept {
            ranges.into_iter().for_each(|range| d.watch(range));
            let Delegation { asked, watched, .. } = d;
            asked.retain(|a| !watched.iter().any(|w| covers(*w, *a)));
        } else {
            self.delegations.by_object.remove(&object);
            if !waiting.is_empty() {
                self.delegations.learn(object, back.served);
            }
            cx.effect(Effect::Kept { object, ap });
        }
        self.resume(cx, waiting);
    }

    /// An application process is gone: what it was delegated is as it last returned it.
    pub(crate) fn take_back(&mut self, cx: &mut Context, ap: ApId) {
        for object in self.delegations.of(ap) {
            self.revoke(cx, object);
        }
    }

    fn revoke(&mut self, cx: &mut Context, object: ObjectId) {
        if let Some(d) = self.delegations.by_object.remove(&object) {
            let wanted = Wanted::Lost;
            cx.output(recall(&d, object, wanted));
            if let Some(o) = self.objects.get_mut(&object) {
                o.lock.skip_epochs();
                // What was recorded and is lost is no version of anything else.
                o.version = o.version.max(d.reported);
            }
            let waiting = self.delegations.waiting.remove(&object);
            self.resume(cx, waiting.unwrap_or_default());
        }
    }

    fn resume(&mut self, cx: &mut Context, waiting: Vec<Deferred>) {
        for d in waiting {
            self.access(cx, d.who.caller, d.who.ap, d.access, d.want_copy);
        }
        for (ap, then) in std::mem::take(&mut self.delegations.publications) {
            self.publish_writes(cx, ap, then);
        }
    }

    /// Application processes that were asked for objects too long ago to be silent since, in order.
    pub(crate) fn overdue(&self, now: Nanos) -> Vec<ApId> {
        let Delegations {
            waiting, by_object, ..
        } = &self.delegations;
        let asked = waiting.keys().filter_map(|object| by_object.get(object));
        let late = asked.filter(|d| d.since + MAX_SILENCE <= now);
        let mut list: Vec<ApId> = late.map(|d| d.ap).collect();
        list.sort_unstable();
        list.dedup();
        list
    }
}
