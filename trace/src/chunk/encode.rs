//! From records to a chunk and its summary.

use super::bits::{self, Sign};
use super::symbols::{self, Interner};
use super::{COLUMNS, Contexts, HEADER, MAGIC, MOST_RECORDS, Summary, kind_places};
use crate::record::{Op, Record};
use crate::wire::kind_of;

/// A chunk and what it holds.
#[derive(Clone, Debug)]
pub struct Encoded {
    /// The chunk.
    pub bytes: Vec<u8>,
    /// Its summary; none if it has no records.
    pub summary: Option<Summary>,
}

/// Makes chunks. Keeps what one chunk's making can lend to the next: memory, and the compressor.
pub struct Encoder {
    kinds: Interner,
    objects: Interner,
    aps: Interner,
    values: Vec<u64>,
    compressor: Option<zstd::bulk::Compressor<'static>>,
}

impl std::fmt::Debug for Encoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Encoder")
    }
}

impl Default for Encoder {
    fn default() -> Self {
        Self::new()
    }
}

/// What of a record a column holds.
type Field = fn(&Record) -> u64;

/// The parts of a chunk as they come.
struct Parts {
    header: Vec<u8>,
    body: Vec<u8>,
}

impl Parts {
    fn column(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let at = self.body.len();
        write(&mut self.body);
        let here = &self.body[at..];
        let (length, checksum) = (here.len() as u32, crc32fast::hash(here));
        self.header.extend_from_slice(&length.to_le_bytes());
        self.header.extend_from_slice(&checksum.to_le_bytes());
    }
}

impl Encoder {
    /// An encoder.
    pub fn new() -> Self {
        Self {
            kinds: Interner::new(),
            objects: Interner::new(),
            aps: Interner::new(),
            values: Vec::new(),
            compressor: None,
        }
    }

    /// Encodes at most [`MOST_RECORDS`] records.
    ///
    /// # Panics
    /// If there are more: the caller cuts them. Or if the system has no memory for a compressor.
    pub fn encode(&mut self, records: &[Record]) -> Encoded {
        assert!(
            records.len() <= MOST_RECORDS,
            "a chunk holds {MOST_RECORDS} records"
        );
        self.kinds.take(records.iter().map(|r| kind_of(r).into()));
        self.objects
            .take(records.iter().map(|r| r.object.to_wire()));
        self.aps.take(records.iter().map(|r| r.ap.0.into()));
        let mut parts = Parts {
            header: Vec::with_capacity(HEADER + records.len() * 8),
            body: Vec::with_capacity(records.len() * 8),
        };
        parts.header.extend_from_slice(MAGIC);
        let count = records.len() as u32;
        parts.header.extend_from_slice(&count.to_le_bytes());
        parts.header.push(COLUMNS as u8);
        self.symbols(&mut parts);
        self.start(&mut parts, records);
        self.times(&mut parts, records);
        self.rest(&mut parts, records);
        let checksum = crc32fast::hash(&parts.header);
        parts.header.extend_from_slice(&checksum.to_le_bytes());
        parts.header.extend_from_slice(&parts.body);
        Encoded {
            bytes: parts.header,
            summary: Summary::with_symbols(
                records,
                &self.kinds.symbols,
                &self.objects.symbols,
                &self.aps.symbols,
            ),
        }
    }

    fn symbols(&mut self, parts: &mut Parts) {
        let made = || symbols::compressor().expect("memory for a compressor");
        let compressor = self.compressor.get_or_insert_with(made);
        for interner in [&self.kinds, &self.objects, &self.aps] {
            parts.column(|out| symbols::put(&interner.symbols, compressor, out));
        }
    }

    fn start(&mut self, parts: &mut Parts, records: &[Record]) {
        let mut before = 0u64;
        self.values.clear();
        self.values.extend(records.iter().map(|r| {
            let difference = r.start.0.wrapping_sub(before);
            before = r.start.0;
            difference
        }));
        parts.column(|out| bits::pack(&self.values, Sign::Signed, out));
    }

    /// Duration, wait and service, in order of kind.
    fn times(&mut self, parts: &mut Parts, records: &[Record]) {
        let columns: [fn(&Record) -> u64; 3] = [
            |r| r.duration.0.wrapping_sub(r.wait.0.max(r.service.0)),
            |r| r.wait.0,
            |r| r.service.0,
        ];
        let kinds = &self.kinds.symbols;
        let begins = kind_places(kinds);
        self.values.clear();
        self.values.resize(records.len(), 0);
        for value in columns {
            let mut places = begins.clone();
            for (record, &kind) in records.iter().zip(&kinds.of) {
                let place = &mut places[usize::from(kind)];
                self.values[*place] = value(record);
                *place += 1;
            }
            parts.column(|out| bits::pack(&self.values, Sign::Unsigned, out));
        }
    }

    /// What hardly changes for one process or object.
    fn rest(&mut self, parts: &mut Parts, records: &[Record]) {
        let op = |kind: &u64| Op::from_number(*kind as u32 & 7).unwrap_or(Op::Read);
        let by_ap = Contexts::of(&self.aps.symbols);
        let by_object = Contexts::of(&self.objects.symbols);
        let by_op = Contexts::by_op(&self.objects.symbols, &self.kinds.symbols, op);
        let columns: [(&Contexts, Field); 6] = [
            (&by_ap, |r| r.mp.0.into()),
            (&by_object, |r| r.peer.0.into()),
            (&by_op, |r| r.bytes.into()),
            (&by_object, |r| r.version),
            (&by_op, |r| r.range.0.into()),
            (&by_op, |r| r.range.1.wrapping_sub(r.range.0).into()),
        ];
        let mut last = Vec::new();
        for (contexts, value) in columns {
            last.clear();
            last.resize(contexts.count, 0u64);
            self.values.clear();
            let with_context = records.iter().zip(&contexts.of);
            self.values.extend(with_context.map(|(record, &context)| {
                let value = value(record);
                let last = &mut last[context as usize];
                let difference = value.wrapping_sub(*last);
                *last = value;
                difference
            }));
            parts.column(|out| bits::pack(&self.values, Sign::Signed, out));
        }
    }
}
