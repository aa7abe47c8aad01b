//! Accesses to objects with replicas, whose owner may be lost and replaced while they are under way
//! (docs/design/consistency.md#replicas).
//!
//! Guarantee: nothing is done twice. Only what is known not to have been done is asked for again, and reads and
//! acquires: whatever their first time made is void with the owner that made it.

use dosmos_proto::{ApId, ErrorCode, MpId, Nanos, Refusal};

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
                self.ask_once_more(cx, number, ap);
            }
        }
    }

    /// Asks again. A read that was asked meanwhile came before a write that is asked now, so our copy is void once more.
    fn ask_once_more(&mut self, cx: &mut Context, number: u64, ap: ApId) {
        let again = self.pending.again.get(&number);
        let access = again.map(|again| &again.access);
        if let Some(object) = access.filter(|a| a.kind.changes()).map(|a| a.object)
            && let Ok(place) = cx.variables.place(cx.cluster, object)
        {
            let upcoming = self.pending.upcoming();
            self.caches.forget(cx, (object, place.owner), upcoming);
        }
        ask(cx, &mut self.pending, number, ap);
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
                Some(ap) if asks => self.ask_once_more(cx, number, ap),
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
            "{owner}, its owner, is lost, and no majority of the memory and link processes of its group has decided who serves it now; start those of them that do not run. If all run, too many were started again at once, and nobody knows what had been decided: start the cluster and the program again"
        ))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::pending::{Kind, Operation, Ticket, of_call};
    use super::*;
    use crate::core::context::View;
    use crate::core::messages::{Access, AccessKind, Output, PeerRequest, Reply};
    use crate::core::replica::seat::term_after;
    use crate::core::test_topology;
    use dosmos_proto::{
        ApId, ElementType, GroupId, Incarnation, Layout, ObjectId, VarId, Variable, VariableSpec,
    };

    const NOW: Nanos = Nanos::from_millis(10_000);
    const ME: MpId = MpId(2);
    const FIRST: MpId = MpId(0);
    const SECOND: MpId = MpId(1);

    /// The object of a variable, whose number is that of its replicas.
    fn object(of: u32) -> ObjectId {
        ObjectId::new(VarId(of), 0)
    }

    fn seat(replicas: u32) -> Seat {
        Seat {
            mp: FIRST,
            replicas,
        }
    }

    fn read() -> AccessKind {
        AccessKind::read_of_test()
    }

    fn write() -> AccessKind {
        AccessKind::write_of_test()
    }

    /// Variables 1 and 2 of mp0, with one and two replicas, at a memory process that keeps neither, and what it asked.
    struct At {
        view: View,
        requester: Requester,
        effects: Vec<Effect>,
    }

    impl At {
        fn new() -> Self {
            let mut view = View::of_test(test_topology(&["/a"], 4, 1), ME);
            let mut effects = Vec::new();
            let own = Incarnation::new(1, 0);
            for peer in [FIRST, SECOND, MpId(3)] {
                view.router.peer_up(&view.cluster, peer, &mut effects);
            }
            for replicas in [1, 2] {
                let layout = Layout::new(ElementType::U64, (1, 1), (1, 1)).unwrap();
                let spec = VariableSpec::new(format!("x{replicas}"), layout).unwrap();
                let spec = spec.with_replicas(replicas).unwrap();
                let id = VarId(replicas);
                let variable = Variable::new(id, spec, vec![FIRST], GroupId(0)).unwrap();
                let owners = [(FIRST, own)];
                let known = Arc::new(variable);
                let variables = &mut view.variables;
                variables
                    .learn(&view.cluster, own, &known, Some(&owners), &mut effects)
                    .unwrap();
            }
            Self {
                view,
                requester: Requester::new(Nanos::MAX),
                effects: Vec::new(),
            }
        }

        /// An access that was sent to a process.
        fn sent(&mut self, to: MpId, of: u32, kind: AccessKind) -> u64 {
            let access = Access {
                object: object(of),
                kind,
            };
            let ticket = Ticket {
                ap: ApId(2),
                id: 7,
                start: NOW,
                timeout: Nanos::from_millis(60_000),
                first: false,
                posted: false,
            };
            let operation = Operation::new(ticket, to, Kind::unchecked(&access));
            let number = self.requester.pending.open(operation);
            let again = Again {
                seat: seat(of),
                access,
                want_copy: false,
                waits: None,
                repeated: 0,
            };
            self.requester.pending.again.insert(number, again);
            number
        }

        fn waits(&self, number: u64) -> Option<Nanos> {
            self.requester.pending.again[&number].waits
        }

        fn does<T>(&mut self, what: impl FnOnce(&mut Requester, &mut Context) -> T) -> T {
            self.effects.clear();
            what(
                &mut self.requester,
                &mut Context::new(NOW, &self.view, &mut self.effects),
            )
        }

        /// Who was asked for which operation, and the words of what was refused.
        fn done(&self) -> (Vec<(u64, MpId)>, Vec<&str>) {
            let asked = self.effects.iter().filter_map(|e| match e {
                Effect::Request {
                    to,
                    call,
                    request: PeerRequest::Access { .. },
                    ..
                } => Some((of_call(call.number).0, *to)),
                _ => None,
            });
            let refused = self.effects.iter().filter_map(|e| match e {
                Effect::Output(Output::Reply {
                    reply: Reply::Refused(refusal),
                    ..
                }) => Some(refusal.message.as_str()),
                _ => None,
            });
            (asked.collect(), refused.collect())
        }
    }

    fn config(replicas: u32, holder: Option<MpId>) -> Config {
        Config {
            seat: seat(replicas),
            term: term_after(0, 1),
            members: holder
                .map(|mp| (mp, Incarnation::new(1, 0)))
                .into_iter()
                .collect(),
        }
    }

    fn refused(code: ErrorCode) -> Response {
        Response::Refused(Refusal::new(code, "no"))
    }

    #[test]
    fn what_was_sent_behind_what_moved_waits_with_it() {
        let mut at = At::new();
        let numbers = [
            at.sent(FIRST, 1, read()),
            at.sent(FIRST, 1, write()),
            at.sent(SECOND, 1, read()),
            at.sent(FIRST, 2, read()),
            at.sent(FIRST, 1, read()),
        ];
        // The second one moved: the first may have been done, the third and the fourth went elsewhere.
        let moved = Response::Moved(config(1, Some(SECOND)));
        let rest = at.does(|r, cx| r.not_done(cx, (numbers[1], FIRST), moved));
        assert_eq!(rest, None);
        let later = Some(NOW + RETRY);
        let waits = numbers.map(|number| at.waits(number));
        assert_eq!(waits, [None, later, None, None, later]);
        assert!(
            matches!(at.effects[..], [Effect::Seated(_)]),
            "it hears who serves"
        );
        // What waits already is not put off.
        at.requester
            .pending
            .again
            .get_mut(&numbers[4])
            .unwrap()
            .waits = Some(NOW);
        let moved = Response::Moved(config(1, Some(SECOND)));
        at.does(|r, cx| r.not_done(cx, (numbers[1], FIRST), moved));
        assert_eq!(at.waits(numbers[4]), Some(NOW));
    }

    #[test]
    fn where_another_is_known_to_serve_what_moved_is_asked_of_it_at_once() {
        let mut at = At::new();
        at.view
            .variables
            .seats_mut()
            .install(&config(1, Some(SECOND)));
        let [one, other] = [1, 2].map(|of| at.sent(FIRST, of, read()));
        at.requester.pending.again.get_mut(&other).unwrap().waits = Some(NOW);
        let moved = Response::Moved(config(1, Some(SECOND)));
        at.does(|r, cx| r.not_done(cx, (one, FIRST), moved));
        assert_eq!(at.done().0, [(one, SECOND)], "and no other seat's");
        assert_eq!(at.waits(one), None);
        assert_eq!(at.requester.pending.get(one).unwrap().to, SECOND);
    }

    #[test]
    fn what_nobody_served_is_asked_for_again_and_any_other_answer_is_one() {
        for code in [ErrorCode::Unreachable, ErrorCode::ProcessLost] {
            let mut at = At::new();
            let number = at.sent(FIRST, 1, write());
            let rest = at.does(|r, cx| r.not_done(cx, (number, FIRST), refused(code)));
            assert_eq!((rest, at.waits(number)), (None, Some(NOW + RETRY)));
        }
        let mut at = At::new();
        let number = at.sent(FIRST, 1, write());
        let given_back = |at: &mut At, from: MpId, response: Response| {
            at.does(|r, cx| r.not_done(cx, (number, from), response.clone())) == Some(response)
        };
        assert!(given_back(&mut at, FIRST, refused(ErrorCode::Invalid)));
        assert!(given_back(&mut at, FIRST, Response::Written { version: 1 }));
        // From one that was not asked.
        assert!(given_back(&mut at, SECOND, refused(ErrorCode::Unreachable)));
        assert_eq!(at.waits(number), None);
        let lost = Response::Moved(config(1, None));
        match at.does(|r, cx| r.not_done(cx, (number, FIRST), lost)) {
            Some(Response::Refused(refusal)) => assert_eq!(refusal.code, ErrorCode::ProcessLost),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_waits_of_a_seat_is_asked_for_together_when_one_is_due() {
        let mut at = At::new();
        let numbers = [1, 1, 1, 2].map(|of| at.sent(FIRST, of, read()));
        let waits = [Some(NOW), Some(NOW + Nanos(9)), None, Some(NOW + Nanos(1))];
        for (number, waits) in numbers.iter().zip(waits) {
            at.requester.pending.again.get_mut(number).unwrap().waits = waits;
        }
        at.does(Requester::ask_again);
        assert_eq!(at.done().0, [(numbers[0], FIRST), (numbers[1], FIRST)]);
        let left = numbers.map(|number| at.waits(number));
        assert_eq!(left, [None, None, None, waits[3]]);
        at.does(Requester::ask_again);
        assert!(at.done().0.is_empty());
        // One whose time is over was taken back: it is not asked for.
        at.requester.pending.wait_for_answer(numbers[3], NOW);
        at.requester
            .pending
            .again
            .get_mut(&numbers[3])
            .unwrap()
            .waits = Some(NOW);
        at.does(Requester::ask_again);
        assert!(at.done().0.is_empty());
    }

    #[test]
    fn who_cannot_be_reached_is_asked_a_moment_later() {
        let mut at = At::new();
        let number = at.sent(FIRST, 1, read());
        at.requester.pending.again.get_mut(&number).unwrap().waits = Some(NOW);
        let view = &mut at.view;
        view.router.peer_down(&view.cluster, FIRST, &mut Vec::new());
        at.does(Requester::ask_again);
        assert!(at.done().0.is_empty());
        assert_eq!(at.waits(number), Some(NOW + RETRY));
        let why = at.does(|r, cx| r.why_waits(cx, number)).unwrap();
        assert!(why.starts_with("mp0, its owner, is lost"), "{why}");
        assert!(why.contains("start those of them that do not run"), "{why}");
    }

    #[test]
    fn what_may_have_been_done_by_one_that_is_lost_fails_and_the_rest_waits() {
        let mut at = At::new();
        let [asked, written, waiting] = [read(), write(), write()].map(|k| at.sent(FIRST, 1, k));
        let early = Some(NOW + Nanos(3));
        at.requester.pending.again.get_mut(&waiting).unwrap().waits = early;
        for number in [asked, waiting, written] {
            assert!(at.does(|r, cx| r.waits_for_another(cx, number)));
        }
        let refused = at.done().1;
        assert!(refused[0].contains("was lost; it may have taken effect"));
        assert!(at.requester.pending.get(written).is_none());
        let waits = [asked, waiting].map(|number| at.waits(number));
        assert_eq!(waits, [Some(NOW + RETRY), early]);
        // Of no seat.
        assert!(!at.does(|r, cx| r.waits_for_another(cx, 99)));
    }

    #[test]
    fn a_new_holder_is_asked_what_may_be_asked_twice_or_was_not_done() {
        let mut at = At::new();
        let [asked, written, waiting] = [read(), write(), write()].map(|k| at.sent(FIRST, 1, k));
        let other = at.sent(FIRST, 2, read());
        at.requester.pending.again.get_mut(&waiting).unwrap().waits = Some(NOW);
        let now = config(1, Some(SECOND));
        let before = at.view.variables.seats_mut().install(&now).unwrap();
        at.does(|r, cx| r.moved(cx, &before, &now));
        let (again, refused) = at.done();
        assert_eq!(again, [(asked, SECOND), (waiting, SECOND)]);
        assert_eq!(refused.len(), 1, "{refused:?}");
        assert!(at.requester.pending.get(written).is_none());
        assert!(at.requester.pending.get(other).is_some());
    }

    #[test]
    fn what_is_lost_with_all_that_kept_it_is_not_waited_for() {
        let mut at = At::new();
        at.sent(FIRST, 1, read());
        at.sent(FIRST, 1, write());
        let now = config(1, None);
        let before = at.view.variables.seats_mut().install(&now).unwrap();
        at.does(|r, cx| r.moved(cx, &before, &now));
        let (again, refused) = at.done();
        assert!(again.is_empty());
        let lost = |text: &&str| text.contains("all memory processes that kept it");
        assert_eq!(refused.iter().filter(|t| lost(t)).count(), 2, "{refused:?}");
    }
}
