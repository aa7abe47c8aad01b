//! A new holder and the members that keep the seat with it: before it serves anything, all of them have the same states.
//!
//! Each member by the latest decision has every state that was confirmed. Of what the holder before had under way, one may
//! have more than another. So the new holder says what it has; the others say what they have that is newer, which it
//! takes over (it may have taken effect: nobody knows), and what they lack, which it sends them.

use std::collections::{BTreeMap, BTreeSet};

use dosmos_proto::{MpId, Nanos, ObjectId};

use super::merge::{Merge, Which, compare, which};
use super::role::{Asked, Replicas, refuse};
use super::seat::{Config, Seat};
use crate::core::context::Context;
use crate::core::effects::{Caller, Effect};
use crate::core::messages::{Compare, Compared, PeerRequest, Replica, Response};

impl Replicas {
    /// This process holds a seat from now on, and these keep it too.
    pub(super) fn merge(&mut self, cx: &mut Context, config: &Config, others: &[MpId]) {
        self.leader.merge(config.seat, Merge::new(others));
        for to in others {
            self.ask_what_is_newer(cx, config.seat, *to);
        }
    }

    fn ask_what_is_newer(&mut self, cx: &mut Context, seat: Seat, to: MpId) {
        let (term, ..) = cx.variables.seats().holder(seat);
        let all = self.store.all(seat).into_iter();
        let states = all.map(|(object, state)| (object, which(&state))).collect();
        let request = PeerRequest::Compare(Compare { seat, term, states });
        self.ask(cx, to, Asked::Compare(seat), request);
    }

    /// The new holder of a seat asks what is newer here.
    pub(crate) fn answer_what_is_newer(
        &mut self,
        cx: &mut Context,
        caller: Caller,
        request: &Compare,
    ) {
        self.need(cx);
        if !self.may_keep(cx, caller.mp, (request.seat, request.term), false) {
            return refuse(cx, caller, request.seat);
        }
        let compared = compare(&self.store, request.seat, &request.states);
        cx.respond(caller, Response::Compared(compared), Nanos::ZERO);
    }

    /// A member said what it has.
    pub(super) fn compared(&mut self, cx: &mut Context, (seat, from): (Seat, MpId), its: Compared) {
        let Some(merge) = self.leader.merging(seat) else {
            return;
        };
        if !merge.asked.contains(&from) {
            return;
        }
        let (lacks, newer) = merge.heard.entry(from).or_default();
        *lacks = its.older.into_iter().collect();
        newer.extend(
            its.newer
                .iter()
                .map(|(object, state)| (*object, which(state))),
        );
        if !its.more {
            merge.asked.remove(&from);
        }
        for (object, state) in its.newer {
            let here = self.store.get(seat, object).map(which);
            if here.is_none_or(|here| here < which(&state)) {
                self.store.put(seat, object, state);
            }
        }
        match its.more {
            true => self.ask_what_is_newer(cx, seat, from),
            false => self.merge_goes_on(cx, seat),
        }
    }

    /// When everybody was heard, everybody gets what it lacks; when everybody has that, the seat is served.
    pub(super) fn merge_goes_on(&mut self, cx: &mut Context, seat: Seat) {
        let Some(merge) = self.leader.merging(seat) else {
            return;
        };
        if !merge.asked.is_empty() {
            return;
        }
        if merge.left.is_none() {
            let heard = std::mem::take(&mut merge.heard);
            let left = self.send_what_is_lacking(cx, seat, heard);
            if let Some(merge) = self.leader.merging(seat) {
                merge.left = Some(left);
            }
        }
        let merged = self.leader.merging(seat);
        if merged.is_some_and(|m| m.left.as_ref().is_some_and(BTreeSet::is_empty)) {
            self.leader.merged(seat);
            let states = self.store.all(seat);
            cx.effect(Effect::Promoted { seat, states });
            let config = cx.variables.seats().config(seat);
            if config.members.len() > 1 {
                self.leader.settle(seat);
            }
            self.note_lease(cx, seat);
        }
    }

    fn send_what_is_lacking(
        &mut self,
        cx: &mut Context,
        seat: Seat,
        heard: BTreeMap<MpId, (BTreeSet<ObjectId>, BTreeMap<ObjectId, Which>)>,
    ) -> BTreeSet<(MpId, u64)> {
        let taken_over: BTreeSet<ObjectId> = heard
            .values()
            .flat_map(|(_, newer)| newer.keys().copied())
            .collect();
        let (term, ..) = cx.variables.seats().holder(seat);
        let mut left = BTreeSet::new();
        for (to, (mut lacks, newer)) in heard {
            lacks.extend(&taken_over);
            for object in lacks {
                let Some(state) = self.store.get(seat, object).cloned() else {
                    continue;
                };
                if newer.get(&object) == Some(&which(&state)) {
                    continue;
                }
                let replica = Replica {
                    seat,
                    term,
                    joining: 0,
                    object,
                    state,
                };
                let request = PeerRequest::Replicate(replica);
                left.insert((to, self.ask(cx, to, Asked::Merge(seat), request)));
            }
        }
        left
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::lease::LEASE;
    use crate::core::replica::seat::State;
    use crate::core::replica::testing::*;

    const TERM: u64 = 1 << 10;

    /// Second of four, it has these objects in version 2.
    fn process(objects: &[u32]) -> Process {
        let mut p = Process::new(1, 4);
        p.uses(SEAT);
        for index in objects {
            p.replicas.store.put(SEAT, object(*index), state(2));
        }
        p
    }

    fn answer(newer: &[(u32, State)], older: &[u32]) -> Response {
        let newer = newer.iter().map(|(index, s)| (object(*index), s.clone()));
        Response::Compared(Compared {
            newer: newer.collect(),
            older: older.iter().copied().map(object).collect(),
            more: false,
        })
    }

    /// The states that are sent.
    fn sent(effects: &[Effect]) -> Vec<(u32, ObjectId, State)> {
        let replica = |(to, request)| match request {
            PeerRequest::Replicate(r) => Some((to, r.object, r.state)),
            _ => None,
        };
        requests(effects).into_iter().filter_map(replica).collect()
    }

    /// What it serves from now on.
    fn promoted(effects: &[Effect]) -> Option<&[(ObjectId, State)]> {
        effects.iter().find_map(|effect| match effect {
            Effect::Promoted { states, .. } => Some(states.as_slice()),
            _ => None,
        })
    }

    #[test]
    fn the_holder_alone_hears_what_is_newer_here() {
        let mut p = process(&[0]);
        p.seated(&decision(TERM, &[0, 1]));
        let compare = Compare {
            seat: SEAT,
            term: TERM,
            states: Vec::new(),
        };
        let mut ask = |mp| {
            let effects = p.does(|r, cx| r.answer_what_is_newer(cx, caller(mp), &compare));
            responses(&effects)
        };
        assert_eq!(ask(0), [answer(&[(0, state(2))], &[])]);
        assert!(matches!(ask(2).as_slice(), [Response::Refused(_)]));
    }

    #[test]
    fn a_new_holder_takes_over_what_is_newer_or_it_does_not_have() {
        let mut p = process(&[0, 1, 2]);
        p.seated(&decision(TERM, &[1, 2]));
        let same = State {
            data: state(9).data,
            ..state(2)
        };
        let its = [(0, state(3)), (1, state(1)), (2, same), (3, state(1))];
        let effects = p.receives(2, answer(&its, &[]));
        let has = [(0, state(3)), (1, state(2)), (2, state(2)), (3, state(1))];
        let has = has.map(|(index, state)| (object(index), state));
        assert_eq!(p.replicas.store.all(SEAT), has);
        // The rest is there already.
        assert_eq!(sent(&effects), [(2, object(1), state(2))]);
    }

    #[test]
    fn a_seat_is_served_when_every_member_has_what_it_lacked() {
        let mut p = process(&[0]);
        p.seated(&decision(TERM, &[1, 2, 3]));
        p.replicas.leader.hear(SEAT, MpId(0), START);
        assert!(p.receives(2, answer(&[(5, state(1))], &[0])).is_empty());
        let effects = p.receives(3, answer(&[], &[0]));
        let lacked = [
            (2, object(0), state(2)),
            (3, object(0), state(2)),
            (3, object(5), state(1)),
        ];
        assert_eq!(sent(&effects), lacked);
        assert_eq!(promoted(&effects), None);
        for mp in [2, 3] {
            assert_eq!(promoted(&p.receives(mp, Response::Replicated)), None);
        }
        let lease = |p: &Process| p.replicas.leader.lease(SEAT, 1);
        assert_eq!(lease(&p), Some((START + LEASE, false)));
        let effects = p.receives(3, Response::Replicated);
        let serves = [(object(0), state(2)), (object(5), state(1))];
        assert_eq!(promoted(&effects), Some(serves.as_slice()));
        assert_eq!(lease(&p), Some((START + LEASE, true)));
    }
}
