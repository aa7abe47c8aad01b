//! Names whose home is lost or was started again: whoever uses a variable, owns it or keeps it knows it too
//! (docs/design/consistency.md#names).

use crate::common::*;
use dosmos_memproc::core::messages::*;
use dosmos_proto::CopyPolicy::{Invalidate, Update};
use dosmos_proto::{ApId, ErrorCode, MpId, Nanos, ObjectId};

const STEP: Nanos = Nanos::from_millis(50);
const MP1: MpId = MpId(1);

/// Above these bits of a variable's number is the position of its home.
const COUNTER_BITS: u32 = 20;

/// Declares a variable whose home is mp1.
fn at_mp1(c: &mut Cluster, ap: u32, owner: &str) -> (String, ObjectId) {
    for i in 0..100 {
        let name = format!("x{i}");
        let v = c.declare(ap, scalar(&name, &[owner], Invalidate));
        if v.id().0 >> COUNTER_BITS == 1 {
            return (name, ObjectId::new(v.id(), 0));
        }
    }
    panic!("no name of a hundred has the home mp1")
}

fn declare(name: &str, owner: &str) -> Request {
    Request::Declare(scalar(name, &[owner], Invalidate))
}

fn open(name: &str) -> Request {
    Request::Open(name.to_owned())
}

#[track_caller]
fn number_of(reply: Option<Reply>) -> ObjectId {
    match reply {
        Some(Reply::Variable(v)) => ObjectId::new(v.id(), 0),
        other => panic!("no variable: {other:?}"),
    }
}

#[track_caller]
fn content(reply: Option<Reply>) -> u64 {
    match reply {
        Some(Reply::Read { data, .. }) => number(&data),
        other => panic!("not read: {other:?}"),
    }
}

#[track_caller]
fn code(reply: Option<Reply>) -> ErrorCode {
    match reply {
        Some(Reply::Refused(refusal)) => refusal.code,
        other => panic!("not refused: {other:?}"),
    }
}

fn wait(c: &mut Cluster, millis: u64) {
    let until = c.now + Nanos::from_millis(millis);
    while c.now < until {
        c.pass(STEP);
        c.run_awake();
    }
}

fn restart(c: &mut Cluster, mp: u32) {
    c.restart(MpId(mp));
    c.run_awake();
    c.connect(ApId(mp)).unwrap();
}

#[test]
fn what_others_know_a_home_that_was_started_again_knows_again() {
    let mut c = Cluster::new(&["/a"], 3, 1);
    let (name, x) = at_mp1(&mut c, 0, "mp0");
    c.call(0, write(x, 5));
    restart(&mut c, 1);
    assert_eq!(number_of(c.call(1, declare(&name, "mp0"))), x);
    assert_eq!(content(c.call(1, read(x))), 5);
    assert_eq!(number_of(c.call(2, open(&name))), x);
    let other = Request::Declare(scalar(&name, &["mp0"], Update));
    let again = c.call(1, other);
    assert_eq!(code(again), ErrorCode::DeclarationConflict);
    // Numbers are given out once.
    for i in 0..50 {
        let new = c.declare(1, scalar(&format!("new{i}"), &["mp0"], Invalidate));
        assert_ne!(new.id(), x.var);
    }
}

/// It also hears of variables that nobody uses any more, from those who own them.
#[test]
fn an_owner_that_was_told_of_a_variable_is_enough() {
    let mut c = Cluster::new(&["/a"], 3, 1);
    let (name, x) = at_mp1(&mut c, 0, "mp2");
    c.call(0, write(x, 7));
    restart(&mut c, 0);
    restart(&mut c, 1);
    assert_eq!(number_of(c.call(0, declare(&name, "mp2"))), x);
    assert_eq!(content(c.call(0, read(x))), 7);
    // It is told by its home only what it knows.
    c.log.clear();
    assert_eq!(number_of(c.call(1, open(&name))), x);
    assert!(
        !c.log.iter().any(|line| line.contains("create")),
        "{:?}",
        c.log
    );
}

#[test]
fn what_an_owner_lost_is_not_made_again_by_a_home_that_lost_it_too() {
    // Known to mp0, which uses it; or to its owner alone, which is lost after it has said so.
    for used in [true, false] {
        let mut c = Cluster::new(&["/a"], 3, 1);
        let (name, x) = at_mp1(&mut c, 0, "mp2");
        c.call(0, write(x, 7));
        if used {
            restart(&mut c, 2);
            restart(&mut c, 1);
        } else {
            restart(&mut c, 0);
            restart(&mut c, 1);
            wait(&mut c, 100);
            restart(&mut c, 2);
        }
        for ap in [1, 2, 0] {
            assert_eq!(number_of(c.call(ap, declare(&name, "mp2"))), x);
            assert_eq!(
                code(c.call(ap, read(x))),
                ErrorCode::ProcessLost,
                "ap{ap}, {used}"
            );
        }
    }
}

/// Parts of one variable: one owner still knows it, the other was started again, and so was everybody who used it.
#[test]
fn a_part_whose_owner_was_started_again_is_lost_although_nobody_knows_that_it_was_used() {
    for lost in [true, false] {
        let mut c = Cluster::new(&["/a"], 4, 1);
        let spec = |name: &str| vector(name, 2, 2, &["mp2", "mp3"], Invalidate);
        let found = (0..100).map(|i| format!("x{i}")).find_map(|name| {
            let v = c.declare(0, spec(&name));
            (v.id().0 >> COUNTER_BITS == 1).then_some((name, v.id()))
        });
        let (name, id) = found.unwrap();
        c.call(0, write(ObjectId::new(id, 0), 5));
        c.call(0, write(ObjectId::new(id, 1), 6));
        restart(&mut c, 0);
        if lost {
            restart(&mut c, 3);
        }
        restart(&mut c, 1);
        for ap in [0, 3, 1] {
            let again = number_of(c.call(ap, Request::Declare(spec(&name))));
            assert_eq!(again.var, id);
            assert_eq!(content(c.call(ap, read(ObjectId::new(id, 0)))), 5);
            let second = c.call(ap, read(ObjectId::new(id, 1)));
            match lost {
                true => assert_eq!(code(second), ErrorCode::ProcessLost),
                false => assert_eq!(content(second), 6),
            }
        }
    }
}

#[test]
fn a_name_is_given_out_when_all_have_said_what_they_know_or_had_time_to() {
    let mut c = Cluster::new(&["/a"], 3, 1);
    let (name, x) = at_mp1(&mut c, 0, "mp0");
    let mut unused = (0..100).map(|i| format!("y{i}"));
    let new = unused.find(|n| {
        let v = c.declare(0, scalar(n, &["mp0"], Invalidate));
        v.id().0 >> COUNTER_BITS == 1
    });
    let new = new.unwrap();
    // A cluster that does not know the second name.
    let mut c = Cluster::new(&["/a"], 3, 1);
    assert_eq!(at_mp1(&mut c, 0, "mp0").1, x);
    c.stopped.insert(MpId(0));
    restart(&mut c, 1);
    let asked = c.ask(1, declare(&new, "mp2"));
    wait(&mut c, 2_000);
    assert_eq!(c.reply(1, asked), None);
    wait(&mut c, 500);
    let y = number_of(c.reply(1, asked));
    assert_ne!(y.var, x.var);
    // What the one that was silent knows is heard when it goes on.
    c.stopped.clear();
    wait(&mut c, 100);
    assert_eq!(number_of(c.call(2, open(&name))), x);
    assert_eq!(number_of(c.call(0, open(&new))), y);
}

#[test]
fn while_a_home_is_lost_others_are_asked_for_its_names() {
    let mut c = Cluster::new(&["/a", "/b"], 2, 1);
    let (name, x) = at_mp1(&mut c, 0, "mp0");
    c.call(0, write(x, 5));
    for other in [0, 4] {
        c.down(MP1, MpId(other));
    }
    c.run();
    for ap in [2, 3] {
        c.log.clear();
        assert_eq!(number_of(c.call(ap, declare(&name, "mp0"))), x, "ap{ap}");
        let asked = format!("mp{ap} -> lp.b open {name}");
        assert!(c.log.contains(&asked), "{:?}", c.log);
        assert_eq!(content(c.call(ap, read(x))), 5);
    }
    // Another declaration of it, and a name that nobody knows.
    let mut c = Cluster::new(&["/a"], 3, 1);
    let (name, _) = at_mp1(&mut c, 0, "mp0");
    c.down(MP1, MpId(0));
    c.down(MP1, MpId(2));
    c.run();
    let other = Request::Declare(scalar(&name, &["mp0"], Update));
    assert_eq!(code(c.call(2, other)), ErrorCode::DeclarationConflict);
    let unknown = (0..100).map(|i| format!("u{i}")).find_map(|u| {
        let refused = c.call(2, declare(&u, "mp0"));
        matches!(refused, Some(Reply::Refused(_))).then_some((u, refused))
    });
    let Some((unknown, Some(Reply::Refused(refusal)))) = unknown else {
        panic!("no name of a hundred has the home mp1");
    };
    assert_eq!(refusal.code, ErrorCode::Unreachable);
    let why = format!("declaration of {unknown} by ap2: mp1 cannot be reached");
    assert!(refusal.message.starts_with(&why), "{}", refusal.message);
}

#[test]
fn a_look_up_that_others_do_not_answer_is_answered_by_its_home_when_that_is_back() {
    let mut c = Cluster::new(&["/a"], 3, 1);
    let (name, x) = at_mp1(&mut c, 0, "mp0");
    // It is lost while it is asked.
    c.stopped.insert(MP1);
    let asked = c.ask(2, open(&name));
    c.run_awake();
    c.stopped.insert(MpId(0));
    c.down(MP1, MpId(0));
    c.down(MP1, MpId(2));
    c.run_awake();
    assert_eq!(c.reply(2, asked), None);
    c.stopped.remove(&MP1);
    c.up(MP1, MpId(2));
    c.run_awake();
    assert_eq!(number_of(c.reply(2, asked)), x);
}

#[test]
fn a_look_up_that_nobody_is_left_to_answer_fails() {
    let mut c = Cluster::new(&["/a"], 3, 1);
    let (name, _) = at_mp1(&mut c, 0, "mp0");
    c.stopped.insert(MpId(0));
    c.down(MP1, MpId(2));
    let asked = c.ask(2, open(&name));
    c.run_awake();
    assert_eq!(c.reply(2, asked), None);
    c.stopped.clear();
    c.down(MpId(0), MpId(2));
    assert_eq!(code(c.reply(2, asked)), ErrorCode::Unreachable);
}

#[test]
fn many_names_are_heard_in_parts() {
    const PARTS: u32 = 60_000;
    let mut c = Cluster::new(&["/a"], 2, 1);
    let owners: Vec<&str> = (0..PARTS)
        .map(|i| ["mp0", "mp1"][(i / 7 % 2) as usize])
        .collect();
    let mut all = Vec::new();
    for i in 0..16 {
        let name = format!("x{i}");
        let spec = vector(&name, PARTS.into(), PARTS, &owners, Invalidate);
        all.push((name, c.declare(0, spec).id()));
    }
    restart(&mut c, 1);
    wait(&mut c, 100);
    let asked = c.log.iter().filter(|line| line.contains("your names"));
    assert!(asked.count() > 2);
    for (name, id) in all {
        assert_eq!(number_of(c.call(1, open(&name))).var, id);
    }
}
