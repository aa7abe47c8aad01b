//! What computing threads and the I/O thread share: [`Session`](crate::session::Session) and what is held of objects, behind a
//! lock.
//!
//! Guarantee: a computing thread never waits except for its own reply.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use dosmos_proto::wire::object_access::Kind;
use dosmos_proto::wire::{ApReply, ApRequest, Report, ap_reply::Body as Reply, ap_request::Body};
use dosmos_proto::{Component, Nanos, ObjectId};
use futures::channel::oneshot;
use tokio::sync::Notify;

use crate::cache::{Cache, Hits, Slot};
use crate::carrier::Carrier;
use crate::counts::Counts;
use crate::driver;
use crate::element::Element;
use crate::haste::{Haste, Outbound};
use crate::meter::{CpuMark, Meter};
use crate::operation::{Op, Operation, Target};
use crate::outbox::Outbox;
use crate::posted::PostedCalls;
use crate::session::{Completion, End, Received, Session};
use crate::{Result, Settings};

type Ticket = oneshot::Sender<Arrived>;

/// What a waiting call is told: how it ended, and whether another memory process had to be asked.
pub(crate) struct Arrived {
    pub(crate) outcome: Result<Reply>,
    pub(crate) remote: bool,
}

/// A request on its way: where its reply arrives.
pub(crate) struct Submitted {
    /// None if it was not sent.
    pub(crate) id: Option<u64>,
    pub(crate) receiver: oneshot::Receiver<Arrived>,
    /// What sending it took.
    pub(crate) sending: Nanos,
    /// If it is in no hurry.
    pub(crate) haste: Option<Haste>,
}

/// What computing threads and the I/O thread share.
pub(crate) struct Shared {
    state: Mutex<State>,
    meter: Mutex<Meter>,
    /// An earlier expiry than the one waited for has come up.
    sooner: Notify,
    pub(crate) deadline: Duration,
    pub(crate) posted: PostedCalls,
    pub(crate) carrier: Carrier,
}

struct State {
    session: Session<Ticket>,
    cache: Cache,
    outbox: Outbox,
    /// When the I/O thread looks at expiries next; none if it waits to be told.
    armed: Option<Nanos>,
    /// The memory process knows that this one waits for news of copies, as it does until the next request.
    awaits_news: bool,
}

impl State {
    /// Puts a request on its way. Whoever is not in the session's task sees to it that the task is told.
    fn send(&self, request: Outbound) {
        // If nobody takes it any more, the end of the session is about to complete the call.
        self.outbox.push(request);
        if driver::is_driving() {
            self.outbox.tell();
        }
    }

    /// What a request does to what is held here, and what it carries beside its body.
    fn beside(
        &mut self,
        request: &mut ApRequest,
        (op, object): (Op, Option<ObjectId>),
        now: Nanos,
    ) {
        if let Some(object) = object.filter(|_| writes(request)) {
            self.cache.wrote(object, request.id);
        }
        match (op, object) {
            (Op::Write | Op::Atomic, Some(_)) => {
                // Whoever sees this sees what was changed before it.
                self.cache.publish();
                // This is not published by the sections that were before it.
                if self.cache.take_sections() {
                    self.collect(now);
                }
            }
            // Whoever synchronises with this process sees what it changed, and finds its accesses counted.
            (Op::Release | Op::Barrier | Op::Publish, _) => {
                self.cache.publish();
                self.collect(now);
            }
            (Op::Bye, _) => {
                self.cache.give_back();
                self.collect(now);
            }
            _ => {}
        }
        if self.cache.is_due(now) || self.cache.has_returns() {
            self.collect(now);
        }
        (request.local, request.returns) = self.cache.take();
    }

    fn collect(&mut self, now: Nanos) {
        let Self { session, cache, .. } = self;
        cache.collect(now, |target, served| session.count_local(target, served));
    }

    /// Gives back or publishes what is to be, in a message of its own; whether something was.
    fn send_returns(&mut self, now: Nanos) -> bool {
        let due = self.cache.has_returns();
        if due {
            self.collect(now);
            self.send_beside();
        }
        due
    }

    /// Sends what is usually beside requests.
    fn send_beside(&mut self) {
        let (local, returns) = self.cache.take();
        if let Some(mut request) = self.session.report() {
            (request.local, request.returns) = (local, returns);
            self.send(request.into());
        }
    }
}

impl Shared {
    pub(crate) fn new(settings: &Settings, outbox: Outbox, carrier: Carrier) -> Self {
        let now = carrier.now();
        Self {
            meter: Mutex::new(Meter::new(now, carrier.cpu())),
            state: Mutex::new(State {
                session: Session::new(settings.grace),
                cache: Cache::new(now),
                outbox,
                armed: None,
                awaits_news: false,
            }),
            sooner: Notify::new(),
            deadline: settings.deadline,
            posted: PostedCalls::default(),
            carrier,
        }
    }

    /// The state is consistent between any two operations on it, so a panic elsewhere spoils nothing.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn now(&self) -> Nanos {
        self.carrier.now()
    }

    /// Sends a request.
    pub(crate) fn submit(&self, operation: Operation, body: Body, deadline: Duration) -> Submitted {
        let begun = self.now();
        let (op, object) = (operation.op, operation.target.object);
        let last = op == Op::Bye;
        let times = self.meter().report(begun, last, || self.carrier.cpu());
        let (ticket, receiver) = oneshot::channel();
        let mut submitted = Submitted {
            id: None,
            receiver,
            sending: Nanos::ZERO,
            haste: None,
        };
        let mut guard = self.lock();
        let state = &mut *guard;
        // Leaving goes on: it is the end of what was lost.
        if !last && let Some(lost) = state.cache.take_lost() {
            drop(guard);
            let error = crate::Error::TakenBack {
                what: operation.to_string(),
                object: lost.to_string(),
            };
            self.complete(Completion {
                ticket: Some(ticket),
                operation,
                outcome: Err(error),
                remote: false,
            });
            return submitted;
        }
        let request = state
            .session
            .submit(begun, operation, body, deadline, Some(ticket));
        match request {
            Ok(mut request) => {
                state.awaits_news = false;
                submitted.id = Some(request.id);
                request.times = times.into_iter().map(Into::into).collect();
                if state.cache.is_used() || state.cache.has_reports() {
                    state.beside(&mut request, (op, object), begun);
                }
                let write = written(&request).filter(|_| driver::drives_later());
                submitted.haste = write.map(|_| Haste::default());
                let soon = write.is_some_and(|data| data.len() <= SMALL);
                let haste = submitted.haste.clone();
                self.dispatch(state, Outbound { request, haste });
                drop(guard);
                match soon {
                    true => self.carrier.submitted_for_soon(),
                    false => self.carrier.submitted(),
                }
            }
            Err(refused) => {
                drop(guard);
                self.complete(*refused);
            }
        }
        submitted.sending = self.now() - begun;
        submitted
    }

    /// Somebody waits for a reply that was in no hurry.
    pub(crate) fn hurry(&self) {
        let report = Report {
            hurry: true,
            ..Report::default()
        };
        self.say(&mut self.lock(), report);
    }

    /// The program reads what is held here again and again, and may be waiting for somebody to change it: the memory process is told
    /// so, once, and what has arrived is seen to.
    pub(crate) fn await_news(&self) {
        let mut guard = self.lock();
        if !std::mem::replace(&mut guard.awaits_news, true) {
            let report = Report {
                awaits_news: true,
                ..Report::default()
            };
            self.say(&mut guard, report);
        }
        drop(guard);
        self.carrier.look();
    }

    fn say(&self, state: &mut State, report: Report) {
        if let Some(mut request) = state.session.report() {
            request.body = Some(Body::Report(report));
            self.dispatch(state, request);
        }
    }

    /// Each step of it is complete, so a panic elsewhere spoils nothing.
    fn meter(&self) -> MutexGuard<'_, Meter> {
        self.meter.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The program begins to wait for a call.
    pub(crate) fn enter(&self) {
        let now = self.now();
        self.meter().enter(now, || self.carrier.cpu());
    }

    /// A call is over, or is no longer waited for.
    pub(crate) fn leave(&self, operation: &Operation, remote: bool, sending: Nanos, entered: bool) {
        let now = self.now();
        let mut meter = self.meter();
        let of = meter.component(operation, remote);
        // To ask takes a system call: what was not waited for, and begins no phase, does not need it.
        let cpu = match entered || of == Component::Barrier {
            true => self.carrier.cpu(),
            false => CpuMark::Mixed,
        };
        meter.leave(now, cpu, of, sending, entered);
        if of == Component::Barrier {
            meter.next_phase(cpu);
        }
    }

    fn dispatch(&self, state: &mut State, request: impl Into<Outbound>) {
        state.send(request.into());
        let next = state.session.next_expiry();
        if state.armed.is_none() || next < state.armed {
            state.armed = next;
            self.sooner.notify_one();
        }
    }

    /// Takes a reply; returns whether the session goes on.
    pub(crate) fn receive(&self, reply: ApReply) -> bool {
        let mut guard = self.lock();
        if guard.cache.is_used() {
            // In the order of the stream, before anybody learns of the reply.
            let state = &mut *guard;
            if orders(&reply) {
                // What is accessed after this process synchronised is not reported with what was accessed before, nor as if it
                // had begun before.
                state.collect(self.now());
            }
            match &reply.body {
                Some(Reply::Recall(recall)) => {
                    // Who learns of one change may have learnt of those before it.
                    state.cache.publish();
                    state.cache.recall(recall);
                }
                Some(body) => {
                    let object = match body {
                        Reply::Invalidate(object) => Some(ObjectId::from_wire(*object)),
                        Reply::Update(update) => Some(ObjectId::from_wire(update.object)),
                        Reply::Confirm(confirm) => Some(ObjectId::from_wire(confirm.object)),
                        _ => state.session.object_of(reply.id),
                    };
                    let heard = object.map(|object| state.cache.hear(object, reply.id, body));
                    if heard.unwrap_or(false) {
                        self.carrier.be_attentive();
                    }
                }
                None => {}
            }
            state.send_returns(self.now());
        }
        let received = guard.session.receive(self.now(), reply);
        let goes_on = !guard.session.is_over();
        match received {
            Received::GiveBack(request) => self.dispatch(&mut guard, request),
            Received::Complete(completion) => {
                drop(guard);
                self.complete(completion);
            }
            Received::Nothing => {}
        }
        goes_on
    }

    fn complete(&self, completion: Completion<Ticket>) {
        let Some(ticket) = completion.ticket else {
            if let Err(error) = completion.outcome {
                tracing::warn!(%error, "an operation that nobody waits for failed");
            }
            return;
        };
        let arrived = Arrived {
            outcome: completion.outcome,
            remote: completion.remote,
        };
        if let Err(Arrived {
            outcome: Ok(Reply::Granted(grant)),
            ..
        }) = ticket.send(arrived)
        {
            self.give_back(&completion.operation, grant.epoch);
        }
    }

    /// Releases a lock that was granted to nobody. Does not wait.
    pub(crate) fn give_back(&self, acquire: &Operation, epoch: u64) {
        let mut guard = self.lock();
        let state = &mut *guard;
        let request = state
            .session
            .give_back(self.now(), acquire, epoch, self.deadline);
        if let Some(request) = request {
            self.dispatch(state, request);
            drop(guard);
            self.carrier.attend();
        }
    }

    /// Takes back a request that nobody waits for any more. Does not wait.
    pub(crate) fn cancel(&self, id: u64) {
        let mut guard = self.lock();
        if let Some(request) = guard.session.cancel(id) {
            self.dispatch(&mut guard, request);
            drop(guard);
            self.carrier.attend();
        }
    }

    /// Completes calls whose time is over, for as long as the session lasts.
    pub(crate) async fn watch(&self) {
        while let Some(next) = self.look() {
            let pause = next.map_or(Duration::MAX, |at| (at - self.now()).into());
            // Either way there may be something to do.
            let _ = tokio::time::timeout(pause, self.sooner.notified()).await;
        }
    }

    /// Completes calls whose time is over, and reports what is due. When to look again, if at any time; none once the
    /// session is over.
    pub(crate) fn look(&self) -> Option<Option<Nanos>> {
        let over = self.lock().session.expire(self.now());
        over.into_iter().for_each(|c| self.complete(c));
        let mut guard = self.lock();
        if guard.session.is_over() {
            return None;
        }
        let next = guard.session.next_expiry();
        let report = self.report(&mut guard);
        guard.armed = match (next, report) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        Some(guard.armed)
    }

    /// Publishes what others read and reports accesses that were served here, if it is time; when to look
    /// again.
    fn report(&self, state: &mut State) -> Option<Nanos> {
        if !state.cache.is_used() && !state.cache.has_reports() {
            return None;
        }
        let now = self.now();
        state.cache.publish();
        if state.cache.is_due(now) {
            state.collect(now);
        }
        if state.cache.has_reports() || state.cache.signs(now) {
            state.collect(now);
            state.send_beside();
        }
        Some(state.cache.next_look(now))
    }

    /// Reads that a section served itself, to be reported.
    pub(crate) fn count_section(&self, target: &Target, reads: Hits) {
        let now = self.now();
        let mut guard = self.lock();
        guard.session.count_section(target, reads.count);
        guard.cache.add(target, reads, now);
    }

    /// Whether a section of an object that this process has to itself may end here: all that was written by messages
    /// before is published. Otherwise the object goes back to its owner, with the next request.
    pub(crate) fn ends_here(&self, object: ObjectId) -> bool {
        let mut guard = self.lock();
        let here = guard.session.is_published();
        if !here {
            guard.cache.give_back_one(object);
        }
        here
    }

    /// An object that was edited is back in its place; others wait for it.
    pub(crate) fn edited(&self, object: ObjectId) {
        let mut guard = self.lock();
        guard.cache.edited(object);
        let sent = guard.send_returns(self.now());
        drop(guard);
        if sent {
            self.carrier.attend();
        }
    }

    /// What this process holds of an object.
    pub(crate) fn slot<T: Element>(
        &self,
        target: &Target,
        elements: usize,
    ) -> Option<Arc<Slot<T>>> {
        let object = target.object?;
        let mut guard = self.lock();
        let first = !guard.cache.is_used();
        let slot = guard.cache.slot(target, object, elements);
        if first {
            // From now on there are reads to report.
            self.sooner.notify_one();
        }
        slot
    }

    /// What was done so far.
    pub(crate) fn counts(&self) -> Counts {
        let mut guard = self.lock();
        guard.collect(self.now());
        guard.session.counts()
    }

    pub(crate) fn end(&self, end: End) {
        let mut guard = self.lock();
        let over = guard.session.end(end);
        guard.cache.end();
        drop(guard);
        over.into_iter().for_each(|c| self.complete(c));
        self.posted.end();
    }
}

/// Whether what comes after a reply in this process comes after something in others: also where an object is delegated to it,
/// whose sections begin here then.
fn orders(reply: &ApReply) -> bool {
    match &reply.body {
        Some(Reply::Barrier(_) | Reply::Granted(_) | Reply::Released(_)) => true,
        Some(Reply::Read(done)) => done.delegation.is_some(),
        _ => false,
    }
}

/// A write of at most this many bytes is not worth a message of its own, if another follows soon.
const SMALL: usize = 64 << 10;

/// The content that a write outside a section brings.
fn written(request: &ApRequest) -> Option<&Bytes> {
    match &request.body {
        Some(Body::Access(access)) => match &access.kind {
            Some(Kind::Write(write)) => Some(&write.data),
            _ => None,
        },
        _ => None,
    }
}

/// Whether a request changes its object.
fn writes(request: &ApRequest) -> bool {
    let Some(Body::Access(access)) = &request.body else {
        return false;
    };
    match &access.kind {
        Some(Kind::Write(_) | Kind::Atomic(_)) => true,
        Some(Kind::Release(release)) => release.write.is_some(),
        _ => false,
    }
}
