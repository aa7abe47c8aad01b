//! Copies in application processes, message by message: who is told when, and that it stands on the
//! stream before what follows from the change (docs/design/consistency.md#copies-in-application-processes).

use crate::common::*;
use dosmos_memproc::core::messages::{
    Access, AccessKind, ElementRange, Keep, LocalAccesses, LocalKind, Reply, Request,
};
use dosmos_proto::CopyPolicy::{self, Invalidate, Update};
use dosmos_proto::{Cache, MpId, Nanos, ObjectId};
use dosmos_trace::Side;

/// `mps` memory processes of one group with two application processes each; `x`, at mp0, is cached in
/// application processes.
fn cluster(mps: u32, policy: CopyPolicy) -> (Cluster, ObjectId) {
    let mut c = Cluster::new(&["/a"], mps, 2);
    let spec = scalar("x", &["mp0"], policy).with_cache(Cache::Ap);
    let x = ObjectId::new(c.declare(0, spec).id(), 0);
    for ap in 1..2 * mps {
        c.call(ap, Request::Open("x".into()));
    }
    c.log.clear();
    (c, x)
}

#[test]
fn a_write_voids_the_copies_of_siblings_before_it_returns() {
    let (mut c, x) = cluster(2, Invalidate);
    c.call(0, read_to_keep(x));
    c.expect(
        "
         ap0 -> mp0 read x[0] to keep
         record@mp0 requester read x[0] by ap0 local v0
         mp0 -> ap0 value 0 v0 to keep
         ",
    );
    c.call(1, read_to_keep(x));
    c.log.clear();
    // The writer dropped its own copy when it sent this.
    c.call(1, write(x, 7));
    c.expect(
        "
         ap1 -> mp0 write x[0] = 7
         mp0 -> ap0 invalidate x[0]
         record@mp0 requester write x[0] by ap1 local v0
         mp0 -> ap1 written
         ",
    );
    c.call(1, write(x, 8));
    c.expect(
        "
         ap1 -> mp0 write x[0] = 8
         record@mp0 requester write x[0] by ap1 local v0
         mp0 -> ap1 written
         ",
    );
}

#[test]
fn newer_content_that_is_fetched_voids_the_copies_of_the_older() {
    let (mut c, x) = cluster(2, Invalidate);
    let (owner, holder) = (MpId(0), MpId(1));
    c.ask(2, read_to_keep(x));
    c.deliver((holder, owner)); // served, and the response is under way
    c.ask(0, write(x, 5)); // not published
    c.ask(2, read(x));
    c.log.clear();
    c.run();
    // Whoever has seen 5 does not read 0 from the copy that came before.
    c.expect(
        "
         mp1 -> mp0 read x[0] by ap2 with copy
         record@mp0 owner read x[0] by ap2 intra v0
         mp0 -> mp1 value 0 v0 copy
         record@mp1 requester read x[0] by ap2 intra v0
         mp1 -> ap2 value 0 v0 to keep
         mp0 -> mp1 value 5 v0 copy
         mp1 -> ap2 invalidate x[0]
         record@mp1 requester read x[0] by ap2 intra v0
         mp1 -> ap2 value 5 v0
         ",
    );
}

#[test]
fn a_copy_of_what_is_not_published_learns_its_version_before_the_publication_is_over() {
    let (mut c, x) = cluster(2, Invalidate);
    c.call(1, write(x, 7));
    c.call(0, read_to_keep(x));
    c.call(1, read_to_keep(x));
    c.log.clear();
    c.call(1, Request::Publish);
    c.expect(
        "
         ap1 -> mp0 publish
         mp0 -> ap0 confirm x[0] v1
         mp0 -> ap1 confirm x[0] v1
         mp0 -> ap1 published
         ",
    );
    // One that writes from elsewhere.
    c.call(2, write(x, 8));
    c.call(0, read_to_keep(x));
    c.log.clear();
    c.call(2, Request::Publish);
    c.expect(
        "
         ap2 -> mp1 publish
         mp1 -> mp0 flush ap2
         mp0 -> ap0 confirm x[0] v2
         mp0 -> mp1 flushed
         mp1 -> ap2 published
         ",
    );
}

#[test]
fn a_section_voids_copies_when_it_is_released_and_not_before() {
    let (mut c, x) = cluster(1, Invalidate);
    c.call(0, read_to_keep(x));
    c.call(1, acquire(x));
    c.log.clear();
    c.call(1, write_in(x, 5, 1));
    c.expect(
        "
         ap1 -> mp0 write x[0] = 5
         record@mp0 requester write x[0] by ap1 local v0
         mp0 -> ap1 written
         ",
    );
    // What a section wrote is for its holder alone, and not to keep.
    c.call(1, read_to_keep(x));
    c.expect(
        "
         ap1 -> mp0 read x[0] to keep
         record@mp0 requester read x[0] by ap1 local v0
         mp0 -> ap1 value 5 v0
         ",
    );
    c.call(1, release(x));
    c.expect(
        "
         ap1 -> mp0 release x[0]
         mp0 -> ap0 invalidate x[0]
         record@mp0 requester release x[0] by ap1 local v1
         mp0 -> ap1 released v1
         ",
    );
}

#[test]
fn a_copy_holder_tells_its_application_processes_before_it_acknowledges() {
    for policy in [Invalidate, Update] {
        let (mut c, x) = cluster(2, policy);
        for ap in [2, 3] {
            c.call(ap, read_to_keep(x));
        }
        c.call(0, write(x, 4));
        c.log.clear();
        c.call(0, Request::Publish);
        let (order, told, became) = match policy {
            Invalidate => ("invalidate x[0]", "invalidate x[0]", "dropped"),
            Update => ("update x[0] = 4", "update x[0] = 4 v1", "updated"),
        };
        c.expect(&format!(
            "
             ap0 -> mp0 publish
             mp0 -> mp1 {order} v1
             mp1 -> ap2 {told}
             mp1 -> ap3 {told}
             trace@mp1 hand-over x[0] {became} to emp0
             mp1 -> mp0 ack x[0] v1
             mp0 -> ap0 published
             "
        ));
    }
}

#[test]
fn a_copy_that_is_updated_and_not_read_is_void_at_last() {
    let (mut c, x) = cluster(2, Update);
    for ap in [2, 3] {
        c.call(ap, read_to_keep(x));
    }
    let report = |c: &mut Cluster, version| {
        let reads = LocalAccesses {
            kind: LocalKind::Read,
            object: x,
            count: 1,
            first: c.now,
            last: c.now,
            bytes: 8,
            version,
            from_version: 0,
            elements: (0, 1),
        };
        c.ask(2, Request::Report(vec![reads]));
        c.run();
    };
    let update = |c: &mut Cluster, value| {
        c.call(0, write(x, value));
        c.log.clear();
        c.call(0, Request::Publish);
        let told = c.log.iter().filter(|l| l.starts_with("mp1 -> ap"));
        told.cloned().collect::<Vec<_>>()
    };
    for value in 1..=4 {
        let told = |ap| format!("mp1 -> ap{ap} update x[0] = {value} v{value}");
        assert_eq!(update(&mut c, value), [told(2), told(3)]);
        report(&mut c, value);
    }
    // Who reads it is told of the next as well, the other for the last time.
    assert_eq!(
        update(&mut c, 5),
        [
            "mp1 -> ap2 update x[0] = 5 v5",
            "mp1 -> ap3 invalidate x[0]"
        ]
    );
    assert_eq!(update(&mut c, 6), ["mp1 -> ap2 update x[0] = 6 v6"]);
}

#[test]
fn a_remote_write_voids_copies_at_both_ends() {
    let (mut c, x) = cluster(2, Invalidate);
    for ap in [0, 2, 3] {
        c.call(ap, read_to_keep(x));
    }
    c.log.clear();
    c.call(2, write(x, 6));
    c.expect(
        "
         ap2 -> mp1 write x[0] = 6
         mp1 -> ap3 invalidate x[0]
         trace@mp1 hand-over x[0] dropped to emp0
         mp1 -> mp0 write x[0] = 6 by ap2 epoch 0
         mp0 -> ap0 invalidate x[0]
         record@mp0 owner write x[0] by ap2 intra v0
         mp0 -> mp1 written
         record@mp1 requester write x[0] by ap2 intra v0
         mp1 -> ap2 written
         ",
    );
}

#[test]
fn a_fetch_that_a_write_overtook_is_not_to_keep() {
    let (mut c, x) = cluster(2, Invalidate);
    c.ask(2, read_to_keep(x));
    c.ask(3, write(x, 6));
    c.log.clear();
    c.deliver((MpId(1), MpId(0)));
    c.deliver((MpId(0), MpId(1)));
    c.expect(
        "
         mp1 -> mp0 read x[0] by ap2 with copy
         record@mp0 owner read x[0] by ap2 intra v0
         mp0 -> mp1 value 0 v0 copy
         record@mp1 requester read x[0] by ap2 intra v0
         mp1 -> ap2 value 0 v0
         trace@mp1 hand-over x[0] dropped to emp0
         ",
    );
}

#[test]
fn copies_are_void_when_the_lease_they_depend_on_is_over() {
    let (mut c, x) = cluster(2, Invalidate);
    c.call(2, read_to_keep(x));
    c.call(0, read_to_keep(x)); // at the owner: depends on no lease
    c.cut_at(MpId(0), MpId(1)); // mp1 does not notice
    c.log.clear();
    c.pass(Nanos::from_millis(2_500));
    c.expect(
        "
         mp1 -> ap2 invalidate x[0]
         ",
    );
}

#[test]
fn a_lost_link_voids_copies_of_what_is_behind_it() {
    let (mut c, x) = cluster(2, Invalidate);
    c.call(2, read_to_keep(x));
    c.log.clear();
    c.down(MpId(0), MpId(1));
    let line = "mp1 -> ap2 invalidate x[0]";
    assert!(c.log.iter().any(|l| l == line), "{:?}", c.log);
}

#[test]
fn nothing_is_to_keep_where_the_variable_does_not_say_so_or_another_group_owns_it() {
    let mut c = Cluster::new(&["/a", "/b"], 1, 1);
    let y = c.scalar("y", 0, Invalidate);
    let spec = scalar("z", &["mp0"], Invalidate).with_cache(Cache::Ap);
    let z = ObjectId::new(c.declare(0, spec).id(), 0);
    c.call(1, Request::Open("z".into()));
    for (ap, object) in [(0, y), (1, z)] {
        c.log.clear();
        c.call(ap, read_to_keep(object));
        let last = c.log.last().unwrap();
        assert!(last.ends_with("value 0 v0"), "{last}");
    }
}

#[test]
fn a_process_that_came_back_holds_nothing() {
    let (mut c, x) = cluster(1, Invalidate);
    c.call(0, read_to_keep(x));
    c.gone(dosmos_proto::ApId(0));
    c.connect(dosmos_proto::ApId(0)).unwrap();
    c.log.clear();
    c.call(1, write(x, 1));
    assert!(
        !c.log.iter().any(|l| l.contains("invalidate")),
        "{:?}",
        c.log
    );
}

#[test]
fn reads_of_copies_are_recorded_as_cached_reads() {
    let (mut c, x) = cluster(2, Invalidate);
    c.call(2, read_to_keep(x));
    c.items.clear();
    let reads = LocalAccesses {
        kind: LocalKind::Read,
        object: x,
        count: 3,
        first: Nanos(10),
        last: Nanos(40),
        bytes: 24,
        version: 2,
        from_version: 0,
        elements: (0, 1),
    };
    // A range that is not in the object says nothing.
    let beyond = LocalAccesses {
        elements: (0, 2),
        ..reads
    };
    c.call(2, Request::Report(vec![reads, beyond]));
    let records: Vec<_> = c.records().collect();
    let [r, other] = records[..] else {
        panic!("{records:?}")
    };
    assert_eq!((r.range, other.range), ((0, 1), (0, 0)));
    assert!(r.flags.optimized && r.flags.in_process && r.is_access());
    assert_eq!((r.count, r.bytes, r.version), (3, 24, 2));
    assert_eq!((r.start, r.end()), (Nanos(10), Nanos(40)));
    assert_eq!((r.mp, r.peer), (MpId(1), MpId(0)));
}

/// Two memory processes; `elements` u64 at mp0, which application processes may keep, known to ap2 at mp1.
fn elements(elements: u64) -> (Cluster, ObjectId) {
    let mut c = Cluster::new(&["/a"], 2, 2);
    let spec = vector("v", elements, 1, &["mp0"], Invalidate).with_cache(Cache::Ap);
    let v = ObjectId::new(c.declare(0, spec).id(), 0);
    c.call(2, Request::Open("v".into()));
    c.log.clear();
    (c, v)
}

fn part(first: u32, end: u32, keep: Keep) -> AccessKind {
    let end = Some(end);
    AccessKind::Read {
        range: ElementRange { first, end },
        epoch: None,
        keep,
    }
}

#[test]
fn of_a_large_object_only_the_part_that_is_read_comes() {
    const FIRST: u32 = 10;
    let comes_as_a_whole = |of: u64, read: u32, keep: Keep| {
        let (mut c, v) = elements(of);
        let kind = part(FIRST, FIRST + read, keep);
        c.call(2, Request::Access(Access { object: v, kind }));
        c.log.iter().any(|line| line.ends_with("with copy"))
    };
    // 16 KiB are not much.
    assert!(comes_as_a_whole(2048, 1, Keep::Nothing));
    assert!(!comes_as_a_whole(2050, 1, Keep::Nothing));
    // Half of it is a part, more is not, and what is to be kept comes whole.
    assert!(!comes_as_a_whole(4096, 2048, Keep::Nothing));
    assert!(comes_as_a_whole(4096, 2049, Keep::Nothing));
    assert!(comes_as_a_whole(4096, 1, Keep::Copy));
}

#[test]
fn what_is_fetched_ahead_of_reads_is_no_read_of_elements() {
    let (mut c, v) = elements(8);
    let ahead = |keep| {
        Request::Access(Access {
            object: v,
            kind: part(0, 0, keep),
        })
    };
    assert!(c.refusal(2, ahead(Keep::Nothing)).contains("elements"));
    match c.call(2, ahead(Keep::Copy)) {
        Some(Reply::Read { data, keep, .. }) => assert_eq!((data.len(), keep), (64, true)),
        other => panic!("not read: {other:?}"),
    }
    c.call(2, read_to_keep(v));
    let ranges: Vec<_> = c
        .records()
        .filter(|r| r.side == Side::Requester && !r.flags.failed)
        .map(|r| (r.range, r.bytes, r.flags.ahead))
        .collect();
    assert_eq!(ranges, [((0, 0), 0, true), ((0, 8), 64, false)]);
}

#[test]
fn a_record_says_whether_its_process_waited_for_the_reply() {
    let (mut c, v) = elements(8);
    let access = |kind| Access { object: v, kind };
    let read = || access(part(0, 1, Keep::Nothing));
    for request in [Request::Access(read()), Request::Posted(read())] {
        match c.call(2, request) {
            Some(Reply::Read { data, .. }) => assert_eq!(data.len(), 8),
            other => panic!("not read: {other:?}"),
        }
    }
    let told = c.records().filter(|r| r.side == Side::Requester);
    let told: Vec<bool> = told.map(|r| r.flags.posted).collect();
    assert_eq!(told, [false, true]);
    // Of who served it for another one nobody knows.
    assert!(
        c.records()
            .all(|r| r.side == Side::Requester || !r.flags.posted)
    );
}

#[test]
fn what_is_here_and_what_was_asked_is_counted() {
    let (mut c, v) = elements(8);
    let counts = |c: &Cluster| {
        let counters = c.cores[1].counters();
        (
            counters.requests,
            counters.served,
            counters.copies,
            counters.objects,
        )
    };
    let (requests, served, ..) = counts(&c);
    c.call(2, read_to_keep(v));
    c.call(3, read(v));
    assert_eq!(counts(&c), (requests + 2, served, 1, 0));
    // The owner takes the copy back.
    c.call(0, write(v, 7));
    c.call(0, Request::Publish);
    assert_eq!(counts(&c), (requests + 2, served + 1, 0, 0));
    assert_eq!(c.cores[0].counters().objects, 1);
}
