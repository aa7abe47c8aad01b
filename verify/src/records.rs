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
