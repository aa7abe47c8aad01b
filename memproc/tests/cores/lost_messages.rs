//! Two groups, and messages that get lost with a link process or a link between them, while others of the same process arrive.

use crate::common::*;
use dosmos_memproc::core::messages::{Reply, Request};
use dosmos_proto::CopyPolicy::Invalidate;
use dosmos_proto::{ApId, ErrorCode, MpId};

const MP0: MpId = MpId(0);

/// Two memory processes in each group, with an application process each.
fn two_groups() -> Cluster {
    Cluster::new(&["/a", "/b"], 2, 1)
}

fn named(c: &Cluster, name: &str) -> MpId {
    c.topology.find_mp(name).unwrap()
}

/// All four application processes come to a barrier, and pass.
#[track_caller]
fn all_pass(c: &mut Cluster) {
    let calls: Vec<u64> = (0..4).map(|ap| c.ask(ap, barrier("b"))).collect();
    c.run();
    for (ap, call) in (0..).zip(calls) {
        let reply = c.reply(ap, call);
        assert!(matches!(reply, Some(Reply::Passed { .. })), "{reply:?}");
    }
}

#[test]
fn a_process_that_was_started_again_hears_who_is_back_from_those_who_do_not_know_of_its_start() {
    let mut c = two_groups();
    let (near, far) = (named(&c, "lp.a"), named(&c, "lp.b"));
    let (again, leaves) = (named(&c, "mp1"), named(&c, "mp3"));
    let deliver = |c: &mut Cluster, way: &[MpId]| {
        for pair in way.windows(2).map(|w| (w[0], w[1])) {
            while c.busy().contains(&pair) {
                c.deliver(pair);
            }
        }
    };
    // The news that ap3 has left is on its way to mp1, of which mp3 has heard nothing yet.
    c.gone(ApId(3));
    deliver(&mut c, &[leaves, far]);
    c.gone(ApId(1));
    deliver(&mut c, &[again, near, far, leaves]);
    // mp3 has heard the first start of mp1, and not yet of the second.
    c.restart(again);
    c.connect(ApId(3)).unwrap();
    c.run();
    c.connect(ApId(1)).unwrap();
    c.run();
    all_pass(&mut c);
}

#[test]
fn who_is_back_is_known_though_the_news_got_lost_and_older_news_waited() {
    let mut c = two_groups();
    let (near, far, hears) = (named(&c, "lp.a"), named(&c, "lp.b"), named(&c, "mp3"));
    // The news that ap1 has left waits at lp.b for mp3.
    c.down(hears, far);
    c.restart(far);
    c.run();
    c.gone(ApId(1));
    c.run();
    // The news that it is back gets lost with lp.a.
    c.connect(ApId(1)).unwrap();
    c.restart(near);
    c.run();
    c.up(hears, far);
    c.run();
    all_pass(&mut c);
}

#[test]
fn an_arrival_that_got_lost_does_not_count_once_its_process_has_left() {
    let mut c = two_groups();
    let (near, far, again) = (named(&c, "lp.a"), named(&c, "lp.b"), named(&c, "mp3"));
    c.down(near, far);
    c.run();
    // The new start does not know that the coordinator is out of reach; lp.b does not tell, for it did not notice.
    c.restart_unnoticed(again);
    c.connect(ApId(3)).unwrap();
    c.ask(3, barrier("b"));
    c.run();
    c.gone(ApId(3));
    c.run();
    c.up(near, far);
    c.connect(ApId(3)).unwrap();
    c.run();
    all_pass(&mut c);
}

#[test]
fn a_lock_is_free_though_it_was_taken_back_by_a_message_that_got_lost() {
    for leaves in [true, false] {
        let mut c = two_groups();
        let (near, far) = (named(&c, "lp.a"), named(&c, "lp.b"));
        let object = c.scalar("x", 0, Invalidate);
        c.call(3, Request::Open("x".into()));
        // The acquire waits at lp.a for the owner.
        c.down(MP0, near);
        c.restart(near);
        c.run();
        let first = c.ask(3, acquire(object));
        c.run();
        assert_eq!(c.reply(3, first), None);
        // What takes it back gets lost with lp.b.
        if leaves {
            c.gone(ApId(3));
        } else {
            c.ask(3, Request::Cancel(first));
        }
        c.restart(far);
        c.run();
        c.up(MP0, near);
        c.run();
        let reply = c.call(0, acquire(object));
        assert!(matches!(reply, Some(Reply::Granted { .. })), "{leaves}");
    }
}

#[test]
fn an_arrival_that_failed_and_got_through_all_the_same_does_not_count() {
    let mut c = two_groups();
    let (near, far) = (named(&c, "lp.a"), named(&c, "lp.b"));
    // The arrival waits at lp.a for the coordinator.
    c.down(MP0, near);
    c.restart(near);
    c.run();
    let failed = c.ask(3, barrier("b"));
    c.run();
    c.restart(far);
    c.run();
    let reply = c.reply(3, failed);
    let Some(Reply::Refused(refusal)) = reply else {
        panic!("{reply:?}");
    };
    assert_eq!(refusal.code, ErrorCode::Unreachable);
    c.up(MP0, near);
    c.run();
    let mut calls: Vec<u64> = (0..3).map(|ap| c.ask(ap, barrier("b"))).collect();
    c.run();
    for (ap, call) in calls.iter().enumerate() {
        assert_eq!(c.reply(ap as u32, *call), None, "ap3 has not come");
    }
    calls.push(c.ask(3, barrier("b")));
    c.run();
    for (ap, call) in calls.into_iter().enumerate() {
        let reply = c.reply(ap as u32, call);
        assert!(matches!(reply, Some(Reply::Passed { .. })), "{reply:?}");
    }
}

#[test]
fn what_could_not_be_published_is_when_its_owner_can_be_reached_again() {
    let mut c = two_groups();
    let (owner, far) = (MpId(0), MpId(2));
    let [near_link, far_link] = ["lp.a", "lp.b"].map(|lp| c.topology.find_mp(lp).unwrap());
    let x = c.scalar("x", 0, Invalidate);
    for ap in [1, 2] {
        c.call(ap, Request::Open("x".into()));
    }
    c.call(1, read(x)); // a copy
    // A write that arrives after its way was lost and found again.
    let write = c.ask(2, write(x, 7));
    c.deliver((far, far_link));
    c.down(near_link, owner);
    c.deliver((near_link, far_link));
    while c.busy().contains(&(far_link, far)) {
        c.deliver((far_link, far));
    }
    let publish = c.ask(2, Request::Publish);
    for id in [write, publish] {
        assert!(matches!(c.reply(2, id), Some(Reply::Refused(_))));
    }
    c.up(near_link, owner);
    c.run();
    c.call(2, Request::Publish).unwrap();
    let Some(Reply::Read { data, .. }) = c.call(1, read(x)) else {
        panic!("no value");
    };
    assert_eq!(number(&data), 7);
}
