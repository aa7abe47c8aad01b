//! The requester's role (SMP, and PMP towards its own application processes): checks requests,
//! serves reads from copies, and sends the rest to their owners.

use std::sync::Arc;

use dosmos_proto::variable::check_name;
use dosmos_proto::{ApId, ErrorCode, MpId, Nanos, ObjectId, Refusal};
use dosmos_trace::Origin;
use dosmos_trace::meta::HandOver;

use super::calls::{Kind, Operation, What};
use super::directory::{conflict, home_of};
use super::input::{Answer, Ask, Item, Output, Reply, Request, Span};
use super::owner::Asker;
use super::places::Place;
use super::replies::Cost;
use super::sessions::MAX_OUTSTANDING;
use super::{Core, Cx};

impl Core {
    /// A request of a connected application process.
    pub(super) fn request(&mut self, cx: &mut Cx, mut op: Operation, request: Request) {
        if let Request::Cancel(id) = request {
            return self.cancel(cx, op.ap, id);
        }
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
            Request::Publish => {
                let call = self.open_operation(&op, self.cluster.me, What::Publish);
                self.prepare(cx, op.ap, call);
                Ok(())
            }
            Request::Cancel(_) => Ok(()),
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
            Request::Publish => What::Publish,
            Request::Bye | Request::Cancel(_) => What::Open(String::new()),
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
}
