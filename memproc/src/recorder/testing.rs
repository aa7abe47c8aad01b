//! Records for tests.

use dosmos_proto::{ApId, MpId, Nanos, ObjectId};
use dosmos_trace::record::Flags;
use dosmos_trace::{Op, Origin, Record, Side};

/// A local access at `start`.
pub(crate) fn record(op: Op, start: u64) -> Record {
    Record {
        start: Nanos(start),
        duration: Nanos(3),
        wait: Nanos(0),
        service: Nanos(0),
        op,
        side: Side::Requester,
        origin: Origin::Local,
        flags: Flags::default(),
        object: ObjectId::default(),
        ap: ApId(0),
        mp: MpId(0),
        peer: MpId(0),
        count: 1,
        bytes: 8,
        version: 1,
        range: (0, 1),
    }
}
