//! What this crate's tests generate.

use dosmos_proto::{ApId, MpId, Nanos, ObjectId, VarId};
use proptest::prelude::*;

use crate::record::{Flags, Op, Origin, Record, Side};

/// Any record at all, likely and unlikely.
pub(crate) fn records() -> impl Strategy<Value = Record> {
    let times = (
        prop_oneof![any::<u64>(), 1_000_000u64..2_000_000],
        prop_oneof![any::<u64>(), 0u64..100_000],
        0u64..50_000,
        any::<u32>(),
    );
    let kind = (1u32..=5, any::<bool>(), 1u32..=3, any::<[bool; 10]>());
    let who = (any::<u32>(), 0u32..5, 0u32..4, 0u32..4, 0u32..4);
    let count = prop_oneof![3 => Just(1u32), 1 => 1u32..1000, 1 => 1u32..=u32::MAX];
    let bytes = prop_oneof![any::<u32>().prop_map(u64::from), any::<u64>()];
    let rest = (bytes, any::<u64>(), (any::<u32>(), any::<u32>()), count);
    (times, kind, who, rest).prop_map(|(times, kind, who, rest)| Record {
        start: Nanos(times.0),
        duration: Nanos(times.1),
        wait: Nanos(times.2),
        service: Nanos(times.3.into()),
        op: Op::from_number(kind.0).unwrap(),
        side: if kind.1 { Side::Owner } else { Side::Requester },
        origin: Origin::from_number(kind.2).unwrap(),
        flags: Flags {
            optimized: kind.3[0],
            sampled: kind.3[1],
            failed: kind.3[2],
            waiting: kind.3[3],
            in_process: kind.3[4],
            atomic: kind.3[5],
            first: kind.3[6],
            own_clock: kind.3[7],
            ahead: kind.3[8],
            posted: kind.3[9],
        },
        object: ObjectId::new(VarId(who.1), who.0 % 3),
        ap: ApId(who.2),
        mp: MpId(who.3),
        peer: MpId(who.4),
        count: rest.3,
        bytes: rest.0,
        version: rest.1,
        range: (rest.2.0.min(rest.2.1), rest.2.0.max(rest.2.1)),
    })
}

/// A read of one object.
pub(crate) fn single() -> Record {
    Record {
        start: Nanos(1_000),
        duration: Nanos(10),
        wait: Nanos(0),
        service: Nanos(0),
        op: Op::Read,
        side: Side::Requester,
        origin: Origin::Local,
        flags: Flags::default(),
        object: ObjectId::new(VarId(1), 0),
        ap: ApId(0),
        mp: MpId(0),
        peer: MpId(0),
        count: 1,
        bytes: 8,
        version: 0,
        range: (0, 1),
    }
}
