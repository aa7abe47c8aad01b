//! The requester's role (SMP, and PMP towards its own application processes): checks requests,
//! serves reads from copies, sends the rest to their owners, and completes them.
//!
//! Each operation of an application process is answered once and gives one record, side `Requester`.

use std::sync::Arc;

use dosmos_proto::variable::check_name;
use dosmos_proto::{ApId, ElementType, ErrorCode, MpId, Nanos, ObjectId, Refusal};
use dosmos_trace::meta::HandOver;
use dosmos_trace::{Op, Origin, Record, Side};

use super::calls::{Call, Kind, Operation, What};
use super::copies::Copy;
use super::directory::{Place, conflict, home_of};
use super::input::{Answer, Ask, AtomicOp, Item, Output, Reply, Request, Span};
use super::owner::Asker;
use super::sessions::{MAX_OUTSTANDING, Section};
use super::{Core, Cx};

impl Core {
    /// A request of a connected application process.
    pub(super) fn request(&mut self, cx: &mut Cx, mut op: Operation, request: Request) {
        self.counters.requests += 1;
        op.what = self.what(&request);
        if let Err(refusal) = self.admit(op.ap) {
            return self.conclude_operation(
                cx,
                &op,
                self.cluster.me,
                Err(refusal),
                Cost::default(),
            );
        }
        let done = match request {
            Request::Declare(spec) => self.declare(cx, &op, spec),
            Request::Open(name) => self.open(cx, &op, name),
            Request::Read { object, span } => self.read(cx, &op, object, span),
            Request::Write {
                object,
                first,
                data,
                epoch,
            } => self.write(cx, &op, object, epoch, |core, place| {
                let end = core.check_data(object, place, first, data.len())?;
                let ask = move |ap, epoch| Ask::Write {
                    object,
                    first,
                    data,
                    epoch,
                    ap,
                };
                Ok((end, ask))
            }),
            Request::Atomic {
                object,
                element,
                kind,
                epoch,
                op: atomic,
            } => self.write(cx, &op, object, epoch, |core, place| {
                core.check_atomic(object, place, element, kind, atomic)?;
                let ask = move |ap, epoch| Ask::Atomic {
                    object,
                    element,
                    kind,
                    epoch,
                    op: atomic,
                    ap,
                };
                Ok((element + 1, ask))
            }),
            Request::Acquire(object) => self.acquire(cx, &op, object),
            Request::Release { object, epoch } => self.release(cx, &op, object, epoch),
            Request::Barrier { scope, name } => self.barrier(cx, &op, &scope, &name),
            Request::Bye => {
                self.leave(cx, op.ap, true);
                cx.reply(op.ap, op.id, Reply::Farewell);
                Ok(())
            }
        };
        if let Err(refusal) = done {
            let to = op
                .what
                .traced()
                .and_then(|(_, object, ..)| self.place(object).ok())
                .map_or(self.cluster.me, |p| p.owner);
            self.conclude_operation(cx, &op, to, Err(refusal), Cost::default());
        }
    }

    fn admit(&self, ap: ApId) -> Result<(), Refusal> {
        let me = || self.cluster.mp_name(self.cluster.me);
        if self.closing {
            return Err(Refusal::new(
                ErrorCode::ShuttingDown,
                format!("{} is ending", me()),
            ));
        }
        let session = self.sessions.get(ap).filter(|s| s.connected);
        let Some(outstanding) = session.map(|s| s.outstanding) else {
            return Err(Refusal::new(
                ErrorCode::Invalid,
                format!("{} is not connected to {}", self.cluster.ap_name(ap), me()),
            ));
        };
        if outstanding >= MAX_OUTSTANDING {
            return Err(Refusal::new(
                ErrorCode::Limit,
                format!(
                    "{} has {MAX_OUTSTANDING} requests under way at {}; await some first",
                    self.cluster.ap_name(ap),
                    me()
                ),
            ));
        }
        Ok(())
    }

    /// What a record will say of a request, as far as it can be told before it is checked.
    fn what(&self, request: &Request) -> What {
        match request {
            Request::Declare(spec) => What::Declare(spec.name.clone()),
            Request::Open(name) => What::Open(name.clone()),
            Request::Bye => What::Open(String::new()),
            Request::Read { object, .. } => What::Read {
                object: *object,
                first: 0,
                end: 0,
                width: 0,
                fetch: false,
            },
            Request::Write { object, .. } | Request::Atomic { object, .. } => What::Write {
                object: *object,
                first: 0,
                end: 0,
                bytes: 0,
            },
            Request::Acquire(object) => What::Acquire {
                object: *object,
                sent: false,
            },
            Request::Release { object, epoch } => What::Release {
                object: *object,
                epoch: *epoch,
                sent: None,
            },
            Request::Barrier { scope, name } => What::Barrier {
                barrier: self.barrier_number(scope, name),
                arrived: None,
            },
        }
    }

    /// Registers an operation that `to` will answer.
    pub(super) fn open_operation(&mut self, op: &Operation, to: MpId, what: What) -> u64 {
        self.sessions.get_mut(op.ap).outstanding += 1;
        let op = Operation { what, ..op.clone() };
        self.calls.open(to, Kind::Operation(op))
    }

    /// Sends a request to its owner or home, or serves it if that is us.
    pub(super) fn dispatch(&mut self, cx: &mut Cx, to: MpId, call: u64, ask: Ask) {
        if to == self.cluster.me {
            let asker = Asker {
                mp: to,
                ap: ApId::default(),
                call,
                received: cx.now,
            };
            self.serve(cx, asker, ask);
        } else {
            self.ask(cx, to, call, ask);
        }
    }

    fn declare(
        &mut self,
        cx: &mut Cx,
        op: &Operation,
        spec: dosmos_proto::VariableSpec,
    ) -> Result<(), Refusal> {
        let spec = self.overridden(spec);
        if let Some(known) = self.directory.named(&spec.name) {
            if known.spec != spec {
                return Err(conflict(&known.spec, &spec));
            }
            // An owner may know a variable before the others do: only the home can say it is ready.
            if self.announced.contains(&known.id) {
                let reply = Reply::Variable(Arc::clone(known));
                self.conclude_operation(cx, op, self.cluster.me, Ok(reply), Cost::default());
                return Ok(());
            }
        }
        let home = home_of(&self.cluster, &spec.name)?;
        self.peers.reach(&self.cluster, home)?;
        let call = self.open_operation(op, home, op.what.clone());
        let creator = self.cluster.me;
        self.dispatch(cx, home, call, Ask::Declare { spec, creator });
        Ok(())
    }

    fn open(&mut self, cx: &mut Cx, op: &Operation, name: String) -> Result<(), Refusal> {
        check_name("variable name", &name)?;
        if let Some(known) = self.directory.named(&name)
            && self.announced.contains(&known.id)
        {
            let reply = Reply::Variable(Arc::clone(known));
            self.conclude_operation(cx, op, self.cluster.me, Ok(reply), Cost::default());
            return Ok(());
        }
        let home = home_of(&self.cluster, &name)?;
        self.peers.reach(&self.cluster, home)?;
        let call = self.open_operation(op, home, op.what.clone());
        self.dispatch(cx, home, call, Ask::Open(name));
        Ok(())
    }

    fn read(
        &mut self,
        cx: &mut Cx,
        op: &Operation,
        object: ObjectId,
        span: Span,
    ) -> Result<(), Refusal> {
        let place = self.place(object)?;
        let (first, end) = self.check_span(object, &place, span)?;
        let near =
            place.owner != self.cluster.me && self.cluster.same_group(place.owner, self.cluster.me);
        let section = self.sessions.section(op.ap, object);
        // Who wrote in its section finds its writes at the owner only.
        let fetch = near && !section.is_some_and(|s| s.wrote);
        let what = What::Read {
            object,
            first,
            end,
            width: place.width,
            fetch,
        };
        if fetch && let Some(copy) = self.copies.get(object) {
            let data = copy
                .data
                .slice((first * place.width) as usize..(end * place.width) as usize);
            let version = copy.version;
            let op = Operation { what, ..op.clone() };
            let mut record = self.operation_record(cx, &op, place.owner);
            record.flags.optimized = true;
            record.origin = Origin::Local;
            record.version = version;
            cx.record(record);
            cx.reply(op.ap, op.id, Reply::Read { version, data });
            return Ok(());
        }
        self.peers.reach(&self.cluster, place.owner)?;
        let call = self.open_operation(op, place.owner, what);
        let span = if fetch {
            self.copies.fetch_begins(object);
            Span::ALL
        } else {
            Span { first, end }
        };
        let ask = Ask::Read {
            object,
            span,
            ap: op.ap,
            want_copy: fetch,
        };
        self.dispatch(cx, place.owner, call, ask);
        Ok(())
    }

    pub(super) fn check_atomic(
        &self,
        object: ObjectId,
        place: &Place,
        element: u32,
        kind: ElementType,
        op: AtomicOp,
    ) -> Result<(), Refusal> {
        let mismatch = |why: String| Err(Refusal::new(ErrorCode::TypeMismatch, why));
        let is = self
            .directory
            .variable(object.var)
            .map(|v| v.spec.layout.element());
        if let Some(is) = is.filter(|is| *is != kind) {
            return mismatch(format!(
                "{} has elements of {is}, not {kind}",
                self.object_name(object)
            ));
        }
        if kind == ElementType::Bool && matches!(op, AtomicOp::FetchAdd(_)) {
            return mismatch(format!(
                "{} is bool; use compare-exchange, there is nothing to add",
                self.object_name(object)
            ));
        }
        let span = Span {
            first: element,
            end: element.saturating_add(1),
        };
        self.check_span(object, place, span).map(|_| ())
    }

    /// Writes and atomics: `make` checks and gives the element after the last touched, and the
    /// request to the owner.
    fn write<F: FnOnce(ApId, u64) -> Ask>(
        &mut self,
        cx: &mut Cx,
        op: &Operation,
        object: ObjectId,
        epoch: u64,
        make: impl FnOnce(&Self, &Place) -> Result<(u32, F), Refusal>,
    ) -> Result<(), Refusal> {
        let place = self.place(object)?;
        let (end, make) = make(self, &place)?;
        let epoch = self.guard(op.ap, object, epoch)?;
        self.peers.reach(&self.cluster, place.owner)?;
        let ask = make(op.ap, epoch.unwrap_or(0));
        let (first, bytes) = match &ask {
            Ask::Write { first, data, .. } => (*first, data.len() as u32),
            _ => (end - 1, place.width),
        };
        let session = self.sessions.get_mut(op.ap);
        match session.sections.get_mut(&object) {
            Some(section) if epoch.is_some() => section.wrote = true,
            _ => {
                session.dirty.insert(place.owner);
            }
        }
        if place.owner != self.cluster.me {
            self.forget_copy(cx, object, place.owner);
        }
        let what = What::Write {
            object,
            first,
            end,
            bytes,
        };
        let call = self.open_operation(op, place.owner, what);
        self.dispatch(cx, place.owner, call, ask);
        Ok(())
    }

    /// The epoch of the section a write or release belongs to, if any; refused if that section is
    /// over.
    pub(super) fn guard(
        &self,
        ap: ApId,
        object: ObjectId,
        epoch: u64,
    ) -> Result<Option<u64>, Refusal> {
        let stale = |why: String| {
            Err(Refusal::new(
                ErrorCode::StaleEpoch,
                format!(
                    "the section of {} on {} is over: {why}; acquire it again",
                    self.cluster.ap_name(ap),
                    self.object_name(object)
                ),
            ))
        };
        match self.sessions.section(ap, object) {
            Some(s) if s.lost => stale(format!("{} was lost", self.cluster.mp_name(s.owner))),
            Some(s) if epoch == 0 || epoch == s.epoch => Ok(Some(s.epoch)),
            Some(s) => stale(format!("epoch {epoch} was given, {} is current", s.epoch)),
            None if epoch == 0 => Ok(None),
            None => stale(format!("epoch {epoch} is not current")),
        }
    }

    /// One of our application processes writes: our copy is void.
    pub(super) fn forget_copy(&mut self, cx: &mut Cx, object: ObjectId, owner: MpId) {
        let upcoming = self.calls.upcoming();
        if self.copies.forget(object, upcoming) {
            self.hand_over(cx, object, owner, true);
        }
    }

    /// Tells the recorder what became of a copy.
    pub(super) fn hand_over(&self, cx: &mut Cx, object: ObjectId, owner: MpId, dropped: bool) {
        cx.out.push(Output::Trace(Item::HandOver(HandOver {
            object,
            copy_at: self.cluster.me,
            primary_emp: self.cluster.emp_of(owner),
            dropped,
        })));
    }

    /// The owner invalidates a copy (no `data`) or updates it.
    pub(super) fn copy_taken_back(
        &mut self,
        cx: &mut Cx,
        asker: Asker,
        object: ObjectId,
        version: u64,
        data: Option<bytes::Bytes>,
    ) {
        let dropped = data.is_none();
        let had = match data {
            Some(data) => self.copies.update(object, data, version),
            None => self.copies.drop_copy(object),
        };
        if had {
            self.hand_over(cx, object, asker.mp, dropped);
        }
        self.answer(cx, asker, Answer::CopyAck { object, version }, Nanos::ZERO);
    }

    fn acquire(&mut self, cx: &mut Cx, op: &Operation, object: ObjectId) -> Result<(), Refusal> {
        let place = self.place(object)?;
        self.peers.reach(&self.cluster, place.owner)?;
        let call = self.open_operation(op, place.owner, op.what.clone());
        self.prepare(cx, op.ap, call);
        Ok(())
    }

    /// An answer to a call, from here or elsewhere. One to a call that is over finds nobody: what it
    /// granted was taken back when the call ended.
    pub(super) fn answered(
        &mut self,
        cx: &mut Cx,
        from: MpId,
        call: u64,
        answer: Answer,
        (service, wait): (Nanos, Nanos),
    ) {
        if let Answer::CopyAck { object, .. } = answer {
            return self.copy_acknowledged(cx, from, call, object);
        }
        let Some(pending) = self.calls.get(call).filter(|c| c.to == from) else {
            return;
        };
        match &pending.kind {
            Kind::Flush(ap) => {
                let ap = *ap;
                self.calls.close(call);
                self.flushed(cx, ap, refusal_of(answer));
            }
            Kind::Create(name) => {
                let name = name.clone();
                self.calls.close(call);
                let result = refusal_of(answer).map_or(Ok(()), Err);
                self.created(cx, &name, result);
            }
            Kind::Operation(_) => self.settle(cx, call, answer, Cost { service, wait }),
        }
    }

    /// The answer to an operation.
    fn settle(&mut self, cx: &mut Cx, call: u64, answer: Answer, cost: Cost) {
        let outcome = match answer {
            Answer::Read {
                version,
                data,
                copy,
            } => return self.read_done(cx, call, (version, data, copy), cost),
            Answer::Written { version } => Ok(Reply::Written { version }),
            Answer::Atomic {
                previous,
                stored,
                version,
            } => Ok(Reply::Atomic {
                previous,
                stored,
                version,
            }),
            Answer::Granted { epoch, version } => Ok(Reply::Granted { epoch, version }),
            Answer::Released { version } => Ok(Reply::Released { version }),
            Answer::Variable(variable) => match self.learn(cx, &variable) {
                Ok(()) => {
                    self.announced.insert(variable.id);
                    Ok(Reply::Variable(variable))
                }
                Err(refusal) => Err(refusal),
            },
            Answer::Refused(refusal) => Err(refusal),
            Answer::Flushed | Answer::Created | Answer::CopyAck { .. } => Err(Refusal::new(
                ErrorCode::Invalid,
                "the owner gave an answer to another question; are all processes of one version?",
            )),
        };
        self.finish(cx, call, outcome, cost);
    }

    fn read_done(
        &mut self,
        cx: &mut Cx,
        call: u64,
        (version, data, copy): (u64, bytes::Bytes, bool),
        cost: Cost,
    ) {
        let Some(Call { to, kind }) = self.calls.get(call) else {
            return;
        };
        let to = *to;
        let Kind::Operation(Operation {
            what:
                What::Read {
                    object,
                    first,
                    end,
                    width,
                    fetch,
                },
            ..
        }) = *kind
        else {
            return;
        };
        let whole = self
            .place(object)
            .map_or(0, |p| (p.elements * p.width) as usize);
        let expected = if fetch {
            whole
        } else {
            ((end - first) * width) as usize
        };
        if data.len() != expected {
            let refusal = Refusal::new(
                ErrorCode::Invalid,
                format!(
                    "{} sent {} bytes of {} where {expected} were asked for",
                    self.cluster.mp_name(to),
                    data.len(),
                    self.object_name(object)
                ),
            );
            return self.finish(cx, call, Err(refusal), cost);
        }
        let asked = if fetch {
            data.slice((first * width) as usize..(end * width) as usize)
        } else {
            data.clone()
        };
        let copy = (copy && fetch).then_some(Copy {
            data,
            version,
            owner: to,
        });
        let reply = Reply::Read {
            version,
            data: asked,
        };
        self.finish(cx, call, Ok(reply), cost);
        // After the record, so that the copy's monitoring starts with this read behind it.
        if fetch && !self.copies.fetch_ends(object, call, copy) {
            self.hand_over(cx, object, to, true);
        }
    }

    /// Ends an operation: its reply, its record, and what follows from it.
    pub(super) fn finish(
        &mut self,
        cx: &mut Cx,
        call: u64,
        outcome: Result<Reply, Refusal>,
        mut cost: Cost,
    ) {
        let Some(Call {
            to,
            kind: Kind::Operation(op),
        }) = self.calls.close(call)
        else {
            return;
        };
        let session = self.sessions.get_mut(op.ap);
        session.outstanding = session.outstanding.saturating_sub(1);
        let mut advance = false;
        match (&op.what, &outcome) {
            (What::Barrier { barrier, .. }, _) => {
                self.barriers.forget_call(*barrier, call);
                advance = true;
            }
            (What::Acquire { object, sent }, _) => {
                if *sent {
                    session.acquiring.remove(object);
                }
                if let Ok(Reply::Granted { epoch, version }) = outcome {
                    let section = Section {
                        epoch,
                        wrote: false,
                        owner: to,
                        lost: false,
                    };
                    session.sections.insert(*object, section);
                    self.copies.confirm(*object, version);
                }
            }
            (What::Release { object, sent, .. }, _) => {
                if let Some(sent) = sent {
                    session.releasing -= 1;
                    // Waiting for flushes is waiting for copies too.
                    cost.wait += *sent - op.start;
                }
                if let Ok(Reply::Released { version }) = outcome {
                    self.copies.confirm(*object, version);
                }
                advance = true;
            }
            (
                What::Read {
                    object,
                    fetch: true,
                    ..
                },
                Err(_),
            ) => {
                self.copies.fetch_ends(*object, call, None);
            }
            _ => {}
        }
        let session = self.sessions.get_mut(op.ap);
        let waited = session.preparing.len();
        session.preparing.retain(|c| *c != call);
        advance |= session.preparing.len() < waited;
        self.conclude_operation(cx, &op, to, outcome, cost);
        if advance {
            self.advance(cx, op.ap);
        }
    }

    /// The reply to an application process and the record of it.
    pub(super) fn conclude_operation(
        &mut self,
        cx: &mut Cx,
        op: &Operation,
        to: MpId,
        outcome: Result<Reply, Refusal>,
        cost: Cost,
    ) {
        if op.what.traced().is_some() {
            let mut record = self.operation_record(cx, op, to);
            record.wait = cost.wait;
            record.service = cost.service;
            match &outcome {
                Ok(reply) => record.version = version_of(reply),
                Err(_) => record.flags.failed = true,
            }
            if let Ok(Reply::Passed { generation }) = outcome {
                record.object.index = generation as u32;
                record.version = 0;
            }
            cx.record(record);
        }
        let reply = outcome.unwrap_or_else(Reply::Refused);
        cx.reply(op.ap, op.id, reply);
    }

    fn operation_record(&self, cx: &Cx, op: &Operation, to: MpId) -> Record {
        let (kind, object, range, bytes) =
            op.what
                .traced()
                .unwrap_or((Op::Read, ObjectId::default(), (0, 0), 0));
        let mut record = self.record(cx, op.ap, op.start, kind, object);
        record.origin = self.cluster.origin(self.cluster.me, to);
        record.peer = to;
        record.range = range;
        record.bytes = bytes;
        record
    }

    /// A record with what this process knows of itself.
    pub(super) fn record(
        &self,
        cx: &Cx,
        ap: ApId,
        start: Nanos,
        op: Op,
        object: ObjectId,
    ) -> Record {
        Record {
            start,
            duration: cx.now - start,
            wait: Nanos::ZERO,
            service: Nanos::ZERO,
            op,
            side: Side::Requester,
            origin: Origin::Local,
            flags: dosmos_trace::record::Flags::default(),
            object,
            ap,
            mp: self.cluster.me,
            peer: self.cluster.me,
            bytes: 0,
            version: 0,
            range: (0, 0),
        }
    }
}

/// What an operation cost at the process that served it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cost {
    pub(crate) service: Nanos,
    pub(crate) wait: Nanos,
}

fn refusal_of(answer: Answer) -> Option<Refusal> {
    match answer {
        Answer::Refused(refusal) => Some(refusal),
        _ => None,
    }
}

fn version_of(reply: &Reply) -> u64 {
    match reply {
        Reply::Read { version, .. }
        | Reply::Written { version }
        | Reply::Atomic { version, .. }
        | Reply::Granted { version, .. }
        | Reply::Released { version } => *version,
        _ => 0,
    }
}
