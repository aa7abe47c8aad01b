//! The owner's role (PMP): serves reads, writes, locks and releases of the objects it owns, for other
//! memory processes and for its own application processes alike.

use bytes::Bytes;
use dosmos_proto::{ApId, ElementType, ErrorCode, MpId, Nanos, ObjectId, Refusal};
use dosmos_trace::{Op, Side};

use super::input::{Answer, Ask, AtomicOp, Body, Message, Span};
use super::lock::Acquired;
use super::object::Object;
use super::rounds::Then;
use super::{Core, Cx};

/// Who asked, and where the answer goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Asker {
    pub(crate) mp: MpId,
    pub(crate) ap: ApId,
    pub(crate) call: u64,
    pub(crate) received: Nanos,
}
/// What an owner's record says.
pub(crate) struct Served {
    op: Op,
    object: ObjectId,
    range: (u32, u32),
    bytes: u32,
    version: u64,
}

impl Served {
    pub(crate) fn lock(op: Op, object: ObjectId, version: u64) -> Self {
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
    pub(super) fn conclude(&mut self, cx: &mut Cx, asker: Asker, done: Result<Done, Refusal>) {
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

    pub(super) fn owner_record(&mut self, cx: &mut Cx, asker: Asker, served: &Served, wait: Nanos) {
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
    pub(super) fn owned(&mut self, object: ObjectId) -> Result<&mut Object, Refusal> {
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

    pub(super) fn stale(&self, ap: ApId, object: ObjectId, epoch: u64) -> Refusal {
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

    pub(super) fn granted(&mut self, cx: &mut Cx, asker: Asker, object: ObjectId, epoch: u64) {
        let version = self.objects.get(&object).map_or(0, |o| o.version);
        let wait = cx.now - asker.received;
        self.owner_record(cx, asker, &Served::lock(Op::Acquire, object, version), wait);
        self.answer(cx, asker, Answer::Granted { epoch, version }, wait);
    }
}
