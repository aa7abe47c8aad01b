//! What one record says of its own access.

use dosmos_trace::Record;

/// Whether a record tells times by the clock of the application process itself, of which nobody knows how far it is from that of
/// its memory process: accesses that it served in itself and reported later. What a section wrote has elements, and the time
/// of its release.
pub(crate) fn by_own_clock(record: &Record) -> bool {
    record.flags.own_clock
}

/// Whether a write changed nothing: an atomic operation that stored nothing.
pub(crate) fn is_void(write: &Record) -> bool {
    write.flags.atomic && write.bytes == 0
}

/// A record of a test: a read by the first process, of the first object of all; tests change what they are about.
#[cfg(test)]
pub(crate) fn of_test() -> Record {
    use dosmos_proto::{ApId, MpId, Nanos, ObjectId};
    use dosmos_trace::record::Flags;
    use dosmos_trace::{Op, Origin, Side};

    Record {
        start: Nanos::ZERO,
        duration: Nanos(1),
        wait: Nanos::ZERO,
        service: Nanos::ZERO,
        op: Op::Read,
        side: Side::Requester,
        origin: Origin::Local,
        flags: Flags::default(),
        object: ObjectId::default(),
        ap: ApId(0),
        mp: MpId(0),
        peer: MpId(0),
        count: 1,
        bytes: 0,
        version: 0,
        range: (0, 0),
    }
}
