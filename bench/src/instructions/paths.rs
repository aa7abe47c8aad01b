//! The paths: each runs a number of operations and nothing else, in one thread.

use std::hint::black_box;

use anyhow::{Context, ensure};
use dosmos_proto::{EmpId, MpId};
use dosmos_testkit::reference;
use dosmos_trace::chunk;
use dosmos_trace::meta::MetaState;
use dosmos_trace::query::Completeness;
use dosmos_trace::record::Record;
use dosmos_verify::{Options, State, Verifier};

use crate::core_pair::Pair;
use crate::verify;

/// Objects of the first memory process, where there are many.
const OBJECTS: u32 = 10_000;

/// One of them.
pub(super) struct PathOf {
    pub(super) name: &'static str,
    /// Operations of the shorter of the two runs.
    pub(super) operations: u64,
    run: fn(u64) -> anyhow::Result<()>,
}

pub(super) const PATHS: [PathOf; 11] = [
    path("core-read-local", 10_000, |n| {
        Pair::new(0)?.repeat(n, Pair::read)
    }),
    path("core-write-local", 10_000, |n| {
        Pair::new(0)?.repeat(n, Pair::write)
    }),
    path("core-section-local", 5_000, |n| {
        Pair::new(0)?.repeat(n, Pair::section)
    }),
    path("core-read-cached", 10_000, |n| {
        Pair::new(1)?.repeat(n, Pair::read)
    }),
    path("core-write-remote", 5_000, |n| {
        Pair::new(1)?.repeat(n, Pair::write)
    }),
    path("core-section-remote", 5_000, |n| {
        Pair::new(1)?.repeat(n, Pair::section)
    }),
    path("core-lose-process-of-1", 20, |n| {
        Pair::with_objects(0, OBJECTS, 0)?.repeat(n, Pair::lose)
    }),
    path("core-lose-process-of-64", 20, |n| {
        Pair::with_objects(0, OBJECTS, 63)?.repeat(n, Pair::lose)
    }),
    path("record-encode", 40, encode),
    path("record-meta-object", 40, meta_objects),
    path("record-verify", 20, verified),
];

const fn path(name: &'static str, operations: u64, run: fn(u64) -> anyhow::Result<()>) -> PathOf {
    PathOf {
        name,
        operations,
        run,
    }
}

impl PathOf {
    pub(super) fn run(&self, operations: u64) -> anyhow::Result<()> {
        (self.run)(operations)
    }
}

pub(super) fn find(name: &str) -> anyhow::Result<&'static PathOf> {
    let found = PATHS.iter().find(|p| p.name == name);
    found.with_context(|| format!("there is no path {name:?}"))
}

/// Records of the reference workload that are encoded, or applied, at a time: one chunk.
const RECORDS: usize = 4096;

/// An operation is a chunk.
fn encode(operations: u64) -> anyhow::Result<()> {
    let records = reference::Workload::new(1).take_records(RECORDS);
    for _ in 0..operations {
        black_box(chunk::encode(black_box(&records)));
    }
    Ok(())
}

/// An operation is a chunk's records.
fn meta_objects(operations: u64) -> anyhow::Result<()> {
    let records = reference::Workload::new(1).take_records(RECORDS);
    let mut meta = MetaState::new(reference::topology(), EmpId(0));
    reference::variables().iter().for_each(|v| meta.declare(v));
    for _ in 0..operations {
        records.iter().for_each(|record| meta.apply(record));
    }
    black_box(meta.accesses_at(MpId(0)));
    Ok(())
}

/// An operation is what four processes do between two barriers.
fn verified(operations: u64) -> anyhow::Result<()> {
    const MOST: u64 = 40;
    ensure!(operations <= MOST, "at most {MOST} operations of this path");
    // The same records are made whatever the number of operations is.
    let mut versions = vec![0; 64];
    let phases: Vec<Vec<Record>> = (0..MOST)
        .map(|phase| {
            let mut made = Vec::new();
            verify::make_phase(&mut made, phase, 4, &mut versions);
            made.sort_by_key(|r| r.start);
            made
        })
        .collect();
    let mut verifier = Verifier::new(verify::catalog(4, 64)?, Options::default());
    for phase in phases.iter().take(operations as usize) {
        phase.iter().for_each(|record| verifier.add(record));
    }
    let verdict = verifier.finish(&Completeness::default(), false, &[]);
    ensure!(
        verdict.state == State::Consistent,
        "the run keeps the contract"
    );
    Ok(())
}
