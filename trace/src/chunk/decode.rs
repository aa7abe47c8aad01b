//! From a chunk to its columns, and to records.

use dosmos_proto::{ApId, MpId, Nanos, ObjectId};

use super::bits;
use super::layout::{
    COLUMN_HEADER, COLUMNS, ChunkError, Column, HEADER, Kind, MAGIC, MOST_RECORDS, OPS,
};
use super::symbols::{self, Symbols};
use crate::record::Record;
use crate::wire::kind_from;

/// What a column's values are compared with: for each record, the number of a context.
struct Contexts {
    of: Vec<u32>,
    count: usize,
}

impl Contexts {
    fn of<T>(symbols: &Symbols<T>) -> Self {
        Self {
            of: symbols.of.iter().map(|s| u32::from(*s)).collect(),
            count: symbols.values.len(),
        }
    }

    /// The same objects, each operation apart.
    fn by_op(objects: &Symbols<ObjectId>, kinds: &Symbols<Kind>) -> Self {
        let ops: Vec<u32> = kinds.values.iter().map(|k| k.op as u32).collect();
        let pairs = objects.of.iter().zip(&kinds.of);
        Self {
            of: pairs
                .map(|(o, k)| u32::from(*o) * OPS as u32 + ops[usize::from(*k)])
                .collect(),
            count: objects.values.len() * OPS,
        }
    }
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
                checksum: word(at + 4),
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

    /// Bytes of a column as stored.
    pub fn size_of(&self, column: Column) -> usize {
        self.columns[column as usize].bytes.len()
    }

    fn checked(&self, column: Column) -> Result<&'a [u8], ChunkError> {
        let stored = self.columns[column as usize];
        if crc32fast::hash(stored.bytes) == stored.checksum {
            Ok(stored.bytes)
        } else {
            Err(ChunkError::Damaged("column"))
        }
    }

    /// Compares all checksums, decoding nothing.
    ///
    /// # Errors
    /// If one does not hold.
    pub fn verify(&self) -> Result<(), ChunkError> {
        Column::ALL
            .into_iter()
            .try_for_each(|column| self.checked(column).map(|_| ()))
    }

    /// When each record starts.
    ///
    /// # Errors
    /// If the column is damaged. So for all other columns.
    pub fn starts(&self) -> Result<Vec<u64>, ChunkError> {
        let mut values = bits::unpack(self.checked(Column::Start)?, self.count)?;
        let mut before = 0u64;
        for value in &mut values {
            before = before.wrapping_add(*value);
            *value = before;
        }
        Ok(values)
    }

    /// The kind of each record.
    #[allow(missing_docs, clippy::missing_errors_doc)]
    pub fn kinds(&self) -> Result<Symbols<Kind>, ChunkError> {
        let symbols = symbols::take(self.checked(Column::Kind)?, self.count)?;
        symbols.map(|kind| {
            let damaged = ChunkError::Damaged("record kind");
            let kind = u32::try_from(kind).map_err(|_| damaged.clone())?;
            let (op, side, origin, flags) = kind_from(kind).map_err(|_| damaged)?;
            Ok(Kind {
                op,
                side,
                origin,
                flags,
            })
        })
    }

    /// The object of each record.
    #[allow(clippy::missing_errors_doc)]
    pub fn objects(&self) -> Result<Symbols<ObjectId>, ChunkError> {
        let symbols = symbols::take(self.checked(Column::Object)?, self.count)?;
        symbols.map(|o| Ok(ObjectId::from_wire(o)))
    }

    /// The application process of each record.
    #[allow(clippy::missing_errors_doc)]
    pub fn aps(&self) -> Result<Symbols<ApId>, ChunkError> {
        let symbols = symbols::take(self.checked(Column::Ap)?, self.count)?;
        symbols.map(|ap| Ok(ApId(ap as u32)))
    }

    /// One of the times, in the order of the records.
    fn times(&self, column: Column, kinds: &Symbols<Kind>) -> Result<Vec<u64>, ChunkError> {
        let by_kind = bits::unpack(self.checked(column)?, self.count)?;
        let mut places = kinds.places();
        let in_order = kinds.of.iter().map(|&kind| {
            let place = &mut places[usize::from(kind)];
            *place += 1;
            by_kind[*place - 1]
        });
        Ok(in_order.collect())
    }

    /// Hands out the waits of the records of some kinds that waited, in the order of the records: position and wait.
    ///
    /// # Errors
    /// If the column is damaged.
    pub fn each_wait(
        &self,
        kinds: &Symbols<Kind>,
        of: impl Fn(usize) -> bool,
        mut each: impl FnMut(usize, u64),
    ) -> Result<(), ChunkError> {
        let bytes = self.checked(Column::Wait)?;
        if bytes == bits::ZEROS {
            return Ok(());
        }
        let by_kind = bits::unpack(bytes, self.count)?;
        let mut places = kinds.places();
        // Most kinds never wait.
        let ends = places.iter().skip(1).copied().chain([self.count]);
        let waits: Vec<bool> = (0..)
            .zip(places.iter().zip(ends))
            .map(|(kind, (from, to))| of(kind) && by_kind[*from..to].iter().any(|w| *w > 0))
            .collect();
        for (i, kind) in kinds.of.iter().map(|k| usize::from(*k)).enumerate() {
            if waits[kind] {
                let wait = by_kind[places[kind]];
                places[kind] += 1;
                if wait > 0 {
                    each(i, wait);
                }
            }
        }
        Ok(())
    }

    /// Waits, and durations, of all records.
    ///
    /// # Errors
    /// If a column is damaged.
    pub fn waits_and_durations(
        &self,
        kinds: &Symbols<Kind>,
    ) -> Result<(Vec<u64>, Vec<u64>), ChunkError> {
        let waits = self.waits(kinds)?;
        let durations = self.durations(kinds, &waits, &self.services(kinds)?)?;
        Ok((waits, durations))
    }

    /// How long each record waited, in nanoseconds.
    #[allow(clippy::missing_errors_doc)]
    pub fn waits(&self, kinds: &Symbols<Kind>) -> Result<Vec<u64>, ChunkError> {
        self.times(Column::Wait, kinds)
    }

    /// How long each record was served at the owner, in nanoseconds.
    #[allow(clippy::missing_errors_doc)]
    pub fn services(&self, kinds: &Symbols<Kind>) -> Result<Vec<u64>, ChunkError> {
        self.times(Column::Service, kinds)
    }

    /// How long each record took, in nanoseconds, given what it waited and was served.
    #[allow(clippy::missing_errors_doc)]
    pub fn durations(
        &self,
        kinds: &Symbols<Kind>,
        waits: &[u64],
        services: &[u64],
    ) -> Result<Vec<u64>, ChunkError> {
        let mut durations = self.times(Column::Duration, kinds)?;
        for ((duration, wait), service) in durations.iter_mut().zip(waits).zip(services) {
            *duration = duration.wrapping_add(*wait.max(service));
        }
        Ok(durations)
    }

    /// A column of what hardly changes in a context.
    fn hardly_changing(&self, column: Column, contexts: &Contexts) -> Result<Vec<u64>, ChunkError> {
        let mut values = bits::unpack(self.checked(column)?, self.count)?;
        let mut last = vec![0u64; contexts.count];
        for (value, &context) in values.iter_mut().zip(&contexts.of) {
            let last = &mut last[context as usize];
            *last = last.wrapping_add(*value);
            *value = *last;
        }
        Ok(values)
    }

    /// The version of each record's object.
    #[allow(clippy::missing_errors_doc)]
    pub fn versions(&self, objects: &Symbols<ObjectId>) -> Result<Vec<u64>, ChunkError> {
        self.hardly_changing(Column::Version, &Contexts::of(objects))
    }

    /// The memory process that received each request.
    #[allow(clippy::missing_errors_doc)]
    pub fn mps(&self, aps: &Symbols<ApId>) -> Result<Vec<MpId>, ChunkError> {
        let mps = self.hardly_changing(Column::Mp, &Contexts::of(aps))?;
        Ok(mps.into_iter().map(|mp| MpId(mp as u32)).collect())
    }

    /// The memory process that owns each record's object.
    #[allow(clippy::missing_errors_doc)]
    pub fn peers(&self, objects: &Symbols<ObjectId>) -> Result<Vec<MpId>, ChunkError> {
        let peers = self.hardly_changing(Column::Peer, &Contexts::of(objects))?;
        Ok(peers.into_iter().map(|mp| MpId(mp as u32)).collect())
    }

    /// The bytes of each record.
    #[allow(clippy::missing_errors_doc)]
    pub fn bytes(
        &self,
        objects: &Symbols<ObjectId>,
        kinds: &Symbols<Kind>,
    ) -> Result<Vec<u64>, ChunkError> {
        self.hardly_changing(Column::Bytes, &Contexts::by_op(objects, kinds))
    }

    /// The element range of each record.
    ///
    /// # Errors
    /// If a column is damaged, or a range has no end.
    pub fn ranges(
        &self,
        objects: &Symbols<ObjectId>,
        kinds: &Symbols<Kind>,
    ) -> Result<Vec<(u32, u32)>, ChunkError> {
        let by_op = Contexts::by_op(objects, kinds);
        let firsts = self.hardly_changing(Column::First, &by_op)?;
        let lengths = self.hardly_changing(Column::Length, &by_op)?;
        let ranges = firsts.into_iter().zip(lengths).map(|(first, length)| {
            let first = first as u32;
            let end = first.checked_add(length as u32);
            Ok((first, end.ok_or(ChunkError::Damaged("record range"))?))
        });
        ranges.collect()
    }

    /// How many accesses each record stands for; none if each stands for one.
    ///
    /// # Errors
    /// If the column is damaged, or a count is too large.
    pub fn counts(&self) -> Result<Option<Vec<u32>>, ChunkError> {
        let bytes = self.checked(Column::Count)?;
        if bytes == bits::ZEROS {
            return Ok(None);
        }
        let counts = bits::unpack(bytes, self.count)?.into_iter().map(|more| {
            let count = more.checked_add(1).and_then(|n| u32::try_from(n).ok());
            count.ok_or(ChunkError::Damaged("count of accesses"))
        });
        counts.collect::<Result<_, _>>().map(Some)
    }

    /// All records.
    ///
    /// # Errors
    /// If a column is damaged or a record means nothing.
    pub fn records(&self) -> Result<Vec<Record>, ChunkError> {
        let (kinds, objects, aps) = (self.kinds()?, self.objects()?, self.aps()?);
        let starts = self.starts()?;
        let (waits, services) = (self.waits(&kinds)?, self.services(&kinds)?);
        let durations = self.durations(&kinds, &waits, &services)?;
        let (mps, peers) = (self.mps(&aps)?, self.peers(&objects)?);
        let bytes = self.bytes(&objects, &kinds)?;
        let versions = self.versions(&objects)?;
        let ranges = self.ranges(&objects, &kinds)?;
        let counts = self.counts()?;
        (0..self.count)
            .map(|i| {
                let kind = kinds.at(i);
                Ok(Record {
                    start: Nanos(starts[i]),
                    duration: Nanos(durations[i]),
                    wait: Nanos(waits[i]),
                    service: Nanos(services[i]),
                    op: kind.op,
                    side: kind.side,
                    origin: kind.origin,
                    flags: kind.flags,
                    object: objects.at(i),
                    ap: aps.at(i),
                    mp: mps[i],
                    peer: peers[i],
                    count: counts.as_ref().map_or(1, |counts| counts[i]),
                    bytes: bytes[i],
                    version: versions[i],
                    range: ranges[i],
                })
            })
            .collect()
    }
}
