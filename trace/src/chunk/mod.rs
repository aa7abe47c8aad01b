//! Chunks: up to [`MOST_RECORDS`] records as compressed columns, and a summary of each.
//!
//! Layout, little-endian: magic `DSC1`, number of records (u32), number of columns (u8), then for each
//! column its length in bytes (u32), its length unpacked (u32; equal if not compressed) and CRC32; the
//! CRC32 of all that; then the columns. A reader decodes only the columns it needs, checks only
//! those, and never allocates by a length the chunk merely claims.

mod bits;
mod summary;

use dosmos_proto::{ApId, MpId, Nanos, ObjectId, VarId};

use crate::record::Record;
use crate::wire::{kind_from, kind_of};

pub use summary::{Cell, Summary};

/// Most records in a chunk: some 16 to 60 KiB encoded, which suits the store's engine.
pub const MOST_RECORDS: usize = 8192;

const MAGIC: &[u8; 4] = b"DSC1";
const COLUMNS: usize = Column::ALL.len();
const COLUMN_HEADER: usize = 12;
const HEADER: usize = 4 + 4 + 1 + COLUMNS * COLUMN_HEADER + 4;

/// Why bytes are no chunk.
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
    Start,
    Duration,
    Wait,
    Service,
    Kind,
    Variable,
    Object,
    Ap,
    Mp,
    Peer,
    Bytes,
    Version,
    First,
    Length,
}

impl Column {
    /// All of them, in the order they are stored.
    pub const ALL: [Self; 14] = [
        Self::Start,
        Self::Duration,
        Self::Wait,
        Self::Service,
        Self::Kind,
        Self::Variable,
        Self::Object,
        Self::Ap,
        Self::Mp,
        Self::Peer,
        Self::Bytes,
        Self::Version,
        Self::First,
        Self::Length,
    ];

    fn of(self, r: &Record) -> u64 {
        match self {
            Self::Start => r.start.0,
            Self::Duration => r.duration.0,
            Self::Wait => r.wait.0,
            Self::Service => r.service.0,
            Self::Kind => kind_of(r).into(),
            Self::Variable => r.object.var.0.into(),
            Self::Object => r.object.index.into(),
            Self::Ap => r.ap.0.into(),
            Self::Mp => r.mp.0.into(),
            Self::Peer => r.peer.0.into(),
            Self::Bytes => r.bytes.into(),
            Self::Version => r.version,
            Self::First => r.range.0.into(),
            Self::Length => r.range.1.wrapping_sub(r.range.0).into(),
        }
    }

    /// Stored as differences to the record before.
    fn is_delta(self) -> bool {
        matches!(self, Self::Start)
    }
}

/// Encodes at most [`MOST_RECORDS`] records.
///
/// # Panics
/// If there are more: the caller cuts them.
pub fn encode(records: &[Record]) -> Vec<u8> {
    assert!(
        records.len() <= MOST_RECORDS,
        "a chunk holds {MOST_RECORDS} records"
    );
    let mut header = Vec::with_capacity(HEADER);
    header.extend_from_slice(MAGIC);
    header.extend_from_slice(&(records.len() as u32).to_le_bytes());
    header.push(COLUMNS as u8);
    let mut body = Vec::new();
    let mut packed = Vec::new();
    for column in Column::ALL {
        let values: Vec<u64> = records.iter().map(|r| column.of(r)).collect();
        packed.clear();
        if column.is_delta() {
            bits::pack(&bits::delta(&values), &mut packed);
        } else {
            bits::pack(&values, &mut packed);
        }
        // Compression that fails or does not pay leaves the packed bytes as they are.
        let compressed = zstd::bulk::compress(&packed, 1).ok();
        let stored = match &compressed {
            Some(c) if c.len() < packed.len() => c,
            _ => &packed,
        };
        header.extend_from_slice(&(stored.len() as u32).to_le_bytes());
        header.extend_from_slice(&(packed.len() as u32).to_le_bytes());
        header.extend_from_slice(&crc32fast::hash(stored).to_le_bytes());
        body.extend_from_slice(stored);
    }
    let checksum = crc32fast::hash(&header);
    header.extend_from_slice(&checksum.to_le_bytes());
    header.extend_from_slice(&body);
    header
}

/// A chunk whose header has been checked.
#[derive(Clone, Debug)]
pub struct Chunk<'a> {
    count: usize,
    columns: [Stored<'a>; COLUMNS],
}

#[derive(Clone, Copy, Debug, Default)]
struct Stored<'a> {
    bytes: &'a [u8],
    unpacked: usize,
    checksum: u32,
}

impl<'a> Chunk<'a> {
    /// Checks the header.
    ///
    /// # Errors
    /// If it is none, or does not fit the bytes.
    pub fn open(bytes: &'a [u8]) -> Result<Self, ChunkError> {
        if bytes.get(..4) != Some(MAGIC) {
            return Err(ChunkError::NotAChunk);
        }
        let damaged = || ChunkError::Damaged("chunk header");
        let (header, mut body) = bytes.split_at_checked(HEADER).ok_or_else(damaged)?;
        let word = |at: usize| {
            let mut word = [0; 4];
            word.copy_from_slice(&header[at..at + 4]);
            u32::from_le_bytes(word)
        };
        let count = word(4) as usize;
        if crc32fast::hash(&header[..HEADER - 4]) != word(HEADER - 4)
            || count > MOST_RECORDS
            || usize::from(header[8]) != COLUMNS
        {
            return Err(damaged());
        }
        let mut columns = [Stored::default(); COLUMNS];
        for (i, column) in columns.iter_mut().enumerate() {
            let at = 9 + i * COLUMN_HEADER;
            let (here, rest) = body
                .split_at_checked(word(at) as usize)
                .ok_or_else(damaged)?;
            body = rest;
            *column = Stored {
                bytes: here,
                unpacked: word(at + 4) as usize,
                checksum: word(at + 8),
            };
        }
        if body.is_empty() {
            Ok(Self { count, columns })
        } else {
            Err(damaged())
        }
    }

    /// Number of records.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The values of one column.
    ///
    /// # Errors
    /// If its checksum or structure do not hold.
    pub fn column(&self, column: Column) -> Result<Vec<u64>, ChunkError> {
        let stored = self.columns[column as usize];
        let damaged = || ChunkError::Damaged("column");
        if crc32fast::hash(stored.bytes) != stored.checksum
            || stored.unpacked > bits::packed_bound(self.count)
        {
            return Err(damaged());
        }
        let unpacked;
        let bytes = if stored.bytes.len() == stored.unpacked {
            stored.bytes
        } else {
            unpacked =
                zstd::bulk::decompress(stored.bytes, stored.unpacked).map_err(|_| damaged())?;
            &unpacked
        };
        let mut values = bits::unpack(bytes, self.count)?;
        if column.is_delta() {
            bits::undelta(&mut values);
        }
        Ok(values)
    }

    /// All records.
    ///
    /// # Errors
    /// If a column is damaged or a record means nothing.
    pub fn records(&self) -> Result<Vec<Record>, ChunkError> {
        let mut columns: [Vec<u64>; COLUMNS] = Default::default();
        for (column, values) in Column::ALL.into_iter().zip(&mut columns) {
            *values = self.column(column)?;
        }
        let at = |c: Column, i: usize| columns[c as usize][i];
        (0..self.count)
            .map(|i| {
                let kind = at(Column::Kind, i) as u32;
                let (op, side, origin, flags) =
                    kind_from(kind).map_err(|_| ChunkError::Damaged("record kind"))?;
                let first = at(Column::First, i) as u32;
                Ok(Record {
                    start: Nanos(at(Column::Start, i)),
                    duration: Nanos(at(Column::Duration, i)),
                    wait: Nanos(at(Column::Wait, i)),
                    service: Nanos(at(Column::Service, i)),
                    op,
                    side,
                    origin,
                    flags,
                    object: ObjectId::new(
                        VarId(at(Column::Variable, i) as u32),
                        at(Column::Object, i) as u32,
                    ),
                    ap: ApId(at(Column::Ap, i) as u32),
                    mp: MpId(at(Column::Mp, i) as u32),
                    peer: MpId(at(Column::Peer, i) as u32),
                    bytes: at(Column::Bytes, i) as u32,
                    version: at(Column::Version, i),
                    range: (first, first.wrapping_add(at(Column::Length, i) as u32)),
                })
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::records;
    use proptest::prelude::*;

    /// Four processes that sweep over the rows of a grid and meet at a barrier, as SOR does.
    fn ordinary() -> Vec<Record> {
        let mut noise = 1u64;
        let mut records = Vec::new();
        for i in 0..MOST_RECORDS as u64 {
            noise = noise
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(99);
            let (ap, round, step) = ((i % 4) as u32, i / 4 / 16, i / 4 % 16);
            let op =
                crate::Op::from_number([1, 1, 2, 4][step as usize % 4]).unwrap_or(crate::Op::Read);
            records.push(Record {
                start: Nanos(1_700_000_000_000_000_000 + i * 7_000 + noise % 4_096),
                duration: Nanos(1_000 + (noise >> 32) % 30_000),
                wait: Nanos(0),
                service: Nanos((noise >> 20) % 2_000),
                op,
                side: crate::Side::Requester,
                origin: crate::Origin::ALL[usize::from(step == 0)],
                flags: crate::record::Flags::default(),
                object: ObjectId::new(VarId(1 << 20), ap * 16 + step as u32),
                ap: ApId(ap),
                mp: MpId(ap),
                peer: MpId(ap),
                bytes: 8_192,
                version: round,
                range: (0, 1_024),
            });
        }
        records
    }

    #[test]
    fn a_full_chunk_of_ordinary_records_is_of_the_size_that_suits_the_engine() {
        let bytes = encode(&ordinary()).len();
        assert!((16 << 10..64 << 10).contains(&bytes), "{bytes} bytes");
    }

    proptest! {
        #[test]
        fn chunks_read_back(list in prop::collection::vec(records(), 0..600)) {
            let bytes = encode(&list);
            prop_assert_eq!(Chunk::open(&bytes).unwrap().records().unwrap(), list);
        }

        #[test]
        fn a_flipped_bit_is_noticed(
            list in prop::collection::vec(records(), 1..100), at in any::<prop::sample::Index>(), bit in 0u8..8,
        ) {
            let mut bytes = encode(&list);
            let at = at.index(bytes.len());
            bytes[at] ^= 1 << bit;
            let read = Chunk::open(&bytes).and_then(|c| c.records());
            prop_assert!(read.is_err());
        }

        #[test]
        fn a_cut_chunk_is_noticed(list in prop::collection::vec(records(), 1..100), at in any::<prop::sample::Index>()) {
            let bytes = encode(&list);
            let cut = &bytes[..at.index(bytes.len())];
            prop_assert!(Chunk::open(cut).and_then(|c| c.records()).is_err());
        }

        #[test]
        fn any_bytes_give_records_or_an_error(mut bytes in prop::collection::vec(any::<u8>(), 0..400), magic in any::<bool>()) {
            if magic && bytes.len() >= 4 {
                bytes[..4].copy_from_slice(MAGIC);
            }
            prop_assert!(Chunk::open(&bytes).and_then(|c| c.records()).is_err());
        }
    }
}
