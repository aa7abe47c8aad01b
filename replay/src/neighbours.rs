//! Accesses that a process makes right after one another to what lies next to one another: one call could make all of them.

use dosmos_proto::Nanos;
use dosmos_trace::record::{Op, Record};

/// Whether an access goes to what comes after what the one before went to (or to what comes before it), such that one call
/// could do both: of reads other objects of the variable too, of writes other elements of the object.
pub fn upwards(before: &Record, record: &Record) -> Option<bool> {
    if before.object.var != record.object.var || before.op != record.op {
        return None;
    }
    if before.object == record.object {
        let ((first, end), (next_first, next_end)) = (before.range, record.range);
        let of_elements = first < end && next_first < next_end;
        return match of_elements {
            true if end == next_first => Some(true),
            true if next_end == first => Some(false),
            _ => None,
        };
    }
    (record.op == Op::Read).then_some(record.object.index > before.object.index)
}

/// Whether an access is a message of its own that carries one operation.
pub fn is_single(record: &Record) -> bool {
    let data = matches!(record.op, Op::Read | Op::Write);
    data && record.count <= 1 && !record.flags.in_process && !record.flags.atomic
}

/// Whether an access begins after the end of the one before, by at most the time that the longer of them took or `within`.
pub fn follows(before: &Record, record: &Record, within: Nanos) -> bool {
    let longest = record.duration.max(before.duration).max(within);
    record.start >= before.end() && record.start - before.end() <= longest
}

/// The longest that the way of a reply and of the next request is taken to be.
pub const LONGEST_HOP: Nanos = Nanos(250_000);
