//! The exact sequence of messages and records of every protocol (docs/design/protocol.md), local and
//! remote.

use crate::common::*;
use dosmos_memproc::core::messages::{
    Access, AccessKind, ElementRange, Reply, Request, Scope, WriteData,
};
use dosmos_proto::CopyPolicy::{Invalidate, Update};
use dosmos_proto::{ElementType, Layout, Nanos, ObjectId, Runs, VariableSpec};
use dosmos_trace::{Op, Side};

#[test]
fn write_local() {
    let (mut c, x) = pair();
    c.call(0, write(x, 7));
    c.expect(
        "
         ap0 -> mp0 write x[0] = 7
         record@mp0 requester write x[0] by ap0 local v0
         mp0 -> ap0 written
         ",
    );
}

#[test]
fn write_remote() {
    let (mut c, x) = pair();
    c.call(1, write(x, 7));
    c.expect(
        "
         ap1 -> mp1 write x[0] = 7
         mp1 -> mp0 write x[0] = 7 by ap1 epoch 0
         record@mp0 owner write x[0] by ap1 intra v0
         mp0 -> mp1 written
         record@mp1 requester write x[0] by ap1 intra v0
         mp1 -> ap1 written
         ",
    );
}

#[test]
fn read_local() {
    let (mut c, x) = pair();
    c.call(0, read(x));
    c.expect(
        "
         ap0 -> mp0 read x[0]
         record@mp0 requester read x[0] by ap0 local v0
         mp0 -> ap0 value 0 v0
         ",
    );
}

#[test]
fn read_remote_makes_a_copy_and_the_next_is_optimized() {
    let (mut c, x) = pair();
    c.call(1, read(x));
    c.expect(
        "
         ap1 -> mp1 read x[0]
         mp1 -> mp0 read x[0] by ap1 with copy
         record@mp0 owner read x[0] by ap1 intra v0
         mp0 -> mp1 value 0 v0 copy
         record@mp1 requester read x[0] by ap1 intra v0
         mp1 -> ap1 value 0 v0
         ",
    );
    c.call(1, read(x));
    c.expect(
        "
         ap1 -> mp1 read x[0]
         record@mp1 requester read x[0] by ap1 local v0 optimized
         mp1 -> ap1 value 0 v0
         ",
    );
}

#[test]
fn acquire_free_local_and_remote() {
    let (mut c, x) = pair();
    c.call(0, acquire(x));
    c.expect(
        "
         ap0 -> mp0 acquire x[0]
         record@mp0 requester acquire x[0] by ap0 local v0
         mp0 -> ap0 granted epoch 1 v0
         ",
    );
    c.call(0, release(x));
    c.expect(
        "
         ap0 -> mp0 release x[0]
         record@mp0 requester release x[0] by ap0 local v1
         mp0 -> ap0 released v1
         ",
    );
    c.call(1, acquire(x));
    c.expect(
        "
         ap1 -> mp1 acquire x[0]
         mp1 -> mp0 acquire x[0] by ap1
         record@mp0 owner acquire x[0] by ap1 intra v1
         mp0 -> mp1 granted epoch 2 v1
         record@mp1 requester acquire x[0] by ap1 intra v1
         mp1 -> ap1 granted epoch 2 v1
         ",
    );
}

#[test]
fn a_section_takes_two_round_trips_its_value_comes_with_the_grant_and_its_writes_leave_with_the_release()
 {
    let mut c = Cluster::new(&["/a"], 2, 1);
    let x = c.scalar("x", 1, Invalidate);
    c.call(1, write(x, 5));
    c.log.clear();
    c.call(0, acquire_with_value(x));
    c.call(
        0,
        release_with(x, Some(1), Some(written(0, bytes(6), 1000))),
    );
    c.expect(
        "
         ap0 -> mp0 acquire x[0] with its value
         mp0 -> mp1 acquire x[0] with its value by ap0
         record@mp1 owner acquire x[0] by ap0 intra v0
         mp1 -> mp0 granted epoch 1 v0 value 5
         record@mp0 requester acquire x[0] by ap0 intra v0
         mp0 -> ap0 granted epoch 1 v0 value 5
         ap0 -> mp0 release x[0] = 6
         mp0 -> mp1 release x[0] = 6 by ap0
         record@mp1 owner write x[0] by ap0 intra v0
         record@mp1 owner release x[0] by ap0 intra v1
         mp1 -> mp0 released v1
         record@mp0 requester write x[0] by ap0 intra v1
         record@mp0 requester release x[0] by ap0 intra v1
         mp0 -> ap0 released v1
         ",
    );
    let counts: Vec<u32> = c
        .records()
        .filter(|r| r.op == Op::Write)
        .map(|r| r.count)
        .collect();
    assert_eq!(
        counts[counts.len() - 2..],
        [1000, 1000],
        "each stands for the same writes"
    );
    c.call(1, read(x));
    assert_eq!(c.log.last().unwrap(), "mp1 -> ap1 value 6 v1");
}

#[test]
fn a_write_that_does_not_fit_leaves_the_section_open() {
    let mut c = Cluster::new(&["/a"], 2, 1);
    let x = c.scalar("x", 1, Invalidate);
    c.call(0, acquire(x));
    let wrong = release_with(x, Some(1), Some(written(1, bytes(6), 1)));
    let said = c.refusal(0, wrong);
    assert!(said.contains("x[0]"), "{said}");
    c.call(0, release_with(x, Some(1), Some(written(0, bytes(7), 1))));
    assert_eq!(c.log.last().unwrap(), "mp0 -> ap0 released v1");
}

#[test]
fn acquire_taken_waits_and_is_granted_in_the_step_of_the_release() {
    let (mut c, x) = pair();
    c.call(0, acquire(x));
    c.log.clear();
    c.call(1, acquire(x));
    c.expect(
        "
         ap1 -> mp1 acquire x[0]
         mp1 -> mp0 acquire x[0] by ap1
         record@mp0 owner acquire x[0] by ap1 intra v0 waiting
         ",
    );
    c.call(0, release(x));
    c.expect(
        "
         ap0 -> mp0 release x[0]
         record@mp0 requester release x[0] by ap0 local v1
         mp0 -> ap0 released v1
         record@mp0 owner acquire x[0] by ap1 intra v1
         mp0 -> mp1 granted epoch 2 v1
         record@mp1 requester acquire x[0] by ap1 intra v1
         mp1 -> ap1 granted epoch 2 v1
         ",
    );
    c.call(0, acquire(x));
    c.expect(
        "
         ap0 -> mp0 acquire x[0]
         record@mp0 owner acquire x[0] by ap0 local v1 waiting
         ",
    );
    c.call(1, release(x));
    c.expect(
        "
         ap1 -> mp1 release x[0]
         mp1 -> mp0 release x[0] by ap1
         record@mp0 owner release x[0] by ap1 intra v2
         record@mp0 requester acquire x[0] by ap0 local v2 waited
         mp0 -> ap0 granted epoch 3 v2
         mp0 -> mp1 released v2
         record@mp1 requester release x[0] by ap1 intra v2
         mp1 -> ap1 released v2
         ",
    );
}

#[test]
fn release_invalidates_every_copy_before_it_returns() {
    let mut c = Cluster::new(&["/a"], 3, 1);
    let x = c.scalar("x", 0, Invalidate);
    for ap in [1, 2] {
        c.call(ap, Request::Open("x".into()));
        c.call(ap, read(x));
    }
    c.call(1, acquire(x));
    c.log.clear();
    c.call(1, write(x, 5));
    c.expect(
        "
         ap1 -> mp1 write x[0] = 5
         trace@mp1 hand-over x[0] dropped to emp0
         mp1 -> mp0 write x[0] = 5 by ap1 epoch 1
         record@mp0 owner write x[0] by ap1 intra v0
         mp0 -> mp1 written
         record@mp1 requester write x[0] by ap1 intra v0
         mp1 -> ap1 written
         ",
    );
    c.call(1, release(x));
    c.expect(
        "
         ap1 -> mp1 release x[0]
         mp1 -> mp0 release x[0] by ap1
         mp0 -> mp2 invalidate x[0] v1
         trace@mp2 hand-over x[0] dropped to emp0
         mp2 -> mp0 ack x[0] v1
         record@mp0 owner release x[0] by ap1 intra v1 waited
         mp0 -> mp1 released v1
         record@mp1 requester release x[0] by ap1 intra v1 waited
         mp1 -> ap1 released v1
         ",
    );
    c.call(2, read(x));
    c.expect(
        "
         ap2 -> mp2 read x[0]
         mp2 -> mp0 read x[0] by ap2 with copy
         record@mp0 owner read x[0] by ap2 intra v1
         mp0 -> mp2 value 5 v1 copy
         record@mp2 requester read x[0] by ap2 intra v1
         mp2 -> ap2 value 5 v1
         ",
    );
}

#[test]
fn release_updates_every_copy_before_it_returns() {
    let mut c = Cluster::new(&["/a"], 3, 1);
    let x = c.scalar("x", 0, Update);
    for ap in [1, 2] {
        c.call(ap, Request::Open("x".into()));
        c.call(ap, read(x));
    }
    c.call(0, acquire(x));
    c.call(0, write(x, 5));
    c.log.clear();
    c.call(0, release(x));
    c.expect(
        "
         ap0 -> mp0 release x[0]
         mp0 -> mp1 update x[0] = 5 v1
         trace@mp1 hand-over x[0] updated to emp0
         mp0 -> mp2 update x[0] = 5 v1
         trace@mp2 hand-over x[0] updated to emp0
         mp1 -> mp0 ack x[0] v1
         mp2 -> mp0 ack x[0] v1
         record@mp0 requester release x[0] by ap0 local v1 waited
         mp0 -> ap0 released v1
         ",
    );
    c.call(2, read(x));
    c.expect(
        "
         ap2 -> mp2 read x[0]
         record@mp2 requester read x[0] by ap2 local v1 optimized
         mp2 -> ap2 value 5 v1
         ",
    );
}

#[test]
fn release_of_an_unchanged_object_tells_no_copy() {
    let (mut c, x) = pair();
    c.call(1, read(x));
    c.call(0, acquire(x));
    c.log.clear();
    c.call(0, release(x));
    c.expect(
        "
         ap0 -> mp0 release x[0]
         record@mp0 requester release x[0] by ap0 local v1
         mp0 -> ap0 released v1
         ",
    );
}

#[test]
fn a_holder_reads_its_own_writes_at_the_owner_and_others_the_last_release() {
    let (mut c, x) = pair();
    c.call(1, acquire(x));
    c.call(1, write(x, 9));
    c.log.clear();
    c.call(1, read(x));
    c.call(0, read(x));
    c.expect(
        "
         ap1 -> mp1 read x[0]
         mp1 -> mp0 read x[0] by ap1
         record@mp0 owner read x[0] by ap1 intra v0
         mp0 -> mp1 value 9 v0
         record@mp1 requester read x[0] by ap1 intra v0
         mp1 -> ap1 value 9 v0
         ap0 -> mp0 read x[0]
         record@mp0 requester read x[0] by ap0 local v0
         mp0 -> ap0 value 0 v0
         ",
    );
}

#[test]
fn inter_group_read_crosses_one_link_process_each_way_and_is_not_kept() {
    let mut c = Cluster::new(&["/a", "/b"], 1, 1);
    let x = c.scalar("x", 0, Invalidate);
    c.call(1, Request::Open("x".into()));
    c.log.clear();
    c.call(1, read(x));
    c.expect(
        "
         ap1 -> mp1 read x[0]
         mp1 -> lp.b read x[0] by ap1
         lp.b -> lp.a read x[0] by ap1
         lp.a -> mp0 read x[0] by ap1
         record@mp0 owner read x[0] by ap1 inter v0
         mp0 -> lp.a value 0 v0
         lp.a -> lp.b value 0 v0
         lp.b -> mp1 value 0 v0
         record@mp1 requester read x[0] by ap1 inter v0
         mp1 -> ap1 value 0 v0
         ",
    );
    c.call(1, read(x));
    assert_eq!(c.log.len(), 10, "as long a way again: {:#?}", c.log);
}

#[test]
fn inter_group_acquire_and_release_through_nested_groups() {
    let mut c = Cluster::new(&["/a", "/a/x", "/b"], 1, 1);
    let x = c.scalar("x", 2, Invalidate);
    c.call(1, Request::Open("x".into()));
    c.log.clear();
    c.call(1, acquire(x));
    c.expect(
        "
         ap1 -> mp1 acquire x[0]
         mp1 -> lp.a.x acquire x[0] by ap1
         lp.a.x -> lp.a acquire x[0] by ap1
         lp.a -> lp.b acquire x[0] by ap1
         lp.b -> mp2 acquire x[0] by ap1
         record@mp2 owner acquire x[0] by ap1 inter v0
         mp2 -> lp.b granted epoch 1 v0
         lp.b -> lp.a granted epoch 1 v0
         lp.a -> lp.a.x granted epoch 1 v0
         lp.a.x -> mp1 granted epoch 1 v0
         record@mp1 requester acquire x[0] by ap1 inter v0
         mp1 -> ap1 granted epoch 1 v0
         ",
    );
    c.call(1, release(x));
    c.expect(
        "
         ap1 -> mp1 release x[0]
         mp1 -> lp.a.x release x[0] by ap1
         lp.a.x -> lp.a release x[0] by ap1
         lp.a -> lp.b release x[0] by ap1
         lp.b -> mp2 release x[0] by ap1
         record@mp2 owner release x[0] by ap1 inter v1
         mp2 -> lp.b released v1
         lp.b -> lp.a released v1
         lp.a -> lp.a.x released v1
         lp.a.x -> mp1 released v1
         record@mp1 requester release x[0] by ap1 inter v1
         mp1 -> ap1 released v1
         ",
    );
}

#[test]
fn barrier_of_all_combines_the_arrivals_of_each_memory_process() {
    let mut c = Cluster::new(&["/a", "/b"], 1, 2);
    c.ask(2, barrier("b"));
    c.ask(0, barrier("b"));
    c.run();
    c.expect(
        "
         ap2 -> mp1 barrier b
         trace@mp1 barrier b
         ap0 -> mp0 barrier b
         trace@mp0 barrier b
         ",
    );
    c.ask(1, barrier("b"));
    c.ask(3, barrier("b"));
    c.run();
    c.expect(
        "
         ap1 -> mp0 barrier b
         ap3 -> mp1 barrier b
         mp1 -> lp.b arrive b generation 1
         lp.b -> lp.a arrive b generation 1
         lp.a -> mp0 arrive b generation 1
         record@mp0 requester barrier barrier b[1] by ap0 local v1 waited
         mp0 -> ap0 passed generation 1
         record@mp0 requester barrier barrier b[1] by ap1 local v1 waited
         mp0 -> ap1 passed generation 1
         mp0 -> lp.a open b generation 1
         lp.a -> lp.b open b generation 1
         lp.b -> mp1 open b generation 1
         record@mp1 requester barrier barrier b[1] by ap2 inter v1 waited
         mp1 -> ap2 passed generation 1
         record@mp1 requester barrier barrier b[1] by ap3 inter v1 waited
         mp1 -> ap3 passed generation 1
         ",
    );
}

#[test]
fn barrier_of_a_group_leaves_the_others_alone() {
    let mut c = Cluster::new(&["/a", "/b"], 2, 1);
    let of_b = Request::Barrier {
        scope: Scope::Path("/b".into()),
        name: String::new(),
    };
    c.ask(2, of_b.clone());
    c.ask(3, of_b);
    c.run();
    c.expect(
        "
         ap2 -> mp2 barrier 
         trace@mp2 barrier 
         ap3 -> mp3 barrier 
         trace@mp3 barrier 
         mp3 -> mp2 arrive  generation 1
         record@mp2 requester barrier barrier [1] by ap2 local v1 waited
         mp2 -> ap2 passed generation 1
         mp2 -> mp3 open  generation 1
         record@mp3 requester barrier barrier [1] by ap3 intra v1 waited
         mp3 -> ap3 passed generation 1
         ",
    );
}

#[test]
fn declare_asks_the_home_which_tells_every_owner_first() {
    let mut c = Cluster::new(&["/a"], 3, 1);
    let spec = vector("grid", 6, 3, &["mp0", "mp1", "mp2"], Invalidate);
    c.call(0, Request::Declare(spec.clone()));
    c.expect(
        "
         ap0 -> mp0 declare grid
         mp0 -> mp2 declare grid for mp0
         trace@mp2 variable grid
         mp2 -> mp0 create grid
         trace@mp0 variable grid
         mp2 -> mp1 create grid
         trace@mp1 variable grid
         mp0 -> mp2 created
         mp1 -> mp2 created
         mp2 -> mp0 variable grid
         mp0 -> ap0 variable grid
         ",
    );
    c.call(0, Request::Declare(spec));
    c.expect(
        "
         ap0 -> mp0 declare grid
         mp0 -> ap0 variable grid
         ",
    );
}

#[test]
fn atomics_are_served_at_the_owner_and_recorded_as_writes() {
    let (mut c, x) = pair();
    c.call(1, fetch_add(x, 5));
    c.expect(
        "
         ap1 -> mp1 atomic x[0]
         mp1 -> mp0 atomic x[0] by ap1
         record@mp0 owner write x[0] by ap1 intra v0
         mp0 -> mp1 was 0
         record@mp1 requester write x[0] by ap1 intra v0
         mp1 -> ap1 was 0
         ",
    );
    c.call(0, fetch_add(x, 5));
    c.expect(
        "
         ap0 -> mp0 atomic x[0]
         record@mp0 requester write x[0] by ap0 local v0
         mp0 -> ap0 was 5
         ",
    );
}

#[test]
fn the_owner_adds_in_one_message_and_an_open_section_has_it_too() {
    let (mut c, x) = pair();
    c.call(0, acquire(x));
    c.call(0, write(x, 100));
    c.log.clear();
    c.items.clear();
    c.call(1, accumulate(x, 5));
    c.expect(
        "
         ap1 -> mp1 add 5 to x[0]
         mp1 -> mp0 add 5 to x[0] by ap1 epoch 0
         record@mp0 owner write x[0] by ap1 intra v0
         mp0 -> mp1 written
         record@mp1 requester write x[0] by ap1 intra v0
         mp1 -> ap1 written
         ",
    );
    assert!(c.records().all(|r| r.flags.atomic && r.bytes == 8));
    c.call(0, release(x));
    c.log.clear();
    c.call(1, read(x));
    let last = c.log.last().unwrap();
    assert!(last.ends_with("value 105 v1"), "{last}");
}

#[test]
fn nothing_is_added_to_truth_values() {
    let mut c = Cluster::new(&["/a"], 2, 1);
    let layout = Layout::new(ElementType::Bool, (1, 8), (1, 1)).unwrap();
    let spec = VariableSpec::new("b", layout).unwrap();
    let b = ObjectId::new(c.declare(0, spec).id(), 0);
    c.call(1, Request::Open("b".into()));
    for ap in [0, 1] {
        let refusal = c.refusal(ap, accumulate(b, 1));
        assert!(refusal.contains("there is nothing to add"), "{refusal}");
    }
}

#[test]
fn a_dead_holder_loses_its_lock_and_its_section() {
    let (mut c, x) = pair();
    c.call(1, acquire(x));
    c.call(1, write(x, 9));
    c.call(0, acquire(x));
    c.log.clear();
    c.gone(dosmos_proto::ApId(1));
    c.run();
    c.expect(
        "
         ap1 is gone
         mp1 -> mp0 abandon all by ap1
         record@mp0 owner release x[0] by ap1 intra v0 failed
         record@mp0 requester acquire x[0] by ap0 local v0 waited
         mp0 -> ap0 granted epoch 2 v0
         mp1 -> mp0 ap1 is gone
         ",
    );
    c.call(0, read(x));
    c.expect(
        "
         ap0 -> mp0 read x[0]
         record@mp0 requester read x[0] by ap0 local v0
         mp0 -> ap0 value 0 v0
         ",
    );
}

#[test]
fn an_acquire_whose_time_is_over_is_taken_back_even_if_the_grant_is_on_its_way() {
    let (mut c, x) = pair();
    let id = c.ask_within(1, Some(Nanos::from_millis(5)), acquire(x));
    let (mp0, mp1) = (dosmos_proto::MpId(0), dosmos_proto::MpId(1));
    c.deliver((mp1, mp0));
    c.pass(Nanos::from_millis(6));
    c.run();
    c.expect(
        "
         ap1 -> mp1 acquire x[0]
         mp1 -> mp0 acquire x[0] by ap1
         record@mp0 owner acquire x[0] by ap1 intra v0
         mp1 -> mp0 abandon x[0] by ap1
         record@mp0 owner release x[0] by ap1 intra v0 failed
         mp0 -> mp1 granted epoch 1 v0
         record@mp1 requester acquire x[0] by ap1 intra v0 failed
         mp1 -> ap1 refused Deadline
         ",
    );
    assert!(c.reply(1, id).is_some());
    c.call(0, acquire(x));
    c.expect(
        "
         ap0 -> mp0 acquire x[0]
         record@mp0 requester acquire x[0] by ap0 local v0
         mp0 -> ap0 granted epoch 2 v0
         ",
    );
}

#[test]
fn a_process_is_told_its_position_in_the_cluster_and_in_its_group() {
    let mut c = Cluster::unconnected(topology(&["/a", "/b"], 1, 2), &[]);
    let (now, mut out) = (c.now, Vec::new());
    let mut told = |mp: usize, ap: &str| {
        let welcome = c.cores[mp].connect(now, ap, &mut out).unwrap();
        (welcome.rank, welcome.group_rank, welcome.group)
    };
    assert_eq!(told(0, "ap0"), ((0, 4), (0, 2), "/a".into()));
    assert_eq!(told(0, "ap1"), ((1, 4), (1, 2), "/a".into()));
    assert_eq!(told(1, "ap2"), ((2, 4), (0, 2), "/b".into()));
    assert_eq!(told(1, "ap3"), ((3, 4), (1, 2), "/b".into()));
}

#[test]
fn of_a_copy_that_is_fetched_a_reader_gets_what_it_asked_for() {
    let mut c = Cluster::new(&["/a"], 2, 1);
    let spec = vector("v", 4, 1, &["mp0"], Invalidate);
    let v = ObjectId::new(c.declare(0, spec).id(), 0);
    c.call(1, Request::Open("v".into()));
    for (element, value) in (0..).zip([5, 6, 7, 8]) {
        c.call(0, write_bytes(v, element, bytes(value), None));
    }
    let range = ElementRange {
        first: 1,
        end: Some(3),
    };
    // From the owner, and then from the copy.
    for _ in 0..2 {
        match c.call(1, read_range(v, range)) {
            Some(Reply::Read { data, .. }) => assert_eq!(data, [bytes(6), bytes(7)].concat()),
            other => panic!("not read: {other:?}"),
        }
    }
    let optimized: Vec<bool> = c
        .records()
        .filter(|r| r.op == Op::Read && r.side == Side::Requester)
        .map(|r| r.flags.optimized)
        .collect();
    assert_eq!(optimized, [false, true]);
}

#[test]
fn elements_with_gaps_are_written_at_once() {
    let mut c = Cluster::new(&["/a"], 2, 1);
    let spec = vector("v", 6, 1, &["mp0"], Invalidate);
    let v = ObjectId::new(c.declare(0, spec).id(), 0);
    c.call(1, Request::Open("v".into()));
    // Elements 1, 2 and 4.
    let some = |data: Vec<u8>| {
        let runs = Runs::where_differs(0..6, |i| [1, 2, 4].contains(&i));
        let write = WriteData {
            runs,
            ..written(1, data.into(), 1)
        };
        Request::Access(Access {
            object: v,
            kind: AccessKind::Write { write, epoch: None },
        })
    };
    let values = [bytes(7), bytes(8), bytes(9)].concat();
    let refusal = c.refusal(1, some(values[..16].to_vec()));
    assert!(
        refusal.starts_with("TypeMismatch") && refusal.contains("which are 24 bytes"),
        "{refusal}"
    );
    c.call(1, some(values));
    let Some(Reply::Read { data, .. }) = c.call(0, read(v)) else {
        panic!("not read")
    };
    assert_eq!(data, [0, 7, 8, 0, 9, 0].map(bytes).concat());
}

#[test]
fn an_atomic_operation_is_recorded_as_one_at_both_ends() {
    let (mut c, x) = pair();
    c.call(1, fetch_add(x, 2));
    c.call(1, write(x, 2));
    let flags: Vec<_> = c.records().map(|r| (r.side, r.flags.atomic)).collect();
    assert_eq!(
        flags,
        [
            (Side::Owner, true),
            (Side::Requester, true),
            (Side::Owner, false),
            (Side::Requester, false)
        ]
    );
}

#[test]
fn what_an_owner_records_names_the_processes_at_both_ends() {
    let (mut c, x) = pair();
    c.call(1, write(x, 2));
    let ends: Vec<_> = c.records().map(|r| (r.side, r.mp.0, r.peer.0)).collect();
    assert_eq!(ends, [(Side::Owner, 1, 0), (Side::Requester, 1, 0)]);
}
