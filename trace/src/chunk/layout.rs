//! What a chunk consists of, for those who write it and those who read it.

use crate::record::{Flags, Op, Origin, Side};

/// Most records in a chunk: some 16 to 60 KiB encoded, which suits the store's engine.
pub const MOST_RECORDS: usize = 8192;

/// Operations' numbers are below this.
pub(super) const OPS: usize = 8;
pub(super) const MAGIC: &[u8; 4] = b"DSC4";
pub(super) const COLUMNS: usize = Column::ALL.len();
pub(super) const COLUMN_HEADER: usize = 8;
pub(super) const HEADER: usize = 4 + 4 + 1 + COLUMNS * COLUMN_HEADER + 4;

/// Why bytes are not a chunk.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ChunkError {
    /// Another format, or a newer version.
    #[error("not a chunk of this version")]
    NotAChunk,
    /// Checksum or structure of a part do not hold.
    #[error("damaged {0}")]
    Damaged(&'static str),
}

/// The columns of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // the fields of a record
pub enum Column {
    Kind,
    Object,
    Ap,
    Start,
    Duration,
    Wait,
    Service,
    Mp,
    Peer,
    Bytes,
    Version,
    First,
    Length,
    Count,
}

impl Column {
    /// All of them, in the order they are stored.
    pub const ALL: [Self; 14] = [
        Self::Kind,
        Self::Object,
        Self::Ap,
        Self::Start,
        Self::Duration,
        Self::Wait,
        Self::Service,
        Self::Mp,
        Self::Peer,
        Self::Bytes,
        Self::Version,
        Self::First,
        Self::Length,
        Self::Count,
    ];
}

/// What kind of record it is: all that has few values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind {
    /// What was done.
    pub op: Op,
    /// Who made the record.
    pub side: Side,
    /// How far it went.
    pub origin: Origin,
    /// What else is to be said.
    pub flags: Flags,
}
