//! The event managers' side of a simulated cluster: every record and hand-over is folded into
//! meta-objects, whose counts must be what the application processes did.

use std::collections::HashMap;

use dosmos_memproc::core::messages::Item;
use dosmos_proto::{EmpId, MpId, ObjectId, Topology};
use dosmos_trace::meta::{MetaState, OpCounts};
use dosmos_trace::query::{Catalog, Completeness, MetaQuery};
use dosmos_trace::{Op, Origin, Record, Side};
use dosmos_verify::{Options, Verdict, Verifier};

/// Folds what the recorders were told and checks the invariant of docs/design/monitoring.md#invariant against `done`: what
/// application processes were told is done, by object; and writes of which it is not known whether they were done.
pub fn check(
    topology: &Topology,
    items: &[(MpId, Item)],
    (done, unsure): (&HashMap<ObjectId, OpCounts>, &HashMap<ObjectId, u64>),
    disturbed: bool,
) {
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
    let mut done = done.clone();
    stored.retain(|_, c| c.total() > 0);
    for (object, most) in unsure {
        let stored = stored.get(object).map_or(0, |c| c.writes);
        let done = done.entry(*object).or_default();
        done.writes += stored.saturating_sub(done.writes).min(*most);
    }
    done.retain(|_, c| c.total() > 0);
    assert_eq!(stored, done, "stored records and what was done differ");
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
    // After a fault a requester may not have learnt of what an owner did.
    let unheard = unheard(items);
    assert!(disturbed || unheard.is_empty(), "{unheard:?}");
    for (object, counts) in unheard {
        done.entry(object).or_default().add(&counts);
    }
    assert_eq!(metas, done, "meta-objects and what was done differ");
}

/// What owners did for others, without what the others know to be done.
fn unheard(items: &[(MpId, Item)]) -> HashMap<ObjectId, OpCounts> {
    let mut served: HashMap<(ObjectId, Op), i64> = HashMap::new();
    let records = items.iter().filter_map(|(_, i)| match i {
        Item::Record(r) => Some(r),
        _ => None,
    });
    let records = records.filter(|r| r.op != Op::Barrier);
    for r in records.filter(|r| !r.flags.failed && !r.flags.waiting) {
        let count = served.entry((r.object, r.op)).or_default();
        match r.side {
            Side::Owner => *count += r.accesses() as i64,
            Side::Requester if r.origin != Origin::Local => *count -= r.accesses() as i64,
            Side::Requester => {}
        }
    }
    let mut unheard: HashMap<ObjectId, OpCounts> = HashMap::new();
    for ((object, op), count) in served {
        assert!(count >= 0, "{object:?}: {op} without a record of its owner");
        if count > 0 {
            unheard.entry(object).or_default().count(op, count as u64);
        }
    }
    unheard
}

/// Whether what was recorded refutes the consistency contract. After a fault what is missing could be lost with it.
pub fn verify(topology: &Topology, items: &[(MpId, Item)], disturbed: bool) -> Verdict {
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
    verifier.finish(&completeness, false, &[])
}
