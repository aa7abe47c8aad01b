//! A source over records at hand, answered by brute force: what every other source must agree with
//! in tests.

use std::collections::BTreeMap;

use async_trait::async_trait;
use dosmos_proto::{MpId, Nanos, ObjectId, VarId, Variable};
use dosmos_trace::meta::{Access, OperationTimes, PrimaryMeta, SecondaryMeta};
use dosmos_trace::query::{
    Breakdown, Catalog, Completeness, Filter, Histogram, HistogramQuery, History, HistoryPoint,
    HistoryQuery, MetaObjects, MetaQuery, OriginCounts, QueryError, Records, Status, TimeRange,
    TraceSource,
};
use dosmos_trace::{Op, Origin, Record, Side};

use dosmos_trace::query::gather::{Collected, gather};

/// Records in memory, with what surrounds them.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    /// Name and dictionary; `extent`, `records` and `completeness.recorded` are computed.
    pub catalog: Catalog,
    /// The answer to every question for the status.
    pub status: Status,
    /// Where the processes say that their time went.
    pub times: Breakdown,
    /// In order of their start.
    records: Vec<Record>,
}

impl Memory {
    /// A source of `records`, in any order.
    pub fn new(mut catalog: Catalog, mut records: Vec<Record>) -> Self {
        records.sort_by_key(|r| r.start);
        catalog.extent = extent(&records);
        catalog.records = records.len() as u64;
        catalog.completeness.recorded = catalog.records;
        catalog.completeness.extra_accesses = records.iter().map(|r| r.accesses() - 1).sum();
        Self {
            catalog,
            status: Status::default(),
            times: Breakdown::default(),
            records,
        }
    }

    fn range(&self, filter: &Filter) -> TimeRange {
        let range = filter.range.or(self.catalog.extent);
        range.unwrap_or(TimeRange::NOTHING)
    }

    fn matching<'a>(&'a self, filter: &'a Filter) -> impl Iterator<Item = &'a Record> {
        self.records.iter().filter(|r| filter.matches(r))
    }

    fn completeness(&self) -> Completeness {
        self.catalog.completeness.clone()
    }
}

/// From the first start until past the last end.
fn extent(records: &[Record]) -> Option<TimeRange> {
    let from = records.iter().map(|r| r.start).min()?;
    let to = records.iter().map(Record::end).max()? + Nanos(1);
    Some(TimeRange { from, to })
}

#[async_trait]
impl TraceSource for Memory {
    fn name(&self) -> String {
        match self.catalog.event_managers.as_slice() {
            [] => "memory".into(),
            names => names.join(", "),
        }
    }

    async fn catalog(&self) -> Result<Catalog, QueryError> {
        Ok(self.catalog.clone())
    }

    async fn breakdown(&self) -> Result<Breakdown, QueryError> {
        Ok(self.times.clone())
    }

    async fn meta_objects(&self, query: &MetaQuery) -> Result<MetaObjects, QueryError> {
        let asked = |o: &ObjectId| {
            (query.variables.is_empty() || query.variables.contains(&o.var))
                && (query.objects.is_empty() || query.objects.contains(o))
        };
        let mut fold = Fold::default();
        for record in self.records.iter().filter(|r| asked(&r.object)) {
            fold.apply(&self.catalog, record);
        }
        Ok(MetaObjects {
            primaries: fold.primaries.into_values().collect(),
            secondaries: fold.secondaries.into_values().collect(),
            times: fold.times,
            completeness: self.completeness(),
        })
    }

    async fn histogram(&self, query: &HistogramQuery) -> Result<Histogram, QueryError> {
        query.check()?;
        let range = self.range(&query.filter);
        let mut buckets = vec![OriginCounts::default(); query.buckets as usize];
        for record in self.matching(&query.filter) {
            let how = (record.flags.optimized, record.flags.in_process);
            let spread = record.spread();
            for at in (0..spread.count()).map(|i| spread.at(i)) {
                if let Some(bucket) = range.bucket(query.buckets, at) {
                    buckets[bucket].count(record.origin, how, 1);
                }
            }
        }
        Ok(Histogram {
            range,
            buckets,
            completeness: self.completeness(),
        })
    }

    async fn history(&self, query: &HistoryQuery) -> Result<History, QueryError> {
        query.check()?;
        let range = self.range(&query.filter);
        let mut collected = Collected::new(range, query.max_points);
        for record in self.matching(&query.filter) {
            collected.add(&HistoryPoint::of(record));
        }
        Ok(History {
            range,
            matched: collected.matched(),
            points: gather(collected.points(), range, query.max_points),
            completeness: self.completeness(),
        })
    }

    async fn records(&self, filter: &Filter, limit: u64) -> Result<Records, QueryError> {
        let limit = match limit {
            0 => usize::MAX,
            n => usize::try_from(n).unwrap_or(usize::MAX),
        };
        Ok(Records {
            records: self.matching(filter).take(limit).copied().collect(),
            completeness: self.completeness(),
        })
    }

    async fn status(&self) -> Result<Status, QueryError> {
        Ok(self.status.clone())
    }
}

/// Meta-objects as the records alone tell them: without hand-overs, so cached reads stay with the
/// copies.
#[derive(Default)]
struct Fold {
    primaries: BTreeMap<ObjectId, PrimaryMeta>,
    secondaries: BTreeMap<(ObjectId, MpId), SecondaryMeta>,
    /// Since when the object is held.
    held: BTreeMap<ObjectId, Nanos>,
    times: BTreeMap<VarId, OperationTimes>,
}

impl Fold {
    fn apply(&mut self, catalog: &Catalog, r: &Record) {
        if OperationTimes::measures(r) {
            self.times.entry(r.object.var).or_default().count(r);
        }
        if r.flags.failed || r.flags.waiting || r.op == Op::Barrier {
            return;
        }
        let main = !r.flags.optimized && (!r.flags.in_process || r.mp == r.peer);
        let at_owner = r.side == Side::Owner || r.origin == Origin::Local && main;
        if at_owner {
            self.at_owner(catalog, r);
        } else if r.op == Op::Read && (r.flags.optimized || r.origin == Origin::Intra) {
            let owner = catalog.topology.mp(r.peer);
            let secondary =
                self.secondaries
                    .entry((r.object, r.mp))
                    .or_insert_with(|| SecondaryMeta {
                        object: r.object,
                        copy_at: r.mp,
                        primary_emp: owner.map(|p| p.event_manager).unwrap_or_default(),
                        reads: 0,
                        by_ap: BTreeMap::new(),
                    });
            if r.flags.optimized {
                secondary.reads += r.accesses();
                *secondary.by_ap.entry(r.ap).or_default() += r.accesses();
            }
        }
    }

    fn at_owner(&mut self, catalog: &Catalog, r: &Record) {
        let variable = catalog.variables.iter().find(|v| v.id() == r.object.var);
        let primary = self.primaries.entry(r.object).or_insert_with(|| {
            let group = variable.map(Variable::group).unwrap_or_default();
            new_primary(r.object, group, r.peer)
        });
        let n = r.accesses();
        primary.counts.count(r.op, n);
        primary.by_origin[r.origin].count(r.op, n);
        primary.by_ap.entry(r.ap).or_default().count(r.op, n);
        primary.version = primary.version.max(r.version);
        let access = Access {
            ap: r.ap,
            mp: r.mp,
            group: catalog.topology.group_of_ap(r.ap).unwrap_or_default(),
            at: r.start,
            wait: r.wait,
        };
        match r.op {
            Op::Acquire => {
                primary.last_acquires.push(access);
                primary.wait += r.wait;
                if r.wait > Nanos::ZERO {
                    primary.delayed += n;
                    primary.delayed_acquires.push(access);
                }
                self.held.insert(r.object, r.end());
            }
            Op::Write => primary.last_writes.push(access),
            Op::Release => {
                if let Some(since) = self.held.remove(&r.object) {
                    primary.hold += r.start - since;
                }
            }
            Op::Read | Op::Barrier => {}
        }
    }
}

fn new_primary(object: ObjectId, group: dosmos_proto::GroupId, owner: MpId) -> PrimaryMeta {
    PrimaryMeta {
        object,
        group,
        owner,
        copies_at: Vec::new(),
        counts: Default::default(),
        reads_on_copies: 0,
        last_acquires: Vec::new(),
        last_writes: Vec::new(),
        delayed_acquires: Vec::new(),
        delayed: 0,
        by_origin: Default::default(),
        by_ap: BTreeMap::new(),
        wait: Nanos::ZERO,
        hold: Nanos::ZERO,
        wait_sketch: Default::default(),
        hold_sketch: Default::default(),
        version: 0,
    }
}
