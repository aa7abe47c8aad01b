//! The ways of keeping records: each writes the whole workload durably, closes, opens again and reads it.

use std::fs::File;
use std::io::{BufReader, Read, Write};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, ensure};
use dosmos_proto::{EmpId, MpId, Nanos, ObjectId};
use dosmos_testkit::reference::{self, Workload};
use dosmos_trace::chunk::{Encoder, MOST_RECORDS};
use dosmos_trace::query::Filter;
use dosmos_trace::record::{Op, Origin, Record};
use dosmos_trace::store::{BatchMark, Commit, Event, Identity, Scanned, StoreSource, StoreWriter};

use super::figures::Figures;
use super::usage::{self, Meter};
use crate::args::{Method, StoreArgs};

/// Bytes of a record as a row.
const ROW: usize = 76;
/// Bytes of a row's key.
const KEY: usize = 8;

/// Runs one method in this process.
pub(super) fn measure(method: Method, args: &StoreArgs) -> anyhow::Result<Figures> {
    usage::one_processor()?;
    let dir = match &args.dir {
        Some(dir) => tempfile::tempdir_in(dir),
        None => tempfile::tempdir(),
    };
    let dir = dir.context("no place for the store")?;
    let run = Run {
        records: match method {
            Method::OneKey => args.one_key_records,
            _ => args.records,
        },
        commit: args.commit,
        seed: args.seed,
        six_fields: method == Method::SixFields,
    };
    match method {
        Method::Chunks | Method::SixFields => run.chunks(&dir.path().join("store")),
        Method::File => run.file(&dir.path().join("records")),
        Method::OneKey => run.one_key(&dir.path().join("db")),
    }
}

struct Run {
    records: u64,
    commit: usize,
    seed: u64,
    six_fields: bool,
}

/// What tells whether everything written was read: number, and sums that depend on every field.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sums {
    records: u64,
    mixed: u64,
}

impl Sums {
    fn add(&mut self, s: Scanned) {
        let kind = (s.op as u64) << 8 | s.origin as u64;
        self.records += 1;
        self.mixed = self
            .mixed
            .wrapping_add(s.start.0 ^ s.object.to_wire().rotate_left(13) ^ kind << 50);
    }
}

/// What writing cost, and what is to be read.
struct Written {
    encoded_bytes: u64,
    encode: Option<Duration>,
    write: Meter,
    peak_bytes: u64,
    sums: Sums,
}

impl Run {
    /// Hands out the workload a commit at a time.
    fn each_commit(
        &self,
        mut each: impl FnMut(&[Record]) -> anyhow::Result<()>,
    ) -> anyhow::Result<Sums> {
        let mut workload = Workload::new(self.seed);
        let mut left = self.records;
        let mut sums = Sums::default();
        while left > 0 {
            let here = left.min(self.commit as u64);
            let mut records = workload.take_records(here as usize);
            if self.six_fields {
                records
                    .iter_mut()
                    .for_each(|r| *r = reference::six_fields(r));
            }
            records.iter().for_each(|r| sums.add(seen(r)));
            each(&records)?;
            left -= here;
        }
        Ok(sums)
    }

    fn figures(
        &self,
        path: &Path,
        written: &Written,
        scan: impl FnOnce(&mut Sums, &mut Meter) -> anyhow::Result<()>,
    ) -> anyhow::Result<Figures> {
        usage::reset_peak()?;
        let (mut read, mut meter) = (Sums::default(), Meter::default());
        scan(&mut read, &mut meter)?;
        ensure!(
            read == written.sums,
            "{read:?} was read of {:?} written",
            written.sums
        );
        Ok(Figures {
            records: self.records,
            encoded_bytes: written.encoded_bytes,
            disk_bytes: usage::disk_bytes(path)?,
            encode_seconds: written.encode.map(|e| e.as_secs_f64()),
            write_seconds: written.write.elapsed.as_secs_f64(),
            write_cpu_seconds: written.write.cpu.as_secs_f64(),
            write_peak_bytes: written.peak_bytes,
            scan_seconds: meter.elapsed.as_secs_f64(),
            scan_cpu_seconds: meter.cpu.as_secs_f64(),
            scan_peak_bytes: usage::peak()?,
        })
    }

    fn chunks(&self, path: &Path) -> anyhow::Result<Figures> {
        let (mut encoder, mut encode) = (Encoder::new(), Meter::default());
        self.each_commit(|records| {
            encode.measure(|| {
                records.chunks(MOST_RECORDS).for_each(|chunk| {
                    std::hint::black_box(encoder.encode(chunk));
                });
            });
            Ok(())
        })?;
        usage::reset_peak()?;
        let identity = Identity {
            run: dosmos_trace::run::RunId::from_bits(1),
            event_manager: "emp0".to_owned(),
            emp: EmpId(0),
            topology: reference::topology(),
        };
        let mut write = Meter::default();
        let (mut store, _) = StoreWriter::open(path, &identity)?;
        let mut sequence = 0;
        let sums = self.each_commit(|records| {
            sequence += 1;
            let commit = Commit {
                marks: vec![BatchMark {
                    mp: MpId(0),
                    incarnation: 1,
                    sequence,
                    until: Default::default(),
                }],
                records: records.to_vec(),
                events: match sequence {
                    1 => declarations(),
                    _ => Vec::new(),
                },
            };
            Ok(write.measure(|| store.commit(&commit))?)
        })?;
        let encoded_bytes = store.view().usage().encoded;
        write.measure(|| store.close())?;
        let written = Written {
            encoded_bytes,
            encode: Some(encode.elapsed),
            write,
            peak_bytes: usage::peak()?,
            sums,
        };
        self.figures(path, &written, |read, meter| {
            let source = StoreSource::open(path)?;
            let lacking = meter.measure(|| source.view().scan(&Filter::default(), |s| read.add(s)));
            ensure!(lacking.is_complete(), "the store is damaged: {lacking:?}");
            Ok(())
        })
    }

    fn file(&self, path: &Path) -> anyhow::Result<Figures> {
        usage::reset_peak()?;
        let mut write = Meter::default();
        let mut file = File::create(path)?;
        let sums = self.each_commit(|records| {
            write.measure(|| {
                let rows: Vec<u8> = records.iter().flat_map(row).collect();
                file.write_all(&rows)?;
                Ok(file.sync_data()?)
            })
        })?;
        let written = Written {
            encoded_bytes: self.records * ROW as u64,
            encode: None,
            write,
            peak_bytes: usage::peak()?,
            sums,
        };
        self.figures(path, &written, |read, meter| {
            meter.measure(|| {
                let mut file = BufReader::with_capacity(1 << 20, File::open(path)?);
                let mut row = [0; ROW];
                for _ in 0..self.records {
                    file.read_exact(&mut row)?;
                    read.add(seen_in(&row)?);
                }
                Ok(())
            })
        })
    }

    fn one_key(&self, path: &Path) -> anyhow::Result<Figures> {
        usage::reset_peak()?;
        let mut write = Meter::default();
        let open = || {
            let config = sled::Config::new().path(path).cache_capacity(16 << 20);
            config.flush_every_ms(Some(100)).open()
        };
        let db = open()?;
        let data = File::open(path.join("db"))?;
        let mut number = 0u64;
        let sums = self.each_commit(|records| {
            write.measure(|| {
                for record in records {
                    db.insert(number.to_be_bytes(), &row(record)[..])?;
                    number += 1;
                }
                db.flush()?;
                Ok(data.sync_data()?)
            })
        })?;
        write.measure(|| drop(db));
        let written = Written {
            encoded_bytes: self.records * (ROW + KEY) as u64,
            encode: None,
            write,
            peak_bytes: usage::peak()?,
            sums,
        };
        self.figures(path, &written, |read, meter| {
            let db = open()?;
            meter.measure(|| {
                for entry in db.iter() {
                    let (_, value) = entry?;
                    read.add(seen_in(&value)?);
                }
                Ok(())
            })
        })
    }
}

/// The dictionary, as an event manager would have got it.
pub(super) fn declarations() -> Vec<(u32, Event)> {
    let variables = reference::variables().into_iter();
    variables.map(|v| (0, Event::Variable(v))).collect()
}

fn seen(record: &Record) -> Scanned {
    Scanned {
        start: record.start,
        op: record.op,
        origin: record.origin,
        object: record.object,
        count: record.accesses(),
    }
}

/// A record as bytes: fixed places, little-endian.
fn row(record: &Record) -> [u8; ROW] {
    let mut row = [0; ROW];
    let longs = [
        record.start.0,
        record.object.to_wire(),
        record.duration.0,
        record.wait.0,
        record.service.0,
        record.version,
    ];
    let words = [
        record.ap.0,
        record.mp.0,
        record.peer.0,
        // The workload has small accesses, one per record.
        record.bytes as u32,
        record.range.0,
        record.range.1,
    ];
    let flags = record.flags;
    let flags = [flags.optimized, flags.sampled, flags.failed, flags.waiting];
    let flags = flags.iter().fold(0, |bits, set| bits << 1 | u8::from(*set));
    row[..4].copy_from_slice(&[
        record.op as u8,
        record.origin as u8,
        record.side as u8,
        flags,
    ]);
    for (place, long) in row[4..52].chunks_exact_mut(8).zip(longs) {
        place.copy_from_slice(&long.to_le_bytes());
    }
    for (place, word) in row[52..].chunks_exact_mut(4).zip(words) {
        place.copy_from_slice(&word.to_le_bytes());
    }
    row
}

fn seen_in(row: &[u8]) -> anyhow::Result<Scanned> {
    ensure!(row.len() == ROW, "a row of {} bytes", row.len());
    let long = |at: usize| {
        row[at..at + 8]
            .iter()
            .rfold(0, |sum, b| sum << 8 | u64::from(*b))
    };
    Ok(Scanned {
        start: Nanos(long(4)),
        op: Op::from_number(row[0].into()).context("a row without an operation")?,
        origin: Origin::from_number(row[1].into()).context("a row without an origin")?,
        object: ObjectId::from_wire(long(12)),
        count: 1,
    })
}
