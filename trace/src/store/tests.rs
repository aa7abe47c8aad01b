//! Stores as their readers see them: after a clean close, a crash, damage, and while in use.

use std::path::Path;

use dosmos_proto::{ApId, EmpId, MpId, Nanos, ObjectId, TopologyBuilder, VarId};

mod answers;
mod damage;
mod log;
mod power_loss;
mod reading;
mod upkeep;

use super::*;
use crate::meta::{MetaState, SecondaryContent};
use crate::query::{Filter, MetaQuery, TimeRange, TraceSource};
use crate::record::{Flags, Op, Origin, Record, Side};

fn identity() -> Identity {
    Identity {
        run: crate::run::RunId::from_bits(1),
        event_manager: "emp0".into(),
        emp: EmpId(0),
        topology: TopologyBuilder {
            name: "test".into(),
            ..TopologyBuilder::default()
        }
        .build()
        .unwrap(),
    }
}

fn record(i: u64) -> Record {
    Record {
        start: Nanos(1_000 + i * 10),
        duration: Nanos(5),
        wait: Nanos(0),
        service: Nanos(1),
        op: [Op::Read, Op::Write, Op::Acquire][i as usize % 3],
        side: Side::Requester,
        origin: Origin::ALL[i as usize % 2],
        flags: Flags::default(),
        object: ObjectId::new(VarId((i % 5) as u32), (i % 2) as u32),
        ap: ApId((i % 4) as u32),
        mp: MpId(0),
        peer: MpId(0),
        count: 1,
        bytes: 8,
        version: i,
        range: (0, 1),
    }
}

fn records(n: std::ops::Range<u64>) -> Vec<Record> {
    n.map(record).collect()
}

fn commit(sequence: u64, records: Vec<Record>) -> Commit {
    Commit {
        marks: vec![BatchMark {
            mp: MpId(0),
            incarnation: 1,
            sequence,
            until: Default::default(),
        }],
        records,
        events: Vec::new(),
    }
}

fn content(sequence: u64) -> SecondaryContent {
    SecondaryContent {
        sequence,
        object: ObjectId::default(),
        copy_at: MpId(0),
        reads: 3,
        dropped: true,
        fetches: 1,
        by_ap: Default::default(),
    }
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    runtime.block_on(future)
}

/// All files below `dir` with their content.
fn files(dir: &Path) -> std::collections::BTreeMap<std::path::PathBuf, Vec<u8>> {
    let mut found = std::collections::BTreeMap::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.insert(path.clone(), std::fs::read(path).unwrap());
        }
    }
    found
}

/// Everything that a store answers.
fn all_of(source: &StoreSource) -> Vec<Record> {
    source.view().records(&Filter::default(), 0).records
}
