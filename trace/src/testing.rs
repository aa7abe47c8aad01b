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
    let kind = (1u32..=5, any::<bool>(), 1u32..=3, any::<[bool; 4]>());
    let who = (any::<u32>(), 0u32..5, 0u32..4, 0u32..4, 0u32..4);
    let rest = (any::<u32>(), any::<u64>(), (any::<u32>(), any::<u32>()));
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
        },
        object: ObjectId::new(VarId(who.1), who.0 % 3),
        ap: ApId(who.2),
        mp: MpId(who.3),
        peer: MpId(who.4),
        bytes: rest.0,
        version: rest.1,
        range: (rest.2.0.min(rest.2.1), rest.2.0.max(rest.2.1)),
    })
}
