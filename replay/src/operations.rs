//! What each operation does on its way: at the memory process of its application process (the *requester*), at the
//! owner, and back.

use std::collections::{BTreeMap, BTreeSet};

use dosmos_proto::{MpId, ObjectId};
use dosmos_trace::record::{Op, Origin};

use crate::counters::Need;
use crate::engine::{Arrived, Engine, Publication, Running};
use crate::ids::{OpId, Opening, PublicationId};
use crate::places::Way;

impl Engine<'_> {
    /// A message has arrived.
    pub(crate) fn arrived(&mut self, what: Arrived) {
        match what {
            Arrived::Request(op) => self.at_requester(op),
            Arrived::Owner(op) => self.at_owner(op),
            Arrived::Response(op) | Arrived::Reply(op) => self.reply(op),
            Arrived::Flush(op, owner) => self.flush(op, owner),
            Arrived::Flushed(op) => self.flushed(op),
            Arrived::News(publication, holder) => {
                let owner = self.publications.get(publication).owner;
                self.between(holder, owner, 0, Arrived::Acknowledged(publication));
            }
            Arrived::Acknowledged(publication) => self.acknowledged(publication),
            Arrived::Complete(opening) => self.all_at(opening),
            Arrived::Open(opening, mp) => self.open(opening, mp),
            Arrived::Recall(object, owner) => self.recalled(object, owner),
            Arrived::Returned(object) => {
                for op in self.counters.returned(object) {
                    self.at_owner(op);
                }
            }
        }
    }

    /// A message between memory processes; none if they are one.
    fn between(&mut self, from: MpId, to: MpId, bytes: u32, what: Arrived) {
        if from == to {
            return self.arrived(what);
        }
        let way = self.places.way(from, to);
        self.send(self.places.process_of(from), way, bytes, what);
    }

    fn home(&self, running: &Running) -> MpId {
        self.places.home(running.ap)
    }

    fn owner(&self, running: &Running) -> MpId {
        let home = self.home(running);
        self.places
            .owner(running.step.object, home, running.step.owner)
    }

    fn at_requester(&mut self, op: OpId) {
        self.ops.change(op).received = self.now;
        let running = self.ops.get(op);
        let (home, step) = (self.home(&running), running.step);
        match step.op {
            Op::Read if self.cached(&running) => {
                self.sees(op);
                self.reply(op);
            }
            Op::Read | Op::Acquire => self.ask_owner(op),
            Op::Write => {
                if step.stored && !self.places.is_split(step.object) {
                    self.copies.drop_at(home, step.object);
                    match self.locks.held_by(step.object, running.ap) {
                        true => self.locks.changed(step.object),
                        false => {
                            let runner = &mut self.runners[running.ap as usize];
                            runner.unpublished.insert(step.object);
                        }
                    }
                }
                self.ask_owner(op);
            }
            Op::Release | Op::Barrier => self.publish(op),
        }
    }

    fn ask_owner(&mut self, op: OpId) {
        let running = self.ops.get(op);
        let bytes = match running.step.op {
            Op::Write => running.step.bytes,
            _ => 0,
        };
        let (home, owner) = (self.home(&running), self.owner(&running));
        self.between(home, owner, bytes, Arrived::Owner(op));
    }

    /// Whether a read is served by a copy: as it was in the run, unless the change has to do with it.
    fn cached(&self, running: &Running) -> bool {
        let (home, step) = (self.home(running), running.step);
        let owner = self.owner(running);
        if owner == home || !self.places.same_group(owner, home) {
            return false;
        }
        match self
            .places
            .copies_differ(step.object, running.ap, step.owner)
        {
            true => self.copies.has(home, step.object),
            false => step.cached,
        }
    }

    fn at_owner(&mut self, op: OpId) {
        let running = self.ops.get(op);
        let (home, owner, step) = (self.home(&running), self.owner(&running), running.step);
        if step.takes_from.is_some() {
            match self.counters.need(step.object, running.ap, op) {
                Need::Served => {}
                Need::Waits => return,
                Need::Recall(ap) => {
                    let recall = Arrived::Recall(step.object, owner);
                    return self.send(self.places.process_of(owner), Way::to(ap), 0, recall);
                }
            }
        }
        match step.op {
            Op::Read => {
                if owner != home && self.places.same_group(owner, home) {
                    self.copies.add(home, step.object);
                }
                self.sees(op);
                self.respond(op);
            }
            Op::Acquire => {
                if self.places.is_split(step.object) || self.locks.ask(step.object, running.ap, op)
                {
                    self.respond(op);
                }
            }
            Op::Release => {
                let changed = self.locks.ends(step.object) || step.stored;
                let objects = if changed {
                    vec![step.object]
                } else {
                    Vec::new()
                };
                self.tell(op, owner, &objects, false);
            }
            Op::Write | Op::Barrier => self.respond(op),
        }
    }

    /// A read is served: it sees what there is.
    fn sees(&mut self, op: OpId) {
        let seen = self.versions.of(self.ops.get(op).step.object);
        self.ops.change(op).seen = seen;
    }

    /// A process returns an object that was delegated to it.
    fn recalled(&mut self, object: ObjectId, owner: MpId) {
        let Some(ap) = self.counters.recalled(object) else {
            return;
        };
        let way = Way::to(self.places.process_of(owner));
        let bytes = self.places.bytes(object);
        self.send(ap, way, bytes, Arrived::Returned(object));
    }

    /// The owner answers.
    fn respond(&mut self, op: OpId) {
        let running = self.ops.get(op);
        let bytes = match running.step.op {
            Op::Read => running.step.bytes,
            _ => 0,
        };
        let (home, owner) = (self.home(&running), self.owner(&running));
        self.between(owner, home, bytes, Arrived::Response(op));
    }

    /// The requester answers the application process.
    fn reply(&mut self, op: OpId) {
        let running = self.ops.get(op);
        let bytes = match running.step.op {
            Op::Read => running.step.bytes,
            _ => 0,
        };
        self.timed(&running);
        let home = self.places.process_of(self.home(&running));
        self.send(home, Way::to(running.ap), bytes, Arrived::Reply(op));
    }

    /// Counts how long a read or write took that went to another memory process.
    fn timed(&mut self, running: &Running) {
        let (home, owner) = (self.home(running), self.owner(running));
        if matches!(running.step.op, Op::Read | Op::Write) && !self.cached(running) {
            let origin = match (owner == home, self.places.same_group(owner, home)) {
                (true, _) => Origin::Local,
                (_, true) => Origin::Intra,
                _ => Origin::Inter,
            };
            self.data[origin].add(self.now - running.received);
        }
    }

    /// Before a release or a barrier: what the process wrote outside sections is published by each owner.
    pub(crate) fn publish(&mut self, op: OpId) {
        let running = self.ops.get(op);
        let home = self.home(&running);
        let written = &self.runners[running.ap as usize].unpublished;
        let mut owners: Vec<MpId> = written
            .iter()
            .map(|object| self.places.owner(*object, home, home))
            .collect();
        owners.sort_unstable();
        owners.dedup();
        self.ops.change(op).flushes = owners.len() as u32;
        if owners.is_empty() {
            return self.published(op);
        }
        for owner in owners {
            self.between(home, owner, 0, Arrived::Flush(op, owner));
        }
    }

    fn flush(&mut self, op: OpId, owner: MpId) {
        let running = self.ops.get(op);
        let home = self.home(&running);
        let written = &mut self.runners[running.ap as usize].unpublished;
        let places = &self.places;
        let here: Vec<ObjectId> = written
            .extract_if(|object| places.owner(*object, home, home) == owner)
            .collect();
        self.tell(op, owner, &here, true);
    }

    fn flushed(&mut self, op: OpId) {
        let running = self.ops.change(op);
        running.flushes -= 1;
        if running.flushes == 0 {
            self.published(op);
        }
    }

    /// Everything that the process wrote before is published.
    fn published(&mut self, op: OpId) {
        let running = self.ops.get(op);
        match running.step.op {
            Op::Barrier => self.arrive(op),
            _ => self.ask_owner(op),
        }
    }

    /// The owner tells the holders of copies of these objects, in one message each.
    fn tell(&mut self, op: OpId, owner: MpId, objects: &[ObjectId], flush: bool) {
        let writer = self.home(&self.ops.get(op));
        let mut told: BTreeMap<MpId, u32> = BTreeMap::new();
        for object in objects {
            let policy = self.places.policy(object.var);
            let bytes = match policy {
                dosmos_proto::CopyPolicy::Invalidate => 0,
                dosmos_proto::CopyPolicy::Update => self.places.bytes(*object),
            };
            for holder in self.copies.told(*object, policy, writer) {
                let sum = told.entry(holder).or_default();
                *sum = sum.saturating_add(bytes);
            }
        }
        let publication = self.publications.put(Publication {
            op,
            owner,
            unacknowledged: told.len() as u32,
            flush,
        });
        if told.is_empty() {
            return self.all_acknowledged(publication);
        }
        for (holder, bytes) in told {
            self.between(owner, holder, bytes, Arrived::News(publication, holder));
        }
    }

    fn acknowledged(&mut self, publication: PublicationId) {
        let of = self.publications.change(publication);
        of.unacknowledged -= 1;
        if of.unacknowledged == 0 {
            self.all_acknowledged(publication);
        }
    }

    fn all_acknowledged(&mut self, publication: PublicationId) {
        let of = self.publications.take(publication);
        let running = self.ops.get(of.op);
        if of.flush {
            let home = self.home(&running);
            return self.between(of.owner, home, 0, Arrived::Flushed(of.op));
        }
        if running.step.op == Op::Release {
            self.changed(running.step.object, running.step.version);
        }
        self.respond(of.op);
        if !self.places.is_split(running.step.object)
            && let Some(next) = self.locks.pass_on(running.step.object)
        {
            self.respond(next);
        }
    }

    fn arrive(&mut self, op: OpId) {
        let running = self.ops.get(op);
        let home = self.home(&running);
        let object = running.step.object;
        let opening = (object.var, object.index);
        if self.places.is_free(object.var) {
            return self.arrive_for_nothing(opening, op);
        }
        let arrived = self.barriers.arrive(opening, home, op);
        if arrived == self.participants_at(opening, home) {
            let coordinator = self.coordinator(opening, home);
            self.between(home, coordinator, 0, Arrived::Complete(opening));
        }
    }

    /// At a barrier that costs nothing all wait in one place, and go on from there.
    fn arrive_for_nothing(&mut self, opening: Opening, op: OpId) {
        let place = MpId::default();
        let all = self.script.participants(opening.0, opening.1);
        let all = all.map_or(1, BTreeSet::len);
        if self.barriers.arrive(opening, place, op) == all {
            for op in self.barriers.open(opening, place) {
                self.complete(op);
            }
        }
    }

    /// The memory process that coordinates a barrier.
    fn coordinator(&self, opening: Opening, otherwise: MpId) -> MpId {
        let recorded = self.script.coordinators.get(&opening.0);
        recorded.map_or(otherwise, |mp| self.places.number(*mp))
    }

    fn participants_at(&self, opening: Opening, mp: MpId) -> usize {
        let all = self.script.participants(opening.0, opening.1);
        all.map_or(1, |all| {
            all.iter().filter(|ap| self.places.home(**ap) == mp).count()
        })
    }

    fn all_at(&mut self, opening: Opening) {
        let Some(all) = self.script.participants(opening.0, opening.1) else {
            return;
        };
        let mut homes: Vec<MpId> = all.iter().map(|ap| self.places.home(*ap)).collect();
        homes.sort_unstable();
        homes.dedup();
        if self.barriers.complete(opening) < homes.len() {
            return;
        }
        let coordinator = self.coordinator(opening, homes[0]);
        for mp in homes {
            self.between(coordinator, mp, 0, Arrived::Open(opening, mp));
        }
    }

    fn open(&mut self, opening: Opening, mp: MpId) {
        for op in self.barriers.open(opening, mp) {
            self.reply(op);
        }
    }
}
