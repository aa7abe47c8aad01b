//! Accesses to objects with replicas, whose owner may be lost and replaced while they are under way
//! (docs/design/consistency.md#replicas).
//!
//! Guarantee: nothing is done twice. Only what is known not to have been done is asked for again, and reads and
//! acquires: whatever their first time made is void with the owner that made it.

use dosmos_proto::{ErrorCode, MpId, Nanos, Refusal};

use super::asking::ask;
use super::leave::describe;
use super::pending::Again;
use super::records::sections_lost;
use super::role::Requester;
use crate::core::context::Context;
use crate::core::directory::variables::lost_with_all;
use crate::core::effects::Effect;
use crate::core::lease::RETRY;
use crate::core::messages::{Cost, Response};
use crate::core::replica::seat::{Config, Seat};

impl Requester {
    /// A response that says that an access to an object with replicas was not done: it is asked for again. Any other is given
    /// back.
    pub(super) fn not_done(
        &mut self,
        cx: &mut Context,
        (number, from): (u64, MpId),
        response: Response,
    ) -> Option<Response> {
        let current = self.pending.get(number).is_some_and(|o| o.to == from);
        let again = self.pending.again.get_mut(&number).filter(|_| current);
        let Some(again) = again else {
            return Some(response);
        };
        let seat = again.seat;
        let next = Some(cx.now + RETRY);
        match response {
            Response::Moved(config) if config.is_lost() => {
                let place = cx.variables.place(cx.cluster, again.access.object);
                let lost = place.map(|place| lost_with_all(cx.cluster, &place, seat));
                Some(Response::Refused(lost.unwrap_or_else(|refusal| refusal)))
            }
            Response::Moved(config) => {
                // What was sent behind it arrived behind it.
                for number in self.sent_to(from, seat, number) {
                    if let Some(again) = self.pending.again.get_mut(&number) {
                        again.waits = next;
                    }
                }
                if cx.variables.seats().holder(seat).1 != from {
                    self.ask_waiting(cx, seat);
                }
                cx.effect(Effect::Seated(config));
                None
            }
            // Nobody served it: it did not arrive, or was meant for an earlier start of its owner.
            Response::Refused(refusal)
                if matches!(
                    refusal.code,
                    ErrorCode::Unreachable | ErrorCode::ProcessLost
                ) =>
            {
                again.waits = next;
                None
            }
            response => Some(response),
        }
    }

    /// Accesses to objects of a seat that were sent to a process, from a number on, in order.
    fn sent_to(&self, to: MpId, seat: Seat, from: u64) -> Vec<u64> {
        let later = self.pending.again.range(from..);
        let sent = later.filter(|(number, again)| {
            let operation = self.pending.get(**number);
            again.seat == seat && again.waits.is_none() && operation.is_some_and(|o| o.to == to)
        });
        sent.map(|(number, _)| *number).collect()
    }

    fn ask_those(&mut self, cx: &mut Context, which: impl Fn(&Again) -> bool) {
        let numbers = self.pending.again.iter().filter(|(_, again)| which(again));
        let numbers: Vec<u64> = numbers.map(|(number, _)| *number).collect();
        for number in numbers {
            if let Some(ap) = self.pending.get(number).map(|o| o.ticket.ap) {
                ask(cx, &mut self.pending, number, ap);
            }
        }
    }

    fn ask_waiting(&mut self, cx: &mut Context, seat: Seat) {
        self.ask_those(cx, |again| again.seat == seat && again.waits.is_some());
    }

    /// Asks again for what was not done long enough ago. All of a seat are asked for together, so that they keep their order.
    pub(crate) fn ask_again(&mut self, cx: &mut Context) {
        let due = |again: &&Again| again.waits.is_some_and(|at: Nanos| at <= cx.now);
        let seats = self.pending.again.values().filter(due).map(|a| a.seat);
        let mut seats: Vec<Seat> = seats.collect();
        seats.sort_unstable();
        seats.dedup();
        for seat in seats {
            self.ask_waiting(cx, seat);
        }
    }

    /// Another process serves a seat. Sections on its objects are lost; reads and acquires are asked of it; what may have been
    /// done by the one before fails.
    pub(crate) fn moved(&mut self, cx: &mut Context, before: &Config, config: &Config) {
        let seat = config.seat;
        let seats = cx.variables;
        let of_seat = |object, _| seats.seat_of(object) == Some(seat);
        let lost = self.sessions.lose_sections(of_seat);
        sections_lost(cx, &lost);
        self.caches.forget_seat(cx, (seat, before.holder()));
        let of = |again: &&Again| again.seat == seat;
        let all = self.pending.again.iter().filter(|(_, again)| of(again));
        let all: Vec<u64> = all.map(|(number, _)| *number).collect();
        for number in all {
            let again = self.pending.again.get(&number);
            let object = again.map(|a| a.access.object);
            let asks = again.is_some_and(|a| a.waits.is_some() || a.is_repeatable());
            if config.is_lost()
                && let Some(Err(lost)) = object.map(|object| seats.place(cx.cluster, object))
            {
                self.complete(cx, number, Err(lost), Cost::default());
                continue;
            }
            match self.pending.get(number).map(|o| o.ticket.ap) {
                Some(ap) if asks => ask(cx, &mut self.pending, number, ap),
                _ => self.fails_unclear(cx, number),
            }
        }
    }

    /// Whoever served an access is lost: nobody can say whether it was done.
    fn fails_unclear(&mut self, cx: &mut Context, number: u64) {
        if let Some(operation) = self.pending.get(number) {
            let why = format!(
                "{}: {}, its owner, was lost; it may have taken effect",
                describe(cx, operation),
                cx.cluster.mp_name(operation.to)
            );
            let refusal = Refusal::new(ErrorCode::Unreachable, why);
            self.complete(cx, number, Err(refusal), Cost::default());
        }
    }

    /// The process that an access was sent to is lost. Whether it waits for another to serve the object.
    pub(super) fn waits_for_another(&mut self, cx: &mut Context, number: u64) -> bool {
        let Some(again) = self.pending.again.get_mut(&number) else {
            return false;
        };
        if again.waits.is_none() && !again.is_repeatable() {
            self.fails_unclear(cx, number);
            return true;
        }
        again.waits.get_or_insert(cx.now + RETRY);
        if let Some(operation) = self.pending.get(number) {
            self.unsettled.note(cx, operation);
        }
        true
    }

    /// What an access to an object with replicas waits for.
    pub(super) fn why_waits(&self, cx: &Context, number: u64) -> Option<String> {
        let again = self.pending.again.get(&number)?;
        again.waits?;
        let owner = cx
            .cluster
            .mp_name(cx.variables.seats().holder(again.seat).1);
        Some(format!(
            "{owner}, its owner, is lost, and no majority of the memory and link processes of its group has decided who serves it now"
        ))
    }
}
