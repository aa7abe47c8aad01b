use dosmos_proto::ObjectId;

use super::*;
use crate::core::lease::MARGIN;
use crate::core::messages::Compare;
use crate::core::replica::seat::{Shipment, State};
use crate::core::replica::testing::*;

/// The first term of the first voter.
const TERM: u64 = 1 << 10;
/// When nobody is followed any more that was heard at the start.
const END: Nanos = Nanos(START.0 + LEASE.0 + MARGIN.0);

/// A process of a group in which the seat is in use.
fn process(me: u32, processes: u32) -> Process {
    let mut p = Process::new(me, processes);
    p.uses(SEAT);
    p
}

fn is_under_way(p: &Process) -> bool {
    p.replicas.elections.get(SEAT).is_some()
}

/// That the next decision may be asked for from this time on.
#[track_caller]
fn may_ask_from(p: &Process, time: Nanos) {
    let elections = &p.replicas.elections;
    assert!(!elections.may_begin(SEAT, time - TICK));
    assert!(elections.may_begin(SEAT, time));
}

#[test]
fn who_is_lost_or_has_not_come_up_is_not_asked() {
    let mut p = Process::alone(0, &["/a"], 3, FIRST);
    p.hears(1, FIRST);
    let prepare = Ballot::Prepare(SEAT, TERM);
    assert_eq!(ballots(&p.elects(&[])), asked_of(&[0, 1], &prepare));
    p.replicas.elections.end(SEAT, START);
    p.loses(1);
    assert_eq!(ballots(&p.elects(&[])), asked_of(&[0], &prepare));
}

#[test]
fn a_term_names_who_asks_for_it() {
    let mut p = Process::new(2, 3);
    let prepare = Ballot::Prepare(SEAT, term_after(0, 2));
    assert_eq!(ballots(&p.elects(&[])), asked_of(&[0, 1, 2], &prepare));
}

#[test]
fn nothing_is_asked_or_promised_for_a_seat_of_another_group() {
    let mut p = Process::alone(0, &["/a", "/b"], 2, FIRST);
    let seat = Seat {
        mp: MpId(2),
        ..SEAT
    };
    assert!(p.uses(seat).is_empty());
    assert!(!p.replicas.voter.is_active());
    assert_eq!(p.replicas.voter.follows_until(seat), Nanos::ZERO);
}

#[test]
fn what_takes_too_long_is_given_up_and_the_later_a_voter_the_longer_it_waits() {
    let mut p = process(2, 3);
    p.elects(&[]);
    let end = START + DECISION_TIME;
    p.tick(end - TICK);
    assert!(is_under_way(&p));
    p.tick(end);
    assert!(!is_under_way(&p));
    may_ask_from(&p, end + Nanos(3 * RETRY.0));
}

#[test]
fn who_may_not_go_on_by_what_a_majority_says_waits_for_the_others_and_gives_up() {
    let mut p = process(1, 3);
    p.elects(&[]);
    p.granted(1, &Config::initial(SEAT));
    p.granted(0, &decision(TERM, &[0]));
    let end = START + HEARING_TIME;
    p.tick(end - TICK);
    assert!(is_under_way(&p));
    assert!(ballots(&p.tick(end)).is_empty());
    assert!(!is_under_way(&p));
    may_ask_from(&p, end + LEASE);
}

#[test]
fn members_ask_one_after_the_other_when_nobody_is_followed() {
    let seat = Seat {
        replicas: 2,
        ..SEAT
    };
    let decided = Config {
        seat,
        ..decision(TERM, &[0, 1, 2])
    };
    for config in [None, Some(decided)] {
        for (me, turn) in [(1, Nanos::ZERO), (2, RETRY + RETRY)] {
            let mut p = Process::new(me, 3);
            p.uses(seat);
            config.iter().for_each(|config| _ = p.seated(config));
            assert!(p.tick(END + turn - TICK).is_empty());
            assert_eq!(ballots(&p.tick(END + turn)).len(), 3);
        }
    }
}

#[test]
fn who_keeps_nothing_has_it_decided_that_a_seat_is_lost_when_all_that_kept_it_were_started_again() {
    let mut p = process(2, 3);
    let kept = decision(TERM, &[0, 1]);
    p.seated(&kept);
    assert!(p.tick(END).is_empty());
    p.hears(0, SECOND);
    assert!(p.tick(END).is_empty(), "one of two");
    p.hears(1, SECOND);
    let term = term_after(TERM, 2);
    let prepare = Ballot::Prepare(SEAT, term);
    assert_eq!(ballots(&p.tick(END)), asked_of(&[0, 1, 2], &prepare));
    assert!(p.granted(0, &kept).is_empty());
    assert!(p.granted(1, &kept).is_empty());
    let lost = Config::lost(SEAT, term);
    let accept = asked_of(&[0, 1, 2], &Ballot::Accept(lost.clone()));
    assert_eq!(ballots(&p.granted(2, &kept)), accept);
    p.seated(&lost);
    assert!(p.tick(END + LEASE).is_empty(), "for good");
}

#[test]
fn a_member_goes_on_as_soon_as_a_majority_has_promised() {
    let mut p = process(1, 3);
    p.elects(&[]);
    let initial = Config::initial(SEAT);
    assert!(p.granted(1, &initial).is_empty());
    let accept = Ballot::Accept(decision(term_after(0, 1), &[1]));
    let asked = asked_of(&[0, 1, 2], &accept);
    assert_eq!(ballots(&p.granted(2, &initial)), asked);
}

#[test]
fn a_holder_goes_on_although_voters_know_of_earlier_decisions_alone() {
    let mut p = process(2, 3);
    let own = decision(term_after(0, 2), &[2, 1]);
    p.seated(&own);
    p.elects(&[1]);
    let initial = Config::initial(SEAT);
    p.granted(0, &initial);
    let next = Config {
        term: term_after(own.term, 2),
        ..own
    };
    let asked = asked_of(&[0, 1, 2], &Ballot::Accept(next));
    assert_eq!(ballots(&p.granted(1, &initial)), asked);
}

#[test]
fn a_holder_does_not_go_on_if_another_was_decided_on_since() {
    let mut p = process(2, 3);
    let own = term_after(0, 2);
    p.seated(&decision(own, &[2, 1]));
    p.elects(&[1]);
    for voter in [0, 1, 2] {
        let later = decision(term_after(own, 1), &[1]);
        assert!(ballots(&p.granted(voter, &later)).is_empty());
    }
    assert!(!is_under_way(&p));
}

#[test]
fn a_decision_that_took_a_lease_does_not_count() {
    let initial = Config::initial(SEAT);
    for (time, counts) in [(LEASE - TICK, true), (LEASE, false)] {
        let mut p = process(1, 3);
        p.elects(&[]);
        p.granted(1, &initial);
        p.granted(2, &initial);
        p.now = START + time;
        p.granted(1, &initial);
        let effects = p.granted(2, &initial);
        let is_seated = |effect: &Effect| matches!(effect, Effect::Seated(_));
        assert_eq!(effects.iter().any(is_seated), counts);
        assert!(!is_under_way(&p));
    }
}

#[test]
fn a_new_holder_asks_the_other_members_what_they_have() {
    let mut p = process(1, 3);
    let asked = requests(&p.seated(&decision(TERM, &[1, 2])));
    let compare = Compare {
        seat: SEAT,
        term: TERM,
        states: Vec::new(),
    };
    assert!(asked.contains(&(2, PeerRequest::Compare(compare))));
    let compares = asked
        .iter()
        .filter(|(_, r)| matches!(r, PeerRequest::Compare(_)));
    assert_eq!(compares.count(), 1);
}

#[test]
fn who_is_no_member_any_more_drops_what_it_kept() {
    let mut p = process(1, 3);
    p.replicas.store.put(SEAT, object(0), state(1));
    for (term, members, keeps) in [(TERM, [0, 1], true), (TERM + TERM, [0, 2], false)] {
        p.seated(&decision(term, &members));
        assert_eq!(p.replicas.store.get(SEAT, object(0)).is_some(), keeps);
    }
}

fn may_keep(p: &mut Process, holder: u32, term: u64, joins: bool) -> bool {
    let mut may = false;
    p.does(|r, cx| may = r.may_keep(cx, MpId(holder), (SEAT, term), joins));
    may
}

#[test]
fn a_member_keeps_what_the_holder_says_until_another_is_promised_something() {
    let mut p = process(1, 3);
    p.seated(&decision(TERM, &[0, 1]));
    assert!(may_keep(&mut p, 0, TERM, false));
    assert!(!may_keep(&mut p, 2, TERM, false));
    assert!(!may_keep(&mut p, 0, 0, false));
    let other = (SEAT, term_after(TERM, 2));
    assert!(p.replicas.voter.prepare(END, MpId(2), other).granted);
    assert!(!may_keep(&mut p, 0, TERM, false));
}

#[test]
fn who_is_no_member_keeps_what_it_catches_up_with_if_it_votes() {
    let kept = decision(TERM, &[0, 1]);
    let mut p = process(2, 3);
    p.seated(&kept);
    assert!(!may_keep(&mut p, 0, TERM, false));
    assert!(may_keep(&mut p, 0, TERM, true));
    assert!(may_keep(&mut p, 0, TERM + TERM, true), "not heard of yet");
    assert!(!may_keep(&mut p, 0, 0, true));
    let mut again = Process::alone(2, &["/a"], 3, SECOND);
    again.uses(SEAT);
    again.seated(&kept);
    assert!(!may_keep(&mut again, 0, TERM, true));
}

/// The holder of a term has an object kept.
fn keep(p: &mut Process, (term, joining): (u64, u64), index: u32) -> Response {
    let replica = Replica {
        seat: SEAT,
        term,
        joining,
        object: object(index),
        state: state(1),
    };
    let effects = p.does(|r, cx| r.keep_state(cx, caller(0), replica));
    responses(&effects).pop().unwrap()
}

fn kept(p: &Process) -> Vec<ObjectId> {
    let all = p.replicas.store.all(SEAT).into_iter();
    all.map(|(object, _)| object).collect()
}

#[test]
fn what_was_sent_for_an_earlier_catching_up_is_void_and_the_rest_stays() {
    let mut p = process(2, 3);
    p.seated(&decision(TERM, &[0, 1]));
    assert!(matches!(keep(&mut p, (TERM, 0), 0), Response::Refused(_)));
    for index in [1, 2] {
        assert_eq!(keep(&mut p, (TERM, 1), index), Response::Replicated);
    }
    assert_eq!(kept(&p), [1, 2].map(object));
    for index in [3, 4] {
        assert_eq!(keep(&mut p, (TERM, 2), index), Response::Replicated);
    }
    assert_eq!(kept(&p), [3, 4].map(object));
    // Now it is a member.
    p.seated(&decision(TERM + TERM, &[0, 2]));
    assert_eq!(keep(&mut p, (TERM + TERM, 0), 5), Response::Replicated);
    assert_eq!(kept(&p), [3, 4, 5].map(object));
}

#[test]
fn who_refuses_to_catch_up_is_asked_again_after_a_lease() {
    let mut p = process(0, 3);
    p.replicas.leader.hear(SEAT, MpId(2), START);
    p.replicas.leader.join(SEAT, (MpId(2), FIRST), START);
    let shipment = Shipment {
        seat: SEAT,
        object: object(0),
        state: State::default(),
        round: 1,
    };
    p.does(|r, cx| r.ship(cx, shipment));
    let refusal = Refusal::new(ErrorCode::Invalid, "no".to_owned());
    p.receives(2, Response::Refused(refusal));
    let next = |now| p.replicas.leader.candidate(SEAT, &[MpId(2)], (now, END));
    assert_eq!(next(START + LEASE - TICK), None);
    assert_eq!(next(START + LEASE), Some(MpId(2)));
}

#[test]
fn who_can_be_reached_again_hears_what_was_decided() {
    let mut p = process(0, 3);
    let regain = |p: &mut Process| p.does(|r, cx| r.regain(cx, MpId(1)));
    assert!(regain(&mut p).is_empty());
    let config = decision(TERM, &[0, 1]);
    p.seated(&config);
    match regain(&mut p).as_slice() {
        [
            Effect::Notice {
                to: MpId(1),
                notice: Notice::Seated(said),
            },
        ] => assert_eq!(*said, config),
        other => panic!("{other:?}"),
    }
}
