//! Objects that are delegated to an application process of this memory process: it reads and changes them
//! itself, and they are recalled when anybody else needs them
//! (docs/design/consistency.md#exclusive-delegation).
//!
//! Guarantees: while an object is delegated nobody has a copy of it and no access to it is served here, but
//! reads of elements that the application process publishes whenever it synchronises (*watched*); what
//! arrives meanwhile waits, in order, for the return of the object.

use std::collections::VecDeque;

use dosmos_proto::{ApId, CopyPolicy, MpId, Nanos, ObjectId};
use rustc_hash::FxHashMap;

use super::object::Object;
use super::role::{Accessor, Owner};
use crate::core::context::Context;
use crate::core::directory::place::Place;
use crate::core::effects::Effect;
use crate::core::lease::MAX_SILENCE;
use crate::core::messages::{Access, AccessKind, Keep, Output, Return, Wanted};

/// Most ranges of elements that are published of one object; asked for more, it is recalled.
const MOST_WATCHED: usize = 8;

/// A delegation in which the application process served fewer accesses was not worth it.
const WORTH: u64 = 4;

/// Most requests for a delegation that are not granted after one that was not worth it.
const MOST_DECLINED: u32 = 64;

/// An object in the hands of an application process.
#[derive(Debug)]
struct Delegation {
    ap: ApId,
    number: u64,
    /// Elements that are published: their content here is that of the last publication.
    watched: Vec<(u32, u32)>,
    /// Elements asked for.
    asked: Vec<(u32, u32)>,
    asked_all: bool,
    /// Since when something is asked for.
    since: Nanos,
    /// Accesses that wait for it, oldest first.
    waiting: VecDeque<Deferred>,
}

/// An access that waits for the return of its object.
#[derive(Debug)]
struct Deferred {
    who: Accessor,
    access: Access,
    want_copy: bool,
}

/// Whether an object was delegated to good effect.
#[derive(Clone, Copy, Debug, Default)]
struct Experience {
    /// Requests for a delegation that are declined after the next failure.
    penalty: u32,
    /// Requests for a delegation still to be declined.
    declining: u32,
}

/// All delegations.
#[derive(Debug, Default)]
pub(super) struct Delegations {
    by_object: FxHashMap<ObjectId, Delegation>,
    experience: FxHashMap<ObjectId, Experience>,
    granted: u64,
    recalled: u64,
}

impl Delegations {
    /// Whether experience speaks for granting a request now.
    fn admit(&mut self, object: ObjectId) -> bool {
        match self.experience.get_mut(&object) {
            Some(e) if e.declining > 0 => {
                e.declining -= 1;
                false
            }
            _ => true,
        }
    }

    fn grant(&mut self, object: ObjectId, ap: ApId, now: Nanos) -> u64 {
        self.granted += 1;
        let delegation = Delegation {
            ap,
            number: self.granted,
            watched: Vec::new(),
            asked: Vec::new(),
            asked_all: false,
            since: now,
            waiting: VecDeque::new(),
        };
        self.by_object.insert(object, delegation);
        self.granted
    }

    /// What a delegation that was recalled teaches.
    fn learn(&mut self, object: ObjectId, served: u64) {
        self.recalled += 1;
        if served >= WORTH {
            self.experience.remove(&object);
            return;
        }
        let e = self.experience.entry(object).or_default();
        e.penalty = (2 * e.penalty).clamp(2, MOST_DECLINED);
        e.declining = e.penalty;
    }

    /// Objects in the hands of `ap`, in order.
    fn of(&self, ap: ApId) -> Vec<ObjectId> {
        let all = self.by_object.iter();
        let mut list: Vec<ObjectId> = all.filter(|(_, d)| d.ap == ap).map(|(o, _)| *o).collect();
        list.sort_unstable();
        list
    }

    /// An application process takes back what waits: an acquire of one object, or everything.
    pub(super) fn abandon(&mut self, ap: ApId, object: Option<ObjectId>) {
        let acquires = |d: &Deferred| matches!(d.access.kind, AccessKind::Acquire);
        let drops = |d: &Deferred| d.who.ap == ap && (object.is_none() || acquires(d));
        match object {
            Some(object) => {
                let of_object = self.by_object.get_mut(&object);
                of_object
                    .into_iter()
                    .for_each(|d| d.waiting.retain(|w| !drops(w)));
            }
            None => {
                let all = self.by_object.values_mut();
                all.for_each(|d| d.waiting.retain(|w| !drops(w)));
            }
        }
    }

    /// Nobody waits any more for what a memory process asked.
    pub(super) fn lose(&mut self, mp: MpId) {
        let all = self.by_object.values_mut();
        all.for_each(|d| d.waiting.retain(|w| w.who.caller.mp != mp));
    }

    /// Who has an object, if it is delegated.
    pub(super) fn holder(&self, object: ObjectId) -> Option<ApId> {
        self.by_object.get(&object).map(|d| d.ap)
    }
}

impl Owner {
    /// Delegates an object to one of our application processes, if nobody else has anything of it and
    /// experience does not speak against it; the number of the delegation.
    pub(super) fn delegate(
        &mut self,
        cx: &mut Context,
        who: Accessor,
        place: &Place,
        keep: Keep,
    ) -> Option<u64> {
        let object = place.object;
        let ours = who.caller.mp == cx.me();
        let updates = place.variable.spec().policy() == CopyPolicy::Update;
        if keep != Keep::Exclusive || !ours || updates {
            return None;
        }
        let alone = self.objects.get(&object).is_some_and(Object::is_alone);
        if !alone || self.acks.concerns(object) || !self.delegations.admit(object) {
            return None;
        }
        Some(self.delegations.grant(object, who.ap, cx.now))
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
        d.waiting.push_back(deferred);
        d.ask(cx, place.object, wanted);
        false
    }

    /// What an application process made of an object that is delegated to it.
    pub(crate) fn returned(&mut self, cx: &mut Context, ap: ApId, back: &Return) {
        let object = back.object;
        let current = |d: &&mut Delegation| d.ap == ap && d.number == back.delegation;
        let Some(d) = self.delegations.by_object.get_mut(&object).filter(current) else {
            // It was taken from the application process, which knows.
            return;
        };
        let (Ok(place), Some(o)) = (
            cx.variables.place(cx.cluster, object),
            self.objects.get_mut(&object),
        ) else {
            return;
        };
        let ranges = back.parts.iter();
        let ranges = ranges.map(|(first, data)| place.check_data(*first, None, data.len()));
        let Ok(ranges) = ranges.collect::<Result<Vec<_>, _>>() else {
            return self.revoke(cx, object);
        };
        for (range, (_, data)) in ranges.iter().zip(&back.parts) {
            o.write(place.bytes_of(*range).start, data, false);
        }
        o.version = o.version.max(back.version);
        let waiting = std::mem::take(&mut d.waiting);
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
            self.resume(cx, d.waiting);
        }
    }

    fn resume(&mut self, cx: &mut Context, waiting: VecDeque<Deferred>) {
        for d in waiting {
            self.access(cx, d.who.caller, d.who.ap, d.access, d.want_copy);
        }
    }

    /// Application processes that were asked for objects too long ago to be silent since, in order.
    pub(crate) fn overdue(&self, now: Nanos) -> Vec<ApId> {
        let late = |d: &&Delegation| !d.waiting.is_empty() && d.since + MAX_SILENCE <= now;
        let all = self.delegations.by_object.values();
        let mut list: Vec<ApId> = all.filter(late).map(|d| d.ap).collect();
        list.sort_unstable();
        list.dedup();
        list
    }
}

impl Delegation {
    /// What has to be asked for so that a read of elements `range` can be served; nothing if they are
    /// published.
    fn wanted(&self, range: (u32, u32), elements: u32) -> Option<Wanted> {
        if self.watched.iter().any(|w| covers(*w, range)) {
            return None;
        }
        let part = (range.1 - range.0) <= elements / 2;
        let few = self.watched.len() + self.asked.len() < MOST_WATCHED;
        Some(match part && few && !self.asked_all {
            true => Wanted::Elements(range.0, range.1),
            false => Wanted::Everything,
        })
    }

    fn ask(&mut self, cx: &mut Context, object: ObjectId, wanted: Wanted) {
        let known = match wanted {
            Wanted::Elements(first, end) => self.asked.contains(&(first, end)),
            Wanted::Everything | Wanted::Lost => self.asked_all,
        };
        if known || self.asked_all {
            return;
        }
        if self.waiting.len() == 1 {
            self.since = cx.now;
        }
        match wanted {
            Wanted::Elements(first, end) => self.asked.push((first, end)),
            Wanted::Everything | Wanted::Lost => self.asked_all = true,
        }
        cx.output(recall(self, object, wanted));
    }

    /// Elements are published from now on. Ranges that meet become one.
    fn watch(&mut self, range: (u32, u32)) {
        let (mut first, mut end) = range;
        self.watched.retain(|w| {
            let apart = w.1 < first || end < w.0;
            if !apart {
                first = first.min(w.0);
                end = end.max(w.1);
            }
            apart
        });
        self.watched.push((first, end));
    }
}

fn covers(whole: (u32, u32), part: (u32, u32)) -> bool {
    whole.0 <= part.0 && part.1 <= whole.1
}

fn recall(d: &Delegation, object: ObjectId, wanted: Wanted) -> Output {
    Output::Recall {
        ap: d.ap,
        object,
        delegation: d.number,
        wanted,
    }
}
