//! The event managers' side of a simulated cluster: every record and hand-over is folded into
//! meta-objects, whose counts must be what the application processes did.

use std::collections::HashMap;

use dosmos_memproc::core::messages::Item;
use dosmos_proto::{EmpId, MpId, ObjectId, Topology};
use dosmos_trace::meta::{MetaState, OpCounts};
use dosmos_trace::query::{Catalog, Completeness, MetaQuery};
use dosmos_trace::{Op, Origin, Record, Side};
use dosmos_verify::{Options, Verifier};

/// Folds what the recorders were told and checks the invariant of docs/design/monitoring.md#invariant against `done`: what
/// application processes were told is done, by object.
pub fn check(topology: &Topology, items: &[(MpId, Item)], done: &HashMap<ObjectId, OpCounts>) {
    let emps = topology.event_managers().len() as u32;
    let new = |e| MetaState::new(topology.clone(), EmpId(e));
    let mut states: Vec<MetaState> = (0..emps).map(new).collect();
    let mut stored: HashMap<ObjectId, OpCounts> = HashMap::new();
    for (mp, item) in items {
        let emp = topology.mp(*mp).unwrap().event_manager;
        match item {
            Item::Record(r) => {
                states[emp.index()].apply(r);
                if r.is_access() && r.op != Op::Barrier {
                    stored
                        .entry(r.object)
                        .or_default()
                        .count(r.op, r.accesses());
                }
            }
            Item::HandOver(h) => {
                if let Some((to, content)) = states[emp.index()].hand_over(h) {
                    states[to.index()].receive(emp, &content);
                }
            }
            Item::Variable(v) => states[emp.index()].declare(v),
            Item::Barrier(_) => {}
        }
    }
    assert_eq!(&stored, done, "stored records and what was done differ");
    let mut metas: HashMap<ObjectId, OpCounts> = HashMap::new();
    for state in &states {
        let answer = state.query(&MetaQuery::default(), Completeness::default());
        for p in answer.primaries {
            let counts = metas.entry(p.object).or_default();
            counts.add(&p.counts);
            counts.reads += p.reads_on_copies;
        }
        for s in answer.secondaries {
            metas.entry(s.object).or_default().reads += s.reads;
        }
    }
    metas.retain(|_, c| c.total() > 0);
    assert_eq!(&metas, done, "meta-objects and what was done differ");
    check_pairs(items);
}

/// Every remote access has one record at its owner, every local one none.
fn check_pairs(items: &[(MpId, Item)]) {
    let count = |side, far: fn(&Record) -> bool| {
        let records = items.iter().filter_map(|(_, i)| match i {
            Item::Record(r) => Some(r),
            _ => None,
        });
        records
            .filter(|r| r.side == side && r.op != Op::Barrier)
            .filter(|r| !r.flags.failed && !r.flags.waiting && far(r))
            .count()
    };
    let remote = count(Side::Requester, |r| r.origin != Origin::Local);
    assert_eq!(count(Side::Owner, |_| true), remote, "owner records");
}

/// What was recorded does not refute the consistency contract. After a fault what is missing could be lost with it.
pub fn verify(topology: &Topology, items: &[(MpId, Item)], disturbed: bool) {
    let mut catalog = Catalog {
        topology: topology.clone(),
        ..Catalog::default()
    };
    let mut records: Vec<Record> = Vec::new();
    for (_, item) in items {
        match item {
            Item::Record(record) => records.push(*record),
            Item::Variable(v) if catalog.variables.iter().all(|k| k.id() != v.id()) => {
                catalog.variables.push((**v).clone());
            }
            Item::Barrier(b) if !catalog.barriers.contains(b) => catalog.barriers.push(b.clone()),
            _ => {}
        }
    }
    records.sort_by_key(|r| r.start);
    // The programs race on purpose.
    let options = Options {
        races: false,
        ..Options::default()
    };
    let mut verifier = Verifier::new(catalog, options);
    records.iter().for_each(|r| verifier.add(r));
    let mut completeness = Completeness::default();
    if disturbed {
        completeness.silent.push("what failed".into());
    }
    let verdict = verifier.finish(&completeness, false, &[]);
    assert!(verdict.violations.is_empty(), "{verdict:#?}");
}
