//! Keys of the one tree of a database: a letter for the kind, then a big-endian number.

/// A chunk of records, by its number in the log.
pub(super) const CHUNK: u8 = b'C';
/// The events between the records of the chunk of the same number.
pub(super) const EVENTS: u8 = b'E';
/// The summary of the chunk of the same number.
pub(super) const SUMMARY: u8 = b'S';
/// The mark of a memory process's last batch, by its number.
pub(super) const MARK: u8 = b'M';

/// Of a chunk that took others in: the number of the last one.
pub(super) const MERGED: u8 = b'R';
/// What was known when a database was begun (events in pieces): for when those before it are gone.
pub(super) const DICTIONARY: u8 = b'D';

/// The key of entry `number` of a kind.
pub(super) fn key(kind: u8, number: u64) -> [u8; 9] {
    let mut key = [kind; 9];
    key[1..].copy_from_slice(&number.to_be_bytes());
    key
}

/// The number in a key.
pub(super) fn number(key: &[u8]) -> Option<u64> {
    Some(u64::from_be_bytes(key.get(1..)?.try_into().ok()?))
}
