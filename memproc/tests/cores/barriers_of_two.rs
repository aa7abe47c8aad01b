//! Barriers where there are only two memory processes: each tells the other that its own wait, and opens the barrier for its
//! own when it knows that of both, without a message there and back.

use dosmos_memproc::core::messages::{Reply, Request};
use dosmos_proto::{ApId, MpId, Nanos};

use crate::common::*;

const MP0: MpId = MpId(0);
const MP1: MpId = MpId(1);
const SOON: Nanos = Nanos::from_millis(50);
const LATER: Nanos = Nanos::from_millis(60);

fn two() -> Cluster {
    Cluster::new(&["/a"], 2, 1)
}

fn generation(c: &Cluster, ap: u32, id: u64) -> Option<u64> {
    match c.reply(ap, id) {
        Some(Reply::Passed(opening)) => Some(opening.generation),
        None => None,
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn refused(c: &Cluster, ap: u32, id: u64, part: &str) {
    match c.reply(ap, id) {
        Some(Reply::Refused(r)) => assert!(r.message.contains(part), "{r:?} has no {part:?}"),
        other => panic!("{other:?}"),
    }
}

/// All come, and pass the same opening.
#[track_caller]
fn in_step(c: &mut Cluster, expected: u64) {
    let aps = c.cores.len() as u32;
    let ids: Vec<u64> = (0..aps).map(|ap| c.ask(ap, barrier("b"))).collect();
    c.run();
    for (ap, id) in (0..aps).zip(ids) {
        assert_eq!(generation(c, ap, id), Some(expected), "of ap{ap}");
    }
}

#[test]
fn who_comes_last_goes_on_at_once() {
    for last in [0, 1] {
        let mut c = two();
        let first = c.ask(1 - last, barrier("b"));
        c.run();
        let second = c.ask(last, barrier("b"));
        assert_eq!(generation(&c, last, second), Some(1));
        assert_eq!(generation(&c, 1 - last, first), None);
        c.run();
        assert_eq!(generation(&c, 1 - last, first), Some(1));
        in_step(&mut c, 2);
    }
}

#[test]
fn those_who_come_together_need_one_message_each() {
    let mut c = two();
    in_step(&mut c, 1);
    c.log.clear();
    in_step(&mut c, 2);
    c.expect(
        "ap0 -> mp0 barrier b
        ap1 -> mp1 barrier b
        mp0 -> mp1 arrive b generation 2
        record@mp1 requester barrier barrier b[2] by ap1 intra v1 waited
        mp1 -> ap1 passed generation 2
        mp1 -> mp0 arrive b generation 2
        record@mp0 requester barrier barrier b[2] by ap0 local v1 waited
        mp0 -> ap0 passed generation 2",
    );
}

/// With a third one, whoever is told first could tell it what the second one does not know yet.
#[test]
fn with_a_third_memory_process_the_coordinator_opens_for_all() {
    let mut c = Cluster::new(&["/a"], 3, 1);
    let waits: Vec<u64> = [0, 1].map(|ap| c.ask(ap, barrier("b"))).into();
    c.run();
    let last = c.ask(2, barrier("b"));
    assert_eq!(generation(&c, 2, last), None);
    c.run();
    assert_eq!(generation(&c, 2, last), Some(1));
    for (ap, id) in (0..2).zip(waits) {
        assert_eq!(generation(&c, ap, id), Some(1));
    }
}

#[test]
fn who_gave_up_at_the_coordinator_does_not_count() {
    let mut c = two();
    let gives_up = c.ask_within(0, Some(SOON), barrier("b"));
    c.run();
    c.pass(LATER);
    // The other one could have gone on already, so it is asked.
    assert_eq!(c.reply(0, gives_up), None);
    c.run();
    refused(&c, 0, gives_up, "ap1 did not arrive");
    waits_for_the_coordinator(&mut c);
}

/// ap1 comes, and passes when ap0 comes.
#[track_caller]
fn waits_for_the_coordinator(c: &mut Cluster) {
    let waits = c.ask(1, barrier("b"));
    c.run();
    assert_eq!(generation(c, 1, waits), None);
    let comes = c.ask(0, barrier("b"));
    c.run();
    assert_eq!(generation(c, 0, comes), Some(1));
    assert_eq!(generation(c, 1, waits), Some(1));
    in_step(c, 2);
}

#[test]
fn who_cancels_at_the_coordinator_does_not_count() {
    let mut c = two();
    let cancelled = c.ask(0, barrier("b"));
    c.run();
    c.call(0, Request::Cancel(cancelled));
    waits_for_the_coordinator(&mut c);
}

/// It is not waited for for ever; what it says later counts.
#[test]
fn who_gave_up_at_the_coordinator_hears_of_it_although_the_other_does_not_answer() {
    let mut c = two();
    let gives_up = c.ask_within(0, Some(SOON), barrier("b"));
    c.run();
    c.stopped.insert(MP1);
    c.pass(LATER);
    c.run_awake();
    assert_eq!(c.reply(0, gives_up), None);
    c.pass(Nanos::from_millis(1_100));
    c.run_awake();
    refused(&c, 0, gives_up, "ap1 did not arrive");
    // It is at work again, and comes for the coordinator's next arrival.
    c.stopped.clear();
    c.run_awake();
    waits_for_the_coordinator(&mut c);
}

#[test]
fn who_gave_up_at_the_coordinator_when_the_other_had_gone_on_is_told_so() {
    let mut c = two();
    let gives_up = c.ask_within(0, Some(SOON), barrier("b"));
    c.run();
    let goes_on = c.ask(1, barrier("b"));
    assert_eq!(generation(&c, 1, goes_on), Some(1));
    // What says so is on its way when the time of ap0 is over.
    c.pass(LATER);
    c.run();
    refused(&c, 0, gives_up, "it opened when the time was over");
    in_step(&mut c, 2);
}

#[test]
fn who_gave_up_elsewhere_when_the_coordinator_had_gone_on_is_told_so() {
    let mut c = two();
    let goes_on = c.ask(0, barrier("b"));
    let gives_up = c.ask_within(1, Some(SOON), barrier("b"));
    c.deliver((MP1, MP0));
    assert_eq!(generation(&c, 0, goes_on), Some(1));
    c.pass(LATER);
    c.run();
    refused(&c, 1, gives_up, "it opened when the time was over");
    in_step(&mut c, 2);
}

/// It cancels, and comes again before the other one has heard of either: the other one may have gone on in between.
#[test]
fn who_comes_again_at_the_coordinator_waits_until_the_other_has_said_what_it_did() {
    for goes_on_before in [false, true] {
        let mut c = two();
        let cancelled = c.ask(0, barrier("b"));
        c.run();
        let before = goes_on_before.then(|| c.ask(1, barrier("b")));
        c.ask(0, Request::Cancel(cancelled));
        let again = c.ask(0, barrier("b"));
        assert_eq!(generation(&c, 0, again), None);
        c.run();
        match before {
            Some(id) => {
                assert_eq!(generation(&c, 1, id), Some(1));
                assert_eq!(generation(&c, 0, again), Some(1));
            }
            None => {
                let other = c.ask(1, barrier("b"));
                c.run();
                assert_eq!(generation(&c, 0, again), Some(1));
                assert_eq!(generation(&c, 1, other), Some(1));
            }
        }
        in_step(&mut c, 2);
    }
}

#[test]
fn whoever_waited_at_the_coordinator_and_left_fails_it_for_the_other() {
    let mut c = two();
    c.ask(0, barrier("b"));
    c.run();
    c.gone(ApId(0));
    c.run();
    assert!(c.refusal(1, barrier("b")).contains("ap0"));
    c.connect(ApId(0)).unwrap();
    c.run();
    in_step(&mut c, 2);
}

#[test]
fn nobody_goes_on_for_what_was_told_over_a_link_that_broke() {
    let mut c = two();
    let waits = c.ask(0, barrier("b"));
    c.run();
    c.down(MP0, MP1);
    c.run();
    refused(&c, 0, waits, "ap1 is lost with mp1");
    c.up(MP0, MP1);
    c.run();
    let alone = c.ask(1, barrier("b"));
    c.run();
    // That the coordinator failed it may be lost; then it is told that it is late.
    if let Some(Reply::Refused(r)) = c.reply(1, alone) {
        assert!(r.message.contains("arrive again"), "{r:?}");
    } else {
        assert_eq!(c.reply(1, alone), None);
    }
    let ids = [c.ask(0, barrier("b")), c.ask(1, barrier("b"))];
    c.run();
    let passed = ids.map(|id| generation(&c, u32::from(id == ids[1]), id));
    assert!(passed[0].is_some() && passed[0] == passed[1], "{passed:?}");
}

#[test]
fn one_that_was_started_again_is_told_which_opening_is_next() {
    for again in [MP0, MP1] {
        let mut c = two();
        for opening in 1..4 {
            in_step(&mut c, opening);
        }
        c.restart(again);
        c.run();
        c.connect(ApId(again.0)).unwrap();
        c.run();
        // The coordinator first: what it tells is of an opening that the other one does not know, or knew long ago.
        let ids = [c.ask(0, barrier("b")), c.ask(1, barrier("b"))];
        c.run();
        if again == MP0 {
            assert_eq!(generation(&c, 0, ids[0]), Some(4));
            assert_eq!(generation(&c, 1, ids[1]), Some(4));
            in_step(&mut c, 5);
        } else {
            refused(&c, 1, ids[1], "arrive again");
            let late = c.ask(1, barrier("b"));
            assert!(
                generation(&c, 1, late).is_some(),
                "it knows of the other one"
            );
            c.run();
            assert_eq!(generation(&c, 0, ids[0]), generation(&c, 1, late));
        }
    }
}

#[test]
fn several_at_the_coordinator_give_up_together() {
    let mut c = Cluster::new(&["/a"], 2, 2);
    let ids = [0, 1].map(|ap| c.ask_within(ap, Some(SOON), barrier("b")));
    c.run();
    c.pass(LATER);
    c.run();
    for (ap, id) in (0..).zip(ids) {
        refused(&c, ap, id, "ap2, ap3 did not arrive");
    }
    let others = [2, 3].map(|ap| c.ask(ap, barrier("b")));
    c.run();
    assert_eq!(generation(&c, 2, others[0]), None);
    let ids = [0, 1].map(|ap| c.ask(ap, barrier("b")));
    c.run();
    for (ap, id) in [(0, ids[0]), (1, ids[1]), (2, others[0]), (3, others[1])] {
        assert_eq!(generation(&c, ap, id), Some(1));
    }
}
