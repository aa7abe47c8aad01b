//! How the owner publishes: releases and flushes tell every copy and wait until all have
//! acknowledged; then the lock passes on. And how locks end without a release.
//!
//! What an earlier release or flush told of an object and is not acknowledged yet is waited for too:
//! its copy may still be read.

use dosmos_proto::{ApId, CopyPolicy, MpId, Nanos, ObjectId};
use dosmos_trace::{Op, Side};

use super::input::{Answer, Ask, Tell};
use super::object::Unacked;
use super::owner::{Asker, Served};
use super::{Core, Cx};

/// Acknowledgements of copies that something waits for.
#[derive(Debug)]
pub(crate) struct Round {
    remaining: usize,
    began: Nanos,
    then: Then,
}

/// What happens when all are in.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Then {
    /// A release is answered and the lock passed on.
    Release(ObjectId, Asker, u64),
    /// A flush is answered.
    Flush(Asker),
    /// Nothing: the writer is gone.
    Nothing,
}

impl Core {
    pub(super) fn owner_release(
        &mut self,
        cx: &mut Cx,
        asker: Asker,
        object: ObjectId,
        epoch: u64,
    ) {
        let o = match self.owned(object) {
            Ok(o) => o,
            Err(refusal) => return self.conclude(cx, asker, Err(refusal)),
        };
        if !o.lock.is_section(asker.ap, epoch) {
            let refusal = self.stale(asker.ap, object, epoch);
            return self.conclude(cx, asker, Err(refusal));
        }
        o.lock.begin_release();
        o.version += 1;
        let version = o.version;
        let changed = o.publish();
        self.tell_copies(
            cx,
            changed.then_some(object),
            Then::Release(object, asker, version),
        );
    }

    /// Publishes what `ap` wrote outside sections.
    pub(super) fn owner_flush(&mut self, cx: &mut Cx, ap: ApId, then: Then) {
        let objects = self.dirty.remove(&ap).unwrap_or_default();
        for object in &objects {
            if let Some(o) = self.objects.get_mut(object) {
                o.version += 1;
            }
        }
        self.tell_copies(cx, objects, then);
    }

    /// Tells every copy of the objects that their content changed; goes on when all that was ever
    /// told of these objects is acknowledged.
    fn tell_copies(
        &mut self,
        cx: &mut Cx,
        objects: impl IntoIterator<Item = ObjectId>,
        then: Then,
    ) {
        let mut orders = Vec::new();
        let round = self.next_round;
        let mut remaining = 0;
        for object in objects {
            let update = self.policy_of(object) == CopyPolicy::Update;
            let Some(o) = self.objects.get_mut(&object) else {
                continue;
            };
            let told = if update {
                o.copies.clone()
            } else {
                std::mem::take(&mut o.copies)
            };
            for mp in told {
                let call = self.calls.number();
                let version = o.version;
                let order = if update {
                    let data = o.released().clone();
                    Ask::Update {
                        object,
                        version,
                        data,
                    }
                } else {
                    Ask::Invalidate { object, version }
                };
                orders.push((mp, call, order));
                o.unacked.push(Unacked {
                    mp,
                    call,
                    rounds: Vec::new(),
                });
            }
            for unacked in &mut o.unacked {
                unacked.rounds.push(round);
            }
            remaining += o.unacked.len();
        }
        for (mp, call, order) in orders {
            self.ask(cx, mp, call, order);
        }
        let began = cx.now;
        if remaining == 0 {
            return self.round_done(cx, began, then);
        }
        self.next_round += 1;
        self.rounds.insert(
            round,
            Round {
                remaining,
                began,
                then,
            },
        );
    }

    /// `mp` acknowledged an order about a copy.
    pub(super) fn copy_acknowledged(&mut self, cx: &mut Cx, mp: MpId, call: u64, object: ObjectId) {
        let Some(o) = self.objects.get_mut(&object) else {
            return;
        };
        let Some(at) = o.unacked.iter().position(|u| u.mp == mp && u.call == call) else {
            return;
        };
        let unacked = o.unacked.remove(at);
        self.count_down(cx, unacked.rounds);
    }

    fn count_down(&mut self, cx: &mut Cx, rounds: Vec<u64>) {
        for number in rounds {
            let Some(round) = self.rounds.get_mut(&number) else {
                continue;
            };
            round.remaining -= 1;
            if round.remaining == 0
                && let Some(round) = self.rounds.remove(&number)
            {
                self.round_done(cx, round.began, round.then);
            }
        }
    }

    fn round_done(&mut self, cx: &mut Cx, began: Nanos, then: Then) {
        match then {
            Then::Release(object, asker, version) => {
                let wait = cx.now - began;
                self.owner_record(cx, asker, &Served::lock(Op::Release, object, version), wait);
                self.answer(cx, asker, Answer::Released { version }, wait);
                self.pass_on(cx, object);
            }
            Then::Flush(asker) => self.answer(cx, asker, Answer::Flushed, cx.now - began),
            Then::Nothing => {}
        }
    }

    fn pass_on(&mut self, cx: &mut Cx, object: ObjectId) {
        let next = self.objects.get_mut(&object).and_then(|o| o.lock.pass_on());
        if let Some((asker, epoch)) = next {
            self.granted(cx, asker, object, epoch);
        }
    }

    /// Takes back what an application process holds or waits for: one object, or everything, its
    /// unpublished writes then being told to the copies.
    pub(super) fn owner_abandon(&mut self, cx: &mut Cx, ap: ApId, object: Option<ObjectId>) {
        let objects = match object {
            Some(object) => vec![object],
            None => self.objects_locked_by(ap),
        };
        for object in objects {
            let Some(o) = self.objects.get_mut(&object) else {
                continue;
            };
            o.lock.withdraw(ap);
            if o.lock.is_held_by(ap) {
                o.discard();
                let version = o.version;
                let mut record = self.record(cx, ap, cx.now, Op::Release, object);
                record.side = Side::Owner;
                record.mp = self.cluster.mp_of(ap).unwrap_or(record.mp);
                record.origin = self.cluster.origin(record.mp, self.cluster.me);
                record.flags.failed = true;
                record.version = version;
                cx.record(record);
                self.pass_on(cx, object);
            }
        }
        if object.is_none() {
            self.owner_flush(cx, ap, Then::Nothing);
        }
    }

    /// Objects whose lock knows `ap`, in order. Searches all: it happens when a process dies.
    fn objects_locked_by(&self, ap: ApId) -> Vec<ObjectId> {
        let mut list: Vec<ObjectId> = self
            .objects
            .iter()
            .filter(|(_, o)| o.lock.concerns(ap))
            .map(|(id, _)| *id)
            .collect();
        list.sort_unstable();
        list
    }

    /// A memory process is cut off: it holds no copies, acknowledges nothing, and its application
    /// processes lose their locks.
    pub(super) fn owner_loses(&mut self, cx: &mut Cx, mp: MpId) {
        let mut resolved = Vec::new();
        for o in self.objects.values_mut() {
            o.remove_copy(mp);
            o.unacked.retain_mut(|u| {
                if u.mp == mp {
                    resolved.append(&mut u.rounds);
                }
                u.mp != mp
            });
        }
        // The map's order must not show: rounds go on in the order they began.
        resolved.sort_unstable();
        self.count_down(cx, resolved);
        for ap in self.cluster.topology.clone().aps_in(None) {
            if self.cluster.mp_of(ap) == Some(mp) {
                let dirty = self.dirty.get(&ap).cloned();
                self.owner_abandon(cx, ap, None);
                // It may only be cut off: told to the copies now, and again, with someone waiting
                // for their acknowledgements, when it publishes.
                if let Some(dirty) = dirty {
                    self.dirty.insert(ap, dirty);
                }
            }
        }
    }

    /// Tells an owner, here or elsewhere, to take back what `ap` has of it.
    pub(super) fn abandon_at(
        &mut self,
        cx: &mut Cx,
        owner: MpId,
        ap: ApId,
        object: Option<ObjectId>,
    ) {
        if owner == self.cluster.me {
            self.owner_abandon(cx, ap, object);
        } else {
            self.tell(cx, owner, Tell::Abandon { ap, object });
        }
    }

    /// Who holds an object we own, for a message.
    pub(super) fn holder_text(&self, object: ObjectId) -> Option<String> {
        let lock = &self.objects.get(&object)?.lock;
        let holder = self.cluster.ap_name(lock.holder()?);
        Some(format!("{holder} holds it (epoch {})", lock.epoch()))
    }

    fn policy_of(&self, object: ObjectId) -> CopyPolicy {
        self.directory
            .variable(object.var)
            .map_or(CopyPolicy::Invalidate, |v| v.spec().policy())
    }
}
