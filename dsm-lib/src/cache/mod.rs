//! What this process holds of objects: copies, and objects delegated to it
//! (docs/design/consistency.md#copies-in-application-processes and #exclusive-delegation). An access to what it
//! holds sends nothing and takes no time stamp.
//!
//! Guarantees: what is held is kept, dropped, confirmed and given back in the order of the session's stream,
//! before the reply that follows is completed; a write that is sent drops a copy; accesses are counted and
//! reported, before what they made is given back, so that the monitor's counts are exact.

mod held;
#[cfg(test)]
mod held_tests;
mod reads;
mod slot;
#[cfg(test)]
mod slot_tests;

use std::any::Any;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use dosmos_proto::{Nanos, ObjectId, wire};

use crate::element::Element;
use crate::operation::Target;
pub(crate) use held::{Elements, Entered, Hits, Served, hull};
pub(crate) use reads::Reads;
use slot::{AnySlot, Marks};
pub(crate) use slot::{Slot, Taken};

/// Accesses are reported at least so often.
pub(crate) const REPORT_EVERY: Nanos = Nanos::from_millis(50);

/// What others read of a delegated object is published at least so often, while it changes.
pub(crate) const PUBLISH_EVERY: Nanos = Nanos::from_millis(5);

/// While others wait for an object that is being edited, the memory process hears of this process so often.
const SIGN_EVERY: Nanos = Nanos::from_millis(500);

/// The slots of a session.
pub(crate) struct Cache {
    slots: HashMap<ObjectId, Arc<dyn AnySlot>>,
    marks: Arc<Marks>,
    /// Collected and not yet sent.
    local: Vec<wire::LocalAccesses>,
    /// To be given back or published, and not yet sent.
    returns: Vec<wire::Return>,
    /// Objects that others wait for while they are being edited.
    asked: BTreeSet<ObjectId>,
    /// Objects that were taken from this process with changes that nobody else has seen.
    lost: Vec<Target>,
    /// Others read parts of objects that are delegated to this process.
    watched: bool,
    /// Everything before is collected.
    collected: Nanos,
    /// The memory process was last told that this process lives.
    signed: Nanos,
}

impl Cache {
    /// Nothing held, as of `now`.
    pub(crate) fn new(now: Nanos) -> Self {
        Self {
            slots: HashMap::new(),
            marks: Arc::default(),
            local: Vec::new(),
            returns: Vec::new(),
            asked: BTreeSet::new(),
            lost: Vec::new(),
            watched: false,
            collected: now,
            signed: now,
        }
    }

    /// The slot of an object, made at its first use; none for an object that has one of another type.
    pub(crate) fn slot<T: Element>(
        &mut self,
        target: &Target,
        object: ObjectId,
        elements: usize,
    ) -> Option<Arc<Slot<T>>> {
        let marks = &self.marks;
        let new = || -> Arc<dyn AnySlot> {
            Arc::new(Slot::<T>::new(
                target.clone(),
                object,
                elements,
                Arc::clone(marks),
            ))
        };
        let slot = self.slots.entry(object).or_insert_with(new);
        let any: Arc<dyn Any + Send + Sync> = Arc::clone(slot) as _;
        any.downcast().ok()
    }

    /// Whether there is anything to look after.
    pub(crate) fn is_used(&self) -> bool {
        !self.slots.is_empty()
    }

    /// A write leaves, as the request `request`.
    pub(crate) fn wrote(&self, object: ObjectId, request: u64) {
        if let Some(slot) = self.slots.get(&object) {
            slot.wrote(request);
        }
    }

    /// The reply to a request about an object, before anything else is done with it. Whether the object is
    /// delegated to this process by it.
    pub(crate) fn hear(
        &mut self,
        object: ObjectId,
        request: u64,
        body: &wire::ap_reply::Body,
    ) -> bool {
        use wire::ap_reply::Body;
        match (self.slots.get(&object), body) {
            (slot, Body::Read(done)) if done.delegation.is_some() => {
                let number = done.delegation.unwrap_or_default();
                let took = slot.is_some_and(|slot| slot.entrust(request, done, number));
                if !took {
                    self.returns.push(slot::nothing(object, number));
                }
                return took;
            }
            (Some(slot), Body::Read(done)) if done.keep => {
                slot.keep(request, done.version, &done.data);
            }
            // What is held is of that version too; otherwise it would be void.
            (Some(slot), Body::Read(done)) => slot.has_read(done.version, done.data.len() as u64),
            (Some(slot), Body::Granted(granted)) => slot.confirm(granted.version),
            (Some(slot), Body::Released(released)) => slot.confirm(released.version),
            (Some(slot), Body::Invalidate(_)) => slot.invalidate(),
            (Some(slot), Body::Update(update)) => slot.update(update.version, &update.data),
            (Some(slot), Body::Confirm(confirm)) => slot.confirm(confirm.version),
            _ => {}
        }
        false
    }

    /// Others need an object that is delegated to this process.
    pub(crate) fn recall(&mut self, recall: &wire::Recall) {
        use wire::recall::Wanted as W;
        let object = ObjectId::from_wire(recall.object);
        let wanted = match &recall.wanted {
            Some(W::Elements(e)) => held::Wanted::Elements(e.first, e.end),
            Some(W::Lost(_)) => return self.lose(object, recall.delegation),
            Some(W::Everything(_)) | None => held::Wanted::Everything,
        };
        self.watched |= matches!(wanted, held::Wanted::Elements(..));
        let Some(slot) = self.slots.get(&object) else {
            return self.returns.push(slot::nothing(object, recall.delegation));
        };
        match slot.recall(recall.delegation, wanted) {
            Some(back) => self.returns.push(back),
            None => drop(self.asked.insert(object)),
        }
    }

    /// An object was taken from this process, which had not been heard for too long.
    fn lose(&mut self, object: ObjectId, delegation: u64) {
        let slot = self.slots.get(&object);
        if let Some(slot) = slot.filter(|s| s.delegation() == Some(delegation))
            && slot.lose()
        {
            self.lost.push(slot.target().clone());
        }
    }

    /// Something that this process had changed and that was taken from it; each is said once.
    pub(crate) fn take_lost(&mut self) -> Option<Target> {
        self.lost.pop()
    }

    /// The content of an object that was edited is back in its place.
    pub(crate) fn edited(&mut self, object: ObjectId) {
        if let Some(slot) = self.slots.get(&object) {
            self.returns.extend(slot.answers());
        }
        self.asked.remove(&object);
    }

    /// Publishes what changed of what others read of objects that are delegated to this process.
    pub(crate) fn publish(&mut self) {
        for object in self.marks.take_unpublished() {
            let slot = self.slots.get(&object);
            self.returns.extend(slot.and_then(|slot| slot.publish()));
        }
    }

    /// Gives an object back that is delegated to this process.
    pub(crate) fn give_back_one(&mut self, object: ObjectId) {
        let slot = self.slots.get(&object);
        self.returns.extend(slot.and_then(|slot| slot.give_back()));
    }

    /// Whether sections of objects that this process has to itself are not reported.
    pub(crate) fn take_sections(&self) -> bool {
        self.marks.take_sections()
    }

    /// Gives back everything that is delegated to this process: it leaves.
    pub(crate) fn give_back(&mut self) {
        let mut all: Vec<_> = self.slots.iter().collect();
        all.sort_unstable_by_key(|(object, _)| **object);
        self.returns
            .extend(all.into_iter().filter_map(|(_, slot)| slot.give_back()));
    }

    /// The session is over.
    pub(crate) fn end(&self) {
        for slot in self.slots.values() {
            slot.lose();
        }
    }

    /// Collects accesses to be reported; `each` is told of what and how many.
    pub(crate) fn collect(&mut self, now: Nanos, mut each: impl FnMut(&Target, &Served)) {
        for object in self.marks.take_touched() {
            let Some(slot) = self.slots.get(&object) else {
                continue;
            };
            let served = slot.take_served();
            each(slot.target(), &served);
            let sections = &served.sections;
            let ended = Hits {
                count: sections.count,
                version: sections.versions.1,
                ..Hits::default()
            };
            let from = sections.versions.0;
            for (hits, kind, from_version) in [
                (served.reads, wire::LocalKind::Read, 0),
                (served.writes, wire::LocalKind::Write, 0),
                (ended, wire::LocalKind::Section, from),
                (sections.reads, wire::LocalKind::SectionRead, 0),
                (sections.writes, wire::LocalKind::SectionWrite, 0),
            ] {
                if hits.count > 0 {
                    self.local.push(wire::LocalAccesses {
                        from_version,
                        ..accesses(object, hits, kind, (self.collected, now))
                    });
                }
            }
        }
        self.collected = now;
    }

    /// Adds reads of a section that its owner granted, or that began here and goes on there.
    pub(crate) fn add(&mut self, target: &Target, hits: Hits, now: Nanos) {
        if let Some(object) = target.object.filter(|_| hits.count > 0) {
            let kind = wire::LocalKind::GrantedRead;
            self.local.push(accesses(object, hits, kind, (now, now)));
        }
    }

    /// Whether it is time to report.
    pub(crate) fn is_due(&self, now: Nanos) -> bool {
        now >= self.collected + REPORT_EVERY
    }

    /// Whether something is to be given back or published.
    pub(crate) fn has_returns(&self) -> bool {
        !self.returns.is_empty()
    }

    /// Whether something is to be sent.
    pub(crate) fn has_reports(&self) -> bool {
        !self.returns.is_empty() || !self.local.is_empty()
    }

    /// What was collected, and what is to be given back or published, to be sent.
    pub(crate) fn take(&mut self) -> (Vec<wire::LocalAccesses>, Vec<wire::Return>) {
        let returns = std::mem::take(&mut self.returns);
        (std::mem::take(&mut self.local), returns)
    }

    /// Whether to tell the memory process that this process lives, since others wait for what it edits.
    pub(crate) fn signs(&mut self, now: Nanos) -> bool {
        let due = !self.asked.is_empty() && now >= self.signed + SIGN_EVERY;
        if due {
            self.signed = now;
        }
        due
    }

    /// When to look again.
    pub(crate) fn next_look(&self, now: Nanos) -> Nanos {
        now + if self.watched {
            PUBLISH_EVERY
        } else {
            REPORT_EVERY
        }
    }
}

/// Accesses between two times, as they are reported.
fn accesses(
    object: ObjectId,
    hits: Hits,
    kind: wire::LocalKind,
    (first, last): (Nanos, Nanos),
) -> wire::LocalAccesses {
    wire::LocalAccesses {
        object: object.to_wire(),
        count: hits.count,
        first_ns: first.0,
        last_ns: last.0,
        bytes: hits.bytes,
        version: hits.version,
        kind: kind.into(),
        from_version: 0,
        first_element: hits.elements.0,
        end_element: hits.elements.1,
    }
}
