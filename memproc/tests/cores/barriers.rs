//! Barriers: whom they are of, their numbers, and who is said to be missing or gone.

use dosmos_memproc::core::messages::{Item, Reply, Request, Scope};
use dosmos_proto::{ApId, GroupId, MpId, Nanos};
use dosmos_trace::Op;

use crate::common::*;

fn scoped(scope: Scope) -> Request {
    Request::Barrier {
        scope,
        name: "b".into(),
    }
}

fn passed(reply: &Option<Reply>) -> bool {
    matches!(reply, Some(Reply::Passed { .. }))
}

#[track_caller]
fn says(text: &str, part: &str) {
    assert!(text.contains(part), "{text:?} does not say {part:?}");
}

#[test]
fn a_group_is_named_by_path_or_number_and_the_root_is_everybody() {
    let mut c = Cluster::new(&["/a", "/b"], 1, 1);
    let scopes = [Scope::Path(String::new()), Scope::Path("/".into())];
    let ids: Vec<u64> = (0..)
        .zip(scopes)
        .map(|(ap, scope)| c.ask(ap, scoped(scope)))
        .collect();
    c.run();
    assert!(passed(&c.reply(0, ids[0])) && passed(&c.reply(1, ids[1])));
    // Each group by itself, whichever way it is named.
    for (ap, path) in [(0, "/a"), (1, "/b")] {
        assert!(passed(&c.call(ap, scoped(Scope::Group(GroupId(ap))))));
        assert!(passed(&c.call(ap, scoped(Scope::Path(path.into())))));
    }
    for nobody in [2, 3] {
        let text = c.refusal(0, scoped(Scope::Group(GroupId(nobody))));
        says(&text, "Invalid");
    }
}

#[test]
fn barriers_have_numbers_that_no_variable_has() {
    let mut c = Cluster::new(&["/a"], 1, 1);
    let mut numbers = Vec::new();
    for name in ["", "a", "b", "c", "d", "e", "f", "g"] {
        assert!(passed(&c.call(0, barrier(name))));
    }
    for record in c.records().filter(|r| r.op == Op::Barrier) {
        numbers.push(record.object.var.0);
    }
    let named: Vec<u32> = c
        .items
        .iter()
        .filter_map(|(_, item)| match item {
            Item::Barrier(b) => Some(b.id.0),
            _ => None,
        })
        .collect();
    assert_eq!(numbers, named);
    assert!(numbers.iter().all(|n| n >> 31 == 1), "{numbers:x?}");
    numbers.sort_unstable();
    numbers.dedup();
    assert_eq!(numbers.len(), 8);
}

/// Who left politely is not back because its memory process is.
#[test]
fn why_a_participant_is_gone_decides_when_it_is_back() {
    let (mp0, mp1) = (MpId(0), MpId(1));
    let mut c = Cluster::new(&["/a"], 2, 1);
    c.down(mp0, mp1);
    c.run();
    says(&c.refusal(0, barrier("b")), "ap1 is lost with mp1");
    c.up(mp0, mp1);
    c.run();
    let ids = [c.ask(0, barrier("b")), c.ask(1, barrier("b"))];
    c.run();
    assert!(passed(&c.reply(0, ids[0])) && passed(&c.reply(1, ids[1])));

    c.call(1, Request::Bye);
    c.run();
    says(&c.refusal(0, barrier("b")), "ap1 has left");
    c.down(mp0, mp1);
    c.run();
    says(&c.refusal(0, barrier("b")), "ap1 has left");
    c.up(mp0, mp1);
    c.run();
    says(&c.refusal(0, barrier("b")), "ap1 has left");
    c.connect(ApId(1)).unwrap();
    c.run();
    let ids = [c.ask(0, barrier("b")), c.ask(1, barrier("b"))];
    c.run();
    assert!(passed(&c.reply(0, ids[0])) && passed(&c.reply(1, ids[1])));
}

/// Who gave up at an opening is missed at the next one, however soon that is.
#[test]
fn what_was_given_up_before_an_opening_does_not_count_after_it() {
    for (mps, aps) in [(1, 2), (2, 1)] {
        let mut c = Cluster::new(&["/a"], mps, aps);
        let soon = Some(Nanos::from_millis(50));
        let over = |c: &mut Cluster| {
            c.run();
            c.pass(Nanos::from_millis(60));
            c.run();
        };
        // ap1 comes alone and gives up.
        let id = c.ask_within(1, soon, barrier("b"));
        over(&mut c);
        assert!(matches!(c.reply(1, id), Some(Reply::Refused(_))));
        // It comes again, and it opens.
        let ids = [c.ask(0, barrier("b")), c.ask(1, barrier("b"))];
        c.run();
        assert!(passed(&c.reply(0, ids[0])) && passed(&c.reply(1, ids[1])));
        // Then it does not come.
        let id = c.ask_within(0, soon, barrier("b"));
        over(&mut c);
        match c.reply(0, id) {
            Some(Reply::Refused(r)) => says(&r.message, "ap1 did not arrive"),
            other => panic!("{other:?}"),
        }
    }
}
