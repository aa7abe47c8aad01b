use super::*;
use crate::core::lease::RETRY;
use crate::core::replica::seat::term_after;
use crate::core::replica::testing::{FIRST, SEAT, SECOND, START, TICK, decision};

/// When nobody is followed any more that was heard at the start.
const END: Nanos = Nanos(START.0 + LEASE.0 + MARGIN.0);

fn voter(start: u32) -> Voter {
    let mut voter = Voter::default();
    voter.begin(START, Incarnation::new(start, 0));
    voter
}

#[test]
fn nobody_is_promised_anything_while_a_holder_is_followed() {
    let mut v = voter(1);
    assert!(v.lead(START, (MpId(0), 0), (SEAT, 0)));
    let (one, end) = (term_after(0, 1), START + LEASE + MARGIN);
    assert!(!v.prepare(end - Nanos(1), MpId(1), (SEAT, one)).granted);
    // The holder itself may.
    assert!(v.prepare(START, MpId(0), (SEAT, term_after(0, 0))).granted);
    assert!(v.lead(START, (MpId(0), 0), (SEAT, 0)));
    assert!(v.prepare(end, MpId(1), (SEAT, one)).granted);
    // From then on the old one is refused, and what it sends to be kept.
    assert!(!v.lead(end, (MpId(0), 0), (SEAT, 0)));
    assert!(!v.is_current((SEAT, 0), 0));
    assert!(v.is_current((SEAT, one), 1));
}

/// It was cut off while another was decided on, which is lost when it is back.
#[test]
fn a_holder_whose_term_is_over_is_not_followed_although_it_was_promised_another() {
    let mut v = voter(1);
    assert!(v.lead(START, (MpId(0), 0), (SEAT, 0)));
    let (other, end) = (term_after(0, 1), START + LEASE + MARGIN);
    assert!(v.prepare(end, MpId(1), (SEAT, other)).granted);
    assert!(v.accept(end, MpId(1), decision(other, &[1])).granted);
    let later = end + LEASE + MARGIN;
    let again = term_after(other, 0);
    assert!(v.prepare(later, MpId(0), (SEAT, again)).granted);
    assert!(!v.lead(later, (MpId(0), 0), (SEAT, 0)));
    assert!(!v.is_current((SEAT, 0), 0));
    // When it has decided, it is, also by one that does not know its new term.
    assert!(v.accept(later, MpId(0), decision(again, &[0])).granted);
    assert!(v.lead(later, (MpId(0), 0), (SEAT, again)));
}

#[test]
fn a_lower_term_is_refused_with_what_was_accepted() {
    let mut v = voter(1);
    let (low, high) = (term_after(0, 1), term_after(0, 2));
    assert!(v.prepare(START, MpId(2), (SEAT, high)).granted);
    assert!(!v.prepare(START, MpId(1), (SEAT, low)).granted);
    assert!(!v.accept(START, MpId(1), decision(low, &[1])).granted);
    assert!(v.accept(START, MpId(2), decision(high, &[2])).granted);
    let later = START + LEASE + MARGIN;
    let said = v.prepare(later, MpId(1), (SEAT, term_after(high, 1)));
    assert_eq!((said.granted, said.accepted), (true, decision(high, &[2])));
    // A term that something was decided with is not promised again.
    assert!(!v.prepare(later, MpId(2), (SEAT, high)).granted);
}

#[test]
fn one_that_was_started_again_votes_when_nothing_of_its_earlier_start_counts() {
    let mut v = voter(2);
    let term = term_after(0, 1);
    let votes = |v: &mut Voter, now| v.prepare(now, MpId(1), (SEAT, term)).granted;
    assert!(!votes(&mut v, START));
    assert!(v.asks(START, RETRY) && !v.asks(START, RETRY));
    for mp in [1, 2] {
        assert_eq!(v.hear((MpId(mp), FIRST, START), (true, false), 3), None);
    }
    assert!(!votes(&mut v, START), "too early");
    let later = START + LEASE + MARGIN;
    assert!(v.asks(later, RETRY));
    assert_eq!(v.hear((MpId(1), FIRST, later), (true, false), 3), None);
    let known = v.hear((MpId(2), FIRST, later), (true, false), 3);
    assert_eq!((known, v.is_active()), (Some(false), true));
    assert!(votes(&mut v, later));
}

#[test]
fn of_four_voters_two_that_were_started_again_vote_again() {
    let mut v = voter(2);
    let later = START + LEASE + MARGIN;
    assert!(v.asks(later, RETRY));
    let hear = |v: &mut Voter, mp, active| {
        let from = (MpId(mp), SECOND, later);
        v.hear(from, (active, false), 4)
    };
    assert_eq!(hear(&mut v, 3, false), None, "it was started again too");
    assert_eq!(hear(&mut v, 1, true), None);
    assert_eq!(hear(&mut v, 2, true), Some(false));
    assert!(v.is_active());
}

#[test]
fn who_hears_from_enough_voters_hears_of_every_decision() {
    for voters in 2..10_u32 {
        let all = 1_u32 << voters;
        let majorities = (0..all).filter(|m| m.count_ones() > voters / 2 && m & 1 == 1);
        let heard = (0..all).filter(|m| m & 1 == 0);
        let heard: Vec<u32> = heard
            .filter(|m| m.count_ones() as usize == enough(voters as usize))
            .collect();
        for majority in majorities {
            // Of a majority with this process's earlier start, another that knows.
            assert!(heard.iter().all(|h| h & majority != 0), "{voters}");
        }
        assert!(
            enough(voters as usize) < voters as usize,
            "without this one"
        );
    }
}

#[test]
fn a_group_that_was_started_again_as_a_whole_votes_at_once() {
    let (mut a, mut b) = (voter(2), voter(2));
    assert!(a.asks(START, RETRY) && b.asks(START, RETRY));
    assert_eq!(a.hear((MpId(1), SECOND, START), (false, false), 3), None);
    let all = a.hear((MpId(2), SECOND, START), (false, false), 3);
    assert_eq!((all, a.is_active()), (Some(true), true));
    // The others hear of it, but not a start that came later.
    assert!(a.is_anew_for(MpId(1), Some(SECOND)));
    assert!(!a.is_anew_for(MpId(1), Some(Incarnation::new(3, 0))));
    assert_eq!(
        b.hear((MpId(0), SECOND, START), (true, true), 3),
        Some(true)
    );
    assert!(b.is_active());
}

#[test]
fn a_holder_that_is_not_the_first_of_the_voters_may_go_on() {
    let mut v = voter(1);
    let seat = Seat {
        mp: MpId(1),
        ..SEAT
    };
    assert!(v.lead(START, (MpId(1), 1), (seat, 0)));
    assert!(v.is_current((seat, 0), 1));
}

#[test]
fn the_holder_of_a_seat_that_comes_into_use_is_followed_unheard() {
    let mut v = voter(1);
    assert_eq!(v.follows_until(SEAT), Nanos::ZERO);
    v.expect(SEAT, MpId(0), START);
    assert_eq!(v.follows_until(SEAT), END);
    let other = (SEAT, term_after(0, 1));
    assert!(!v.prepare(END - TICK, MpId(1), other).granted);
    assert!(v.prepare(END, MpId(1), other).granted);
}

#[test]
fn who_decided_is_followed_as_long_as_who_leads() {
    let mut v = voter(1);
    let term = term_after(0, 1);
    assert!(v.accept(START, MpId(1), decision(term, &[1])).granted);
    assert_eq!(v.follows_until(SEAT), END);
    assert!(v.lead(END, (MpId(1), 1), (SEAT, term)));
    assert_eq!(v.follows_until(SEAT), END + LEASE + MARGIN);
}

#[test]
fn a_term_is_promised_again_until_something_is_decided_with_it() {
    let mut v = voter(1);
    let term = term_after(0, 1);
    for _ in 0..2 {
        assert!(v.prepare(START, MpId(1), (SEAT, term)).granted);
        assert_eq!(v.promised(SEAT), term);
    }
    assert!(v.accept(START, MpId(1), decision(term, &[1])).granted);
    assert!(!v.prepare(START, MpId(1), (SEAT, term)).granted);
}

#[test]
fn what_others_accepted_counts_here_unless_it_is_older() {
    let [first, second, third] = [1, 2, 3].map(|n| term_after(n << 10, 1));
    let ways: [fn(&mut Voter, &Config); 2] = [Voter::decided, |v, c| v.learn(c.term, c)];
    for hear in ways {
        let mut v = voter(1);
        hear(&mut v, &decision(second, &[1]));
        assert_eq!(v.all(), [(second, decision(second, &[1]))]);
        for before in [decision(first, &[1]), decision(second, &[1, 2])] {
            hear(&mut v, &before);
            assert_eq!(v.all(), [(second, decision(second, &[1]))]);
        }
        hear(&mut v, &decision(third, &[1]));
        assert_eq!(v.all(), [(third, decision(third, &[1]))]);
    }
}

#[test]
fn what_others_promised_is_promised_here() {
    let mut v = voter(1);
    let [first, second] = [1, 2].map(|n| term_after(n << 10, 1));
    v.learn(second, &decision(first, &[1]));
    assert_eq!(v.all(), [(second, decision(first, &[1]))]);
}

#[test]
fn one_that_was_started_again_asks_from_time_to_time() {
    let mut v = voter(2);
    assert!(v.asks(START, RETRY));
    assert!(!v.asks(START + RETRY - TICK, RETRY));
    assert!(v.asks(START + RETRY, RETRY));
}

#[test]
fn what_was_asked_before_the_leases_of_the_earlier_start_ended_does_not_count() {
    let mut v = voter(2);
    for (asked, votes) in [(END - TICK, false), (END, true)] {
        assert!(v.asks(asked, RETRY) || votes);
        for mp in [1, 2] {
            v.hear((MpId(mp), FIRST, asked), (true, false), 3);
        }
        assert_eq!(v.is_active(), votes);
    }
}

#[test]
fn who_did_not_vote_at_an_earlier_question_may_do_so_now() {
    let mut v = voter(2);
    assert!(v.asks(START, RETRY) && v.asks(START + RETRY, RETRY));
    let mut hear = |mp, asked| v.hear((MpId(mp), SECOND, asked), (false, false), 3);
    assert_eq!(hear(1, START), None);
    assert_eq!(hear(2, START + RETRY), None);
    assert_eq!(hear(1, START + RETRY), Some(true));
}
