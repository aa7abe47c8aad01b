//! Stores and chunks that were cut short or have bits flipped: chunks by the thousand, in memory; stores by the hundred, or
//! as many as asked for. What is not damaged is there, once and in order; what is missing is said; nothing panics, and
//! nothing takes memory by a damaged length.

use std::path::{Path, PathBuf};

use dosmos_proto::{MpId, Nanos};
use dosmos_testseeds::child;
use dosmos_trace::chunk::{Chunk, MOST_RECORDS, encode};
use dosmos_trace::query::{Filter, HistogramQuery, HistoryQuery, MetaQuery, TraceSource};
use dosmos_trace::record::Record;
use dosmos_trace::store::{StoreSource, StoreWriter};
use nix::sys::resource::{Resource, setrlimit};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use crate::common;

/// Set in the process that looks into damaged stores.
const CHILD: &str = "DOSMOS_TEST_CHILD";
/// Stores looked into, unless told otherwise: each costs some tenths of a second.
const DAMAGED_STORES: u32 = 80;
/// Most address space that may take: far more than a sound store does.
const MOST_MEMORY: u64 = 4 << 30;

/// Chunks looked into.
const DAMAGED_CHUNKS: u32 = 5_000;

const RECORDS: usize = 6_000;

/// A store of two log files, closed or left by a crash; and what is in it.
fn sound(dir: &Path, closed: bool) -> Vec<Record> {
    let all = common::records(1, RECORDS);
    let (mut writer, _) = StoreWriter::open(dir, &common::identity()).unwrap();
    for (part, sequence) in all.chunks(600).zip(1..) {
        writer.rotate_at(if sequence == 6 { 1 } else { u64::MAX });
        writer.commit(&common::commit(sequence, part)).unwrap();
    }
    if closed {
        writer.close().unwrap();
    }
    all
}

fn files(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.push(path);
        }
    }
    found.sort();
    found
}

fn copy(from: &Path, to: &Path) {
    for file in files(from) {
        let target = to.join(file.strip_prefix(from).unwrap());
        std::fs::create_dir_all(target.parent().unwrap()).unwrap();
        std::fs::copy(file, target).unwrap();
    }
}

/// What happens to one file.
#[derive(Clone, Debug)]
enum Damage {
    Cut(prop::sample::Index),
    Flip(Vec<(prop::sample::Index, u8)>),
    /// A stretch of the file, as of a lost sector.
    Zero(prop::sample::Index, usize),
}

fn damage() -> impl Strategy<Value = Damage> {
    let place = any::<prop::sample::Index>;
    prop_oneof![
        2 => place().prop_map(Damage::Cut),
        5 => prop::collection::vec((place(), 0u8..8), 1..20).prop_map(Damage::Flip),
        1 => (place(), 1usize..5_000).prop_map(|(at, length)| Damage::Zero(at, length)),
    ]
}

impl Damage {
    fn apply(&self, bytes: &mut Vec<u8>) {
        if bytes.is_empty() {
            return;
        }
        let length = bytes.len();
        match self {
            Self::Cut(at) => bytes.truncate(at.index(length)),
            Self::Flip(bits) => bits.iter().for_each(|(at, bit)| {
                bytes[at.index(length)] ^= 1 << bit;
            }),
            Self::Zero(at, stretch) => {
                let from = at.index(length);
                bytes[from..length.min(from + stretch)].fill(0);
            }
        }
    }
}

/// Looks into a damaged store in every way there is: whole records in their order, each once, and the others counted.
/// How many were found.
fn look(dir: &Path, all: &[Record]) -> Result<usize, TestCaseError> {
    let source = StoreSource::open(dir).map_err(|e| TestCaseError::fail(e.to_string()))?;
    let everything = Filter::default();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let before = source.completeness();
    let found = runtime.block_on(source.records(&everything, 0)).unwrap();
    let mut rest = all.iter();
    for record in found.iter() {
        // In order, so what is between this one and the one before is missing.
        prop_assert!(
            rest.any(|r| r == record),
            "{record:?} is not a record, or is there twice"
        );
    }
    let lost = all.len() - found.len();
    prop_assert_eq!(found.completeness.damaged, lost as u64);
    prop_assert_eq!(found.completeness.recorded, all.len() as u64);
    prop_assert!(lost == 0 || !found.completeness.is_complete());
    prop_assert_eq!(
        &before,
        &found.completeness,
        "it was known when the store was opened"
    );
    let histogram = HistogramQuery {
        filter: everything.clone(),
        buckets: 13,
    };
    let history = HistoryQuery {
        filter: everything,
        max_points: 50,
    };
    let counted = source.view().histogram(&histogram).unwrap();
    let counted: u64 = counted
        .buckets
        .iter()
        .map(dosmos_trace::query::OriginCounts::total)
        .sum();
    prop_assert!(counted <= all.len() as u64);
    let _ = source.view().history(&history).unwrap();
    let _ = runtime
        .block_on(source.meta_objects(&MetaQuery::default()))
        .unwrap();
    let verified = source.verify();
    prop_assert_eq!(
        verified.damaged > 0,
        !source.view().completeness().is_complete()
    );
    Ok(found.len())
}

/// Damages one file of a copy of the store in `base`; reads it, writes to it, and reads it again.
fn damage_and_look(
    base: &Path,
    all: &[Record],
    file: &Path,
    damage: &Damage,
) -> Result<usize, TestCaseError> {
    let damaged = dosmos_testseeds::scratch();
    copy(base, damaged.path());
    let path = damaged.path().join(file);
    let mut bytes = std::fs::read(&path).unwrap();
    damage.apply(&mut bytes);
    std::fs::write(&path, bytes).unwrap();
    let found = look(damaged.path(), all)?;
    let new = common::records(9, 10);
    let (mut writer, recovered) = StoreWriter::open(damaged.path(), &common::identity()).unwrap();
    prop_assert_eq!(
        recovered.marks()[&MpId(0)].sequence,
        10,
        "no batch is taken twice"
    );
    writer.commit(&common::commit(11, &new)).unwrap();
    writer.close().unwrap();
    let again = StoreSource::open(damaged.path()).unwrap();
    let (records, lacking) = (again.describe().records, again.completeness());
    prop_assert_eq!(records, found as u64 + 10);
    prop_assert_eq!(
        lacking.damaged,
        (all.len() - found) as u64,
        "lost stays lost"
    );
    Ok(found)
}

fn look_into_damaged_stores(closed: bool) {
    let cases = dosmos_testseeds::cases(DAMAGED_STORES);
    setrlimit(Resource::RLIMIT_AS, MOST_MEMORY, MOST_MEMORY).unwrap();
    let base = dosmos_testseeds::scratch();
    let all = sound(base.path(), closed);
    let names = files(base.path());
    let names: Vec<PathBuf> = names
        .iter()
        .map(|f| f.strip_prefix(base.path()).unwrap().to_owned())
        .collect();
    let log = |f: &&PathBuf| f.to_string_lossy().starts_with("log.");
    let logs: Vec<PathBuf> = names.iter().filter(log).cloned().collect();
    assert_eq!(logs.len(), 2, "{names:?}");
    let file = prop_oneof![
        4 => prop::sample::select(logs),
        1 => prop::sample::select(names),
    ];
    let found = std::cell::Cell::new(0);
    let mut runner = TestRunner::new(Config {
        max_shrink_iters: 20,
        ..dosmos_testseeds::config(DAMAGED_STORES)
    });
    // What the engine says of each damaged file is not of interest.
    std::panic::set_hook(Box::new(|_| {}));
    let outcome = runner.run(&(file, damage()), |(file, damage)| {
        let here = damage_and_look(base.path(), &all, &file, &damage)?;
        found.set(found.get() + here);
        Ok(())
    });
    let _ = std::panic::take_hook();
    outcome.unwrap_or_else(|e| panic!("closed: {closed}: {e}"));
    // One file of two is not damaged: no less than its half is found.
    let (found, cases) = (found.get(), cases as usize);
    assert!(
        found * 2 >= cases * RECORDS,
        "{found} records in {cases} stores"
    );
}

/// Chunks of different sizes, full and of six fields.
fn chunks() -> Vec<(Vec<u8>, Vec<Record>)> {
    let all = common::records(2, MOST_RECORDS);
    let mut chunks = Vec::new();
    for size in [1, 7, 130, 1_000, MOST_RECORDS] {
        let records = all[..size].to_vec();
        let six = |r: &Record| Record {
            wait: Nanos(0),
            service: Nanos(0),
            mp: MpId(0),
            peer: MpId(0),
            version: 0,
            ..*r
        };
        let six: Vec<Record> = records.iter().map(six).collect();
        for records in [records, six] {
            chunks.push((encode(&records), records));
        }
    }
    chunks
}

#[test]
fn of_a_damaged_chunk_every_column_is_what_it_was_or_an_error() {
    let chunks = chunks();
    let sizes = 0..chunks.len();
    let config = dosmos_testseeds::config(DAMAGED_CHUNKS);
    let cases = config.cases;
    let mut runner = TestRunner::new(config);
    let mut noticed = 0u32;
    let count = std::cell::RefCell::new(&mut noticed);
    let outcome = runner.run(&(sizes, damage()), |(which, damage)| {
        let (sound, records) = &chunks[which];
        let mut bytes = sound.clone();
        damage.apply(&mut bytes);
        let Ok(chunk) = Chunk::open(&bytes) else {
            **count.borrow_mut() += 1;
            return Ok(());
        };
        **count.borrow_mut() += u32::from(chunk.verify().is_err());
        prop_assert_eq!(chunk.verify().is_err(), &bytes != sound);
        // Each column alone: damage elsewhere is none of its business.
        if let Ok(starts) = chunk.starts() {
            prop_assert!(starts.iter().eq(records.iter().map(|r| &r.start.0)));
        }
        if let Ok(objects) = chunk.objects() {
            prop_assert!((0..records.len()).all(|i| objects.at(i) == records[i].object));
        }
        if let Ok(aps) = chunk.aps() {
            prop_assert!((0..records.len()).all(|i| aps.at(i) == records[i].ap));
        }
        if let Ok(kinds) = chunk.kinds() {
            prop_assert!((0..records.len()).all(|i| kinds.at(i).op == records[i].op));
        }
        if let Ok(read) = chunk.records() {
            prop_assert_eq!(&read, records);
        }
        Ok(())
    });
    outcome.unwrap_or_else(|e| panic!("{e}"));
    assert!(noticed > cases / 2, "{noticed} noticed");
}

/// `DOSMOS_CASES=20000 cargo test -p dosmos-trace --test stores` looks into more of them.
#[test]
fn what_is_not_damaged_is_found_and_the_rest_is_said() {
    if let Some(how) = std::env::var_os(CHILD) {
        return look_into_damaged_stores(how == "closed");
    }
    let mut both = ["closed", "killed"].map(|how| child::again(CHILD, how));
    std::thread::scope(|scope| {
        for child in &mut both {
            scope.spawn(|| child::succeeds(child));
        }
    });
}
