//! Operations that take their turn in the line of an application process: see [`line`](super::line).

use dosmos_proto::{ApId, MpId, ObjectId, Refusal};

use super::asking::check_served;
use super::complete::too_late;
use super::line::Step;
use super::pending::{Barrier, Kind};
use super::role::{Requester, send_access};
use crate::core::context::Context;
use crate::core::directory::place::Place;
use crate::core::effects::{Effect, Waiter};
use crate::core::messages::{AccessKind, Cost, Opening, Reply};

impl Requester {
    /// Lets go on what can go on in the line of an application process. What it completes calls it again, so it does not nest.
    pub(super) fn advance(&mut self, cx: &mut Context, ap: ApId) {
        if !self.sessions.get_mut(ap).line.begin() {
            return;
        }
        loop {
            let line = &mut self.sessions.get_mut(ap).line;
            let under_way = (&mut self.pending, &mut self.flushes);
            let Some(step) = line.next(cx, ap, under_way) else {
                return;
            };
            let (number, started) = match step {
                Step::Start(number) => (number, self.start(cx, ap, number)),
                Step::Fail(number, why) => (number, Err(why)),
            };
            if let Err(refusal) = started {
                self.complete(cx, number, Err(refusal), Cost::default());
            }
        }
    }

    /// Starts an operation that has left the line.
    fn start(&mut self, cx: &mut Context, ap: ApId, number: u64) -> Result<(), Refusal> {
        let upcoming = self.pending.upcoming();
        match self.pending.kind_mut(number) {
            Some(Kind::Acquire(acquire)) => {
                let object = acquire.object;
                self.sessions.check_acquire(cx, ap, object)?;
                let place = reachable_place(cx, object)?;
                self.sessions.get_mut(ap).acquire_begins(object);
                acquire.sent = true;
                let want_value = acquire.want_value;
                let kind = AccessKind::Acquire { want_value };
                send_access(cx, &mut self.pending, (number, ap), &place, kind, false);
            }
            Some(Kind::Release(release)) => {
                let object = release.object;
                // Again: another release of it may have come before.
                let epoch = self.sessions.check_release(cx, ap, object, release.epoch)?;
                let place = reachable_place(cx, object)?;
                let wrote = self.sessions.get_mut(ap).release_begins(object);
                let write = release.data.take();
                if write.is_some() {
                    // Its application process dropped its copy when it sent this.
                    self.caches.holders.remove(object, ap);
                }
                if wrote || write.is_some() {
                    // A copy fetched meanwhile by another of ours lacks the section's writes; its writer,
                    // whose reads may use copies from now on, must not see it.
                    self.caches.forget(cx, (object, place.owner), upcoming);
                }
                let epoch = Some(epoch);
                (release.epoch, release.sent) = (epoch, Some(cx.now));
                let kind = AccessKind::Release { epoch, write };
                send_access(cx, &mut self.pending, (number, ap), &place, kind, false);
            }
            Some(Kind::Barrier(wait)) => {
                let barrier = wait.barrier;
                wait.arrived = Some(cx.now);
                self.sessions.get_mut(ap).line.arrive(barrier);
                let waiter = Waiter {
                    ap,
                    operation: number,
                };
                cx.effect(Effect::Arrive { barrier, waiter });
            }
            Some(Kind::Publish) => {
                self.complete(cx, number, Ok(Reply::Published), Cost::default());
            }
            Some(Kind::Declare(_) | Kind::Open(_) | Kind::Read(_) | Kind::Write(_)) | None => {}
        }
        Ok(())
    }

    /// What became of an arrival at a barrier: which opening it was, if it opened.
    pub(crate) fn opened(
        &mut self,
        cx: &mut Context,
        waiter: Waiter,
        outcome: Result<Opening, Refusal>,
    ) {
        let operation = self.pending.get(waiter.operation);
        let Some(&Kind::Barrier(Barrier {
            arrived: Some(at), ..
        })) = operation.map(|o| &o.kind)
        else {
            return;
        };
        let outcome = match (operation, outcome) {
            (_, Ok(opening)) => Ok(Reply::Passed(opening)),
            (Some(operation), Err(refusal)) if operation.is_overdue() => {
                Err(too_late(cx, operation, Err(refusal)))
            }
            (_, Err(refusal)) => Err(refusal),
        };
        self.complete(cx, waiter.operation, outcome, Cost::waited(cx.now - at));
    }

    /// A process is heard for the first time: flushes that are under way there are sent again.
    pub(crate) fn flush_again(&mut self, cx: &mut Context, mp: MpId) {
        self.flushes.send_again(cx, mp);
    }
}

fn reachable_place<'a>(cx: &Context<'a>, object: ObjectId) -> Result<Place<'a>, Refusal> {
    let place = cx.variables.place(cx.cluster, object)?;
    check_served(cx, &place)?;
    Ok(place)
}
