//! What an application process wrote is visible to everyone once its release, barrier or `publish` is over: the messages of it,
//! and their order.

use crate::common::*;
use dosmos_memproc::core::messages::{Reply, Request};
use dosmos_proto::CopyPolicy::Invalidate;
use dosmos_proto::{ApId, MpId};

#[test]
fn a_write_outside_a_section_is_flushed_before_the_barrier() {
    let (mut c, x) = pair();
    let y = c.scalar("y", 1, Invalidate);
    c.call(0, read(y));
    c.log.clear();
    c.call(1, write(x, 3));
    c.call(1, write(y, 4));
    c.log.clear();
    c.ask(1, barrier("b"));
    c.ask(0, barrier("b"));
    c.run();
    c.expect(
        "
         ap1 -> mp1 barrier b
         trace@mp1 barrier b
         ap0 -> mp0 barrier b
         trace@mp0 barrier b
         mp1 -> mp0 flush ap1
         mp1 -> mp0 invalidate y[0] v1
         trace@mp0 hand-over y[0] dropped to emp0
         mp0 -> mp1 arrive b generation 1
         mp0 -> mp1 flushed
         mp0 -> mp1 ack y[0] v1
         record@mp1 requester barrier barrier b[1] by ap1 intra v1
         mp1 -> ap1 passed generation 1
         mp1 -> mp0 arrive b generation 1
         record@mp0 requester barrier barrier b[1] by ap0 local v1 waited
         mp0 -> ap0 passed generation 1
         ",
    );
    c.call(0, read(y));
    c.expect(
        "
         ap0 -> mp0 read y[0]
         mp0 -> mp1 read y[0] by ap0 with copy
         record@mp1 owner read y[0] by ap0 intra v1
         mp1 -> mp0 value 4 v1 copy
         record@mp0 requester read y[0] by ap0 intra v1
         mp0 -> ap0 value 4 v1
         ",
    );
}

/// A cluster of one group in which `mp1` has a copy of an object of `mp0` that `ap0` wrote, and all but `ap0` have come to a barrier.
fn written_at_the_coordinator(processes: u32) -> (Cluster, dosmos_proto::ObjectId) {
    let mut c = Cluster::new(&["/a"], processes, 1);
    let x = c.scalar("x", 0, Invalidate);
    c.call(1, Request::Open("x".into()));
    c.call(1, read(x));
    for ap in 1..processes {
        c.ask(ap, barrier("b"));
    }
    c.run();
    c.call(0, write(x, 3));
    c.log.clear();
    (c, x)
}

#[test]
fn of_two_memory_processes_the_coordinator_opens_behind_its_news() {
    let (mut c, x) = written_at_the_coordinator(2);
    let arrival = c.ask(0, barrier("b"));
    assert!(
        matches!(c.reply(0, arrival), Some(Reply::Passed { .. })),
        "nothing has reached mp1"
    );
    c.run();
    c.expect(
        "
         ap0 -> mp0 barrier b
         record@mp0 requester barrier barrier b[1] by ap0 local v1
         mp0 -> ap0 passed generation 1
         mp0 -> mp1 invalidate x[0] v1
         trace@mp1 hand-over x[0] dropped to emp0
         mp0 -> mp1 open b generation 1
         record@mp1 requester barrier barrier b[1] by ap1 intra v1 waited
         mp1 -> ap1 passed generation 1
         mp1 -> mp0 ack x[0] v1
         ",
    );
    assert!(matches!(
        c.call(1, read(x)),
        Some(Reply::Read { version: 1, .. })
    ));
}

#[test]
fn of_three_the_coordinator_waits_since_the_third_could_tell_the_other_first() {
    let (mut c, _) = written_at_the_coordinator(3);
    let arrival = c.ask(0, barrier("b"));
    c.deliver((MpId(0), MpId(1)));
    assert_eq!(c.reply(0, arrival), None, "mp1 has not acknowledged");
    c.deliver((MpId(1), MpId(0)));
    assert!(matches!(c.reply(0, arrival), Some(Reply::Passed { .. })));
}

#[test]
fn publishing_tells_the_copies_and_nobody_else() {
    let (mut c, x) = pair();
    c.call(1, read(x));
    c.call(0, write(x, 3));
    c.log.clear();
    c.call(0, Request::Publish);
    c.call(0, Request::Publish);
    c.expect(
        "
         ap0 -> mp0 publish
         mp0 -> mp1 invalidate x[0] v1
         trace@mp1 hand-over x[0] dropped to emp0
         mp1 -> mp0 ack x[0] v1
         mp0 -> ap0 published
         ap0 -> mp0 publish
         mp0 -> ap0 published
         ",
    );
}

#[test]
fn flush_reaches_owners_in_other_groups() {
    let mut c = Cluster::new(&["/a", "/b"], 2, 1);
    let x = c.scalar("x", 2, Invalidate);
    let y = c.scalar("y", 0, Invalidate);
    for ap in [0, 3] {
        c.call(ap, Request::Open("x".into()));
    }
    c.call(3, read(x));
    c.call(0, acquire(y));
    c.call(0, write(x, 8));
    c.log.clear();
    c.call(0, release(y));
    c.expect(
        "
         ap0 -> mp0 release y[0]
         mp0 -> lp.a flush ap0
         lp.a -> lp.b flush ap0
         lp.b -> mp2 flush ap0
         mp2 -> mp3 invalidate x[0] v1
         trace@mp3 hand-over x[0] dropped to emp1
         mp3 -> mp2 ack x[0] v1
         mp2 -> lp.b flushed
         lp.b -> lp.a flushed
         lp.a -> mp0 flushed
         record@mp0 requester release y[0] by ap0 local v1 waited
         mp0 -> ap0 released v1
         ",
    );
}

#[test]
fn a_flush_waits_for_what_an_earlier_one_told_of_the_same_object() {
    let mut c = Cluster::new(&["/a"], 3, 1);
    let (mp0, mp1) = (dosmos_proto::MpId(0), dosmos_proto::MpId(1));
    let x = c.scalar("x", 0, Invalidate);
    let own = [
        c.scalar("own0", 0, Invalidate),
        c.scalar("own1", 1, Invalidate),
    ];
    for name in ["x", "own1"] {
        c.call(1, Request::Open(name.into()));
    }
    c.call(2, Request::Open("x".into()));
    c.call(2, read(x));
    for ap in [0, 1] {
        c.call(ap, acquire(own[ap as usize]));
        c.call(ap, fetch_add(x, 1));
    }
    // The first flush tells mp2, which has not heard it when the second one comes.
    c.ask(0, release(own[0]));
    let second = c.ask(1, release(own[1]));
    c.deliver((mp1, mp0));
    c.deliver((mp0, mp1));
    assert_eq!(c.reply(1, second), None, "mp2 still reads the old value");
    c.log.clear();
    c.run();
    c.expect(
        "
         mp0 -> mp2 invalidate x[0] v1
         trace@mp2 hand-over x[0] dropped to emp0
         mp2 -> mp0 ack x[0] v1
         record@mp0 requester release own0[0] by ap0 local v1 waited
         mp0 -> ap0 released v1
         mp0 -> mp1 flushed
         record@mp1 requester release own1[0] by ap1 local v1 waited
         mp1 -> ap1 released v1
         ",
    );
}

#[test]
fn what_follows_a_release_is_published_after_it() {
    for publishes in [true, false] {
        let mut c = Cluster::new(&["/a"], 3, 1);
        let data = c.scalar("data", 1, Invalidate);
        let flag = c.scalar("flag", 0, Invalidate);
        for ap in [0, 2] {
            c.call(ap, Request::Open("data".into()));
        }
        c.call(2, read(data)); // a copy
        for object in [data, flag] {
            c.call(0, acquire(object));
        }
        c.call(0, write(data, 7));
        // The process does not wait for its first release, of which mp2 has not heard.
        let first = c.ask(0, release(data));
        let second = c.ask(
            0,
            if publishes {
                Request::Publish
            } else {
                release(flag)
            },
        );
        c.deliver((MpId(0), MpId(1)));
        assert_eq!(c.reply(0, second), None, "mp2 still reads the old value");
        c.run();
        for id in [first, second] {
            assert!(c.reply(0, id).is_some());
        }
    }
}

#[test]
fn what_was_flushed_for_an_earlier_process_of_a_name_publishes_nothing_of_the_next() {
    let mut c = Cluster::new(&["/a"], 5, 1);
    let x = c.scalar("x", 1, Invalidate);
    let y = c.scalar("y", 2, Invalidate);
    for (ap, object, name) in [(3, x, "x"), (4, y, "y")] {
        c.call(ap, Request::Open(name.into()));
        c.call(ap, read(object));
    }
    let deliver = |c: &mut Cluster, way: &[u32]| {
        way.windows(2)
            .for_each(|w| c.deliver((MpId(w[0]), MpId(w[1]))));
    };
    c.ask(0, write(x, 1));
    deliver(&mut c, &[0, 1, 0]);
    c.ask(0, Request::Publish);
    deliver(&mut c, &[0, 1]);
    c.gone(ApId(0));
    c.connect(ApId(0)).unwrap();
    c.ask(0, write(y, 1));
    // What mp0 told mp1 of the end of ap0 comes first.
    deliver(&mut c, &[0, 2, 0]);
    let publish = c.ask(0, Request::Publish);
    deliver(&mut c, &[0, 2]);
    // The copy of x is gone, that of y is not told yet.
    deliver(&mut c, &[1, 3, 1, 0]);
    assert_eq!(c.reply(0, publish), None, "{:#?}", c.log);
    c.run();
    assert_eq!(c.reply(0, publish), Some(Reply::Published));
}

/// `verify` counts versions: what is published for a process that seems to be lost, and again when it publishes itself, is one.
#[test]
fn what_was_published_for_a_process_that_was_cut_off_is_not_published_twice() {
    let (mut c, x) = pair();
    c.call(1, write(x, 5));
    c.down(MpId(0), MpId(1));
    c.run();
    c.up(MpId(0), MpId(1));
    c.run();
    c.call(1, Request::Publish);
    match c.call(0, read(x)) {
        Some(Reply::Read { version, data, .. }) => assert_eq!((version, number(&data)), (1, 5)),
        other => panic!("{other:?}"),
    }
    // What it writes then is the next version.
    c.call(1, write(x, 6));
    c.call(1, Request::Publish);
    match c.call(0, read(x)) {
        Some(Reply::Read { version, data, .. }) => assert_eq!((version, number(&data)), (2, 6)),
        other => panic!("{other:?}"),
    }
}
