//! The state of objects that are delegated: to whom, what is asked of it, and what waits for it.

use dosmos_proto::{ApId, MpId, Nanos, ObjectId};
use rustc_hash::FxHashMap;

use super::accessor::Accessor;
use super::acks::Then;
use crate::core::context::Context;
use crate::core::effects::Caller;
use crate::core::messages::{Access, AccessKind, Output, Wanted};

/// Most ranges of elements that are published of one object; asked for more, it is recalled.
const MOST_WATCHED: usize = 8;

/// A delegation in which the application process served fewer accesses was not worth it.
const WORTH: u64 = 4;

/// Most requests for a delegation that are not granted after one that was not worth it.
const MOST_DECLINED: u32 = 64;

/// An object in the hands of an application process.
#[derive(Debug)]
pub(super) struct Delegation {
    pub(super) ap: ApId,
    pub(super) number: u64,
    /// Elements that are published: their content here is that of the last publication.
    pub(super) watched: Vec<(u32, u32)>,
    /// Elements asked for.
    pub(super) asked: Vec<(u32, u32)>,
    pub(super) asked_all: bool,
    /// Since when something is asked for.
    pub(super) since: Nanos,
    /// The highest version that a section of the application process made, as far as it was reported.
    pub(super) reported: u64,
}

/// An access that waits for the return of its object.
#[derive(Debug)]
pub(super) struct Deferred {
    pub(super) who: Accessor,
    pub(super) access: Access,
    pub(super) want_copy: bool,
}

impl Deferred {
    fn is_write(&self) -> bool {
        use AccessKind::{Atomic, Write};
        matches!(self.access.kind, Write { .. } | Atomic { .. })
    }
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
    pub(super) by_object: FxHashMap<ObjectId, Delegation>,
    /// Accesses that wait for the return of their object, oldest first. Most objects have none.
    pub(super) waiting: FxHashMap<ObjectId, Vec<Deferred>>,
    experience: FxHashMap<ObjectId, Experience>,
    /// Publications of application processes that have writes waiting, oldest first.
    pub(super) publications: Vec<(ApId, Then)>,
    granted: u64,
}

impl Delegations {
    /// Whether experience speaks for granting a request now.
    pub(super) fn admit(&mut self, object: ObjectId) -> bool {
        match self.experience.get_mut(&object) {
            Some(e) if e.declining > 0 => {
                e.declining -= 1;
                false
            }
            _ => true,
        }
    }

    pub(super) fn grant(&mut self, object: ObjectId, ap: ApId, now: Nanos) -> u64 {
        self.granted += 1;
        let delegation = Delegation {
            ap,
            number: self.granted,
            watched: Vec::new(),
            asked: Vec::new(),
            asked_all: false,
            since: now,
            reported: 0,
        };
        self.by_object.insert(object, delegation);
        self.granted
    }

    /// What a delegation that was recalled teaches.
    pub(super) fn learn(&mut self, object: ObjectId, served: u64) {
        if served >= WORTH {
            self.experience.remove(&object);
            return;
        }
        let e = self.experience.entry(object).or_default();
        e.penalty = (2 * e.penalty).clamp(2, MOST_DECLINED);
        e.declining = e.penalty;
    }

    /// Objects in the hands of `ap`, in order.
    pub(super) fn of(&self, ap: ApId) -> Vec<ObjectId> {
        let all = self.by_object.iter();
        let mut list: Vec<ObjectId> = all.filter(|(_, d)| d.ap == ap).map(|(o, _)| *o).collect();
        list.sort_unstable();
        list
    }

    /// An application process takes back what waits: an acquire of one object, or everything but writes, which were
    /// done when they were sent.
    pub(super) fn abandon(&mut self, ap: ApId, object: Option<ObjectId>) {
        let acquires = |d: &Deferred| matches!(d.access.kind, AccessKind::Acquire { .. });
        let undone = |d: &Deferred| !d.is_write() && object.is_none();
        let drops = |d: &Deferred| d.who.ap == ap && (undone(d) || acquires(d));
        let asked = |of: &ObjectId| object.is_none_or(|object| object == *of);
        let waiting = self.waiting.iter_mut().filter(|(of, _)| asked(of));
        waiting.for_each(|(_, list)| list.retain(|w| !drops(w)));
        self.tidy();
    }

    /// Whose acquire of an object, made for `ap`, waits for its return.
    pub(super) fn acquirer(&self, ap: ApId, object: ObjectId) -> Option<Caller> {
        let acquires =
            |d: &&Deferred| d.who.ap == ap && matches!(d.access.kind, AccessKind::Acquire { .. });
        let waiting = self.waiting.get(&object)?;
        waiting.iter().find(acquires).map(|d| d.who.caller)
    }

    /// Nobody waits any more for what a memory process asked.
    pub(super) fn lose(&mut self, mp: MpId) {
        let stays = |w: &Deferred| w.who.caller.mp != mp || w.is_write();
        let waiting = self.waiting.values_mut();
        waiting.for_each(|list| list.retain(stays));
        self.tidy();
    }

    fn tidy(&mut self) {
        self.waiting.retain(|_, list| !list.is_empty());
    }

    /// Whether writes of an application process wait.
    pub(super) fn delays(&self, ap: ApId) -> bool {
        let mut waiting = self.waiting.values().flatten();
        waiting.any(|w| w.who.ap == ap && w.is_write())
    }
}

impl Delegation {
    /// What has to be asked for so that a read of elements `range` can be served; nothing if they are
    /// published.
    pub(super) fn wanted(&self, range: (u32, u32), elements: u32) -> Option<Wanted> {
        if self.watched.iter().any(|w| covers(*w, range)) {
            return None;
        }
        let part = (range.1 - range.0) < elements;
        let few = self.watched.len() + self.asked.len() < MOST_WATCHED;
        Some(match part && few && !self.asked_all {
            true => Wanted::Elements(range.0, range.1),
            false => Wanted::Everything,
        })
    }

    pub(super) fn ask(&mut self, cx: &mut Context, object: ObjectId, wanted: Wanted) {
        let known = match wanted {
            Wanted::Elements(first, end) => self.asked.contains(&(first, end)),
            Wanted::Everything | Wanted::Lost => self.asked_all,
        };
        if known || self.asked_all {
            return;
        }
        match wanted {
            Wanted::Elements(first, end) => self.asked.push((first, end)),
            Wanted::Everything | Wanted::Lost => self.asked_all = true,
        }
        cx.output(recall(self, object, wanted));
    }

    /// Elements are published from now on. Ranges that meet become one.
    pub(super) fn watch(&mut self, range: (u32, u32)) {
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

pub(super) fn covers(whole: (u32, u32), part: (u32, u32)) -> bool {
    whole.0 <= part.0 && part.1 <= whole.1
}

pub(super) fn recall(d: &Delegation, object: ObjectId, wanted: Wanted) -> Output {
    Output::Recall {
        ap: d.ap,
        object,
        delegation: d.number,
        wanted,
    }
}
