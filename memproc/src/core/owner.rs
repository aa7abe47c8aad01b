//! The owner's role (PMP): serves reads, writes, locks and releases of the objects it owns, for other
//! memory processes and for its own application processes alike.
//!
//! A release is answered, and the lock passed on, only when every copy of the object was told and
//! acknowledged it — copies told by an earlier release or flush and not acknowledged yet included.

use bytes::Bytes;
use dosmos_proto::{
    ApId, CopyPolicy, ElementType, ErrorCode, MpId, Nanos, ObjectId, Refusal, VariableSpec,
};
use dosmos_trace::{Op, Side};

use super::input::{Answer, Ask, AtomicOp, Body, Message, Span, Tell};
use super::lock::Acquired;
use super::object::{Object, Unacked};
use super::{Core, Cx};

/// Who asked, and where the answer goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Asker {
    pub(crate) mp: MpId,
    pub(crate) ap: ApId,
    pub(crate) call: u64,
    pub(crate) received: Nanos,
}

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

/// What an owner's record says.
struct Served {
    op: Op,
    object: ObjectId,
    range: (u32, u32),
    bytes: u32,
    version: u64,
}

impl Served {
    fn lock(op: Op, object: ObjectId, version: u64) -> Self {
        Self {
            op,
            object,
            range: (0, 0),
            bytes: 0,
            version,
        }
    }
}

type Done = (Answer, Served);

impl Core {
    /// Serves a request of another memory process, or of this one for its application processes.
    pub(super) fn serve(&mut self, cx: &mut Cx, asker: Asker, ask: Ask) {
        if asker.mp != self.cluster.me {
            self.counters.served += 1;
        }
        if self.cluster.is_link() {
            let why = format!(
                "{} is a link process; it owns nothing",
                self.cluster.mp_name(self.cluster.me)
            );
            let refusal = Refusal::new(ErrorCode::Invalid, why);
            return self.answer(cx, asker, Answer::Refused(refusal), Nanos::ZERO);
        }
        let asker = |ap| Asker { ap, ..asker };
        match ask {
            Ask::Read {
                object,
                span,
                ap,
                want_copy,
            } => {
                let done = self.owner_read(asker(ap), object, span, want_copy);
                self.conclude(cx, asker(ap), done);
            }
            Ask::Write {
                object,
                first,
                data,
                epoch,
                ap,
            } => {
                let done = self.owner_write(asker(ap), object, first, &data, epoch);
                self.conclude(cx, asker(ap), done);
            }
            Ask::Atomic {
                object,
                element,
                kind,
                epoch,
                op,
                ap,
            } => {
                let done = self.owner_atomic(asker(ap), object, element, kind, epoch, op);
                self.conclude(cx, asker(ap), done);
            }
            Ask::Acquire { object, ap } => self.owner_acquire(cx, asker(ap), object),
            Ask::Release { object, ap, epoch } => {
                self.owner_release(cx, asker(ap), object, epoch);
            }
            Ask::Flush { ap } => self.owner_flush(cx, ap, Then::Flush(asker(ap))),
            Ask::Declare { spec, creator } => {
                self.home_declare(cx, asker(ApId::default()), &spec, creator);
            }
            Ask::Open(name) => self.home_open(cx, asker(ApId::default()), &name),
            Ask::Create(variable) => {
                let answer = match self.learn(cx, &variable) {
                    Ok(()) => Answer::Created,
                    Err(refusal) => Answer::Refused(refusal),
                };
                self.answer(cx, asker(ApId::default()), answer, Nanos::ZERO);
            }
            Ask::Invalidate { object, version } => {
                self.copy_taken_back(cx, asker(ApId::default()), object, version, None);
            }
            Ask::Update {
                object,
                version,
                data,
            } => self.copy_taken_back(cx, asker(ApId::default()), object, version, Some(data)),
        }
    }

    /// Answers, and makes the owner's record if the request came from elsewhere.
    fn conclude(&mut self, cx: &mut Cx, asker: Asker, done: Result<Done, Refusal>) {
        match done {
            Ok((answer, served)) => {
                self.owner_record(cx, asker, &served, Nanos::ZERO);
                self.answer(cx, asker, answer, Nanos::ZERO);
            }
            Err(refusal) => self.answer(cx, asker, Answer::Refused(refusal), Nanos::ZERO),
        }
    }

    /// Sends an answer to whoever asked, here or elsewhere.
    pub(super) fn answer(&mut self, cx: &mut Cx, asker: Asker, answer: Answer, wait: Nanos) {
        if asker.mp == self.cluster.me {
            self.answered(cx, self.cluster.me, asker.call, answer, (Nanos::ZERO, wait));
        } else {
            let message = Message {
                source: self.cluster.me,
                destination: asker.mp,
                call: asker.call,
                hops: 0,
                service: Nanos::ZERO,
                wait,
                body: Body::Answer(answer),
            };
            self.send(cx, message);
        }
    }

    fn owner_record(&mut self, cx: &mut Cx, asker: Asker, served: &Served, wait: Nanos) {
        if asker.mp == self.cluster.me {
            return;
        }
        let mut record = self.record(cx, asker.ap, asker.received, served.op, served.object);
        record.side = Side::Owner;
        record.mp = asker.mp;
        record.origin = self.cluster.origin(asker.mp, self.cluster.me);
        record.wait = wait;
        record.range = served.range;
        record.bytes = served.bytes;
        record.version = served.version;
        cx.record(record);
    }

    /// The object, made at its first use; refused if it is not ours or does not exist.
    fn owned(&mut self, object: ObjectId) -> Result<&mut Object, Refusal> {
        if !self.objects.contains_key(&object) {
            let place = self.place(object)?;
            if place.owner != self.cluster.me {
                return Err(Refusal::new(
                    ErrorCode::Invalid,
                    format!(
                        "{} is not owned by {} but by {}",
                        self.object_name(object),
                        self.cluster.mp_name(self.cluster.me),
                        self.cluster.mp_name(place.owner)
                    ),
                ));
            }
            let fresh = Object::zeroed((place.elements * place.width) as usize);
            self.objects.insert(object, fresh);
        }
        self.objects
            .get_mut(&object)
            .ok_or_else(|| Refusal::new(ErrorCode::Invalid, "no such object"))
    }

    fn owner_read(
        &mut self,
        asker: Asker,
        object: ObjectId,
        span: Span,
        want_copy: bool,
    ) -> Result<Done, Refusal> {
        let place = self.place(object)?;
        let (first, end) = self.check_span(object, &place, span)?;
        let whole = first == 0 && end == place.elements;
        let near =
            asker.mp != self.cluster.me && self.cluster.same_group(asker.mp, self.cluster.me);
        let o = self.owned(object)?;
        let in_section = o.lock.is_held_by(asker.ap);
        let width = place.width as usize;
        let data = o
            .visible(in_section)
            .slice(first as usize * width..end as usize * width);
        // Nobody but the holder may see its section: such content is never a copy.
        let copy = want_copy && near && whole && !(in_section && o.is_written());
        if copy {
            o.add_copy(asker.mp);
        }
        let version = o.version;
        let served = Served {
            op: Op::Read,
            object,
            range: (first, end),
            bytes: data.len() as u32,
            version,
        };
        Ok((
            Answer::Read {
                version,
                data,
                copy,
            },
            served,
        ))
    }

    /// Whether a write belongs to the writer's section (`true`) or is for everyone.
    fn section_of(&mut self, asker: Asker, object: ObjectId, epoch: u64) -> Result<bool, Refusal> {
        let o = self.owned(object)?;
        if epoch == 0 {
            return Ok(false);
        }
        if o.lock.is_section(asker.ap, epoch) {
            return Ok(true);
        }
        Err(self.stale(asker.ap, object, epoch))
    }

    fn stale(&self, ap: ApId, object: ObjectId, epoch: u64) -> Refusal {
        let now = self.objects.get(&object).map_or_else(
            || "is free".to_owned(),
            |o| match o.lock.holder() {
                Some(h) => format!(
                    "is held by {} (epoch {})",
                    self.cluster.ap_name(h),
                    o.lock.epoch()
                ),
                None => format!("is free (last epoch {})", o.lock.epoch()),
            },
        );
        Refusal::new(
            ErrorCode::StaleEpoch,
            format!(
                "the section of {} on {} (epoch {epoch}) is over; it {now} now; acquire it again",
                self.cluster.ap_name(ap),
                self.object_name(object)
            ),
        )
    }

    fn owner_write(
        &mut self,
        asker: Asker,
        object: ObjectId,
        first: u32,
        data: &Bytes,
        epoch: u64,
    ) -> Result<Done, Refusal> {
        let place = self.place(object)?;
        let end = self.check_data(object, &place, first, data.len())?;
        let in_section = self.section_of(asker, object, epoch)?;
        let o = self.owned(object)?;
        o.write((first * place.width) as usize, data, in_section);
        let version = o.version;
        self.wrote(asker, object, in_section);
        let served = Served {
            op: Op::Write,
            object,
            range: (first, end),
            bytes: data.len() as u32,
            version,
        };
        Ok((Answer::Written { version }, served))
    }

    fn owner_atomic(
        &mut self,
        asker: Asker,
        object: ObjectId,
        element: u32,
        kind: ElementType,
        epoch: u64,
        op: AtomicOp,
    ) -> Result<Done, Refusal> {
        let place = self.place(object)?;
        self.check_atomic(object, &place, element, kind, op)?;
        let in_section = self.section_of(asker, object, epoch)?;
        let o = self.owned(object)?;
        let at = (element * place.width) as usize;
        let (previous, stored) = o.atomic(at, kind, op, in_section);
        let version = o.version;
        // The asker's copy is gone even if nothing was stored: its process dropped it when it asked.
        self.wrote(asker, object, in_section || !stored);
        let served = Served {
            op: Op::Write,
            object,
            range: (element, element + 1),
            bytes: place.width,
            version,
        };
        Ok((
            Answer::Atomic {
                previous,
                stored,
                version,
            },
            served,
        ))
    }

    /// After a write: its sender holds no copy any more, and a write for everyone is remembered until
    /// its writer publishes.
    fn wrote(&mut self, asker: Asker, object: ObjectId, told_at_release: bool) {
        if let Some(o) = self.objects.get_mut(&object) {
            o.remove_copy(asker.mp);
        }
        if !told_at_release {
            self.dirty.entry(asker.ap).or_default().insert(object);
        }
    }

    fn owner_acquire(&mut self, cx: &mut Cx, asker: Asker, object: ObjectId) {
        let acquired = match self.owned(object) {
            Ok(o) => o.lock.acquire(asker),
            Err(refusal) => return self.conclude(cx, asker, Err(refusal)),
        };
        let who = || self.cluster.ap_name(asker.ap);
        let twice = |how: String| Refusal::new(ErrorCode::AlreadyHeld, how);
        match acquired {
            Acquired::Now(epoch) => self.granted(cx, asker, object, epoch),
            Acquired::Waits => {
                let mut record = self.record(cx, asker.ap, asker.received, Op::Acquire, object);
                record.side = Side::Owner;
                record.mp = asker.mp;
                record.origin = self.cluster.origin(asker.mp, self.cluster.me);
                record.flags.waiting = true;
                record.version = self.objects.get(&object).map_or(0, |o| o.version);
                cx.record(record);
            }
            Acquired::Holds(epoch) => {
                let refusal = twice(format!(
                    "{} already holds {} (epoch {epoch}); release it first",
                    who(),
                    self.object_name(object)
                ));
                self.conclude(cx, asker, Err(refusal));
            }
            Acquired::WaitsAlready => {
                let refusal = twice(format!(
                    "{} already waits for {}; one acquire at a time",
                    who(),
                    self.object_name(object)
                ));
                self.conclude(cx, asker, Err(refusal));
            }
        }
    }

    fn granted(&mut self, cx: &mut Cx, asker: Asker, object: ObjectId, epoch: u64) {
        let version = self.objects.get(&object).map_or(0, |o| o.version);
        let wait = cx.now - asker.received;
        self.owner_record(cx, asker, &Served::lock(Op::Acquire, object, version), wait);
        self.answer(cx, asker, Answer::Granted { epoch, version }, wait);
    }

    fn owner_release(&mut self, cx: &mut Cx, asker: Asker, object: ObjectId, epoch: u64) {
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
    fn owner_flush(&mut self, cx: &mut Cx, ap: ApId, then: Then) {
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
            .map_or(CopyPolicy::Invalidate, |v| v.spec.policy)
    }

    /// The declaration as this cluster's configuration wants it.
    pub(super) fn overridden(&self, mut spec: VariableSpec) -> VariableSpec {
        for o in self
            .settings
            .overrides
            .iter()
            .filter(|o| o.name == spec.name)
        {
            if let Some(policy) = o.policy {
                spec.policy = policy;
            }
            if let Some(placement) = &o.placement {
                spec.placement = placement.clone();
            }
        }
        spec
    }
}
