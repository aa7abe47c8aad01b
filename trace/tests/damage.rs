//! Stores and chunks that were cut short or have bits flipped: chunks by the thousand, in memory; stores by the hundred, or
//! as many as asked for. What is not damaged is there, once and in order; what is missing is said; nothing panics, and
//! nothing takes memory by a damaged length.
#![allow(clippy::unwrap_used)] // a test that cannot go on should say where

use std::path::{Path, PathBuf};
use std::process::Command;

use dosmos_proto::{EmpId, MpId};
use dosmos_testkit::reference::{self, Workload};
use dosmos_trace::chunk::{Chunk, MOST_RECORDS, encode};
use dosmos_trace::query::{Filter, HistogramQuery, HistoryQuery, MetaQuery, TraceSource};
use dosmos_trace::record::Record;
use dosmos_trace::store::{BatchMark, Commit, Identity, StoreSource, StoreWriter};
use nix::sys::resource::{Resource, setrlimit};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

/// Set in the process that looks into damaged stores.
const CHILD: &str = "DOSMOS_TEST_CHILD";
const TEST: &str = "what_is_not_damaged_is_found_and_the_rest_is_said";
/// Stores looked into, unless told otherwise: each costs some tenths of a second.
const DAMAGED_STORES: u32 = 200;
/// Most address space that may take: far more than a sound store does.
const MOST_MEMORY: u64 = 4 << 30;

/// Chunks looked into.
const DAMAGED_CHUNKS: u32 = 5_000;

const RECORDS: usize = 6_000;

/// A store of two databases, closed; and what is in it.
fn sound(dir: &Path) -> Vec<Record> {
    let identity = Identity {
        run: dosmos_trace::run::RunId::from_bits(1),
        event_manager: "emp0".into(),
        emp: EmpId(0),
        topology: reference::topology(),
    };
    let all = Workload::new(1).take_records(RECORDS);
    let (mut writer, _) = StoreWriter::open(dir, &identity).unwrap();
    for (part, sequence) in all.chunks(600).zip(1..) {
        if sequence == 6 {
            writer.rotate_at(1);
        }
        let commit = Commit {
            marks: vec![BatchMark {
                mp: MpId(0),
                incarnation: 1,
                sequence,
            }],
            records: part.to_vec(),
            events: Vec::new(),
        };
        writer.commit(&commit).unwrap();
        writer.rotate_at(u64::MAX);
    }
    writer.close().unwrap();
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

/// Looks into a damaged store in every way there is. How many records were found; none if the store
/// could not be opened.
fn look(dir: &Path, all: &[Record]) -> Result<Option<usize>, TestCaseError> {
    let Ok(source) = StoreSource::open(dir) else {
        return Ok(None);
    };
    let everything = Filter::default();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let found = runtime.block_on(source.records(&everything, 0)).unwrap();
    let mut rest = all.iter();
    for record in found.iter() {
        // In order, so what is between this one and the one before is missing.
        prop_assert!(
            rest.any(|r| r == record),
            "{record:?} is not a record, or is there twice"
        );
    }
    if found.len() < all.len() {
        prop_assert!(!found.completeness.is_complete(), "{} found", found.len());
    }
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
    Ok(Some(found.len()))
}

fn look_into_damaged_stores() {
    setrlimit(Resource::RLIMIT_AS, MOST_MEMORY, MOST_MEMORY).unwrap();
    // What the engine says of each damaged file is not of interest.
    std::panic::set_hook(Box::new(|_| {}));
    let base = tempfile::tempdir().unwrap();
    let all = sound(base.path());
    let names = files(base.path());
    let names: Vec<PathBuf> = names
        .iter()
        .map(|f| f.strip_prefix(base.path()).unwrap().to_owned())
        .collect();
    let database = |f: &PathBuf| f.file_name().is_some_and(|n| n == "db");
    let databases: Vec<PathBuf> = names.iter().filter(|f| database(f)).cloned().collect();
    assert_eq!(databases.len(), 2, "{names:?}");
    let file = prop_oneof![
        4 => prop::sample::select(databases),
        1 => prop::sample::select(names),
    ];
    let (mut opened, mut found) = (0usize, 0usize);
    let config = Config {
        max_shrink_iters: 20,
        ..dosmos_testseeds::config(DAMAGED_STORES)
    };
    let cases = config.cases;
    let mut runner = TestRunner::new(config);
    let counts = std::cell::RefCell::new((&mut opened, &mut found));
    let outcome = runner.run(&(file, damage()), |(file, damage)| {
        let damaged = tempfile::tempdir().unwrap();
        copy(base.path(), damaged.path());
        let path = damaged.path().join(file);
        let mut bytes = std::fs::read(&path).unwrap();
        damage.apply(&mut bytes);
        std::fs::write(&path, bytes).unwrap();
        if let Some(n) = look(damaged.path(), &all)? {
            let mut counts = counts.borrow_mut();
            *counts.0 += 1;
            *counts.1 += n;
        }
        Ok(())
    });
    let _ = std::panic::take_hook();
    outcome.unwrap_or_else(|e| panic!("{e}"));
    // One database of two is not damaged: on the whole no less than its half is found.
    assert!(
        opened * 10 >= cases as usize * 8,
        "{opened} of {cases} opened"
    );
    assert!(
        found * 2 >= opened * RECORDS,
        "{found} records in {opened} stores"
    );
}

/// Chunks of different sizes, full and of six fields.
fn chunks() -> Vec<(Vec<u8>, Vec<Record>)> {
    let all = Workload::new(2).take_records(MOST_RECORDS);
    let mut chunks = Vec::new();
    for size in [1, 7, 130, 1_000, MOST_RECORDS] {
        let records = all[..size].to_vec();
        let six: Vec<Record> = records.iter().map(reference::six_fields).collect();
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

/// `DOSMOS_CASES=20000 cargo test -p dosmos-trace --test damage` looks into more of them.
#[test]
fn what_is_not_damaged_is_found_and_the_rest_is_said() {
    if std::env::var_os(CHILD).is_some() {
        return look_into_damaged_stores();
    }
    let child = Command::new(std::env::current_exe().unwrap())
        .args([TEST, "--exact", "--nocapture"])
        .env(CHILD, "1")
        .output()
        .unwrap();
    assert!(
        child.status.success(),
        "{}\n{}\n{}",
        child.status,
        String::from_utf8_lossy(&child.stdout),
        String::from_utf8_lossy(&child.stderr)
    );
}
