//! Operations that end early: timeouts, cancelled requests, application processes that leave, lost
//! owners, and the end of this process.

use dosmos_proto::{ApId, ErrorCode, MpId, Nanos, ObjectId, Refusal, VarId};

use super::pending::{Acquire, Kind, Operation, Read, WaitsFor};
use super::records::{operation_record, sections_lost};
use super::role::Requester;
use crate::core::context::Context;
use crate::core::effects::{Effect, Waiter};
use crate::core::messages::{Cost, Item, Notice};

/// How long an operation whose time is over waits for another process to say for whom it waited. The library waits longer.
const ANSWER: Nanos = Nanos::from_millis(1000);

impl Requester {
    /// Operations whose timeout is over, oldest first.
    pub(crate) fn due(&mut self, now: Nanos) -> Vec<u64> {
        self.pending.due(now)
    }

    /// The operation with an application process's number. What came with a release is not one of its own.
    pub(crate) fn find_operation(&self, ap: ApId, id: u64) -> Option<u64> {
        let is = |o: &Operation| o.ticket.ap == ap && o.ticket.id == id && !o.is_silent();
        self.pending.select(is).first().copied()
    }

    /// What an operation waits for.
    pub(crate) fn waits_for(&self, number: u64) -> WaitsFor {
        match self.pending.get(number).map(|o| &o.kind) {
            Some(Kind::Acquire(acquire)) => WaitsFor::Lock(acquire.object),
            Some(Kind::Barrier(wait)) => WaitsFor::Barrier(wait.barrier),
            _ => WaitsFor::Response,
        }
    }

    /// An acquire whose time is over is taken back; its owner, if that is another process, says who holds the object. Whether
    /// it does.
    pub(crate) fn ask_owner(&mut self, cx: &mut Context, number: u64) -> bool {
        let Some(operation) = self.pending.get(number).cloned() else {
            return false;
        };
        let to = operation.to;
        let reachable = cx.missing(to).is_none() && cx.check_reachable(to).is_ok();
        let sent = matches!(operation.kind, Kind::Acquire(Acquire { sent: true, .. }));
        let asks = sent && to != cx.me() && reachable && !operation.is_overdue();
        if asks {
            self.take_back(cx, number, &operation);
        }
        asks
    }

    /// The barrier that an operation waits at, and as whom, if it was not asked who is missing.
    pub(crate) fn waits_at(&self, number: u64) -> Option<(VarId, Waiter)> {
        let operation = self.pending.get(number).filter(|o| !o.is_overdue())?;
        let Kind::Barrier(wait) = operation.kind else {
            return None;
        };
        let waiter = Waiter {
            ap: operation.ticket.ap,
            operation: number,
        };
        Some((wait.barrier, waiter))
    }

    /// An operation whose time is over ends when another process has said for whom it waited, or has not for too long.
    pub(crate) fn wait_for_answer(&mut self, cx: &Context, number: u64) {
        self.pending.wait_for_answer(number, cx.now + ANSWER);
    }

    fn take_back(&mut self, cx: &mut Context, number: u64, operation: &Operation) {
        self.unsettled.note(cx, operation);
        let otherwise = match operation.kind {
            // Sent behind the acquire, so that a grant on its way is taken back too.
            Kind::Acquire(Acquire {
                object, sent: true, ..
            }) => Some(Notice::Abandon {
                ap: operation.ticket.ap,
                object: Some(object),
            }),
            _ => None,
        };
        cx.effect(Effect::TakeBack {
            to: operation.to,
            call: self.pending.call(number),
            otherwise,
        });
    }

    /// Ends an operation that takes too long. `detail` says what it waits for, if others know.
    pub(crate) fn expire(&mut self, cx: &mut Context, number: u64, detail: Option<String>) {
        let Some(operation) = self.pending.get(number).cloned() else {
            return;
        };
        if !operation.is_overdue() {
            self.take_back(cx, number, &operation);
        }
        let detail = detail.or_else(|| self.why_waits(cx, number));
        let refusal = overdue(cx, &operation, detail);
        self.complete(cx, number, Err(refusal), Cost::default());
    }

    /// An application process is gone: its locks pass on, its operations end, others are told.
    pub(crate) fn leave(&mut self, cx: &mut Context, ap: ApId, orderly: bool) {
        let Some(session) = self.sessions.leave(ap) else {
            return;
        };
        self.caches.holders.leave(ap);
        self.flushes.forget(ap);
        let mut owners = session.into_owners();
        for number in self.pending.select(|o| o.ticket.ap == ap) {
            let call = self.pending.call(number);
            let Some(operation) = self.pending.close(number) else {
                continue;
            };
            let to = operation.to;
            self.unsettled.note(cx, &operation);
            cx.effect(Effect::TakeBack {
                to,
                call,
                otherwise: None,
            });
            match operation.kind {
                Kind::Acquire(_) => {
                    owners.insert(to);
                }
                Kind::Read(Read {
                    object,
                    fetch: true,
                    ..
                }) => {
                    self.caches.copies.fetch_ends(object, number, None);
                }
                _ => {}
            }
            if let Some(mut record) = operation_record(cx, &operation) {
                record.range = (0, 0);
                record.bytes = 0;
                record.flags.failed = true;
                cx.trace(Item::Record(record));
            }
        }
        for to in owners {
            cx.notice(to, Notice::Abandon { ap, object: None });
        }
        cx.effect(Effect::Left { ap, orderly });
    }

    /// A process is lost: sections and copies of its objects are void, and what it was to respond to
    /// fails.
    pub(crate) fn lose(&mut self, cx: &mut Context, mp: MpId, why: &Refusal) {
        // Unpublished writes are not forgotten: the next release or barrier publishes them or fails.
        let lost = self.sessions.lose_sections(|_, owner| owner == mp);
        sections_lost(cx, &lost);
        self.caches.forget_owner(cx, mp);
        for number in self.pending.select(|o| o.to == mp) {
            if self.waits_for_another(cx, number) {
                continue;
            }
            if self.is_of_name(number) {
                self.ask_for_name(cx, number);
                continue;
            }
            if let Some(operation) = self.pending.get(number).cloned() {
                self.unsettled.note(cx, &operation);
                let why = format!("{}: {}", describe(cx, &operation), why.message);
                let refusal = Refusal::new(ErrorCode::Unreachable, why);
                self.complete(cx, number, Err(refusal), Cost::default());
            }
        }
        self.search_without(cx, mp);
        for flush in self.flushes.lose(mp) {
            let session = self.sessions.get_mut(flush.ap);
            session.line.flush_lost(&flush, why.clone());
            self.advance(cx, flush.ap);
        }
    }

    /// A process that was lost can be reached: what it may have granted nobody waits for. Whatever our application processes held or
    /// waited for there is lost to them.
    pub(crate) fn regain(&mut self, cx: &mut Context, mp: MpId) {
        self.sessions.regain(mp);
        self.unsettled.tell(cx, mp);
        self.search_at_home(cx, mp);
    }

    /// This process ends: everyone who waits is told.
    pub(crate) fn close(&mut self, cx: &mut Context) {
        let connected = self.sessions.close();
        let why = format!("{} is ending", cx.cluster.mp_name(cx.me()));
        let refusal = Refusal::new(ErrorCode::ShuttingDown, why);
        for number in self.pending.select(|_| true) {
            self.complete(cx, number, Err(refusal.clone()), Cost::default());
        }
        for ap in connected {
            self.leave(cx, ap, true);
        }
    }
}

/// The refusal of an operation whose time is over; `detail` says what it waits for, if others know.
pub(super) fn overdue(cx: &Context, operation: &Operation, detail: Option<String>) -> Refusal {
    let timeout = operation.ticket.timeout;
    let what = describe(cx, operation);
    if let Some(missing) = cx.missing(operation.to) {
        let why = format!("{missing} ({what} waited {timeout})");
        return Refusal::new(ErrorCode::Unreachable, why);
    }
    let owner = cx.cluster.mp_name(operation.to);
    let detail = detail.unwrap_or_else(|| match &operation.kind {
        Kind::Acquire(_) => format!("{owner}, its owner, did not grant it"),
        Kind::Release(release) if release.sent.is_some() => {
            format!("{owner}, its owner, did not respond; it may still take effect")
        }
        Kind::Release(_) | Kind::Publish => {
            "earlier writes could not be told to all holders of copies".to_owned()
        }
        Kind::Declare(_) | Kind::Open(_) => format!("{owner}, home of the name, did not respond"),
        _ => format!("{owner}, its owner, did not respond; it may still take effect"),
    });
    Refusal::new(
        ErrorCode::Deadline,
        format!("{what} was not done within {timeout}: {detail}"),
    )
}

/// An operation in words, for a message.
pub(super) fn describe(cx: &Context, operation: &Operation) -> String {
    let ap = cx.cluster.ap_name(operation.ticket.ap);
    let on =
        |verb: &str, object: ObjectId| format!("{verb} of {}", cx.variables.object_name(object));
    let what = match &operation.kind {
        Kind::Declare(spec) => format!("declaration of {}", spec.name()),
        Kind::Open(name) => format!("look-up of {name}"),
        Kind::Read(read) => on("read", read.object),
        Kind::Write(write) => on("write", write.object),
        Kind::Acquire(acquire) => on("acquire", acquire.object),
        Kind::Release(release) => on("release", release.object),
        Kind::Barrier(_) => "barrier".to_owned(),
        Kind::Publish => "publishing of writes".to_owned(),
    };
    format!("{what} by {ap}")
}
