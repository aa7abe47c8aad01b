//! Accesses to objects: one form from application process to memory process and from there to the
//! owner.

use dosmos_proto::wire as w;
use dosmos_proto::wire::atomic::Op;
use dosmos_proto::wire::object_access::Kind;
use dosmos_proto::{Malformed, ObjectId, Runs};

use crate::core::messages::{Access, AccessKind, AtomicOp, ElementRange, Keep, WriteData};

/// An access that came in.
pub(super) fn from_wire(access: w::ObjectAccess) -> Result<Access, Malformed> {
    let kind = match access.kind.ok_or(Malformed::missing("access"))? {
        Kind::Read(r) => AccessKind::Read {
            range: ElementRange {
                first: r.first,
                end: r.end,
            },
            epoch: r.epoch,
            keep: match (r.exclusive, r.keep) {
                (true, _) => Keep::Exclusive,
                (false, true) => Keep::Copy,
                (false, false) => Keep::Nothing,
            },
        },
        Kind::Write(w) => AccessKind::Write {
            epoch: w.epoch,
            write: write_from_wire(w)?,
        },
        Kind::Atomic(a) => AccessKind::Atomic {
            element: a.element,
            element_type: a.r#type().try_into()?,
            op: match a.op.ok_or(Malformed::missing("atomic operation"))? {
                Op::FetchAdd(n) => AtomicOp::FetchAdd(n),
                Op::CompareExchange(c) => AtomicOp::CompareExchange {
                    expected: c.expected,
                    desired: c.desired,
                },
            },
            epoch: a.epoch,
        },
        Kind::Acquire(a) => AccessKind::Acquire {
            want_value: a.want_value,
        },
        Kind::Release(r) => AccessKind::Release {
            epoch: r.epoch,
            write: r.write.map(write_from_wire).transpose()?,
        },
    };
    Ok(Access {
        object: ObjectId::from_wire(access.object),
        kind,
    })
}

fn write_from_wire(w: w::Write) -> Result<WriteData, Malformed> {
    if w.add && !w.lengths.is_empty() {
        return Err(Malformed::new("write", "only one range can be added to"));
    }
    Ok(WriteData {
        adds: w.add,
        first: w.first,
        runs: match w.lengths.as_slice() {
            [] => None,
            lengths => Some(Runs::from_wire(w.first, lengths)?),
        },
        data: w.data,
        accesses: w.accesses.unwrap_or(1).max(1),
    })
}

fn write_to_wire(write: WriteData, epoch: Option<u64>) -> w::Write {
    w::Write {
        first: write.first,
        data: write.data,
        epoch,
        lengths: write.runs.map_or_else(Vec::new, |runs| runs.to_wire()),
        accesses: (write.accesses > 1).then_some(write.accesses),
        add: write.adds,
    }
}

/// An access on its way out.
pub(super) fn to_wire(access: Access) -> w::ObjectAccess {
    let kind = match access.kind {
        AccessKind::Read { range, epoch, keep } => Kind::Read(w::Read {
            keep: keep > Keep::Nothing,
            exclusive: keep == Keep::Exclusive,
            first: range.first,
            end: range.end,
            epoch,
        }),
        AccessKind::Write { write, epoch } => Kind::Write(write_to_wire(write, epoch)),
        AccessKind::Atomic {
            element,
            element_type,
            op,
            epoch,
        } => Kind::Atomic(w::Atomic {
            element,
            r#type: w::ElementType::from(element_type).into(),
            epoch,
            op: Some(match op {
                AtomicOp::FetchAdd(n) => Op::FetchAdd(n),
                AtomicOp::CompareExchange { expected, desired } => {
                    Op::CompareExchange(w::CompareExchange { expected, desired })
                }
            }),
        }),
        AccessKind::Acquire { want_value } => Kind::Acquire(w::Acquire { want_value }),
        AccessKind::Release { epoch, write } => Kind::Release(w::Release {
            epoch,
            write: write.map(|write| write_to_wire(write, None)),
        }),
    };
    w::ObjectAccess {
        object: access.object.to_wire(),
        kind: Some(kind),
    }
}
