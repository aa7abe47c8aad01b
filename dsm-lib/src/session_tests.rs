//! The session's bookkeeping, message by message.

use dosmos_proto::{ErrorCode, ObjectId, VarId};
use proptest::prelude::*;

use super::*;
use crate::operation::Target;

const DEADLINE: Duration = Duration::from_millis(100);
const GRACE: Duration = Duration::from_millis(10);
/// When a request submitted at time zero is given up.
const GIVEN_UP: Nanos = Nanos::from_millis(110);

fn session() -> Session<u32> {
    Session::new(GRACE)
}

fn target() -> Target {
    Target {
        name: "grid".into(),
        object: Some(ObjectId::new(VarId(7), 2)),
        only: false,
    }
}

fn access(object: u64, kind: wire::object_access::Kind) -> Request {
    Request::Access(wire::ObjectAccess {
        object,
        kind: Some(kind),
    })
}

fn submit(s: &mut Session<u32>, op: Op, ticket: u32) -> wire::ApRequest {
    let object = target().object.unwrap().to_wire();
    let body = match op {
        Op::Acquire => access(
            object,
            wire::object_access::Kind::Acquire(wire::Acquire::default()),
        ),
        Op::Bye => Request::Bye(wire::Bye {}),
        _ => access(
            object,
            wire::object_access::Kind::Read(wire::Read::default()),
        ),
    };
    s.submit(Nanos::ZERO, op.on(&target()), body, DEADLINE, Some(ticket))
        .unwrap()
}

fn read_done(id: u64) -> wire::ApReply {
    wire::ApReply {
        id,
        body: Some(Reply::Read(wire::ReadDone::default())),
        ..wire::ApReply::default()
    }
}

fn granted(id: u64, epoch: u64) -> wire::ApReply {
    wire::ApReply {
        id,
        body: Some(Reply::Granted(wire::Granted {
            epoch,
            ..wire::Granted::default()
        })),
        ..wire::ApReply::default()
    }
}

fn complete(received: Received<u32>) -> Completion<u32> {
    match received {
        Received::Complete(c) => c,
        other => panic!("expected a completion, got {other:?}"),
    }
}

#[test]
fn replies_find_their_requests_in_any_order() {
    let mut s = session();
    let (a, b) = (submit(&mut s, Op::Read, 1), submit(&mut s, Op::Read, 2));
    assert_ne!(a.id, b.id);
    assert_eq!(a.timeout_ms, Some(100));
    assert_eq!(
        complete(s.receive(Nanos::ZERO, read_done(b.id))).ticket,
        Some(2)
    );
    assert_eq!(
        complete(s.receive(Nanos::ZERO, read_done(a.id))).ticket,
        Some(1)
    );
    assert_eq!(s.counts().total().reads, 2);
    assert_eq!(s.next_expiry(), None);
}

#[test]
fn a_refusal_names_the_operation_and_is_counted_as_failed() {
    let mut s = session();
    let request = submit(&mut s, Op::Acquire, 1);
    let refusal = Refusal::new(ErrorCode::AlreadyHeld, "you hold it already");
    let reply = wire::ApReply {
        id: request.id,
        body: Some(Reply::Error(refusal.into())),
        ..wire::ApReply::default()
    };
    let error = complete(s.receive(Nanos::ZERO, reply)).outcome.unwrap_err();
    assert_eq!(error.code(), Some(ErrorCode::AlreadyHeld));
    assert_eq!(
        error.to_string(),
        "acquire of grid[2] was refused: you hold it already"
    );
    assert_eq!(s.counts().total().failed, 1);
    assert_eq!(s.counts().total().acquires, 0);
}

#[test]
fn a_request_is_given_up_after_deadline_and_grace() {
    let mut s = session();
    let request = submit(&mut s, Op::Read, 1);
    assert_eq!(s.next_expiry(), Some(GIVEN_UP));
    assert!(s.expire(Nanos(GIVEN_UP.0 - 1)).is_empty());
    let over = s.expire(GIVEN_UP);
    assert_eq!(over.len(), 1);
    let error = over[0].outcome.as_ref().unwrap_err().to_string();
    assert!(
        error.contains("read of grid[2]") && error.contains("100.0 ms"),
        "{error}"
    );
    assert!(matches!(
        s.receive(GIVEN_UP, read_done(request.id)),
        Received::Nothing
    ));
    assert_eq!(s.counts().total().failed, 1);
}

#[test]
fn a_lock_granted_after_its_deadline_is_given_back() {
    let mut s = session();
    let request = submit(&mut s, Op::Acquire, 1);
    assert_eq!(s.expire(GIVEN_UP).len(), 1);
    match s.receive(GIVEN_UP, granted(request.id, 9)) {
        Received::GiveBack(wire::ApRequest {
            body:
                Some(Request::Access(wire::ObjectAccess {
                    kind: Some(wire::object_access::Kind::Release(release)),
                    ..
                })),
            ..
        }) => assert_eq!(release.epoch, Some(9)),
        other => panic!("expected a release, got {other:?}"),
    }
    // Only once.
    assert!(matches!(
        s.receive(GIVEN_UP, granted(request.id, 9)),
        Received::Nothing
    ));
}

#[test]
fn the_end_completes_everything_in_order_and_refuses_what_comes_after() {
    let mut s = session();
    submit(&mut s, Op::Read, 1);
    submit(&mut s, Op::Acquire, 2);
    let over = s.end(End::Lost("reset by peer".into()));
    assert_eq!(
        over.iter().map(|c| c.ticket).collect::<Vec<_>>(),
        [Some(1), Some(2)]
    );
    for c in over {
        assert!(matches!(c.outcome, Err(Error::Lost { .. })));
    }
    let body = Request::Bye(wire::Bye {});
    let refused = s.submit(
        Nanos::ZERO,
        Op::Write.on(&target()),
        body,
        DEADLINE,
        Some(3),
    );
    let refused = refused.unwrap_err();
    assert_eq!(refused.ticket, Some(3));
    assert!(matches!(refused.outcome, Err(Error::Lost { why, .. }) if why == "reset by peer"));
    assert_eq!(s.next_expiry(), None);
}

#[test]
fn last_words_explain_the_loss() {
    let mut s = session();
    submit(&mut s, Op::Read, 1);
    let words = Refusal::new(ErrorCode::ShuttingDown, "mp0 is shutting down");
    let reply = wire::ApReply {
        id: 0,
        body: Some(Reply::Error(words.into())),
        ..wire::ApReply::default()
    };
    assert!(matches!(s.receive(Nanos::ZERO, reply), Received::Nothing));
    let over = s.end(End::Lost("end of stream".into()));
    let error = over[0].outcome.as_ref().unwrap_err().to_string();
    assert!(error.contains("mp0 is shutting down"), "{error}");
}

#[test]
fn after_bye_nothing_is_accepted_and_the_end_is_no_loss() {
    let mut s = session();
    submit(&mut s, Op::Read, 1);
    let bye = submit(&mut s, Op::Bye, 2);
    let body = Request::Bye(wire::Bye {});
    let late = s.submit(Nanos::ZERO, Op::Read.on(&target()), body, DEADLINE, None);
    assert!(matches!(
        late.unwrap_err().outcome,
        Err(Error::Closed { .. })
    ));
    let farewell = wire::ApReply {
        id: bye.id,
        body: Some(Reply::Farewell(wire::Farewell {})),
        ..wire::ApReply::default()
    };
    assert!(complete(s.receive(Nanos::ZERO, farewell)).outcome.is_ok());
    assert!(s.is_over());
    let over = s.end(End::Lost("end of stream".into()));
    assert!(matches!(over[0].outcome, Err(Error::Closed { .. })));
}

proptest! {
    #![proptest_config(dosmos_testseeds::config(256))]

    /// Whatever happens in whatever order, each request is completed exactly once.
    #[test]
    fn every_request_is_completed_exactly_once(
        events in prop::collection::vec((0u8..4, 0u64..12, 0u64..300), 1..80),
    ) {
        let mut s = session();
        let mut submitted = Vec::new();
        let mut completed = Vec::new();
        let mut now = Nanos::ZERO;
        for (kind, id, ms) in events {
            match kind {
                0 | 1 => {
                    let ticket = submitted.len() as u32;
                    submitted.push(ticket);
                    let op = if kind == 0 { Op::Read } else { Op::Acquire };
                    let body = Request::Bye(wire::Bye {});
                    let deadline = Duration::from_millis(ms);
                    let r = s.submit(now, op.on(&target()), body, deadline, Some(ticket));
                    if let Err(c) = r { completed.extend(c.ticket); }
                }
                2 => if let Received::Complete(c) = s.receive(now, granted(id, 1)) {
                    completed.extend(c.ticket);
                },
                _ => {
                    now += Nanos::from_millis(ms);
                    completed.extend(s.expire(now).into_iter().filter_map(|c| c.ticket));
                }
            }
        }
        completed.extend(s.end(End::Closed).into_iter().filter_map(|c| c.ticket));
        completed.sort_unstable();
        prop_assert_eq!(completed, submitted);
        prop_assert_eq!(s.next_expiry(), None);
    }
}
