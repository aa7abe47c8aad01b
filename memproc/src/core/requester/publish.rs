//! Publishing: what an application process wrote outside sections becomes visible before its release
//! or barrier goes on, and its releases and barriers keep their order.
//!
//! Releases, barriers, and acquires behind them pass one at a time through a line of their application
//! process: each waits until every owner holding unpublished writes has told the copies (*flush*), and for the
//! response to the release before it. So whoever learns of a release or a barrier sees whatever its application process did
//! before, however it pipelined its requests.

use dosmos_proto::{ApId, MpId, Refusal};

use super::pending::{Acquire, Barrier, Flush, Kind, Release};
use super::role::{Requester, call, send_access};
use super::session::Session;
use crate::core::context::Context;
use crate::core::directory::place::Place;
use crate::core::effects::{Effect, Waiter};
use crate::core::messages::{AccessKind, Cost, PeerRequest, Reply, WriteData};

impl Requester {
    /// Lines an operation up behind those of the same application process that publish.
    pub(super) fn line_up(&mut self, cx: &mut Context, ap: ApId, number: u64) {
        self.sessions.get_mut(ap).line.push_back(number);
        self.advance(cx, ap);
    }

    /// Lets go on what can go on. What it completes calls it again, so it does not nest.
    pub(super) fn advance(&mut self, cx: &mut Context, ap: ApId) {
        if std::mem::replace(&mut self.sessions.get_mut(ap).advancing, true) {
            return;
        }
        while let Some(number) = self.sessions.get_mut(ap).line.front().copied() {
            if !self.step(cx, ap, number) {
                break;
            }
        }
        self.sessions.get_mut(ap).advancing = false;
    }

    /// The first operation in line: whether something happened.
    fn step(&mut self, cx: &mut Context, ap: ApId, number: u64) -> bool {
        let session = self.sessions.get_mut(ap);
        let Some(operation) = self.pending.get(number) else {
            session.line.pop_front();
            return true;
        };
        let (kind, to) = (operation.kind.clone(), operation.to);
        let publishes = !matches!(kind, Kind::Acquire(_));
        if publishes && session.flushing > 0 {
            return false;
        }
        if publishes && session.ahead.is_some_and(|(barrier, _)| barrier != number) {
            session.fall_back(cx.me());
        }
        if publishes && !session.dirty.is_empty() {
            match kind {
                Kind::Barrier(_) if self.may_publish_ahead(cx, ap, to) => {
                    self.publish_ahead(cx, ap, number, to);
                }
                _ => self.flush(cx, ap, number),
            }
            return true;
        }
        if publishes && session.releasing > 0 {
            return false;
        }
        if let Kind::Barrier(Barrier { barrier, .. }) = kind
            && session.at_barriers.contains(&barrier)
        {
            return false;
        }
        session.line.pop_front();
        match kind {
            Kind::Acquire(acquire) => self.send_acquire(cx, ap, number, acquire),
            Kind::Release(release) => self.send_release(cx, ap, number, *release),
            Kind::Barrier(wait) => self.arrive(cx, ap, number, wait),
            Kind::Publish => self.complete(cx, number, Ok(Reply::Published), Cost::default()),
            Kind::Declare(_) | Kind::Open(_) | Kind::Read(_) | Kind::Write(_) => {}
        }
        true
    }

    /// Has every owner with unpublished writes tell the copies.
    fn flush(&mut self, cx: &mut Context, ap: ApId, number: u64) {
        let session = self.sessions.get_mut(ap);
        let owners = std::mem::take(&mut session.dirty);
        session.flush_for = Some(number);
        session.flushing += owners.len() as u32;
        for (to, incarnation) in owners {
            match cx.check_reachable(to) {
                Ok(()) => {
                    let flush = Flush {
                        ap,
                        to,
                        incarnation,
                    };
                    let flush = self.pending.open_flush(flush);
                    cx.request_of(to, incarnation, call(flush), PeerRequest::Flush { ap });
                }
                Err(refusal) => {
                    self.sessions.get_mut(ap).owed.insert(to, incarnation);
                    self.flushed(cx, ap, Err(refusal));
                }
            }
        }
    }

    /// A process is heard for the first time. If it was started again since flushes were sent to it, their responses are lost:
    /// a flush that is repeated does no harm, and one that was meant for an earlier start is refused.
    pub(crate) fn flush_again(&mut self, cx: &mut Context, mp: MpId) {
        for number in self.pending.flushes_at(mp) {
            if let Some(flush) = self.pending.flush(number) {
                let request = PeerRequest::Flush { ap: flush.ap };
                cx.request_of(mp, flush.incarnation, call(number), request);
            }
        }
    }

    /// Whether an arrival at a barrier can follow what it publishes on its way to the coordinator.
    fn may_publish_ahead(&self, cx: &Context, ap: ApId, coordinator: MpId) -> bool {
        let session = self.sessions.get(ap);
        let waits = |s: &Session| s.releasing > 0 || !s.at_barriers.is_empty();
        let own_only = |s: &Session| s.dirty.keys().eq([&cx.me()]);
        coordinator != cx.me()
            && cx.check_reachable(coordinator).is_ok()
            && session.is_some_and(|s| own_only(s) && !waits(s))
    }

    /// Has the owner here tell the copies, and does not wait for the coordinator to acknowledge.
    fn publish_ahead(&mut self, cx: &mut Context, ap: ApId, number: u64, coordinator: MpId) {
        let session = self.sessions.get_mut(ap);
        let incarnation = std::mem::take(&mut session.dirty).into_values().next();
        let incarnation = incarnation.flatten();
        session.ahead = Some((number, incarnation));
        session.flush_for = Some(number);
        session.flushing += 1;
        let to = cx.me();
        let flush = Flush {
            ap,
            to,
            incarnation,
        };
        let call = call(self.pending.open_flush(flush));
        cx.effect(Effect::PublishAhead {
            ap,
            call,
            coordinator,
        });
    }

    /// An owner told the copies, or cannot; then the operation that wanted it fails.
    pub(super) fn flushed(&mut self, cx: &mut Context, ap: ApId, result: Result<(), Refusal>) {
        let session = self.sessions.get_mut(ap);
        session.flushing = session.flushing.saturating_sub(1);
        if let Err(refusal) = result
            && let Some(wanted_by) = session.flush_for
            && session.line.front() == Some(&wanted_by)
        {
            self.complete(cx, wanted_by, Err(refusal), Cost::default());
        }
        self.advance(cx, ap);
    }

    fn send_acquire(&mut self, cx: &mut Context, ap: ApId, number: u64, acquire: Acquire) {
        let object = acquire.object;
        let checked = self.sessions.check_acquire(cx, ap, object);
        let place = match checked.and_then(|()| reachable_place(cx, acquire.object)) {
            Ok(place) => place,
            Err(refusal) => return self.complete(cx, number, Err(refusal), Cost::default()),
        };
        self.sessions.get_mut(ap).acquiring.insert(object);
        let want_value = acquire.want_value;
        let sent = Acquire {
            sent: true,
            ..acquire
        };
        self.set_kind(number, Kind::Acquire(sent));
        send_access(
            cx,
            number,
            ap,
            &place,
            AccessKind::Acquire { want_value },
            false,
        );
    }

    fn send_release(&mut self, cx: &mut Context, ap: ApId, number: u64, mut release: Release) {
        let object = release.object;
        // Again: another release of it may have come before.
        let checked = self.sessions.check_release(cx, ap, object, release.epoch);
        let checked = checked.and_then(|epoch| Ok((reachable_place(cx, object)?, epoch)));
        let (place, epoch) = match checked {
            Ok(both) => both,
            Err(refusal) => return self.complete(cx, number, Err(refusal), Cost::default()),
        };
        let epoch = Some(epoch);
        let session = self.sessions.get_mut(ap);
        session.releasing += 1;
        let wrote = session.sections.remove(&object).is_some_and(|s| s.wrote);
        let wrote = wrote || release.write.is_some();
        let write = release.write.as_mut().map(|(_, write)| WriteData {
            adds: write.adds,
            data: std::mem::take(&mut write.data),
            ..write.clone()
        });
        if write.is_some() {
            // Its application process dropped its copy when it sent this.
            self.caches.holders.remove(object, ap);
        }
        let sent = Release {
            epoch,
            sent: Some(cx.now),
            ..release
        };
        self.set_kind(number, Kind::Release(Box::new(sent)));
        if wrote && place.owner != cx.me() {
            // A copy fetched meanwhile by another of ours lacks the section's writes; its writer,
            // whose reads may use copies from now on, must not see it.
            let upcoming = self.pending.upcoming();
            self.caches.forget(cx, (object, place.owner), upcoming);
        }
        send_access(
            cx,
            number,
            ap,
            &place,
            AccessKind::Release { epoch, write },
            false,
        );
    }

    fn arrive(&mut self, cx: &mut Context, ap: ApId, number: u64, wait: Barrier) {
        let barrier = wait.barrier;
        self.sessions.get_mut(ap).at_barriers.insert(barrier);
        let arrived = Some(cx.now);
        self.set_kind(number, Kind::Barrier(Barrier { barrier, arrived }));
        let waiter = Waiter {
            ap,
            operation: number,
        };
        cx.effect(Effect::Arrive { barrier, waiter });
    }

    /// What became of an arrival at a barrier: its generation, if it opened.
    pub(crate) fn opened(
        &mut self,
        cx: &mut Context,
        waiter: Waiter,
        outcome: Result<u64, Refusal>,
    ) {
        let Some(operation) = self.pending.get(waiter.operation) else {
            return;
        };
        let Kind::Barrier(Barrier {
            arrived: Some(at), ..
        }) = operation.kind
        else {
            return;
        };
        let outcome = outcome.map(|generation| Reply::Passed { generation });
        self.complete(cx, waiter.operation, outcome, Cost::waited(cx.now - at));
    }

    fn set_kind(&mut self, number: u64, kind: Kind) {
        if let Some(now) = self.pending.kind_mut(number) {
            *now = kind;
        }
    }
}

fn reachable_place<'a>(
    cx: &Context<'a>,
    object: dosmos_proto::ObjectId,
) -> Result<Place<'a>, Refusal> {
    let place = cx.variables.place(cx.cluster, object)?;
    let owner: MpId = place.owner;
    cx.check_reachable(owner)?;
    Ok(place)
}
