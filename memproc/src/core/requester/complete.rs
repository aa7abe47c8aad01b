//! Responses, and the end of operations: each is replied to once and gives one record, side
//! `Requester`.

use dosmos_proto::{ApId, ErrorCode, MpId, Nanos, Refusal};
use dosmos_trace::Op;

use super::leave::overdue;
use super::pending::{Kind, Operation, Read, of_call};
use super::records::{APART, hand_over, local_records, report, report_write};
use super::role::Requester;
use super::search::fits;
use crate::core::context::Context;
use crate::core::effects::{Effect, Waiter};
use crate::core::messages::{Cost, Item, LocalAccesses, LocalKind, Reply, Response, Return};

impl Requester {
    /// A response, from here or elsewhere. One to an operation that is complete finds nobody: what it
    /// granted was taken back when the operation ended.
    pub(crate) fn receive(
        &mut self,
        cx: &mut Context,
        from: MpId,
        number: u64,
        response: Response,
        cost: Cost,
    ) {
        let (number, repeated) = of_call(number);
        let again = self.pending.again.get(&number);
        if again.is_some_and(|again| again.repeated != repeated) {
            return;
        }
        if self.caches.copies.renewed(from, number) {
            return;
        }
        if let Some(flush) = self.flushes.close(number, from) {
            let result = match response {
                Response::Refused(refusal) => Err(refusal),
                _ => Ok(()),
            };
            self.sessions.get_mut(flush.ap).line.flushed(result);
            return self.advance(cx, flush.ap);
        }
        let Some(response) = self.not_done(cx, (number, from), response) else {
            return;
        };
        let Some(response) = self.found(cx, (number, from), response) else {
            return;
        };
        let Some(operation) = self.pending.get(number).filter(|o| o.to == from) else {
            return;
        };
        if from != cx.me() && !matches!(response, Response::Refused(_)) {
            self.caches.copies.renew(from, operation.ticket.start);
        }
        let mut not_kept = None;
        let overdue = operation.is_overdue().then(|| operation.clone());
        let outcome = match response {
            Response::Read {
                version,
                data,
                copy,
                delegation,
                lease,
            } => {
                let Kind::Read(read) = operation.kind else {
                    return;
                };
                let content = (version, data, copy, delegation);
                let reader = (operation.ticket.ap, from, read);
                let until = lease.map(|time| operation.ticket.start + time);
                let received = self.caches.receive(cx, number, reader, content, until);
                received.map(|(reply, dropped)| {
                    not_kept = dropped.then_some(read.object);
                    reply
                })
            }
            Response::Written { version } => Ok(Reply::Written { version }),
            Response::Atomic {
                previous,
                stored,
                version,
            } => Ok(Reply::Atomic {
                previous,
                stored,
                version,
            }),
            Response::Granted {
                epoch,
                version,
                value,
            } => Ok(Reply::Granted {
                epoch,
                version,
                value,
            }),
            Response::Released { version } => Ok(Reply::Released { version }),
            Response::Variable(announced) => fits(&operation.kind, &announced),
            Response::Refused(refusal) => Err(refusal),
            Response::Renewed
            | Response::Flushed
            | Response::Created
            | Response::Names(_)
            | Response::CopyAck { .. }
            | Response::Answer(_)
            | Response::Replicated
            | Response::Compared(_)
            | Response::Moved(_) => Err(Refusal::new(
                ErrorCode::Invalid,
                "the owner responded to another request; are all processes of one version?",
            )),
        };
        let outcome = match overdue {
            Some(operation) => Err(too_late(cx, &operation, outcome)),
            None => outcome,
        };
        self.complete(cx, number, outcome, cost);
        // After the record, so that the copy's monitoring starts with this read behind it.
        if let Some(object) = not_kept {
            hand_over(cx, object, from, true);
        }
    }

    /// Accesses that an application process served itself.
    pub(crate) fn report(&mut self, cx: &mut Context, ap: ApId, accesses: &[LocalAccesses]) {
        let session = self.sessions.get_mut(ap);
        let sections = session.sections_reported;
        if accesses.iter().any(|a| a.kind == LocalKind::Section) {
            session.sections_reported = cx.now;
        }
        for accesses in accesses {
            self.caches.holders.used(accesses.object, ap);
            local_records(cx, ap, accesses, sections);
        }
    }

    /// An application process is in a section of an object that it had to itself and gives back: the section goes on as
    /// one that the owner granted, if the object was not taken away before.
    pub(crate) fn section_goes_on(
        &mut self,
        cx: &mut Context,
        ap: ApId,
        back: &Return,
        current: bool,
    ) {
        // It began before this message, and before what comes with it.
        let mut record = cx.record(ap, cx.now - APART, Op::Acquire, back.object);
        record.duration = Nanos::ZERO;
        record.flags.own_clock = true;
        record.peer = cx.me();
        record.version = back.version;
        cx.trace(Item::Record(record));
        if current {
            let session = self.sessions.get_mut(ap);
            session.section_begins(back.object, (back.epoch, back.version), cx.me());
        }
    }

    /// Ends an operation: its reply, its record, and what follows from it.
    pub(super) fn complete(
        &mut self,
        cx: &mut Context,
        number: u64,
        outcome: Result<Reply, Refusal>,
        mut cost: Cost,
    ) {
        let Some(operation) = self.pending.close(number) else {
            return;
        };
        let ap = operation.ticket.ap;
        let session = self.sessions.get_mut(ap);
        let mut advance = session.operation_ends(number);
        match &operation.kind {
            Kind::Barrier(wait) => {
                let opened = outcome.is_ok();
                session.line.barrier_ends(cx.me(), number, wait, opened);
                let barrier = wait.barrier;
                let waiter = Waiter {
                    ap,
                    operation: number,
                };
                cx.effect(Effect::Withdraw { barrier, waiter });
                advance = true;
            }
            Kind::Acquire(acquire) => {
                let mut granted = None;
                if let Ok(Reply::Granted { epoch, version, .. }) = outcome {
                    granted = Some((epoch, version, operation.to));
                    self.caches.copies.confirm(acquire.object, version);
                }
                session.acquire_ends(acquire, granted);
            }
            Kind::Release(release) => {
                if let Some(sent) = release.sent {
                    session.line.release_ends();
                    // Waiting for flushes is waiting for copies too.
                    cost.wait += sent - operation.ticket.start;
                }
                if let Ok(Reply::Released { version }) = outcome {
                    self.caches.copies.confirm(release.object, version);
                    report_write(cx, &operation, release.write, version);
                }
                advance = true;
            }
            &Kind::Read(Read {
                object,
                fetch: true,
                ..
            }) if outcome.is_err() => {
                self.caches.copies.fetch_ends(object, number, None);
            }
            Kind::Write(write) if write.through => {
                session.line.release_ends();
                advance = true;
            }
            Kind::Read(_) | Kind::Write(_) | Kind::Declare(_) | Kind::Open(_) | Kind::Publish => {}
        }
        report(cx, &operation, outcome, cost);
        if advance {
            self.advance(cx, ap);
        }
    }
}

/// Why an operation whose time was over before its response came failed: others say for whom it waited, or it was granted too late.
pub(super) fn too_late(
    cx: &Context,
    operation: &Operation,
    outcome: Result<Reply, Refusal>,
) -> Refusal {
    match outcome {
        Err(refusal) if refusal.code == ErrorCode::Deadline => {
            overdue(cx, operation, Some(refusal.message))
        }
        Err(refusal) => refusal,
        Ok(_) => {
            let owner = cx.cluster.mp_name(operation.to);
            let late = format!("{owner}, its owner, granted it too late");
            overdue(cx, operation, Some(late))
        }
    }
}
