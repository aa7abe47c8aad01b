//! Wrong answers that a fault could bring about: each ends in the right one or in a clear refusal.
//! `docs/reliability.md` names these tests by the promise that they hold.

use crate::common::*;
use dosmos_memproc::core::messages::{Opening, Reply, Request};
use dosmos_proto::CopyPolicy::{Invalidate, Update};
use dosmos_proto::{ApId, ErrorCode, MpId, Nanos, ObjectId};
use dosmos_trace::{Op, Side};

const MP0: MpId = MpId(0);
const MP1: MpId = MpId(1);
const MP2: MpId = MpId(2);

fn ms(n: u64) -> Nanos {
    Nanos::from_millis(n)
}

fn value(v: u64, version: u64) -> Option<Reply> {
    let data = bytes(v);
    Some(Reply::Read {
        version,
        data,
        keep: false,
        delegation: None,
        unchanged: false,
    })
}

#[track_caller]
fn code(reply: Option<Reply>) -> ErrorCode {
    match reply {
        Some(Reply::Refused(refusal)) => refusal.code,
        other => panic!("not refused: {other:?}"),
    }
}

/// Three memory processes of one group: `data` at mp1, `flag` at mp0, a copy of `data` at mp2.
fn three(policy: dosmos_proto::CopyPolicy) -> (Cluster, ObjectId, ObjectId) {
    let mut c = Cluster::new(&["/a"], 3, 1);
    let flag = c.scalar("flag", 0, Invalidate);
    let data = c.scalar("data", 1, policy);
    for ap in [1, 2] {
        for name in ["data", "flag"] {
            c.call(ap, Request::Open(name.into()));
        }
    }
    assert_eq!(c.call(2, read(data)), value(0, 0));
    c.log.clear();
    (c, data, flag)
}

#[test]
fn after_a_release_nobody_reads_an_old_copy_although_its_holder_does_not_know_that_it_is_cut_off() {
    for policy in [Invalidate, Update] {
        let (mut c, data, flag) = three(policy);
        c.call(1, acquire(data));
        c.call(1, write(data, 5));
        c.cut_at(MP1, MP2);
        let released = c.ask(1, release(data));
        c.run();
        assert_eq!(c.reply(1, released), None, "mp2 may still read its copy");
        assert_eq!(c.call(2, read(data)), value(0, 0));
        c.pass(ms(3_000));
        assert!(matches!(
            c.reply(1, released),
            Some(Reply::Released { version: 1 })
        ));
        // What is released after it may be seen by mp2, the old data may not.
        c.call(1, acquire(flag));
        c.call(1, write(flag, 1));
        c.call(1, release(flag));
        c.call(2, acquire(flag));
        assert_eq!(c.call(2, read(flag)), value(1, 1));
        let late = c.ask(2, read(data));
        c.run();
        assert_eq!(c.reply(2, late), None);
        // It notices, and says so; when the link is back it reads the new value.
        c.notice(MP2, MP1);
        assert_eq!(code(c.reply(2, late)), ErrorCode::Unreachable);
        c.up(MP1, MP2);
        c.run();
        assert_eq!(c.call(2, read(data)), value(5, 1));
    }
}

#[test]
fn a_flush_waits_out_the_lease_of_a_holder_that_does_not_know_that_it_is_cut_off() {
    let (mut c, data, flag) = three(Invalidate);
    c.cut_at(MP1, MP2);
    c.call(0, Request::Open("data".into()));
    c.call(0, acquire(flag));
    c.call(0, write(data, 9));
    let released = c.ask(0, release(flag));
    c.run();
    assert_eq!(c.reply(0, released), None);
    c.pass(ms(3_000));
    c.run();
    assert!(matches!(c.reply(0, released), Some(Reply::Released { .. })));
    let late = c.ask(2, read(data));
    assert_eq!(c.reply(2, late), None);
}

#[test]
fn the_end_of_a_lease_releases_what_a_silent_holder_does_not_acknowledge() {
    let (mut c, data, _) = three(Invalidate);
    c.call(1, acquire(data));
    c.call(1, write(data, 5));
    let released = c.ask(1, release(data));
    // The link looks up, but nothing comes through it: the invalidation waits on the way.
    assert_eq!(c.busy(), [(MP1, MP2)]);
    c.pass(ms(1_000));
    assert_eq!(c.reply(1, released), None);
    c.pass(ms(2_000));
    assert!(matches!(c.reply(1, released), Some(Reply::Released { .. })));
    let late = c.ask(2, read(data));
    assert_eq!(c.reply(2, late), None);
    c.run();
    assert_eq!(c.reply(2, late), value(5, 1));
}

#[test]
fn copies_stay_readable_as_long_as_their_owner_is_heard() {
    let (mut c, data, _) = three(Invalidate);
    for _ in 0..20 {
        c.pass(ms(500));
        c.run();
    }
    let renewals = |c: &Cluster| c.log.iter().filter(|l| l.ends_with(" renew")).count();
    let asked = renewals(&c);
    assert!((5..=20).contains(&asked), "{asked} renewals in 10 s");
    c.log.clear();
    c.call(2, read(data));
    c.expect(
        "
         ap2 -> mp2 read data[0]
         record@mp2 requester read data[0] by ap2 local v0 optimized
         mp2 -> ap2 value 0 v0
         ",
    );
    // Traffic renews the lease too.
    for _ in 0..4 {
        c.pass(ms(900));
        c.call(2, write(ObjectId::new(data.var, 0), 1));
        c.call(2, read(data));
        c.run();
    }
    assert_eq!(renewals(&c), 0);
}

#[test]
fn reads_in_a_section_that_was_lost_fail() {
    let (mut c, data, _) = three(Invalidate);
    let epoch = match c.call(2, acquire(data)) {
        Some(Reply::Granted { epoch, .. }) => epoch,
        other => panic!("{other:?}"),
    };
    c.call(2, write(data, 7));
    assert_eq!(c.call(2, read(data)), value(7, 0));
    // Both ends notice: the section is lost, also when the link is back.
    c.down(MP1, MP2);
    c.up(MP1, MP2);
    c.run();
    assert_eq!(code(c.call(2, read(data))), ErrorCode::StaleEpoch);
    assert_eq!(code(c.call(2, read_in(data, epoch))), ErrorCode::StaleEpoch);
    assert_eq!(code(c.call(2, release(data))), ErrorCode::StaleEpoch);
    // It is over now: a read outside a section is one.
    assert_eq!(c.call(2, read(data)), value(0, 0));
    assert_eq!(code(c.call(2, read_in(data, epoch))), ErrorCode::StaleEpoch);
}

#[test]
fn reads_in_a_section_that_only_its_owner_knows_to_be_lost_fail() {
    let (mut c, data, _) = three(Invalidate);
    c.call(2, acquire(data));
    c.call(2, write(data, 7));
    // Only the owner notices that the link broke and came back.
    c.feed(MP1, dosmos_memproc::core::messages::Input::PeerDown(MP2));
    c.feed(MP1, dosmos_memproc::core::messages::Input::PeerUp(MP2));
    assert_eq!(code(c.call(2, read(data))), ErrorCode::StaleEpoch);
}

#[test]
fn a_release_that_failed_is_repeated_and_the_lock_passes_on() {
    let (mut c, data, flag) = three(Invalidate);
    c.call(0, Request::Open("data".into()));
    c.call(0, acquire(flag));
    c.call(0, write(flag, 3));
    // Written outside the section, to an owner that is lost before the release.
    c.call(0, write(data, 1));
    c.down(MP0, MP1);
    let waits = c.ask(2, acquire(flag));
    c.run();
    assert_eq!(code(c.call(0, release(flag))), ErrorCode::Unreachable);
    assert_eq!(c.reply(2, waits), None, "the section is still open");
    assert!(matches!(
        c.call(0, release(flag)),
        Some(Reply::Released { .. })
    ));
    assert!(matches!(c.reply(2, waits), Some(Reply::Granted { .. })));
    assert_eq!(c.call(2, read(flag)), value(3, 1));
}

#[test]
fn a_cancelled_release_releases_nothing() {
    let (mut c, data, flag) = three(Invalidate);
    c.call(1, acquire(flag));
    // Written outside the section: the release waits until mp2 has dropped its copy, and what the section wrote leaves first.
    c.call(1, write(data, 1));
    let wrote = || Some(written(0, bytes(3), 1));
    let first = c.ask(1, release_with(flag, None, wrote()));
    c.ask(1, Request::Cancel(first));
    c.run();
    assert_eq!(code(c.reply(1, first)), ErrorCode::Deadline);
    let waits = c.ask(2, acquire(flag));
    c.run();
    assert_eq!(c.reply(2, waits), None, "the section is still open");
    let again = c.call(1, release_with(flag, None, wrote()));
    assert!(matches!(again, Some(Reply::Released { .. })), "{again:?}");
    assert!(matches!(c.reply(2, waits), Some(Reply::Granted { .. })));
    assert_eq!(c.call(2, read(flag)), value(3, 1));
    let own = c.records().filter(|r| r.object == flag && r.mp == MP1);
    let own = own.filter(|r| r.side == Side::Requester && r.op != Op::Acquire);
    let own: Vec<_> = own.map(|r| (r.op, r.flags.failed)).collect();
    let expected = [
        (Op::Release, true),
        (Op::Write, false),
        (Op::Write, false),
        (Op::Release, false),
    ];
    assert_eq!(own, expected);
}

/// An opening counted by the first start of its coordinator.
fn passed_as(generation: u64) -> Reply {
    Reply::Passed(Opening {
        generation,
        start: 1,
    })
}

#[test]
fn an_arrival_whose_timeout_is_over_does_not_count() {
    for late in [0, 1] {
        // Once at the coordinator, once elsewhere.
        let other = 1 - late;
        let mut c = Cluster::new(&["/a"], 2, 1);
        let first = c.ask_within(late, Some(ms(5)), barrier("b"));
        c.run();
        c.pass(ms(6));
        c.run();
        assert_eq!(code(c.reply(late, first)), ErrorCode::Deadline);
        let waits = c.ask(other, barrier("b"));
        c.run();
        assert_eq!(
            c.reply(other, waits),
            None,
            "the first does not wait any more"
        );
        let again = c.ask(late, barrier("b"));
        c.run();
        let passed = Some(passed_as(1));
        assert_eq!(c.reply(late, again), passed);
        assert_eq!(c.reply(other, waits), passed);
        // The next call waits for the others again.
        let next = c.ask(late, barrier("b"));
        c.run();
        assert_eq!(c.reply(late, next), None);
    }
}

#[test]
fn a_call_after_a_timeout_that_met_the_opening_waits_for_the_next_opening() {
    let mut c = Cluster::new(&["/a"], 2, 1);
    let first = c.ask_within(1, Some(ms(5)), barrier("b"));
    c.deliver((MP1, MP0));
    let other = c.ask(0, barrier("b"));
    // The opening is on its way to mp1 when the timeout is over.
    assert_eq!(c.reply(0, other), Some(passed_as(1)));
    c.pass(ms(6));
    c.run();
    assert_eq!(code(c.reply(1, first)), ErrorCode::Deadline);
    let next = c.ask(1, barrier("b"));
    c.run();
    assert_eq!(c.reply(1, next), None);
    let other = c.ask(0, barrier("b"));
    c.run();
    let passed = Some(passed_as(2));
    assert_eq!(
        (c.reply(1, next), c.reply(0, other)),
        (passed.clone(), passed)
    );
}

#[test]
fn a_cancelled_arrival_does_not_count_twice() {
    for dropped in [0, 1] {
        let other = 1 - dropped;
        let mut c = Cluster::new(&["/a"], 2, 1);
        let first = c.ask(dropped, barrier("b"));
        c.run();
        c.ask(dropped, Request::Cancel(first));
        assert_eq!(code(c.reply(dropped, first)), ErrorCode::Deadline);
        let again = c.ask(dropped, barrier("b"));
        c.run();
        let others = c.ask(other, barrier("b"));
        c.run();
        let passed = Some(passed_as(1));
        assert_eq!(c.reply(dropped, again), passed);
        assert_eq!(c.reply(other, others), passed);
        let next = c.ask(other, barrier("b"));
        c.run();
        assert_eq!(
            c.reply(other, next),
            None,
            "the dropped one would count here"
        );
    }
}

#[test]
fn records_say_which_start_of_its_coordinator_counted_an_opening() {
    let mut c = Cluster::new(&["/a"], 2, 1);
    let all = |c: &mut Cluster| {
        for ap in 0..2 {
            c.ask(ap, barrier("b"));
        }
        c.run();
    };
    all(&mut c);
    c.restart(MP0);
    c.run();
    c.connect(ApId(0)).unwrap();
    // The other one is at the second opening, and so is the new coordinator then.
    all(&mut c);
    let barriers = c.records().filter(|r| r.op == Op::Barrier);
    let told: Vec<(u32, u32, u64)> = barriers
        .map(|r| (r.ap.0, r.object.index, r.version))
        .collect();
    assert_eq!(told, [(1, 1, 1), (0, 1, 1), (0, 2, 2), (1, 2, 2)]);
}

#[test]
fn nobody_is_stuck_at_a_barrier_whose_coordinator_was_started_again() {
    let mut c = Cluster::new(&["/a"], 3, 1);
    let all = |c: &mut Cluster| -> Vec<u64> { (0..3).map(|ap| c.ask(ap, barrier("b"))).collect() };
    for _ in 0..3 {
        all(&mut c);
        c.run();
    }
    let waits = c.ask(1, barrier("b"));
    c.run();
    c.restart(MP0);
    c.run();
    assert_eq!(code(c.reply(1, waits)), ErrorCode::Unreachable);
    c.connect(dosmos_proto::ApId(0)).unwrap();
    // Whoever comes first: the new coordinator's own, or the others, who are further.
    for order in [[0, 1, 2], [2, 1, 0], [1, 0, 2]] {
        let ids: Vec<(u32, u64)> = order
            .into_iter()
            .map(|ap| {
                let id = c.ask(ap, barrier("b"));
                c.run();
                (ap, id)
            })
            .collect();
        for (ap, id) in ids {
            assert!(
                matches!(c.reply(ap, id), Some(Reply::Passed { .. })),
                "ap{ap} in {order:?}: {:?}",
                c.reply(ap, id)
            );
        }
    }
}

#[test]
fn who_waits_for_an_older_generation_of_a_new_coordinator_is_told() {
    let mut c = Cluster::new(&["/a"], 3, 1);
    for _ in 0..2 {
        for ap in 0..3 {
            c.ask(ap, barrier("b"));
        }
        // The second time mp2 does not hear that it opened: the coordinator ends before.
        c.run_until(|c| {
            c.log
                .iter()
                .filter(|l| l.contains("mp0 -> mp1 open"))
                .count()
                == 2
        });
    }
    c.restart(MP0);
    c.run();
    c.connect(dosmos_proto::ApId(0)).unwrap();
    // mp2 is at generation 2, mp1 at 3.
    let behind = c.ask(2, barrier("b"));
    c.run();
    let ahead = c.ask(1, barrier("b"));
    let new = c.ask(0, barrier("b"));
    c.run();
    assert_eq!(code(c.reply(2, behind)), ErrorCode::ProcessLost);
    let again = c.ask(2, barrier("b"));
    c.run();
    for (ap, id) in [(1, ahead), (0, new), (2, again)] {
        assert!(matches!(c.reply(ap, id), Some(Reply::Passed { .. })));
    }
}

#[test]
fn who_leaves_or_comes_back_while_a_link_is_broken_is_known_when_it_is_up() {
    let mut c = Cluster::new(&["/a"], 2, 1);
    let ap1 = dosmos_proto::ApId(1);
    c.gone(ap1);
    c.run();
    assert_eq!(code(c.call(0, barrier("b"))), ErrorCode::ProcessLost);
    c.down(MP0, MP1);
    c.connect(ap1).unwrap();
    c.up(MP0, MP1);
    c.run();
    let both = [0, 1].map(|ap| (ap, c.ask(ap, barrier("b"))));
    c.run();
    for (ap, id) in both {
        let reply = c.reply(ap, id);
        assert!(matches!(reply, Some(Reply::Passed { .. })), "{reply:?}");
    }
    c.down(MP0, MP1);
    c.gone(ap1);
    c.up(MP0, MP1);
    c.run();
    assert_eq!(code(c.call(0, barrier("b"))), ErrorCode::ProcessLost);
}

#[test]
fn a_lock_that_was_granted_to_an_acquire_which_late_news_failed_is_free() {
    let mut c = Cluster::new(&["/a", "/b"], 1, 1);
    let lock = c.scalar("lock", 0, Invalidate);
    c.call(1, Request::Open("lock".into()));
    let (of_a, of_b) = (MP2, MpId(3)); // the link processes
    c.down(MP0, of_a);
    c.deliver((of_a, of_b));
    c.up(MP0, of_a);
    // That mp0 is gone is on its way to mp1, and the acquire passes it.
    let id = c.ask(1, acquire(lock));
    for pair in [(MP1, of_b), (of_b, of_a), (of_a, MP0)] {
        while c.busy().contains(&pair) {
            c.deliver(pair);
        }
    }
    assert_eq!(c.reply(1, id), None);
    c.run();
    assert_eq!(code(c.reply(1, id)), ErrorCode::Unreachable);
    let granted = c.call(0, acquire(lock));
    assert!(
        matches!(granted, Some(Reply::Granted { .. })),
        "{granted:?}"
    );
}

/// Declared by ap0: owned by mp0, and its home is another.
fn owned_by_mp0(c: &mut Cluster, homes: impl Fn(&mut Cluster, &str) -> MpId) -> (String, ObjectId) {
    for name in ["a", "b", "c", "d", "e", "f", "g"] {
        if homes(c, name) != MP0 {
            return (name.into(), c.scalar(name, 0, Invalidate));
        }
    }
    panic!("all names have the same home");
}

/// The home of a name: the process that a look-up of it asks.
fn home_of(c: &mut Cluster, name: &str) -> MpId {
    c.log.clear();
    c.call(0, Request::Open(name.into()));
    // The last step of its way there.
    let asks = format!(" open {name}");
    let asked = c.log.iter().rev().find_map(|l| l.strip_suffix(&asks));
    let home = asked
        .and_then(|l| l.rsplit_once("-> "))
        .map(|(_, to)| to.to_owned());
    home.map_or(MP0, |name| c.topology.find_mp(&name).unwrap())
}

#[test]
fn what_an_owner_held_before_it_was_started_again_never_reads_as_zeros() {
    for groups in [&["/a"][..], &["/a", "/b"]] {
        let mut c = Cluster::new(groups, 2, 1);
        let (name, x) = owned_by_mp0(&mut c, home_of);
        let far = c.topology.application_processes().len() as u32 - 1;
        for ap in [1, far] {
            c.call(ap, Request::Open(name.clone()));
        }
        c.call(0, write(x, 5));
        assert_eq!(c.call(far, read(x)), value(5, 0));
        c.restart(MP0);
        c.run();
        // Old handles elsewhere.
        for ap in [1, far] {
            for request in [read(x), write(x, 6), acquire(x), fetch_add(x, 1)] {
                assert_eq!(code(c.call(ap, request)), ErrorCode::ProcessLost, "ap{ap}");
            }
        }
        // An old handle at the owner itself, and one obtained from the home again.
        c.connect(dosmos_proto::ApId(0)).unwrap();
        assert_eq!(code(c.call(0, read(x))), ErrorCode::UnknownVariable);
        let opened = c.call(0, Request::Open(name.clone()));
        assert!(matches!(opened, Some(Reply::Variable(_))), "{opened:?}");
        assert_eq!(code(c.call(0, read(x))), ErrorCode::ProcessLost);
        assert_eq!(code(c.call(0, write(x, 7))), ErrorCode::ProcessLost);
        assert_eq!(code(c.call(far, read(x))), ErrorCode::ProcessLost);
    }
}

#[test]
fn what_was_not_published_before_the_owner_was_started_again_fails_the_release() {
    let (mut c, data, flag) = three(Invalidate);
    c.call(2, acquire(flag));
    c.call(2, write(data, 5));
    c.restart(MP1);
    c.run();
    assert_eq!(code(c.call(2, release(flag))), ErrorCode::ProcessLost);
    assert!(matches!(
        c.call(2, release(flag)),
        Some(Reply::Released { .. })
    ));
}

#[test]
fn a_home_that_was_started_again_gives_out_no_number_twice_and_no_second_variable_of_one_name() {
    let mut c = Cluster::new(&["/a"], 2, 1);
    // Owned by mp0, whose home is mp1; so mp0 goes on knowing it.
    let (name, x) = owned_by_mp0(&mut c, home_of);
    c.restart(MP1);
    c.run();
    c.connect(dosmos_proto::ApId(1)).unwrap();
    c.call(0, write(x, 5));
    // mp1 hears of it from mp0; declared there it is not a second one.
    let again = Request::Declare(scalar(&name, &["mp0"], Invalidate));
    match c.call(1, again) {
        Some(Reply::Variable(v)) => assert_eq!(v.id(), x.var),
        other => panic!("{other:?}"),
    }
    for i in 0..50 {
        let spec = scalar(&format!("new{i}"), &["mp0"], Invalidate);
        match c.call(1, Request::Declare(spec)) {
            Some(Reply::Variable(v)) => assert_ne!(v.id(), x.var),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(c.call(0, read(x)), value(5, 0));
}

#[test]
fn a_response_to_an_earlier_start_settles_no_request_of_a_later_one() {
    let mut c = Cluster::new(&["/a", "/b"], 1, 1);
    let x = c.scalar("x", 0, Invalidate);
    let y = c.scalar("y", 0, Invalidate);
    c.call(0, write(x, 1));
    c.call(0, write(y, 2));
    let open = |c: &mut Cluster| {
        for name in ["x", "y"] {
            c.call(1, Request::Open(name.into()));
        }
    };
    open(&mut c);
    let old = c.ask(1, read(x));
    // The response is between the link processes when mp1 is started again.
    c.log.clear();
    c.run_until(|c| c.log.iter().any(|l| l.starts_with("mp0 -> lp.a value")));
    c.restart(MP1);
    c.connect(dosmos_proto::ApId(1)).unwrap();
    // The same number of requests as before, so that the numbers of the calls are the same.
    for name in ["x", "y"] {
        c.ask(1, Request::Open(name.into()));
    }
    let new = c.ask(1, read(y));
    c.run();
    assert_eq!(c.reply(1, old), None);
    assert_ne!(c.reply(1, new), value(1, 0));
}

#[test]
fn a_start_that_nobody_noticed_frees_what_the_earlier_one_held() {
    let (mut c, data, _) = three(Invalidate);
    c.call(2, acquire(data));
    let waits = c.ask(1, acquire(data));
    c.run();
    assert_eq!(c.reply(1, waits), None);
    // mp2 is started again so fast that mp1 only sees messages of another start.
    c.restart_unnoticed(MP2);
    c.connect(ApId(2)).unwrap();
    let other = c.call(2, Request::Declare(scalar("other", &["mp1"], Invalidate)));
    let Some(Reply::Variable(other)) = other else {
        panic!("{other:?}");
    };
    c.ask(2, read(ObjectId::new(other.id(), 0)));
    c.run();
    assert!(matches!(
        c.reply(1, waits),
        Some(Reply::Granted { epoch: 2, .. })
    ));
}

#[test]
fn nobody_waits_for_ever_for_an_owner_that_was_started_again_before_it_was_heard() {
    let (mut c, data, _) = three(Invalidate);
    c.down(MP1, MP2);
    c.up(MP1, MP2);
    // Since then mp2 has heard nothing of mp1.
    c.ask(2, write(data, 1));
    let publishes = c.ask(2, Request::Publish);
    while c.busy().contains(&(MP2, MP1)) {
        c.deliver((MP2, MP1));
    }
    c.restart_unnoticed(MP1);
    c.connect(ApId(1)).unwrap();
    c.run();
    assert_eq!(code(c.reply(2, publishes)), ErrorCode::ProcessLost);
    assert_eq!(c.call(2, Request::Publish), Some(Reply::Published));
}
