//! Losses in each state, deadlines, and requests that make no sense: what is refused, and what the
//! refusal says.

use crate::common::*;
use dosmos_memproc::core::messages::{
    AtomicOp, Body, ElementRange, Input, Message, Notice, Reply, Request, Scope,
};
use dosmos_memproc::core::{MAX_OUTSTANDING, VariableOverride};
use dosmos_proto::CopyPolicy::{Invalidate, Update};
use dosmos_proto::{ApId, Cache, ElementType, ErrorCode, MpId, Nanos, ObjectId, Placement, VarId};

const MP0: MpId = MpId(0);
const MP1: MpId = MpId(1);

#[track_caller]
fn says(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{text:?} does not say {part:?}");
    }
}

fn refused(reply: Option<Reply>) -> String {
    match reply {
        Some(Reply::Refused(r)) => format!("{:?}: {}", r.code, r.message),
        other => panic!("not refused: {other:?}"),
    }
}

#[test]
fn acquiring_twice_names_the_object_and_the_epoch() {
    let (mut c, x) = pair();
    for ap in [0, 1] {
        c.call(ap, acquire(x));
        let text = c.refusal(ap, acquire(x));
        says(
            &text,
            &[
                "AlreadyHeld",
                &format!("ap{ap}"),
                "x[0]",
                "release it first",
            ],
        );
        c.call(ap, release(x));
    }
    // Also while the first one waits, near and far.
    c.call(0, acquire(x));
    let waiting = c.ask(1, acquire(x));
    says(
        &c.refusal(1, acquire(x)),
        &["AlreadyHeld", "waits for x[0]"],
    );
    c.call(0, release(x));
    assert!(matches!(c.reply(1, waiting), Some(Reply::Granted { .. })));
}

#[test]
fn releasing_what_is_not_held_is_refused() {
    let (mut c, x) = pair();
    for ap in [0, 1] {
        says(
            &c.refusal(ap, release(x)),
            &["NotHeld", "x[0]", "acquire it before"],
        );
    }
    c.call(0, acquire(x));
    says(&c.refusal(1, release(x)), &["NotHeld", "ap1"]);
    c.call(0, release(x));
    says(&c.refusal(0, release(x)), &["NotHeld", "ap0"]);
}

#[test]
fn an_epoch_of_a_section_that_is_over_is_refused() {
    let (mut c, x) = pair();
    c.call(1, acquire(x));
    c.call(1, release(x));
    says(
        &c.refusal(1, write_in(x, 1, 1)),
        &["StaleEpoch", "x[0]", "acquire it again"],
    );
    c.call(1, acquire(x));
    says(
        &c.refusal(1, write_in(x, 1, 1)),
        &["StaleEpoch", "epoch 1 was given, 2 is current"],
    );
    says(&c.refusal(1, release_in(x, 1)), &["StaleEpoch"]);
}

#[test]
fn the_owner_fences_a_section_lost_behind_the_requesters_back() {
    let (mut c, x) = pair();
    c.call(1, acquire(x));
    // Only the owner notices that the link broke.
    c.feed(MP0, dosmos_memproc::core::messages::Input::PeerDown(MP1));
    c.feed(MP0, dosmos_memproc::core::messages::Input::PeerUp(MP1));
    c.call(0, acquire(x));
    let text = c.refusal(1, write(x, 6));
    says(&text, &["StaleEpoch", "is held by ap0 (epoch 2)"]);
    says(&c.refusal(1, release(x)), &["StaleEpoch", "ap0"]);
    c.call(0, release(x));
    assert_eq!(
        c.call(1, read(x)),
        Some(Reply::Read {
            version: 1,
            data: bytes(0),
            keep: false,
            delegation: None,
            unchanged: false,
        })
    );
}

#[test]
fn wrong_objects_indices_and_types_are_named() {
    let (mut c, x) = pair();
    let nowhere = ObjectId::new(VarId(99), 0);
    says(
        &c.refusal(0, read(nowhere)),
        &["UnknownVariable", "var#99", "declare or open"],
    );
    let beyond = ObjectId::new(x.var, 1);
    for ap in [0, 1] {
        says(
            &c.refusal(ap, read(beyond)),
            &["OutOfRange", "x has 1 objects", "[1]"],
        );
        let range = |first, end| {
            let end = Some(end);
            read_range(x, ElementRange { first, end })
        };
        says(
            &c.refusal(ap, range(0, 2)),
            &["OutOfRange", "x[0]", "[0, 2)"],
        );
        says(&c.refusal(ap, range(1, 1)), &["OutOfRange"]);
        let odd = |data: &'static [u8], first| write_bytes(x, first, data.into(), None);
        says(
            &c.refusal(ap, odd(b"123", 0)),
            &["TypeMismatch", "8 bytes", "3 bytes"],
        );
        says(&c.refusal(ap, odd(b"", 0)), &["TypeMismatch"]);
        says(&c.refusal(ap, odd(b"12345678", 1)), &["OutOfRange"]);
        says(&c.refusal(ap, odd(b"12345678", u32::MAX)), &["OutOfRange"]);
        let atomic =
            |element_type, element| atomic(x, element, element_type, AtomicOp::FetchAdd(1));
        says(
            &c.refusal(ap, atomic(ElementType::F64, 0)),
            &["TypeMismatch", "u64, not f64"],
        );
        says(
            &c.refusal(ap, atomic(ElementType::U64, u32::MAX)),
            &["OutOfRange"],
        );
    }
    says(
        &c.refusal(0, Request::Open("nope".into())),
        &["UnknownVariable", "nope", "declare it"],
    );
    says(
        &c.refusal(0, Request::Open(String::new())),
        &["Invalid", "variable name"],
    );
}

#[test]
fn declarations_that_differ_say_both() {
    let (mut c, _) = pair();
    for ap in [0, 1] {
        let other = Request::Declare(scalar("x", &["mp0"], Update));
        says(
            &c.refusal(ap, other),
            &["DeclarationConflict", "invalidate", "update"],
        );
    }
    let at = |name: &str| Request::Declare(scalar("z", &[name], Invalidate));
    says(
        &c.refusal(0, at("mp9")),
        &["Invalid", "no memory process mp9", "mp0, mp1"],
    );
    let nowhere = Placement::RoundRobin(Some("/nope".into()));
    let spec = scalar("z", &["mp0"], Invalidate).with_placement(nowhere);
    says(
        &c.refusal(0, Request::Declare(spec)),
        &["Invalid", "/nope", "/a"],
    );
}

#[test]
fn the_configuration_overrides_declarations_alike_everywhere() {
    let overrides = [VariableOverride {
        name: "x".into(),
        policy: Some(Update),
        placement: Some(Placement::explicit(["mp1"]).unwrap()),
        lock: None,
        cache: None,
        replicas: None,
    }];
    let mut c = Cluster::with_overrides(&["/a"], 2, 1, &overrides);
    for ap in [0, 1] {
        let reply = c.call(ap, Request::Declare(scalar("x", &["mp0"], Invalidate)));
        let Some(Reply::Variable(v)) = reply else {
            panic!("{reply:?}")
        };
        assert_eq!((v.spec().policy(), v.owners()), (Update, &[MP1][..]));
    }
}

#[test]
fn the_configuration_says_of_all_variables_what_it_does_not_say_of_one() {
    let says = |name: &str, cache, policy| VariableOverride {
        name: name.into(),
        policy,
        placement: None,
        lock: None,
        cache,
        replicas: None,
    };
    let overrides = [
        says("near", Some(Cache::Ap), None),
        says("*", Some(Cache::Mp), Some(Update)),
    ];
    let mut c = Cluster::with_overrides(&["/a"], 1, 1, &overrides);
    for (name, cache) in [("near", Cache::Ap), ("other", Cache::Mp)] {
        let spec = scalar(name, &["mp0"], Invalidate).with_cache(Cache::Ap);
        let reply = c.call(0, Request::Declare(spec));
        let Some(Reply::Variable(v)) = reply else {
            panic!("{reply:?}")
        };
        assert_eq!((v.spec().cache(), v.spec().policy()), (cache, Update));
    }
}

#[test]
fn application_processes_must_be_ours_and_alone() {
    let mut c = Cluster::unconnected(topology(&["/a"], 2, 1), &[]);
    let connect = |c: &mut Cluster, mp: usize, name: &str| {
        let refusal = c.cores[mp].connect(Nanos(1), name, &mut Vec::new());
        refusal.map(|_| ()).unwrap_err()
    };
    let e = connect(&mut c, 0, "ap7");
    assert_eq!(e.code, ErrorCode::UnknownProcess);
    says(&e.message, &["ap7", "ap0, ap1"]);
    let e = connect(&mut c, 0, "ap1");
    assert_eq!(e.code, ErrorCode::UnknownProcess);
    says(&e.message, &["ap1 talks to mp1, not to mp0"]);
    c.connect(ApId(0)).unwrap();
    let e = connect(&mut c, 0, "ap0");
    assert_eq!(e.code, ErrorCode::AlreadyConnected);
    c.gone(ApId(0));
    c.connect(ApId(0)).unwrap();
}

#[test]
fn too_many_requests_at_once_are_refused() {
    let (mut c, x) = pair();
    for _ in 0..MAX_OUTSTANDING {
        c.ask(1, read(x));
    }
    let more = c.ask(1, read(x));
    says(&refused(c.reply(1, more)), &["Limit", "ap1", "4096"]);
    c.run();
    assert!(matches!(c.call(1, read(x)), Some(Reply::Read { .. })));
}

#[test]
fn a_barrier_of_strangers_or_of_no_group_is_refused() {
    let mut c = Cluster::new(&["/a", "/b"], 1, 1);
    let of = |path: &str| Request::Barrier {
        scope: Scope::Path(path.into()),
        name: String::new(),
    };
    says(&c.refusal(0, of("/b")), &["Invalid", "ap0", "/b"]);
    says(&c.refusal(0, of("/c")), &["Invalid", "/c", "/a, /b"]);
}

#[test]
fn a_deadline_names_the_object_and_its_holder() {
    let (mut c, x) = pair();
    c.call(0, acquire(x));
    let far = c.ask_within(1, Some(Nanos::from_millis(50)), acquire(x));
    c.run();
    c.pass(Nanos::from_millis(49));
    assert_eq!(c.reply(1, far), None);
    c.pass(Nanos::from_millis(2));
    assert_eq!(c.reply(1, far), None, "the owner is asked who holds it");
    c.run();
    says(
        &refused(c.reply(1, far)),
        &[
            "Deadline",
            "acquire of x[0] by ap1 was not done within 50.0 ms",
            "ap0 holds it (for 51.0 ms, epoch 1)",
        ],
    );
    c.call(0, release(x));
    // Nobody queues any more: the lock is free.
    c.call(1, acquire(x));
    let near = c.ask_within(0, Some(Nanos::from_millis(50)), acquire(x));
    c.pass(Nanos::from_millis(60));
    says(
        &refused(c.reply(0, near)),
        &["Deadline", "x[0]", "ap1 holds it (for 60.0 ms, epoch 2)"],
    );
}

#[test]
fn an_owner_that_does_not_say_who_holds_the_object_is_not_waited_for() {
    let (mut c, x) = pair();
    c.call(0, acquire(x));
    let far = c.ask_within(1, Some(Nanos::from_millis(50)), acquire(x));
    c.run();
    // What it says stays on the way.
    c.pass(Nanos::from_millis(60));
    c.pass(Nanos::from_millis(990));
    assert_eq!(c.reply(1, far), None);
    c.pass(Nanos::from_millis(20));
    says(
        &refused(c.reply(1, far)),
        &["Deadline", "x[0]", "mp0, its owner, did not grant it"],
    );
    // And finds nobody when it comes.
    c.run();
    c.call(0, release(x));
    assert!(matches!(c.call(1, acquire(x)), Some(Reply::Granted { .. })));
}

#[test]
fn a_grant_that_meets_the_deadline_on_its_way_is_taken_back() {
    let (mut c, x) = pair();
    c.call(0, acquire(x));
    let far = c.ask_within(1, Some(Nanos::from_millis(50)), acquire(x));
    c.run();
    c.ask(0, release(x)); // the grant is on its way
    c.pass(Nanos::from_millis(60));
    c.run();
    says(
        &refused(c.reply(1, far)),
        &["Deadline", "granted it too late"],
    );
    assert!(matches!(c.call(0, acquire(x)), Some(Reply::Granted { .. })));
}

#[test]
fn processes_that_wait_for_each_other_are_told_of_it() {
    let (mut c, x) = pair();
    let y = c.scalar("y", 0, Invalidate);
    c.call(1, Request::Open("y".into()));
    c.call(0, acquire(x));
    c.call(1, acquire(y));
    let far = c.ask(1, acquire(x));
    c.run();
    let near = c.ask_within(0, Some(Nanos::from_millis(50)), acquire(y));
    c.run();
    c.pass(Nanos::from_millis(60));
    says(
        &refused(c.reply(0, near)),
        &[
            "acquire of y[0] by ap0",
            "ap1 holds it",
            "and waits for x[0], which ap0 holds",
        ],
    );
    assert_eq!(c.reply(1, far), None);
}

#[test]
fn a_barrier_that_does_not_open_in_time_names_who_is_missing_also_elsewhere() {
    let mut c = Cluster::new(&["/a", "/b", "/c"], 1, 2);
    let comes = |c: &mut Cluster, ap| c.ask_within(ap, Some(Nanos::from_millis(50)), barrier("b"));
    let over = |c: &mut Cluster| {
        c.run();
        c.pass(Nanos::from_millis(60));
        c.run();
    };
    // The coordinator, mp0, is told by each of the others, and answers each.
    let waits = [0, 2, 3, 4, 5].map(|ap| (ap, comes(&mut c, ap)));
    over(&mut c);
    for (ap, id) in waits {
        let name = format!("barrier by ap{ap} was not done");
        says(
            &refused(c.reply(ap, id)),
            &["Deadline", &name, "did not open: ap1 did not arrive"],
        );
    }
    // What is missing elsewhere is known as far as it was said.
    c.pass(Nanos::from_millis(2000));
    let waits = [0, 1, 2, 4, 5].map(|ap| (ap, comes(&mut c, ap)));
    over(&mut c);
    for (ap, id) in waits {
        let missing = if ap == 2 {
            "ap3"
        } else {
            "one or more of ap2, ap3"
        };
        let said = format!("did not open: {missing} did not arrive");
        says(&refused(c.reply(ap, id)), &["Deadline", &said]);
    }
    // Nobody has arrived now, and all can.
    let all: Vec<u64> = (0..6).map(|ap| c.ask(ap, barrier("b"))).collect();
    c.run();
    for (ap, id) in (0..).zip(all) {
        let reply = c.reply(ap, id);
        assert!(matches!(reply, Some(Reply::Passed { .. })), "{reply:?}");
    }
}

#[test]
fn the_participant_that_left_first_is_blamed_and_not_those_who_left_because_of_it() {
    let mut c = Cluster::new(&["/a", "/b"], 1, 2);
    let blames_ap2 = |text: &str| says(text, &["ProcessLost", "ap2 has left"]);
    // Politely: only the coordinator is told.
    c.call(2, Request::Bye);
    c.run();
    // ap3 waits with ap2's memory process, ap1 with the coordinator.
    for ap in [3, 1, 0] {
        blames_ap2(&c.refusal(ap, barrier("b")));
        c.call(ap, Request::Bye);
        c.run();
    }
    // Elsewhere than the coordinator, and than where it was: who arrives after another has left because of it.
    let mut c = Cluster::new(&["/a", "/b", "/c"], 1, 2);
    c.call(3, Request::Bye);
    c.run();
    let waits: Vec<u64> = [4, 5].map(|ap| c.ask(ap, barrier("b"))).to_vec();
    c.run();
    for (ap, id) in [(4, waits[0]), (5, waits[1])] {
        says(&refused(c.reply(ap, id)), &["ap3 has left"]);
    }
    c.call(4, Request::Bye);
    c.run();
    says(&c.refusal(5, barrier("b")), &["ap3 has left"]);
}

#[test]
fn a_participant_that_leaves_fails_the_barrier_and_may_come_back() {
    let mut c = Cluster::new(&["/a", "/b"], 1, 2);
    let near = c.ask(0, barrier("b"));
    let whole = [c.ask(2, barrier("b")), c.ask(3, barrier("b"))];
    c.run();
    c.gone(ApId(1));
    c.run();
    for (ap, id) in [(0, near), (2, whole[0]), (3, whole[1])] {
        says(&refused(c.reply(ap, id)), &["ProcessLost", "ap1 has left"]);
    }
    says(&c.refusal(0, barrier("b")), &["ProcessLost", "ap1"]);
    c.connect(ApId(1)).unwrap();
    c.run();
    let ids: Vec<u64> = (0..4).map(|ap| c.ask(ap, barrier("b"))).collect();
    c.run();
    for (ap, id) in ids.into_iter().enumerate() {
        assert!(matches!(c.reply(ap as u32, id), Some(Reply::Passed { .. })));
    }
}

#[test]
fn leaving_politely_fails_those_who_wait_elsewhere() {
    let (mut c, _) = pair();
    let waits = c.ask(0, barrier("b"));
    assert_eq!(c.call(1, Request::Bye), Some(Reply::Farewell));
    says(
        &refused(c.reply(0, waits)),
        &["ProcessLost", "ap1 has left"],
    );
}

#[test]
fn a_lost_peer_fails_what_it_was_asked_and_frees_what_it_held() {
    let (mut c, x) = pair();
    let y = c.scalar("y", 1, Invalidate);
    c.call(0, read(y));
    c.call(1, acquire(x));
    c.call(1, write(x, 9));
    let waits = c.ask(0, acquire(x));
    let asks = c.ask(0, write(y, 1));
    c.down(MP0, MP1);
    c.run();
    // Its lock passed on, its section is gone, its copy is void, what it was asked is refused.
    assert!(matches!(
        c.reply(0, waits),
        Some(Reply::Granted { epoch: 2, .. })
    ));
    says(&refused(c.reply(0, asks)), &["Unreachable", "y[0]", "mp1"]);
    says(&c.refusal(0, read(y)), &["Unreachable", "mp1"]);
    says(&c.refusal(1, write(x, 9)), &["StaleEpoch", "mp0 was lost"]);
    says(&c.refusal(1, release(x)), &["StaleEpoch", "mp0 was lost"]);
    c.up(MP0, MP1);
    c.call(0, release(x));
    assert_eq!(
        c.call(1, read(x)),
        Some(Reply::Read {
            version: 1,
            data: bytes(0),
            keep: false,
            delegation: None,
            unchanged: false,
        })
    );
    assert!(matches!(c.call(0, read(y)), Some(Reply::Read { .. })));
}

#[test]
fn a_release_waits_out_the_lease_of_a_copy_that_is_lost_and_no_longer() {
    let (mut c, x) = pair();
    c.call(1, read(x));
    c.call(0, acquire(x));
    c.call(0, write(x, 2));
    let id = c.ask(0, release(x));
    assert_eq!(c.reply(0, id), None);
    c.down(MP0, MP1);
    c.pass(Nanos::from_millis(1_900));
    assert_eq!(c.reply(0, id), None);
    c.pass(Nanos::from_millis(400));
    assert_eq!(c.reply(0, id), Some(Reply::Released { version: 1 }));
}

#[test]
fn writes_that_cannot_be_published_fail_the_release_once() {
    let (mut c, x) = pair();
    let y = c.scalar("y", 1, Invalidate);
    c.call(1, acquire(y));
    c.call(1, write(x, 1));
    c.down(MP0, MP1);
    says(&c.refusal(1, release(y)), &["Unreachable", "mp0"]);
    assert!(matches!(
        c.call(1, release(y)),
        Some(Reply::Released { .. })
    ));
}

#[test]
fn tidings_of_a_lost_process_cross_the_groups() {
    let mut c = Cluster::new(&["/a", "/a/x", "/b"], 1, 1);
    let x = c.scalar("x", 0, Invalidate);
    c.call(2, Request::Open("x".into()));
    c.call(2, acquire(x));
    let waits = c.ask(0, acquire(x));
    let far = c.topology.find_mp("lp.b").unwrap();
    // mp2 is cut off from its link process: mp0, two groups away, hears of it.
    c.down(MpId(2), far);
    c.run();
    assert!(matches!(
        c.reply(0, waits),
        Some(Reply::Granted { epoch: 2, .. })
    ));
    says(&c.refusal(2, release(x)), &["StaleEpoch", "mp0 was lost"]);
    says(
        &c.refusal(2, read(x)),
        &["Unreachable", "mp0", "the link to lp.b broke"],
    );
    c.call(0, release(x));
    c.up(MpId(2), far);
    c.run();
    assert!(matches!(
        c.call(2, acquire(x)),
        Some(Reply::Granted { epoch: 3, .. })
    ));
}

#[test]
fn a_cut_between_link_processes_separates_the_groups_and_heals() {
    let mut c = Cluster::new(&["/a", "/b"], 2, 1);
    let x = c.scalar("x", 0, Invalidate);
    c.call(3, Request::Open("x".into()));
    let (a, b) = (
        c.topology.find_mp("lp.a").unwrap(),
        c.topology.find_mp("lp.b").unwrap(),
    );
    let waits = c.ask(3, barrier("b"));
    c.down(a, b);
    c.run();
    says(&c.refusal(3, read(x)), &["Unreachable", "mp0"]);
    // Its own group goes on; a barrier of all cannot.
    says(&c.refusal(0, barrier("b")), &["ProcessLost"]);
    assert!(refused(c.reply(3, waits)).contains("mp0"));
    c.up(a, b);
    c.run();
    assert!(matches!(c.call(3, read(x)), Some(Reply::Read { .. })));
}

#[test]
fn a_peer_not_up_yet_is_waited_for_until_the_deadline() {
    let mut c = Cluster::unconnected(topology(&["/a"], 2, 1), &[]);
    for ap in [0, 1] {
        c.connect(ApId(ap)).unwrap();
    }
    // Whoever is the home, the owner is mp1 and not there.
    let spec = || scalar("x", &["mp1"], Invalidate);
    let late = c.ask_within(0, Some(Nanos::from_millis(5)), Request::Declare(spec()));
    c.feed(
        MP0,
        dosmos_memproc::core::messages::Input::PeerTrouble(MP1, "connection refused".into()),
    );
    c.pass(Nanos::from_millis(6));
    let text = refused(c.reply(0, late));
    assert!(
        text.contains("Unreachable") || text.contains("Deadline"),
        "{text}"
    );
    let patient = c.ask(0, Request::Declare(spec()));
    c.run();
    assert_eq!(c.reply(0, patient), None);
    c.up(MP0, MP1);
    c.run();
    assert!(matches!(c.reply(0, patient), Some(Reply::Variable(_))));
}

#[test]
fn requests_to_a_peer_that_never_came_say_so() {
    let mut c = Cluster::unconnected(topology(&["/a"], 2, 1), &[]);
    c.connect(ApId(1)).unwrap();
    // mp0 coordinates barriers of all, and has not come up.
    let id = c.ask_within(1, Some(Nanos::from_millis(5)), barrier("b"));
    c.feed(
        MP1,
        dosmos_memproc::core::messages::Input::PeerTrouble(MP0, "connection refused".into()),
    );
    c.pass(Nanos::from_millis(6));
    says(
        &refused(c.reply(1, id)),
        &["Unreachable", "mp0", "connection refused", "is it running?"],
    );
}

#[test]
fn the_end_answers_everyone() {
    let (mut c, x) = pair();
    c.call(0, acquire(x));
    let waits = c.ask(0, barrier("b"));
    c.feed(MP0, dosmos_memproc::core::messages::Input::Shutdown);
    says(&refused(c.reply(0, waits)), &["ShuttingDown", "mp0"]);
    says(&c.refusal(0, read(x)), &["ShuttingDown"]);
    assert!(c.connect(ApId(0)).is_err());
}

#[test]
fn declarations_that_meet_at_the_home_agree_or_conflict() {
    let mut c = Cluster::new(&["/a", "/b"], 2, 1);
    let spec = vector("grid", 4, 4, &["mp0", "mp1", "mp2", "mp3"], Invalidate);
    let ids: Vec<u64> = (0..4)
        .map(|ap| c.ask(ap, Request::Declare(spec.clone())))
        .collect();
    c.run();
    let replies: Vec<_> = (0..4).map(|ap| c.reply(ap, ids[ap as usize])).collect();
    assert!(matches!(replies[0], Some(Reply::Variable(_))));
    assert!(replies.iter().all(|r| *r == replies[0]));
    let of = |policy| Request::Declare(scalar("flag", &["mp1"], policy));
    let ids = [c.ask(0, of(Invalidate)), c.ask(3, of(Update))];
    c.run();
    let refused = [c.reply(0, ids[0]), c.reply(3, ids[1])]
        .iter()
        .filter(
            |r| matches!(r, Some(Reply::Refused(e)) if e.code == ErrorCode::DeclarationConflict),
        )
        .count();
    assert_eq!(refused, 1);
}

#[test]
fn a_declaration_that_failed_half_way_is_completed_by_the_next() {
    let mut c = Cluster::new(&["/a"], 3, 1);
    // A name whose home is not mp2, which is to own a part.
    let spec = vector("grid", 2, 2, &["mp0", "mp2"], Invalidate);
    c.down(MP0, MpId(2));
    c.down(MP1, MpId(2));
    let first = c.refusal(0, Request::Declare(spec.clone()));
    says(&first, &["Unreachable", "mp2"]);
    says(&c.refusal(1, Request::Declare(spec.clone())), &["mp2"]);
    c.up(MP0, MpId(2));
    c.up(MP1, MpId(2));
    let all: Vec<_> = (0..3)
        .map(|ap| c.call(ap, Request::Declare(spec.clone())))
        .collect();
    assert!(matches!(all[0], Some(Reply::Variable(_))));
    assert!(all.iter().all(|r| *r == all[0]));
}

#[test]
fn news_of_a_process_that_is_none_of_the_cluster_do_not_stop_a_barrier() {
    let (mut c, _) = pair();
    let notice = Notice::ApGone {
        ap: ApId(99),
        back: false,
    };
    let message = Message {
        source: MP1,
        source_incarnation: None,
        destination: MP0,
        destination_incarnation: None,
        body: Body::Notice(notice),
    };
    c.feed(MP0, Input::Message { from: MP1, message });
    let ids = [0, 1].map(|ap| c.ask(ap, barrier("b")));
    c.run();
    for (ap, id) in (0..).zip(ids) {
        assert!(matches!(c.reply(ap, id), Some(Reply::Passed(_))));
    }
}

#[test]
fn that_a_process_is_back_is_told_where_it_may_have_been_missed() {
    let told = |c: &Cluster| c.log.iter().filter(|l| l.ends_with("ap0 is back")).count();
    // Nobody was told that it had left.
    let mut c = Cluster::unconnected(topology(&["/a"], 3, 1), &[]);
    for (a, b) in c.pairs() {
        c.up(a, b);
    }
    c.connect(ApId(0)).unwrap();
    c.run();
    assert_eq!(told(&c), 0, "{:?}", c.log);
    c.gone(ApId(0));
    c.run();
    c.connect(ApId(0)).unwrap();
    c.run();
    assert_eq!(told(&c), 2, "{:?}", c.log);
    // A start that does not know whom an earlier one told.
    c.restart(MP0);
    c.run();
    c.log.clear();
    c.connect(ApId(0)).unwrap();
    c.run();
    assert_eq!(told(&c), 2, "{:?}", c.log);
}

#[test]
fn what_others_cannot_keep_for_lack_of_a_link_is_declared_and_what_they_own_is_not() {
    let declared = |owner: &str| {
        let mut c = Cluster::new(&["/a"], 3, 1);
        // Neither the declaring process's nor, for this name, its home.
        c.down(MP0, MP1);
        c.down(MP1, MpId(2));
        c.run();
        let of = |i: u32| {
            let spec = scalar(&format!("x{i}"), &[owner], Invalidate);
            Request::Declare(spec.with_replicas(1).unwrap())
        };
        (0..6)
            .map(|i| match c.call(0, of(i)) {
                Some(Reply::Variable(_)) => "there",
                Some(Reply::Refused(refusal)) if refusal.message.contains("mp1") => "refused",
                other => panic!("{other:?}"),
            })
            .collect::<Vec<_>>()
    };
    // Names whose home is mp1 are refused in any case.
    let kept = declared("mp0");
    assert!(kept.contains(&"there"), "{kept:?}");
    assert_eq!(declared("mp1"), ["refused"; 6]);
}

#[test]
fn what_takes_too_long_says_what_it_waited_for() {
    let time = Nanos::from_millis(300);
    // Where everything waits for mp0, which does not go on.
    let why = |c: &mut Cluster, requests: Vec<Request>| {
        c.stopped.insert(MP0);
        let ids: Vec<u64> = requests
            .into_iter()
            .map(|request| c.ask_within(1, Some(time), request))
            .collect();
        c.run_awake();
        c.pass(time);
        let last = *ids.last().unwrap();
        refused(c.reply(1, last))
    };
    let (mut c, x) = pair();
    c.call(1, acquire(x));
    says(
        &why(&mut c, vec![release(x)]),
        &[
            "release of x[0] by ap1",
            "did not respond; it may still take effect",
        ],
    );
    let (mut c, x) = pair();
    let y = c.scalar("y", 1, Invalidate);
    c.call(1, Request::Open("y".into()));
    c.call(1, acquire(y));
    c.call(1, write(x, 5));
    says(
        &why(&mut c, vec![release(y)]),
        &[
            "release of y[0] by ap1",
            "could not be told to all holders of copies",
        ],
    );
    let (mut c, _) = pair();
    let of_mp0 = |i: &u32| {
        let mut c = Cluster::new(&["/a"], 2, 1);
        c.call(0, Request::Open(format!("n{i}")));
        c.log.iter().all(|line| !line.starts_with("mp0 -> mp1"))
    };
    let name = format!("n{}", (0..).find(of_mp0).unwrap());
    says(
        &why(&mut c, vec![Request::Open(name.clone())]),
        &[
            &format!("look-up of {name} by ap1"),
            "home of the name, did not respond",
        ],
    );
}

#[test]
fn what_a_section_wrote_is_nobody_s_copy_before_it_is_released() {
    let mut c = Cluster::new(&["/a"], 2, 2);
    let x = c.scalar("x", 0, Invalidate);
    for ap in 1..4 {
        c.call(ap, Request::Open("x".into()));
    }
    c.call(2, acquire(x));
    c.call(2, write_in(x, 7, 1));
    // Its own read and that of a sibling: neither leaves a copy of 7 with their memory process.
    let value = |reply: Option<Reply>| match reply {
        Some(Reply::Read { data, .. }) => number(&data),
        other => panic!("not read: {other:?}"),
    };
    assert_eq!(value(c.call(2, read_in(x, 1))), 7);
    assert_eq!(value(c.call(3, read(x))), 0);
    assert_eq!(value(c.call(3, read(x))), 0);
    assert_eq!(value(c.call(2, read(x))), 7);
    assert_eq!(value(c.call(3, read(x))), 0);
    c.call(2, release_in(x, 1));
    for ap in 0..4 {
        assert_eq!(value(c.call(ap, read(x))), 7);
    }
}
