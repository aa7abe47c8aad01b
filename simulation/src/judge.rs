//! What is compared when a run is over: the stores, with what programs did and with what memory processes made; and what
//! `verify` makes of the records.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use dosmos_proto::{EmpId, Nanos, ObjectId};
use dosmos_trace::meta::OpCounts;
use dosmos_trace::query::{Catalog, Completeness, Filter, MetaQuery};
use dosmos_trace::relation::Relations;
use dosmos_trace::store::{Item, StoreSource};
use dosmos_trace::{Op, Origin, Record, Side};
use dosmos_verify::{Options, State, Verifier};

use crate::network::Pid;
use crate::plan::Kind;
use crate::world::World;

/// What the stores of a run hold.
struct Stored {
    stores: Vec<StoreSource>,
    records: Vec<Record>,
    catalog: Catalog,
    completeness: Completeness,
}

impl World {
    /// How many clocks of event managers that were far apart the records relate; or what does not hold.
    pub(crate) fn judge(&self) -> Result<u32, String> {
        let stored = self.read_stores()?;
        self.accounts_fit(&stored)?;
        self.counts_fit(&stored)?;
        let related = self.clocks_fit(&stored)?;
        self.verify(stored)?;
        Ok(related)
    }

    /// What the records say of the clocks of event managers is true, within its error, if each of them was started once: a later
    /// start may have a clock that was set meanwhile.
    fn clocks_fit(&self, stored: &Stored) -> Result<u32, String> {
        let mut managers = 0..self.plan.topology.event_managers().len();
        let start = |m: usize| self.processes.get(&Pid::Emp(m)).map_or(0, |p| p.start);
        if !managers.all(|m| start(m) == 1) {
            return Ok(0);
        }
        let complete = stored.completeness.is_complete();
        let go_on = || ControlFlow::Continue(());
        let relations = Relations::of(&stored.stores, &stored.catalog, complete, go_on);
        if let Some((a, b)) = relations.contradictions.first() {
            return Err(format!("the records of {a} and {b} contradict each other"));
        }
        let clock = |m: EmpId| self.processes.get(&Pid::Emp(m.index()))?.clock;
        let Some(first) = relations.first().and_then(clock) else {
            return Ok(0);
        };
        let all = relations.clocks.iter().filter(|c| c.moved_ns.is_some());
        // From the first record of all that are related to the last.
        let extents = stored.stores.iter().filter_map(|store| {
            let manager = store.identity().emp;
            let its = all.clone().any(|c| c.manager == manager);
            let related = its || relations.first() == Some(manager);
            let extent = store.describe().extent.filter(|_| related)?;
            let clock = clock(manager)?;
            Some((clock.said(extent.from), clock.said(extent.to)))
        });
        let whole = extents.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)));
        let Some((from, to)) = whole else {
            return Ok(0);
        };
        let mut related = 0;
        for said in all {
            let Some(its) = clock(said.manager) else {
                continue;
            };
            let mut apart = Nanos::ZERO;
            for t in [from, u64::midpoint(from, to), to] {
                let (here, there) = (first.says(t), its.says(t));
                let off = relations.time(said.manager, there).0.abs_diff(here.0);
                if off > said.error.0 {
                    return Err(format!("{said:?} is off by {}", Nanos(off)));
                }
                apart = apart.max(Nanos(here.0.abs_diff(there.0)));
            }
            related += u32::from(said.error.0 < apart.0 / 10);
        }
        Ok(related)
    }

    fn read_stores(&self) -> Result<Stored, String> {
        let mut records: Vec<Record> = Vec::new();
        let mut stores = Vec::new();
        let mut completeness = Completeness::default();
        let mut catalog = Catalog {
            topology: (*self.plan.topology).clone(),
            ..Catalog::default()
        };
        let all = Filter {
            everything: true,
            ..Filter::default()
        };
        for disk in &self.disks {
            let source = StoreSource::open(disk.dir()).map_err(|e| format!("a store: {e}"))?;
            let scanned = source.scan(&all, |item| {
                if let Item::Record(record) = item {
                    records.push(*record);
                }
                ControlFlow::Continue(())
            });
            scanned.map_err(|e| format!("a store: {e}"))?;
            completeness.merge(&source.completeness());
            let found = source.describe();
            catalog.clocks.extend(found.clocks);
            for v in found.variables {
                if catalog.variables.iter().all(|k| k.id() != v.id()) {
                    catalog.variables.push(v);
                }
            }
            for b in found.barriers {
                if !catalog.barriers.contains(&b) {
                    catalog.barriers.push(b);
                }
            }
            stores.push(source);
        }
        if completeness.damaged > 0 || completeness.corrupt_chunks > 0 {
            return Err(format!("a store is damaged: {completeness:?}"));
        }
        records.sort_by_key(|r| r.start);
        Ok(Stored {
            stores,
            records,
            catalog,
            completeness,
        })
    }

    /// What memory processes made is stored or counted as dropped, if all of their starts ended well.
    fn accounts_fit(&self, stored: &Stored) -> Result<(), String> {
        let whole = self.accounts.iter().all(|a| a.whole);
        let made: u64 = self.accounts.iter().map(|a| a.made).sum();
        let dropped: u64 = self.accounts.iter().map(|a| a.dropped).sum();
        let there = stored.records.len() as u64;
        if whole && there + dropped != made {
            return Err(format!(
                "{made} records were made, {there} are stored, {dropped} were dropped"
            ));
        }
        if whole && dropped != stored.completeness.dropped {
            let said = stored.completeness.dropped;
            return Err(format!(
                "{dropped} records were dropped, the stores say {said}"
            ));
        }
        let complete = stored.completeness.is_complete();
        if complete && (!whole || dropped > 0) {
            return Err(format!(
                "a run that lacks records is complete: {:?}",
                self.accounts
            ));
        }
        if !complete && !self.plan.kind.has_faults() {
            return Err(format!("{:?}", stored.completeness.reasons()));
        }
        Ok(())
    }

    /// Records are what application processes did, and meta-objects what is recorded.
    fn counts_fit(&self, stored: &Stored) -> Result<(), String> {
        let mut recorded: BTreeMap<ObjectId, OpCounts> = BTreeMap::new();
        let accesses = stored.records.iter().filter(|r| r.is_access());
        for r in accesses.filter(|r| r.op != Op::Barrier) {
            let counts = recorded.entry(r.object).or_default();
            counts.count(r.op, r.accesses());
        }
        recorded.retain(|_, c| c.total() > 0);
        if !self.plan.kind.has_faults() {
            let mut done: BTreeMap<ObjectId, OpCounts> = BTreeMap::new();
            let all = self.common.counts.lock();
            let all = all.map_err(|_| "a program panicked".to_owned())?;
            for object in all.iter().flat_map(|(_, counts)| &counts.objects) {
                let sum = done.entry(object.object).or_default();
                sum.reads += object.ops.reads;
                sum.writes += object.ops.writes;
                sum.acquires += object.ops.acquires;
                sum.releases += object.ops.releases;
            }
            done.retain(|_, c| c.total() > 0);
            same("recorded", &recorded, "done", &done)?;
        }
        if stored.completeness.is_complete() {
            for (object, more) in unheard(&stored.records)? {
                recorded.entry(object).or_default().add(&more);
            }
            same(
                "in meta-objects",
                &self.in_meta_objects(),
                "recorded",
                &recorded,
            )?;
        }
        Ok(())
    }

    fn in_meta_objects(&self) -> BTreeMap<ObjectId, OpCounts> {
        let mut all: BTreeMap<ObjectId, OpCounts> = BTreeMap::new();
        for manager in self.managers.iter().flatten() {
            let metas = manager.manager().metas();
            let answer = metas.query(&MetaQuery::default(), Completeness::default());
            for p in answer.primaries {
                let counts = all.entry(p.object).or_default();
                counts.add(&p.counts);
                counts.reads += p.reads_on_copies;
            }
            for s in answer.secondaries {
                all.entry(s.object).or_default().reads += s.reads;
            }
        }
        all.retain(|_, c| c.total() > 0);
        all
    }

    fn verify(&self, stored: Stored) -> Result<(), String> {
        // The programs race on purpose.
        let options = Options {
            races: false,
            ..Options::default()
        };
        let mut verifier = Verifier::new(stored.catalog, options);
        stored.records.iter().for_each(|r| verifier.add(r));
        // As whoever starts a program says of it.
        let killed = match self.common.history().deaths() {
            0 => Vec::new(),
            n => vec![format!("{n} application processes were killed")],
        };
        let verdict = verifier.finish(&stored.completeness, false, &killed);
        let plain = self.plan.kind == Kind::Plain;
        let history = self.common.history();
        let mut violations = verdict.violations.iter();
        let refuted = violations.any(|v| !history.may_be_lost(&v.target));
        match verdict.state {
            State::Violated if refuted => Err(format!("verify: {:#?}", verdict.violations)),
            State::Undecided if plain => {
                Err(format!("verify cannot decide: {:#?}", verdict.doubts))
            }
            _ => Ok(()),
        }
    }
}

type Counted = BTreeMap<ObjectId, OpCounts>;

fn same(what: &str, a: &Counted, other: &str, b: &Counted) -> Result<(), String> {
    let all: BTreeSet<&ObjectId> = a.keys().chain(b.keys()).collect();
    for object in all {
        if a.get(object) != b.get(object) {
            return Err(format!(
                "{object:?}: {what} {:?}, {other} {:?}",
                a.get(object),
                b.get(object)
            ));
        }
    }
    Ok(())
}

/// What owners did for others, without what the others know to be done.
fn unheard(records: &[Record]) -> Result<Counted, String> {
    let mut served: BTreeMap<(ObjectId, Op), i64> = BTreeMap::new();
    let records = records.iter().filter(|r| r.op != Op::Barrier);
    for r in records.filter(|r| !r.flags.failed && !r.flags.waiting) {
        let count = served.entry((r.object, r.op)).or_default();
        match r.side {
            Side::Owner => *count += r.accesses() as i64,
            Side::Requester if r.origin != Origin::Local => *count -= r.accesses() as i64,
            Side::Requester => {}
        }
    }
    let mut unheard = Counted::new();
    for ((object, op), count) in served {
        if count < 0 {
            return Err(format!("{object:?}: {op} without a record of its owner"));
        }
        if count > 0 {
            unheard.entry(object).or_default().count(op, count as u64);
        }
    }
    Ok(unheard)
}
