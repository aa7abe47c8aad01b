//! Variables with replicas: what is told to whom before a release returns, who serves the objects when their owner is lost, and
//! what becomes of an owner that comes back (docs/design/consistency.md#replicas).

use crate::common::*;
use dosmos_memproc::core::messages::*;
use dosmos_proto::CopyPolicy::Invalidate;
use dosmos_proto::{ErrorCode, MpId, Nanos, ObjectId, VariableSpec};

const LEASE: Nanos = Nanos::from_millis(2_250);
const STEP: Nanos = Nanos::from_millis(50);

fn replicated(name: &str, owner: &str, replicas: u32) -> VariableSpec {
    let spec = scalar(name, &[owner], Invalidate);
    spec.with_replicas(replicas).unwrap()
}

/// A group of this many memory processes with one application process each; `x` of mp0 has replicas, and all know it.
fn cluster(mps: u32, replicas: u32) -> (Cluster, ObjectId) {
    let mut c = Cluster::new(&["/a"], mps, 1);
    let v = c.declare(0, replicated("x", "mp0", replicas));
    for ap in 1..mps {
        c.call(ap, Request::Open("x".into()));
    }
    c.log.clear();
    (c, ObjectId::new(v.id(), 0))
}

/// Lets time pass in small steps, and messages arrive.
fn wait(c: &mut Cluster, time: Nanos) {
    let until = c.now + time;
    while c.now < until {
        c.pass(STEP);
        c.run();
    }
}

/// Nobody hears a process any more, and it hears nobody; both ends notice.
fn isolate(c: &mut Cluster, mp: u32) {
    for other in 0..c.cores.len() as u32 {
        if other != mp {
            c.down(MpId(mp), MpId(other));
        }
    }
}

fn heal(c: &mut Cluster, mp: u32) {
    for other in 0..c.cores.len() as u32 {
        if other != mp {
            c.up(MpId(mp), MpId(other));
        }
    }
    c.run();
}

fn granted(reply: Option<Reply>) -> u64 {
    match reply {
        Some(Reply::Granted { epoch, .. }) => epoch,
        other => panic!("not granted: {other:?}"),
    }
}

fn value(reply: Option<Reply>) -> (u64, u64) {
    match reply {
        Some(Reply::Read { version, data, .. }) => (number(&data), version),
        other => panic!("not read: {other:?}"),
    }
}

fn released(reply: Option<Reply>) -> u64 {
    match reply {
        Some(Reply::Released { version }) => version,
        other => panic!("not released: {other:?}"),
    }
}

/// A section that writes; the version of its release.
fn section(c: &mut Cluster, ap: u32, x: ObjectId, n: u64) -> u64 {
    let epoch = granted(c.call(ap, acquire(x)));
    c.call(ap, write_in(x, n, epoch));
    released(c.call(ap, release_in(x, epoch)))
}

#[test]
fn a_release_returns_when_the_released_state_is_kept_elsewhere() {
    let (mut c, x) = cluster(3, 1);
    let epoch = granted(c.call(2, acquire(x)));
    c.log.clear();
    let with = release_with(x, Some(epoch), Some(written(0, bytes(7), 1)));
    assert_eq!(released(c.call(2, with)), 1);
    c.expect(
        "ap2 -> mp2 release x[0] = 7
        mp2 -> mp0 release x[0] = 7 by ap2
        record@mp0 owner write x[0] by ap2 intra v0
        mp0 -> mp1 keep x[0] = 7 v1
        mp1 -> mp0 kept
        record@mp0 owner release x[0] by ap2 intra v1 waited
        mp0 -> mp2 released v1
        record@mp2 requester write x[0] by ap2 intra v1
        record@mp2 requester release x[0] by ap2 intra v1 waited
        mp2 -> ap2 released v1",
    );
}

#[test]
fn two_replicas_are_both_waited_for() {
    let (mut c, x) = cluster(3, 2);
    let epoch = granted(c.call(0, acquire(x)));
    c.log.clear();
    let id = c.ask(
        0,
        release_with(x, Some(epoch), Some(written(0, bytes(7), 1))),
    );
    c.run_until(|c| c.log.iter().any(|l| l.ends_with("kept")));
    assert_eq!(c.reply(0, id), None, "one of two keeps it");
    c.run();
    assert_eq!(released(c.reply(0, id)), 1);
    c.expect(
        "ap0 -> mp0 release x[0] = 7
        mp0 -> mp1 keep x[0] = 7 v1
        mp0 -> mp2 keep x[0] = 7 v1
        mp1 -> mp0 kept
        mp2 -> mp0 kept
        record@mp0 requester write x[0] by ap0 local v1
        record@mp0 requester release x[0] by ap0 local v1 waited
        mp0 -> ap0 released v1",
    );
}

#[test]
fn writes_outside_sections_and_atomics_are_kept_before_they_are_answered_and_copies_hear_of_them() {
    let (mut c, x) = cluster(3, 1);
    assert_eq!(value(c.call(2, read(x))), (0, 0));
    c.log.clear();
    c.call(1, write(x, 5));
    c.expect(
        "ap1 -> mp1 write x[0] = 5
        mp1 -> mp0 write x[0] = 5 by ap1 epoch 0
        mp0 -> mp1 keep x[0] = 5 v1
        mp1 -> mp0 kept
        mp0 -> mp2 invalidate x[0] v1
        trace@mp2 hand-over x[0] dropped to emp0
        mp2 -> mp0 ack x[0] v1
        record@mp0 owner write x[0] by ap1 intra v1 waited
        mp0 -> mp1 written
        record@mp1 requester write x[0] by ap1 intra v1 waited
        mp1 -> ap1 written",
    );
    let id = c.ask(0, fetch_add(x, 2));
    let early = c.ask(2, read(x));
    c.run_until(|c| c.log.iter().any(|l| l.starts_with("mp0 -> mp1 keep")));
    assert_eq!((c.reply(0, id), c.reply(2, early)), (None, None));
    c.run();
    assert!(matches!(
        c.reply(0, id),
        Some(Reply::Atomic { previous: 5, .. })
    ));
    assert_eq!(
        value(c.reply(2, early)),
        (7, 2),
        "nobody sees what may still be lost"
    );
}

#[test]
fn what_an_application_process_wrote_is_visible_when_its_next_release_returns() {
    let (mut c, x) = cluster(3, 1);
    let other = c.scalar("other", 1, Invalidate);
    let epoch = granted(c.call(1, acquire(other)));
    // Not waited for.
    let w = c.ask(1, write(x, 5));
    let r = c.ask(1, release_in(other, epoch));
    c.run_until(|c| c.reply(1, r).is_some());
    assert!(c.reply(1, w).is_some(), "the release waits for the write");
}

#[test]
fn the_owner_is_lost_and_another_serves_what_it_released_last() {
    let (mut c, x) = cluster(3, 1);
    assert_eq!(section(&mut c, 2, x, 7), 1);
    // Locked, and then written but not released.
    let epoch = granted(c.call(2, acquire(x)));
    c.call(2, write_in(x, 8, epoch));
    let waits = c.ask(1, acquire(x));
    let read_too = c.ask(1, read(x));
    isolate(&mut c, 0);
    wait(&mut c, LEASE);
    assert_eq!(c.reply(1, waits), None);
    wait(&mut c, LEASE);
    let next = granted(c.reply(1, waits));
    assert!(
        next > epoch + (1 << 32),
        "{next}: a token of a later term is higher"
    );
    assert_eq!(value(c.reply(1, read_too)), (7, 1));
    // The section is lost with its owner.
    assert!(c.refusal(2, release_in(x, epoch)).starts_with("StaleEpoch"));
    c.call(1, write_in(x, 9, next));
    assert_eq!(released(c.call(1, release_in(x, next))), 2);
    assert_eq!(value(c.call(2, read(x))), (9, 2));
}

#[test]
fn an_owner_that_is_cut_off_is_served_by_nobody_and_learns_that_it_is_none() {
    let (mut c, x) = cluster(3, 1);
    section(&mut c, 0, x, 7);
    isolate(&mut c, 0);
    wait(&mut c, LEASE + LEASE);
    // The others go on; the one that was cut off answers nothing.
    assert_eq!(section(&mut c, 2, x, 8), 2);
    let stale = c.ask(0, read(x));
    let lock = c.ask(0, acquire(x));
    wait(&mut c, LEASE);
    assert_eq!((c.reply(0, stale), c.reply(0, lock)), (None, None));
    heal(&mut c, 0);
    wait(&mut c, LEASE);
    assert_eq!(value(c.reply(0, stale)), (8, 2));
    let epoch = granted(c.reply(0, lock));
    c.call(0, write_in(x, 9, epoch));
    assert_eq!(released(c.call(0, release_in(x, epoch))), 3);
    assert_eq!(value(c.call(1, read(x))), (9, 3));
}

#[test]
fn a_minority_promotes_nobody() {
    // Two memory processes: one of two is not a majority.
    let (mut c, x) = cluster(2, 1);
    section(&mut c, 0, x, 7);
    isolate(&mut c, 0);
    let id = c.ask_within(1, Some(Nanos::from_millis(20_000)), read(x));
    wait(&mut c, Nanos::from_millis(15_000));
    assert_eq!(c.reply(1, id), None);
    wait(&mut c, Nanos::from_millis(7_000));
    match c.reply(1, id) {
        Some(Reply::Refused(r)) => {
            assert_eq!(r.code, ErrorCode::Deadline);
            assert!(r.message.contains("no majority"), "{}", r.message);
        }
        other => panic!("{other:?}"),
    }
    // Neither does the owner serve: it cannot know what the other does.
    let id = c.ask_within(0, Some(Nanos::from_millis(1_000)), read(x));
    wait(&mut c, Nanos::from_millis(1_500));
    assert!(matches!(c.reply(0, id), Some(Reply::Refused(_))));
    heal(&mut c, 0);
    wait(&mut c, LEASE + LEASE);
    assert_eq!(value(c.call(1, read(x))), (7, 1));
}

#[test]
fn the_link_process_of_a_group_votes() {
    let mut c = Cluster::new(&["/a", "/b"], 2, 1);
    let x = c.declare(0, replicated("x", "mp0", 1));
    let x = ObjectId::new(x.id(), 0);
    for ap in 1..4 {
        c.call(ap, Request::Open("x".into()));
    }
    section(&mut c, 3, x, 7);
    isolate(&mut c, 0);
    wait(&mut c, LEASE + LEASE);
    // Also asked from another group.
    assert_eq!(section(&mut c, 3, x, 8), 2);
    assert_eq!(value(c.call(1, read(x))), (8, 2));
}

#[test]
fn a_replica_that_is_lost_is_replaced_and_the_release_goes_on() {
    let (mut c, x) = cluster(3, 1);
    section(&mut c, 0, x, 7);
    isolate(&mut c, 1);
    let epoch = granted(c.call(0, acquire(x)));
    c.call(0, write_in(x, 8, epoch));
    let id = c.ask(0, release_in(x, epoch));
    c.run();
    assert_eq!(
        c.reply(0, id),
        None,
        "the replica may be promoted by others"
    );
    wait(&mut c, LEASE);
    assert_eq!(released(c.reply(0, id)), 2);
    wait(&mut c, LEASE);
    // mp2 keeps it now: if the owner is lost and mp1 is back, mp2 serves.
    heal(&mut c, 1);
    wait(&mut c, LEASE);
    isolate(&mut c, 0);
    wait(&mut c, LEASE + LEASE);
    assert_eq!(value(c.call(1, read(x))), (8, 2));
    let served = c.cores[2].counters().served;
    c.call(1, write(x, 9));
    assert!(c.cores[2].counters().served > served);
}

#[test]
fn an_owner_that_starts_again_catches_up_as_a_replica_and_can_be_promoted() {
    let (mut c, x) = cluster(3, 1);
    section(&mut c, 2, x, 7);
    c.restart(MpId(0));
    c.connect(dosmos_proto::ApId(0)).unwrap();
    c.run();
    wait(&mut c, LEASE + LEASE);
    assert_eq!(section(&mut c, 2, x, 8), 2);
    // mp2 or mp0 keeps it behind mp1.
    wait(&mut c, LEASE + LEASE);
    isolate(&mut c, 1);
    wait(&mut c, LEASE + LEASE);
    assert_eq!(value(c.call(2, read(x))), (8, 2));
    assert_eq!(section(&mut c, 2, x, 9), 3);
}

#[test]
fn a_whole_group_that_starts_again_begins_anew() {
    let (mut c, x) = cluster(3, 1);
    section(&mut c, 2, x, 7);
    for mp in 0..3 {
        c.restart(MpId(mp));
        c.connect(dosmos_proto::ApId(mp)).unwrap();
    }
    c.run();
    let v = c.declare(0, replicated("y", "mp0", 1));
    let y = ObjectId::new(v.id(), 0);
    wait(&mut c, LEASE);
    assert_eq!(section(&mut c, 0, y, 1), 1);
    isolate(&mut c, 0);
    wait(&mut c, LEASE + LEASE);
    c.call(2, Request::Open("y".into()));
    assert_eq!(value(c.call(2, read(y))), (1, 1));
}

/// That an access is refused without waiting, with what was lost, with whom, and the cure.
#[track_caller]
fn is_lost(reply: Option<Reply>, object: &str) {
    let Some(Reply::Refused(refusal)) = reply else {
        panic!("not refused: {reply:?}");
    };
    assert_eq!(refusal.code, ErrorCode::ProcessLost);
    assert_eq!(
        refusal.message,
        format!(
            "{object} is lost: all memory processes that kept it for mp0 were started again; start the program again"
        )
    );
}

#[test]
fn what_a_whole_group_lost_is_refused_at_once_also_elsewhere() {
    // Those of one group start again, who asks is in another.
    let mut c = Cluster::new(&["/a", "/b"], 3, 1);
    let v = c.declare(0, replicated("x", "mp0", 1));
    let x = ObjectId::new(v.id(), 0);
    c.call(5, Request::Open("x".into()));
    section(&mut c, 5, x, 7);
    let group: Vec<u32> = (0..c.cores.len() as u32)
        .filter(|mp| c.topology.mp(MpId(*mp)).is_some_and(|p| p.group.0 == 0))
        .collect();
    for mp in &group {
        c.restart(MpId(*mp));
    }
    c.run();
    c.connect(dosmos_proto::ApId(0)).unwrap();
    wait(&mut c, LEASE + LEASE);
    // One that has opened it since.
    c.call(0, Request::Open("x".into()));
    for (ap, request) in [
        (5, read(x)),
        (5, acquire(x)),
        (5, write(x, 1)),
        (0, read(x)),
    ] {
        is_lost(c.call(ap, request), "x[0]");
    }
}

#[test]
fn what_all_members_lost_is_refused_at_once_although_the_group_lives() {
    // Three of five are a majority.
    let (mut c, x) = cluster(5, 1);
    section(&mut c, 3, x, 7);
    let waits = {
        isolate(&mut c, 0);
        c.ask(3, acquire(x))
    };
    for mp in [0, 1] {
        c.restart(MpId(mp));
    }
    heal(&mut c, 0);
    wait(&mut c, LEASE + LEASE + LEASE);
    is_lost(c.reply(3, waits), "x[0]");
    is_lost(c.call(2, read(x)), "x[0]");
    is_lost(c.call(3, write(x, 1)), "x[0]");
}

#[test]
fn what_one_member_still_keeps_is_not_lost() {
    let (mut c, x) = cluster(4, 1);
    section(&mut c, 3, x, 7);
    c.restart(MpId(0));
    c.run();
    wait(&mut c, LEASE + LEASE + LEASE);
    assert_eq!(value(c.call(3, read(x))), (7, 1));
}

#[test]
fn too_many_replicas_are_refused() {
    let mut c = Cluster::new(&["/a"], 2, 1);
    let text = c.refusal(0, Request::Declare(replicated("x", "mp0", 2)));
    assert!(
        text.contains("2 replicas need 3 memory processes in group /a"),
        "{text}"
    );
    let spin = replicated("x", "mp0", 1).with_lock(dosmos_proto::LockKind::Spin);
    let text = c.refusal(0, Request::Declare(spin));
    assert!(text.contains("need the queue of the owner"), "{text}");
}

#[test]
fn a_copy_is_void_with_the_lease_of_the_owner_that_gave_it() {
    let (mut c, x) = cluster(3, 1);
    section(&mut c, 0, x, 7);
    assert_eq!(value(c.call(2, read(x))), (7, 1));
    // mp2 hears the owner, nobody else does.
    c.down(MpId(0), MpId(1));
    wait(&mut c, Nanos::from_millis(100));
    // A majority (mp0 and mp2) is left: the owner goes on without mp1.
    wait(&mut c, LEASE);
    assert_eq!(section(&mut c, 0, x, 8), 2);
    assert_eq!(value(c.call(2, read(x))), (8, 2));
}

/// A read that was asked behind a write comes before it, if the write has to be asked for again (seed 52002610, `losses`).
#[test]
fn a_write_that_is_asked_for_again_is_read_whatever_was_read_meanwhile() {
    let (mut c, x) = cluster(3, 1);
    c.down(MpId(0), MpId(2));
    let write = c.ask(2, write(x, 1));
    c.up(MpId(0), MpId(2));
    assert_eq!(value(c.call(2, read(x))), (0, 0));
    assert_eq!(c.reply(2, write), None);
    wait(&mut c, Nanos::from_millis(300));
    assert!(matches!(c.reply(2, write), Some(Reply::Written { .. })));
    assert_eq!(value(c.call(2, read(x))), (1, 1));
}

/// The holder decides about others while a process catches up.
#[test]
fn who_catches_up_keeps_what_it_was_sent_whatever_is_decided_meanwhile() {
    let (mut c, x) = cluster(4, 2);
    section(&mut c, 0, x, 7);
    // mp1 is lost, and mp3 catches up; then mp2 is lost before mp3 is a member.
    isolate(&mut c, 1);
    let catches_up = |c: &Cluster| c.log.iter().any(|l| l.starts_with("mp0 -> mp3 keep x[0]"));
    while !catches_up(&c) {
        c.pass(STEP);
        c.run_until(catches_up);
    }
    c.down(MpId(0), MpId(2));
    heal(&mut c, 1);
    wait(&mut c, LEASE + LEASE + LEASE);
    c.up(MpId(0), MpId(2));
    wait(&mut c, LEASE + LEASE);
    isolate(&mut c, 0);
    wait(&mut c, LEASE + LEASE);
    assert_eq!(value(c.call(3, read(x))), (7, 1));
    assert_eq!(section(&mut c, 1, x, 8), 2);
}

/// A replica that was stopped for long wants to serve the objects itself as soon as it goes on, before it has heard what was decided
/// meanwhile: it promises itself a later decision, which does not come about.
#[test]
fn a_replica_that_was_stopped_is_one_again_although_it_promised_itself_more() {
    let mut c = Cluster::new(&["/a", "/b"], 2, 1);
    let x = c.declare(0, replicated("x", "mp0", 1));
    let x = ObjectId::new(x.id(), 0);
    c.call(1, Request::Open("x".into()));
    section(&mut c, 0, x, 7);
    c.stopped.insert(MpId(1));
    wait_without_stopped(&mut c, LEASE + LEASE);
    c.stopped.clear();
    // It looks at its clock first.
    c.pass(STEP);
    c.run();
    wait(&mut c, LEASE + LEASE);
    section(&mut c, 0, x, 8);
    isolate(&mut c, 0);
    wait(&mut c, LEASE + LEASE);
    assert_eq!(value(c.call(1, read(x))), (8, 2));
}

/// The same as `wait`, but nothing arrives at processes that are stopped.
fn wait_without_stopped(c: &mut Cluster, time: Nanos) {
    let until = c.now + time;
    while c.now < until {
        c.pass(STEP);
        c.run_awake();
    }
}
