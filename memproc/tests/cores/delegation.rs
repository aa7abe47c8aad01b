//! Objects that are delegated to an application process, message by message: who gets them, and how they come
//! back (docs/design/consistency.md#exclusive-delegation).

use crate::common::*;
use dosmos_memproc::core::messages::{
    ElementRange, LocalAccesses, LocalKind, Reply, Request, Return,
};
use dosmos_proto::CopyPolicy::{self, Invalidate, Update};
use dosmos_proto::{ApId, Cache, MpId, Nanos, ObjectId};
use dosmos_trace::{Op, Record, Side};

/// Two memory processes of one group with two application processes each; `x`, eight elements at mp0, may be
/// held in application processes.
fn cluster(policy: CopyPolicy) -> (Cluster, ObjectId) {
    let mut c = Cluster::new(&["/a"], 2, 2);
    let spec = vector("x", 8, 1, &["mp0"], policy).with_cache(Cache::Ap);
    let x = ObjectId::new(c.declare(0, spec).id(), 0);
    for ap in 1..4 {
        c.call(ap, Request::Open("x".into()));
    }
    c.log.clear();
    (c, x)
}

/// What goes back, the first element being `value`, if something changed.
fn back(x: ObjectId, delegation: u64, value: Option<u64>, served: u64) -> Request {
    let all = |v: u64| [bytes(v), vec![0; 56].into()].concat().into();
    Request::Return(vec![Return {
        object: x,
        delegation,
        version: u64::from(value.is_some()),
        kept: false,
        parts: value.map(|v| (0, all(v))).into_iter().collect(),
        served,
        epoch: 0,
        in_section: false,
    }])
}

/// `value` for elements 1 and 2, the object being kept.
fn publication(x: ObjectId, value: u64) -> Request {
    Request::Return(vec![Return {
        object: x,
        delegation: 1,
        version: 1,
        kept: true,
        parts: vec![(1, [bytes(value), bytes(value)].concat().into())],
        served: 9,
        epoch: 0,
        in_section: false,
    }])
}

const PART: ElementRange = ElementRange {
    first: 1,
    end: Some(3),
};

fn refused(c: &Cluster) -> bool {
    c.replies.values().any(|r| matches!(r, Reply::Refused(_)))
}

#[test]
fn who_has_it_learns_the_version_of_what_was_published_meanwhile() {
    let (mut c, x) = cluster(Invalidate);
    c.call(1, write(x, 7));
    c.call(0, read_to_have(x));
    c.log.clear();
    c.call(1, Request::Publish);
    c.expect(
        "
         ap1 -> mp0 publish
         mp0 -> ap0 confirm x[0] v1
         mp0 -> ap1 published
         ",
    );
}

#[test]
fn it_is_given_to_a_process_of_the_owner_and_comes_back_when_a_sibling_writes() {
    let (mut c, x) = cluster(Invalidate);
    c.call(0, read_to_have(x));
    c.expect(
        "
         ap0 -> mp0 read x[0] to have
         record@mp0 requester read x[0] by ap0 local v0
         mp0 -> ap0 value 0 v0 to have (1)
         ",
    );
    c.ask(1, write(x, 7));
    c.run();
    c.expect(
        "
         ap1 -> mp0 write x[0] = 7
         mp0 -> ap0 recall x[0] (1)
         ",
    );
    c.now += Nanos(50);
    c.ask(0, back(x, 1, Some(5), 9));
    c.run();
    c.expect(
        "
         ap0 -> mp0 return x[0] (1) v1 0: 5
         mp0 -> ap0 invalidate x[0]
         record@mp0 requester write x[0] by ap1 local v1 waited
         mp0 -> ap1 written
         ",
    );
    c.call(0, read(x));
    c.expect(
        "
         ap0 -> mp0 read x[0]
         record@mp0 requester read x[0] by ap0 local v1
         mp0 -> ap0 value 7 v1
         ",
    );
    assert!(!refused(&c));
}

#[test]
fn copies_of_siblings_are_void_and_what_it_had_is_not_sent_again() {
    let (mut c, x) = cluster(Invalidate);
    c.call(0, read_to_keep(x));
    c.call(1, read_to_keep(x));
    c.log.clear();
    c.call(0, read_to_have(x));
    c.expect(
        "
         ap0 -> mp0 read x[0] to have
         mp0 -> ap1 invalidate x[0]
         record@mp0 requester read x[0] by ap0 local v0
         mp0 -> ap0 its value v0 to have (1)
         ",
    );
}

#[test]
fn a_remote_reader_waits_for_it_and_both_have_copies_afterwards() {
    let (mut c, x) = cluster(Invalidate);
    c.call(0, read_to_have(x));
    c.log.clear();
    c.ask(2, read_to_keep(x));
    c.run();
    c.ask(0, back(x, 1, None, 9));
    c.run();
    c.expect(
        "
         ap2 -> mp1 read x[0] to keep
         mp1 -> mp0 read x[0] by ap2 with copy
         mp0 -> ap0 recall x[0] (1)
         ap0 -> mp0 return x[0] (1) v0
         record@mp0 owner read x[0] by ap2 intra v0
         mp0 -> mp1 value 0 v0 copy
         record@mp1 requester read x[0] by ap2 intra v0
         mp1 -> ap2 value 0 v0 to keep
         ",
    );
    // Nobody has it to himself while another memory process has a copy.
    c.call(0, read_to_have(x));
    assert_eq!(c.log.last().unwrap(), "mp0 -> ap0 value 0 v0 to keep");
    c.log.clear();
    c.call(0, write(x, 1));
    c.call(0, Request::Publish);
    let line = "mp0 -> mp1 invalidate x[0] v1";
    assert!(c.log.iter().any(|l| l == line), "{:?}", c.log);
}

#[test]
fn who_reads_a_part_has_it_published_and_does_not_ask_again() {
    let (mut c, x) = cluster(Invalidate);
    c.call(0, read_to_have(x));
    c.log.clear();
    c.ask(1, read_range(x, PART));
    c.run();
    c.ask(0, publication(x, 4));
    c.run();
    c.call(1, read_range(x, PART));
    c.ask(0, publication(x, 5));
    c.run();
    c.call(1, read_range(x, PART));
    c.expect(
        "
         ap1 -> mp0 read x[0] 1..3
         mp0 -> ap0 publish 1..3 of x[0] (1)
         ap0 -> mp0 publish x[0] (1) v1 1: 4
         record@mp0 requester read x[0] by ap1 local v1
         mp0 -> ap1 value 4 v1
         ap1 -> mp0 read x[0] 1..3
         record@mp0 requester read x[0] by ap1 local v1
         mp0 -> ap1 value 4 v1
         ap0 -> mp0 publish x[0] (1) v1 1: 5
         ap1 -> mp0 read x[0] 1..3
         record@mp0 requester read x[0] by ap1 local v1
         mp0 -> ap1 value 5 v1
         ",
    );
    // A read of more of it is one of all of it.
    c.ask(1, read(x));
    c.run();
    assert_eq!(c.log.last().unwrap(), "mp0 -> ap0 recall x[0] (1)");
}

#[test]
fn writes_that_wait_for_it_are_published_when_they_are_done_and_not_before() {
    let (mut c, x) = cluster(Invalidate);
    c.call(0, read_to_have(x));
    let written = c.ask(2, write(x, 7));
    let published = c.ask(2, Request::Publish);
    c.run();
    assert_eq!((c.reply(2, written), c.reply(2, published)), (None, None));
    c.log.clear();
    c.ask(0, back(x, 1, Some(5), 9));
    c.run();
    c.expect(
        "
         ap0 -> mp0 return x[0] (1) v1 0: 5
         mp0 -> ap0 invalidate x[0]
         record@mp0 owner write x[0] by ap2 intra v1 waited
         mp0 -> mp1 written
         record@mp1 requester write x[0] by ap2 intra v1 waited
         mp1 -> ap2 written
         mp0 -> mp1 flushed
         mp1 -> ap2 published
         ",
    );
    // Nor does a flush wait for a write that nobody waits for any more.
    c.call(0, read_to_have(x));
    c.ask(3, write(x, 8));
    let published = c.ask(3, Request::Publish);
    c.run();
    c.gone(ApId(3));
    c.run();
    assert_eq!(c.reply(3, published), None);
}

#[test]
fn an_acquire_waits_for_it_and_may_be_taken_back() {
    let (mut c, x) = cluster(Invalidate);
    c.call(0, read_to_have(x));
    let id = c.ask(2, acquire(x));
    c.run();
    c.ask(2, Request::Cancel(id));
    c.run();
    c.ask(3, acquire(x));
    c.run();
    c.log.clear();
    c.ask(0, back(x, 1, Some(3), 9));
    c.run();
    c.expect(
        "
         ap0 -> mp0 return x[0] (1) v1 0: 3
         record@mp0 owner acquire x[0] by ap3 intra v1
         mp0 -> mp1 granted epoch 1 v1
         record@mp1 requester acquire x[0] by ap3 intra v1
         mp1 -> ap3 granted epoch 1 v1
         ",
    );
    // Nor has anybody it to himself while it is held.
    c.log.clear();
    c.call(0, read_to_have(x));
    assert!(!c.log.last().unwrap().contains("to have"), "{:?}", c.log);
}

#[test]
fn what_a_dead_process_did_not_return_is_as_it_last_was() {
    let (mut c, x) = cluster(Invalidate);
    c.call(0, write(x, 1));
    c.call(0, Request::Publish);
    c.call(0, read_to_have(x));
    c.ask(2, read(x));
    c.run();
    c.log.clear();
    c.gone(ApId(0));
    c.run();
    let line = "mp1 -> ap2 value 1 v1";
    assert!(c.log.iter().any(|l| l == line), "{:?}", c.log);
}

#[test]
fn it_is_taken_from_a_process_that_is_silent_and_what_comes_late_is_not_believed() {
    let (mut c, x) = cluster(Invalidate);
    c.call(0, read_to_have(x));
    c.ask(1, read(x));
    c.run();
    c.log.clear();
    c.pass(Nanos::from_millis(1_900));
    assert!(c.log.is_empty(), "{:?}", c.log);
    // A sign of life is enough, say while it edits the object.
    c.ask(0, Request::Report(Vec::new()));
    c.run();
    c.log.clear();
    c.pass(Nanos::from_millis(1_000));
    assert!(c.log.is_empty(), "{:?}", c.log);
    c.pass(Nanos::from_millis(1_500));
    let at = |text: &str| c.log.iter().position(|l| l == text).unwrap();
    assert!(at("mp0 -> ap0 take away x[0] (1)") < at("mp0 -> ap1 value 0 v0"));
    c.ask(0, back(x, 1, Some(8), 9));
    c.run();
    c.log.clear();
    c.call(1, read(x));
    assert_eq!(c.log.last().unwrap(), "mp0 -> ap1 value 0 v0");
}

#[test]
fn it_is_not_given_where_it_would_not_help() {
    // Copies that are updated are meant to stay.
    let (mut c, x) = cluster(Update);
    c.call(0, read_to_have(x));
    assert_eq!(c.log.last().unwrap(), "mp0 -> ap0 value 0 v0 to keep");
    // The owner is another memory process.
    let (mut c, x) = cluster(Invalidate);
    c.call(2, read_to_have(x));
    assert_eq!(c.log.last().unwrap(), "mp1 -> ap2 value 0 v0 to keep");
    // After one that was of little use.
    let (mut c, x) = cluster(Invalidate);
    c.call(0, read_to_have(x));
    c.ask(1, read(x));
    c.run();
    c.ask(0, back(x, 1, Some(2), 1));
    c.run();
    let given = [(); 3].map(|()| {
        c.call(0, read_to_have(x));
        c.log.last().unwrap().ends_with("to have (2)")
    });
    assert_eq!(given, [false, false, true]);
}

/// It goes back while the application process is in section `epoch`.
fn back_in_section(x: ObjectId, delegation: u64, epoch: u64) -> Request {
    let Request::Return(mut list) = back(x, delegation, Some(5), 9) else {
        panic!("a return")
    };
    (list[0].epoch, list[0].in_section) = (epoch, true);
    Request::Return(list)
}

fn sections(c: &Cluster, x: ObjectId, count: u64, versions: (u64, u64)) -> Request {
    Request::Report(vec![LocalAccesses {
        object: x,
        kind: LocalKind::Section,
        count,
        first: c.now - Nanos(20),
        last: c.now,
        bytes: 0,
        version: versions.1,
        from_version: versions.0,
        elements: (0, 0),
    }])
}

#[test]
fn a_section_that_its_process_began_goes_on_at_the_owner() {
    let (mut c, x) = cluster(Invalidate);
    c.call(0, read_to_have(x));
    c.ask(2, acquire(x));
    c.ask(1, read(x));
    c.run();
    c.log.clear();
    c.ask(0, back_in_section(x, 1, 7));
    c.run();
    // The other reader sees the object as it was before the section; the other section waits for its end.
    c.expect(
        "
         ap0 -> mp0 return x[0] (1) v1 0: 5, in section 7
         record@mp0 requester acquire x[0] by ap0 local v1
         record@mp0 requester read x[0] by ap1 local v1 waited
         mp0 -> ap1 value 5 v1
         record@mp0 owner acquire x[0] by ap2 intra v1 waiting
         ",
    );
    c.call(0, release_with(x, Some(7), Some(written(0, bytes(6), 1))));
    // It began before the message that told of it, and so before whatever came with that.
    let told = c
        .records()
        .find(|r| r.flags.own_clock && r.op == Op::Acquire);
    assert!(told.is_some_and(|r| r.duration == Nanos::ZERO && r.start < c.now));
    c.expect(
        "
         ap0 -> mp0 release x[0] = 6
         record@mp0 requester write x[0] by ap0 local v2
         record@mp0 requester release x[0] by ap0 local v2
         mp0 -> ap0 released v2
         record@mp0 owner acquire x[0] by ap2 intra v2
         mp0 -> mp1 granted epoch 8 v2
         record@mp1 requester acquire x[0] by ap2 intra v2
         mp1 -> ap2 granted epoch 8 v2
         ",
    );
    assert!(!refused(&c));
}

#[test]
fn who_is_in_a_section_of_its_own_does_not_acquire_the_object_again() {
    let (mut c, x) = cluster(Invalidate);
    c.call(0, read_to_have(x));
    c.ask(0, acquire(x));
    c.run();
    c.ask(0, back_in_section(x, 1, 7));
    c.run();
    assert_eq!(c.log.last().unwrap(), "mp0 -> ap0 refused AlreadyHeld");
}

#[test]
fn sections_that_a_process_held_itself_are_recorded() {
    let (mut c, x) = cluster(Invalidate);
    c.call(0, read_to_have(x));
    c.items.clear();
    c.now += Nanos(100);
    let report = sections(&c, x, 3, (4, 7));
    c.call(0, report);
    let records: Vec<_> = c
        .records()
        .map(|r| (r.op, r.count, r.version, r.flags.in_process))
        .collect();
    assert_eq!(
        records,
        [(Op::Acquire, 3, 4, true), (Op::Release, 3, 7, true)]
    );
}

#[test]
fn accesses_in_sections_are_recorded_between_their_ends() {
    let (mut c, x) = cluster(Invalidate);
    c.call(0, read_to_have(x));
    c.items.clear();
    c.now += Nanos(100);
    // All told at once, as of the same time.
    let Request::Report(mut list) = sections(&c, x, 2, (4, 6)) else {
        panic!("a report")
    };
    let accesses = |kind| LocalAccesses { kind, ..list[0] };
    let more = [
        LocalKind::Read,
        LocalKind::SectionWrite,
        LocalKind::SectionRead,
    ];
    list = more.map(accesses).into_iter().chain(list).collect();
    list.iter_mut()
        .for_each(|a| (a.first, a.last) = (c.now, c.now));
    let of_granted = LocalAccesses {
        kind: LocalKind::GrantedRead,
        first: c.now - Nanos(50),
        ..list[0]
    };
    c.call(0, Request::Report(list));
    c.call(0, back_in_section(x, 1, 7));
    c.call(0, Request::Report(vec![of_granted]));
    c.call(0, release_with(x, Some(7), None));
    let records: Vec<_> = c.records().filter(|r| r.side == Side::Requester).collect();
    let nobody_ends_later = |r: &&&Record| r.op != Op::Release && r.end() >= c.now;
    assert_eq!(records.iter().filter(nobody_ends_later).count(), 1);
    // An event manager corrects times at times to half of what they are apart, which may come to be equal.
    for begun in [0, 1] {
        let mut records = records.clone();
        records.sort_by_key(|r| (r.start.0 + begun) / 2);
        let of: Vec<_> = records.iter().map(|r| (r.op, r.version)).collect();
        assert_eq!(
            of,
            [
                (Op::Read, 6),
                (Op::Acquire, 4),
                (Op::Write, 6),
                (Op::Read, 6),
                (Op::Release, 6),
                (Op::Acquire, 1),
                (Op::Read, 6),
                (Op::Release, 2),
            ]
        );
    }
}

/// The second one began while the report of the first was under way.
#[test]
fn a_section_is_recorded_to_begin_after_the_end_of_the_one_that_was_reported_before_it() {
    let (mut c, x) = cluster(Invalidate);
    c.call(0, read_to_have(x));
    c.items.clear();
    c.now += Nanos(100);
    let sent = c.now;
    let Request::Report(first) = sections(&c, x, 1, (4, 5)) else {
        panic!("a report")
    };
    c.now += Nanos(30);
    c.call(0, Request::Report(first.clone()));
    c.now += Nanos(100);
    let next = |kind| LocalAccesses {
        kind,
        first: sent,
        last: c.now,
        version: 6,
        from_version: 5,
        ..first[0]
    };
    let next = vec![next(LocalKind::Section), next(LocalKind::SectionWrite)];
    c.call(0, Request::Report(next));
    let mut records: Vec<_> = c.records().collect();
    records.sort_by_key(|r| r.start);
    let of: Vec<_> = records.iter().map(|r| (r.op, r.version)).collect();
    let expected = [
        (Op::Acquire, 4),
        (Op::Release, 5),
        (Op::Acquire, 5),
        (Op::Write, 6),
        (Op::Release, 6),
    ];
    assert_eq!(of, expected);
}

#[test]
fn a_section_of_an_object_that_was_taken_away_is_over() {
    let (mut c, x) = cluster(Invalidate);
    c.call(0, read_to_have(x));
    let report = sections(&c, x, 3, (0, 3));
    c.call(0, report);
    c.ask(1, acquire(x));
    c.run();
    c.pass(Nanos::from_millis(2_500));
    // Its numbers are higher than any that the process may have given, and its version than any it told of.
    let granted = format!("mp0 -> ap1 granted epoch {} v3", (1u64 << 32) + 1);
    assert!(c.log.contains(&granted), "{:?}", c.log);
    c.items.clear();
    c.log.clear();
    c.ask(0, back_in_section(x, 1, 4));
    c.run();
    c.call(0, release_with(x, Some(4), None));
    assert!(refused(&c), "{:?}", c.log);
    // What is recorded says that it began and that the owner ended it.
    let of_ap0: Vec<_> = c
        .records()
        .map(|r| (r.op, r.side, r.flags.failed))
        .collect();
    assert_eq!(
        of_ap0[..2],
        [
            (Op::Acquire, Side::Requester, false),
            (Op::Release, Side::Owner, true)
        ]
    );
    // With the version that it began with, not as a grant of an old one.
    assert_eq!(c.records().next().unwrap().version, 1);
    // Sections that it held meanwhile made no version.
    c.items.clear();
    let report = sections(&c, x, 2, (3, 5));
    c.call(0, report);
    assert!(c.records().all(|r| r.version == 0));
}

#[test]
fn a_return_that_makes_no_sense_ends_the_delegation() {
    let (mut c, x) = cluster(Invalidate);
    c.call(0, read_to_have(x));
    let Request::Return(mut list) = back(x, 1, Some(5), 9) else {
        panic!("a return")
    };
    list[0].parts[0].0 = 1; // one element too many
    c.log.clear();
    c.ask(0, Request::Return(list));
    c.run();
    assert_eq!(c.log.last().unwrap(), "mp0 -> ap0 take away x[0] (1)");
    c.call(1, read(x));
    assert_eq!(c.log.last().unwrap(), "mp0 -> ap1 value 0 v0");
}

#[test]
fn a_lost_link_leaves_nobody_waiting_for_it() {
    let (mut c, x) = cluster(Invalidate);
    c.call(0, read_to_have(x));
    c.ask(2, acquire(x));
    c.run();
    c.down(MpId(0), MpId(1));
    c.run();
    c.log.clear();
    c.ask(0, back(x, 1, Some(5), 9));
    c.run();
    let granted = c
        .log
        .iter()
        .any(|l| l.contains("granted") || l.contains("acquire"));
    assert!(!granted, "{:?}", c.log);
}

#[test]
fn one_that_is_asked_for_an_object_is_not_silent_for_longer_than_it_may_be() {
    let late = Nanos::from_millis(2_000);
    let taken = |c: &Cluster| c.log.iter().any(|line| line.contains("take away"));
    let asked = || {
        let (mut c, x) = cluster(Invalidate);
        c.call(0, read_to_have(x));
        c.ask(1, write(x, 7));
        c.run();
        c
    };
    let mut c = asked();
    c.pass(late - Nanos(1));
    assert!(!taken(&c));
    c.pass(Nanos(1));
    assert!(taken(&c));
    // Nothing it sends is read, but it is there.
    let mut c = asked();
    c.pass(late - Nanos(1));
    let now = c.now;
    c.cores[0].hear(now, ApId(0));
    c.pass(Nanos(1));
    assert!(!taken(&c));
    c.pass(late);
    assert!(taken(&c));
}
