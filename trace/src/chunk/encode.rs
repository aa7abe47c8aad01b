//! From records to a chunk and its summary.
//!
//! Records are rows of about a hundred bytes, columns are what is packed: making a chunk is mostly moving
//! memory. So the rows are read twice only: once to number what has few values, once, a
//! cache's worth at a time, for everything that is stored in relation to those.

use super::bits;
use super::block::Sign;
use super::layout::{COLUMNS, HEADER, MAGIC, MOST_RECORDS, OPS};
use super::squeeze::Squeezer;
use super::summary::{Seen, Span, Summary};
use super::symbols::{self, Interner};
use crate::record::Record;
use crate::wire::kind_of;

/// Rows that stay in the processor's first cache, between looking at their times and at the rest.
const ROWS: usize = 128;

/// Encodes at most [`MOST_RECORDS`] records; of many chunks, [`Encoder`] is quicker.
///
/// # Panics
/// If there are more: the caller cuts them.
pub fn encode(records: &[Record]) -> Vec<u8> {
    Encoder::new().encode(records).bytes
}

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
    span: Span,
    starts: Vec<u64>,
    times: Times,
    changes: Changes,
    squeezer: Squeezer,
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
            span: Span::NONE,
            starts: Vec::new(),
            times: Times::default(),
            changes: Changes::default(),
            squeezer: Squeezer::default(),
        }
    }

    /// Encodes at most [`MOST_RECORDS`] records.
    ///
    /// # Panics
    /// If there are more: the caller cuts them.
    pub fn encode(&mut self, records: &[Record]) -> Encoded {
        assert!(
            records.len() <= MOST_RECORDS,
            "a chunk holds {MOST_RECORDS} records"
        );
        self.number(records);
        self.relate(records);
        let mut parts = Parts {
            header: Vec::with_capacity(HEADER + records.len() * 8),
            body: Vec::with_capacity(records.len() * 8),
        };
        parts.header.extend_from_slice(MAGIC);
        let count = records.len() as u32;
        parts.header.extend_from_slice(&count.to_le_bytes());
        parts.header.push(COLUMNS as u8);
        self.write(&mut parts, records.len());
        let checksum = crc32fast::hash(&parts.header);
        parts.header.extend_from_slice(&checksum.to_le_bytes());
        parts.header.extend_from_slice(&parts.body);
        let seen = Seen {
            span: self.span,
            waits: &self.times.waiting,
            extra: &self.changes.counts,
            kinds: &self.kinds.symbols,
            objects: &self.objects.symbols,
            aps: &self.aps.symbols,
        };
        Encoded {
            bytes: parts.header,
            summary: Summary::with_symbols(&seen),
        }
    }

    /// Numbers kinds, objects and application processes; takes the starts on the way.
    fn number(&mut self, records: &[Record]) {
        let [kinds, objects, aps] = [&mut self.kinds, &mut self.objects, &mut self.aps];
        kinds.begin(records.len());
        objects.begin(records.len());
        aps.begin(records.len());
        self.starts.resize(records.len(), 0);
        let mut span = Span::NONE;
        let mut before = 0u64;
        let symbols = kinds.symbols.of.iter_mut().zip(&mut objects.symbols.of);
        let symbols = symbols.zip(&mut aps.symbols.of).zip(&mut self.starts);
        for (r, (((kind, object), ap), start)) in records.iter().zip(symbols) {
            *kind = kinds.numbers.of(kind_of(r).into());
            *object = objects.numbers.of(r.object.to_wire());
            *ap = aps.numbers.of(r.ap.0.into());
            span.add(r);
            *start = r.start.0.wrapping_sub(before);
            before = r.start.0;
        }
        self.span = span;
        kinds.finish();
        objects.finish();
        aps.finish();
    }

    /// Takes everything else: times in order of kind, and what changed for an object or process.
    fn relate(&mut self, records: &[Record]) {
        let [kinds, objects, aps] = [&self.kinds, &self.objects, &self.aps].map(|i| &i.symbols);
        self.times.begin(records.len(), kinds.places());
        self.changes
            .begin(aps.values.len(), objects.values.len(), &kinds.values);
        let symbols = kinds.of.chunks(ROWS).zip(objects.of.chunks(ROWS));
        let rows = records.chunks(ROWS).zip(symbols.zip(aps.of.chunks(ROWS)));
        for (from, (rows, ((kinds, objects), aps))) in (0u16..).step_by(ROWS).zip(rows) {
            self.times.take(from, rows, kinds);
            self.changes.take(from, rows, kinds, objects, aps);
        }
    }

    /// Writes the columns, in the order of [`Column::ALL`](super::layout::Column::ALL).
    fn write(&mut self, parts: &mut Parts, count: usize) {
        let squeezer = &mut self.squeezer;
        for interner in [&self.kinds, &self.objects, &self.aps] {
            parts.column(|out| symbols::put(&interner.symbols, squeezer, out));
        }
        parts.column(|out| bits::pack(&self.starts, Sign::Signed, squeezer, out));
        let times = &self.times;
        for values in [&times.durations, &times.waits, &times.services] {
            parts.column(|out| bits::pack(values, Sign::Unsigned, squeezer, out));
        }
        let c = &self.changes;
        for changes in [
            &c.mps,
            &c.peers,
            &c.bytes,
            &c.versions,
            &c.firsts,
            &c.lengths,
            &c.counts,
        ] {
            parts.column(|out| bits::pack_changes(changes, count, out));
        }
    }
}

/// Durations (without the longer of wait and service), waits and services, in order of kind.
#[derive(Default)]
struct Times {
    /// Where the next record of each kind goes.
    places: Vec<usize>,
    durations: Vec<u64>,
    waits: Vec<u64>,
    services: Vec<u64>,
    /// Positions of the records that waited, and how long.
    waiting: Vec<(u16, u64)>,
}

impl Times {
    fn begin(&mut self, count: usize, places: Vec<usize>) {
        self.places = places;
        // Of every record there is a duration and a service, not a wait.
        self.durations.resize(count, 0);
        self.services.resize(count, 0);
        self.waits.clear();
        self.waits.resize(count, 0);
        self.waiting.clear();
    }

    /// Takes rows, of which the first stands at `from`.
    fn take(&mut self, from: u16, rows: &[Record], kinds: &[u16]) {
        for (i, (r, kind)) in (from..).zip(rows.iter().zip(kinds)) {
            let next = &mut self.places[usize::from(*kind)];
            let place = *next;
            *next += 1;
            self.durations[place] = r.duration.0.wrapping_sub(r.wait.0.max(r.service.0));
            self.services[place] = r.service.0;
            if r.wait.0 != 0 {
                self.waits[place] = r.wait.0;
                self.waiting.push((i, r.wait.0));
            }
        }
    }
}

/// Where a record differs from the one before of the same process, object, or object and operation: positions
/// and differences.
#[derive(Default)]
struct Changes {
    /// What was last seen of each application process.
    of_ap: Vec<u32>,
    of_object: Vec<OfObject>,
    of_op: Vec<OfOp>,
    /// The operation of each kind.
    ops: Vec<usize>,
    mps: Vec<(u16, u64)>,
    peers: Vec<(u16, u64)>,
    bytes: Vec<(u16, u64)>,
    versions: Vec<(u16, u64)>,
    firsts: Vec<(u16, u64)>,
    lengths: Vec<(u16, u64)>,
    /// Positions of the records that stand for several accesses, and how many more than one.
    counts: Vec<(u16, u64)>,
}

/// What was last seen of an object.
#[derive(Clone, Copy, Default, PartialEq)]
struct OfObject {
    version: u64,
    peer: u32,
}

/// What was last seen of an operation on an object.
#[derive(Clone, Copy, Default, PartialEq)]
struct OfOp {
    bytes: u64,
    first: u32,
    length: u32,
}

/// Notes the difference to the value before, if there is one.
fn compare(i: u16, value: impl Into<u64>, before: impl Into<u64>, changes: &mut Vec<(u16, u64)>) {
    let difference = value.into().wrapping_sub(before.into());
    if difference != 0 {
        changes.push((i, difference));
    }
}

impl Changes {
    fn begin(&mut self, aps: usize, objects: usize, kinds: &[u64]) {
        self.of_ap.clear();
        self.of_ap.resize(aps, 0);
        self.of_object.clear();
        self.of_object.resize(objects, OfObject::default());
        self.of_op.clear();
        self.of_op.resize(objects * OPS, OfOp::default());
        self.ops = kinds.iter().map(|k| *k as usize % OPS).collect();
        for changes in [
            &mut self.mps,
            &mut self.peers,
            &mut self.bytes,
            &mut self.versions,
            &mut self.firsts,
            &mut self.lengths,
            &mut self.counts,
        ] {
            changes.clear();
        }
    }

    /// Takes rows, of which the first stands at `from`.
    fn take(&mut self, from: u16, rows: &[Record], kinds: &[u16], objects: &[u16], aps: &[u16]) {
        let symbols = kinds.iter().zip(objects).zip(aps);
        for (i, (r, ((kind, object), ap))) in (from..).zip(rows.iter().zip(symbols)) {
            let object = usize::from(*object);
            let op = self.ops[usize::from(*kind)];
            let mp = r.mp.0;
            let of_ap = std::mem::replace(&mut self.of_ap[usize::from(*ap)], mp);
            if mp != of_ap {
                compare(i, mp, of_ap, &mut self.mps);
            }
            let new = OfObject {
                version: r.version,
                peer: r.peer.0,
            };
            let old = std::mem::replace(&mut self.of_object[object], new);
            if new != old {
                compare(i, new.peer, old.peer, &mut self.peers);
                compare(i, new.version, old.version, &mut self.versions);
            }
            let new = OfOp {
                bytes: r.bytes,
                first: r.range.0,
                length: r.range.1.wrapping_sub(r.range.0),
            };
            if r.count > 1 {
                self.counts.push((i, u64::from(r.count - 1)));
            }
            let old = std::mem::replace(&mut self.of_op[object * OPS + op], new);
            if new != old {
                compare(i, new.bytes, old.bytes, &mut self.bytes);
                compare(i, new.first, old.first, &mut self.firsts);
                compare(i, new.length, old.length, &mut self.lengths);
            }
        }
    }
}
