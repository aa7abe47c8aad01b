//! What records say of an access: which elements, how many bytes, how many accesses, at both ends.

use dosmos_memproc::core::messages::{AtomicOp, ElementRange, Request};
use dosmos_proto::CopyPolicy::Invalidate;
use dosmos_proto::{ElementType, ObjectId};
use dosmos_trace::{Op, Side};

use crate::common::*;

/// Side, operation, elements, bytes, accesses.
type Said = (Side, Op, (u32, u32), u64, u32);

/// What is recorded of a request of `ap1` to an object of 8 elements of 8 bytes, near (at its own memory process) or far.
fn recorded(near: bool, request: impl FnOnce(ObjectId) -> Request) -> Vec<Said> {
    let mut c = Cluster::new(&["/a"], 2, 1);
    let owner = if near { "mp1" } else { "mp0" };
    let spec = vector("x", 8, 1, &[owner], Invalidate);
    let x = ObjectId::new(c.declare(1, spec).id(), 0);
    c.items.clear();
    assert!(c.call(1, request(x)).is_some());
    c.run();
    let said = |r: &dosmos_trace::Record| (r.side, r.op, r.range, r.bytes, r.count);
    let mut all: Vec<Said> = c.records().map(said).collect();
    all.sort_by_key(|s| s.0 == Side::Owner);
    all
}

#[track_caller]
fn both_say(
    request: impl Fn(ObjectId) -> Request,
    (op, range, bytes): (Op, (u32, u32), u64),
    accesses: u32,
) {
    let said = |side| (side, op, range, bytes, accesses);
    assert_eq!(recorded(true, &request), [said(Side::Requester)]);
    let far = [said(Side::Requester), said(Side::Owner)];
    assert_eq!(recorded(false, &request), far);
}

#[test]
fn reads_and_writes_say_which_elements() {
    both_say(read, (Op::Read, (0, 8), 64), 1);
    let part = ElementRange {
        first: 3,
        end: Some(5),
    };
    let (part_of, all) = ((Op::Read, (3, 5), 16, 1), (Op::Read, (0, 8), 64, 1));
    let said = |side, (op, range, bytes, accesses)| (side, op, range, bytes, accesses);
    let near = recorded(true, |x| read_range(x, part));
    assert_eq!(near, [said(Side::Requester, part_of)]);
    // A small object is fetched as a whole, which is what its owner serves.
    let far = recorded(false, |x| read_range(x, part));
    assert_eq!(
        far,
        [said(Side::Requester, part_of), said(Side::Owner, all)]
    );
    let two = || {
        bytes(7)
            .iter()
            .chain(bytes(9).iter())
            .copied()
            .collect::<Vec<u8>>()
    };
    both_say(
        |x| write_bytes(x, 5, two().into(), None),
        (Op::Write, (5, 7), 16),
        1,
    );
    both_say(|x| accumulate(x, 4), (Op::Write, (0, 1), 8), 1);
}

#[test]
fn atomic_operations_say_their_element_and_whether_they_stored() {
    let at = |element, op| move |x| atomic(x, element, ElementType::U64, op);
    both_say(at(6, AtomicOp::FetchAdd(1)), (Op::Write, (6, 7), 8), 1);
    let kept = AtomicOp::CompareExchange {
        expected: 5,
        desired: 1,
    };
    both_say(at(2, kept), (Op::Write, (2, 3), 0), 1);
}
