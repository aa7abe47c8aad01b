//! How the owner publishes: releases and flushes tell every copy and wait until all have
//! acknowledged; then the lock passes on. And how locks end without a release.

use dosmos_proto::{ApId, ErrorCode, MpId, Nanos, ObjectId, Refusal};
use dosmos_trace::Op;

use super::accessor::{Accessor, Served};
use super::acks::{Round, Then};
use super::object::Object;
use super::role::{Owner, of_owner, record_served, refuse};
use crate::core::context::Context;
use crate::core::directory::place::Place;
use crate::core::effects::{Caller, Effect};
use crate::core::messages::{Item, Output, Response, WriteData};

impl Owner {
    pub(super) fn release(
        &mut self,
        cx: &mut Context,
        who: Accessor,
        place: &Place,
        (epoch, write): (Option<u64>, Option<&WriteData>),
    ) {
        let Accessor { ap, caller } = who;
        let object = place.object;
        let Some(epoch) = epoch else {
            let why = "a release between memory processes names its section";
            return refuse(cx, caller, Refusal::new(ErrorCode::Invalid, why));
        };
        let section = |o: &&mut Object| o.lock.is_section(ap, epoch);
        if let Some(write) = write {
            match self.objects.write(cx, who, place, write, Some(epoch)) {
                Ok((_, served)) => {
                    let served = Served {
                        with_release: true,
                        ..served
                    };
                    record_served(cx, who, &served, Nanos::ZERO);
                }
                Err(refusal) => return refuse(cx, caller, refusal),
            }
        }
        let Some(o) = self.objects.get_mut(&object).filter(section) else {
            let refusal = self.objects.stale(cx, ap, object, epoch);
            return refuse(cx, caller, refusal);
        };
        o.lock.begin_release();
        o.version += 1;
        let version = o.version;
        let changed = o.publish().then_some(object);
        if changed.is_some() {
            cx.effect(Effect::Changed { object });
        }
        let then = Then::Release {
            object,
            ap,
            caller,
            version,
        };
        if let Some(seat) = place.seat {
            return self.ship_release(cx, (seat, object), changed.is_some(), then);
        }
        self.tell_and_wait(
            cx,
            changed.as_slice(),
            Round {
                began: cx.now,
                then,
            },
        );
    }

    /// Tells every copy of what changed, and goes on when all have acknowledged.
    pub(super) fn tell_and_wait(&mut self, cx: &mut Context, changed: &[ObjectId], round: Round) {
        self.acks.tell(cx, &mut self.objects, (changed, None));
        if let Some(round) = self.acks.wait(changed, round) {
            self.complete(cx, round);
        }
    }

    /// Publishes what `ap` wrote outside sections; responds when all copies know.
    pub(crate) fn flush(&mut self, cx: &mut Context, caller: Caller, ap: ApId) {
        self.publish_writes(cx, ap, Then::Flush(caller));
    }

    /// Also of writes that wait for objects which are delegated: publishes when they are done.
    pub(super) fn publish_writes(&mut self, cx: &mut Context, ap: ApId, then: Then) {
        if self.delegations.delays(ap) {
            return self.delegations.publications.push((ap, then));
        }
        let objects = self.publish_now(cx, ap, None);
        let ahead = self.unpublished.take_ahead(ap);
        let objects: Vec<ObjectId> = objects.into_iter().chain(ahead).collect();
        self.wait(cx, &objects, then);
    }

    /// What `ap` wrote and did not publish is the next version of each object, and whoever has it is told; the objects.
    fn publish_now(&mut self, cx: &mut Context, ap: ApId, no_hurry: Option<MpId>) -> Vec<ObjectId> {
        let objects = self.unpublished.new_versions(ap, &mut self.objects);
        self.acks.tell(cx, &mut self.objects, (&objects, no_hurry));
        for object in objects.iter().copied() {
            let Some(version) = self.objects.get(&object).map(|o| o.version) else {
                continue;
            };
            match self.delegations.by_object.get(&object) {
                Some(d) => cx.output(Output::Confirm {
                    ap: d.ap,
                    object,
                    version,
                }),
                None => cx.effect(Effect::Published { object, version }),
            }
        }
        objects
    }

    /// Publishes as [`flush`](Self::flush), but does not wait for `hearer` if it is the only one to wait for: what is
    /// sent to it from here comes behind what it was told. Whatever `ap` publishes next waits for it, unless it is known by
    /// then that the barrier opened.
    pub(crate) fn publish_ahead(
        &mut self,
        cx: &mut Context,
        caller: Caller,
        ap: ApId,
        hearer: MpId,
    ) {
        if self.delegations.delays(ap) {
            return self.publish_writes(cx, ap, Then::Flush(caller));
        }
        // Others may have to be waited for, and it with them, but where there are none.
        let no_hurry = cx.cluster.only_other().filter(|other| *other == hearer);
        let objects = self.publish_now(cx, ap, no_hurry);
        let mut all = self.unpublished.take_ahead(ap);
        all.extend(objects);
        all.retain(|object| self.acks.concerns(*object));
        if self.acks.only_under_way_to(hearer, &all) {
            self.unpublished.put_ahead(ap, all);
            return cx.respond(caller, Response::Flushed, Nanos::ZERO);
        }
        let all: Vec<ObjectId> = all.into_iter().collect();
        self.wait(cx, &all, Then::Flush(caller));
    }

    /// Goes on when all that was ever told of these objects is acknowledged.
    fn wait(&mut self, cx: &mut Context, objects: &[ObjectId], then: Then) {
        let began = cx.now;
        if let Some(round) = self.acks.wait(objects, Round { began, then }) {
            self.complete(cx, round);
        }
    }

    /// The response of the holder of a copy to an order.
    pub(crate) fn acknowledged(&mut self, cx: &mut Context, from: MpId, order: u64) {
        for round in self.acks.acknowledge(from, order) {
            self.complete(cx, round);
        }
    }

    /// Everything a release or flush waited for is acknowledged.
    fn complete(&mut self, cx: &mut Context, round: Round) {
        let wait = cx.now - round.began;
        match round.then {
            Then::Release {
                object,
                ap,
                caller,
                version,
            } => {
                let served = Served::new(Op::Release, object, version);
                record_served(cx, Accessor { ap, caller }, &served, wait);
                cx.respond(caller, Response::Released { version }, wait);
                self.pass_on(cx, object);
            }
            Then::Write(number) => self.written(cx, number),
            Then::Flush(caller) => cx.respond(caller, Response::Flushed, wait),
            Then::Nothing => {}
        }
    }

    pub(super) fn pass_on(&mut self, cx: &mut Context, object: ObjectId) {
        if !self.may_grant(cx, object) {
            // Nobody holds it, and nobody is granted it yet.
            if let Some(o) = self.objects.get_mut(&object) {
                o.lock.begin_release();
            }
            return;
        }
        let o = self.objects.get_mut(&object);
        let next = o.and_then(|o| o.lock.pass_on(cx.now));
        if let Some((next, epoch)) = next {
            self.granted(cx, next, object, epoch);
        }
    }

    /// Takes back what an application process holds or waits for: one object, or everything, its
    /// unpublished writes then being told to the copies.
    pub(crate) fn abandon(&mut self, cx: &mut Context, ap: ApId, object: Option<ObjectId>) {
        if let Some(object) = object {
            self.tell_holder(cx, ap, object);
        }
        self.shipping.abandon(ap, object);
        self.delegations.abandon(ap, object);
        match object {
            Some(object) => self.abandon_one(cx, ap, object),
            None => {
                let locks = self.objects.locks_of(&[ap]);
                self.abandon_all(cx, ap, &locks);
            }
        }
    }

    /// Tells the memory process of one that does not wait any more for whom it waited.
    fn tell_holder(&mut self, cx: &mut Context, ap: ApId, object: ObjectId) {
        let holder = self.holder_text(cx, object);
        let o = self.objects.get_mut(&object);
        let queued = o.and_then(|o| o.lock.withdraw(ap)).map(|w| w.caller);
        let waiting = queued.or_else(|| self.delegations.acquirer(ap, object));
        let far = waiting.filter(|caller| caller.mp != cx.me());
        if let (Some(caller), Some(holder)) = (far, holder) {
            refuse(cx, caller, Refusal::new(ErrorCode::Deadline, holder));
        }
    }

    /// Takes back everything of an application process; `locks` are those that it has to do with.
    fn abandon_all(&mut self, cx: &mut Context, ap: ApId, locks: &[(ApId, ObjectId)]) {
        for (_, object) in locks.iter().filter(|(of, _)| *of == ap) {
            self.abandon_one(cx, ap, *object);
        }
        self.publish_writes(cx, ap, Then::Nothing);
    }

    fn abandon_one(&mut self, cx: &mut Context, ap: ApId, object: ObjectId) {
        let Some(o) = self.objects.get_mut(&object) else {
            return;
        };
        let _ = o.lock.withdraw(ap);
        if !o.lock.is_held_by(ap) {
            return;
        }
        o.discard();
        let version = o.version;
        section_ended(cx, ap, object, version);
        self.pass_on(cx, object);
    }

    /// A response leaves for a memory process: it renews the lease of its copies.
    pub(crate) fn note_response(&mut self, now: Nanos, mp: MpId) {
        self.acks.renew_lease(now, mp);
    }

    /// Releases and flushes go on whose copy holders' leases are over: whoever did not acknowledge does
    /// not read its copy any more.
    pub(crate) fn end_leases(&mut self, cx: &mut Context) {
        for round in self.acks.expire(cx.now) {
            self.complete(cx, round);
        }
    }

    /// A memory process is lost: it acknowledges nothing, and its application processes lose their
    /// locks.
    pub(crate) fn lose(&mut self, cx: &mut Context, mp: MpId) {
        self.delegations.lose(mp);
        self.shipping.lose(mp);
        self.acks.cut_off(cx, mp, &mut self.objects);
        let aps = cx.cluster.aps_of(mp);
        let locks = self.objects.locks_of(&aps);
        for ap in aps {
            let written = self.unpublished.of(ap);
            self.delegations.abandon(ap, None);
            self.abandon_all(cx, ap, &locks);
            // It may only be cut off: what it publishes next waits for what the copies were told now.
            if let Some(written) = written {
                self.unpublished.put_ahead(ap, written);
            }
        }
    }
}

/// Records that the owner ended a section without a release.
pub(super) fn section_ended(cx: &mut Context, ap: ApId, object: ObjectId, version: u64) {
    let from = cx.cluster.mp_of(ap).unwrap_or(cx.me());
    let mut record = of_owner(cx, cx.record(ap, cx.now, Op::Release, object), from);
    record.flags.failed = true;
    record.version = version;
    cx.trace(Item::Record(record));
}
