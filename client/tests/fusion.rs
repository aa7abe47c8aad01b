//! Many sources asked as one say what one source with everything would say.

#![allow(clippy::unwrap_used)] // helpers of tests, too

mod support;

use std::sync::Arc;

use async_trait::async_trait;
use dosmos_client::Fused;
use dosmos_proto::{ApId, MpId, Nanos, ObjectId, TopologyBuilder, VarId};
use dosmos_testkit::Memory;
use dosmos_trace::query::table::{NamePattern, RankQuery, Ranking, SortKey, Table, TableQuery};
use dosmos_trace::query::{
    Catalog, Filter, Histogram, HistogramQuery, History, HistoryPoint, HistoryQuery, MetaObjects,
    MetaQuery, QueryError, Records, Status, TimeRange, TraceSource,
};
use dosmos_trace::record::Flags;
use dosmos_trace::{Op, Origin, Record, Side};
use futures::executor::block_on;
use proptest::prelude::*;

/// A source that never answers.
struct Dead(&'static str);

impl Dead {
    fn error<T>(&self) -> Result<T, QueryError> {
        Err(QueryError::Unavailable {
            source_name: self.0.into(),
            why: "is not there".into(),
        })
    }
}

#[async_trait]
impl TraceSource for Dead {
    fn name(&self) -> String {
        self.0.into()
    }
    async fn catalog(&self) -> Result<Catalog, QueryError> {
        self.error()
    }
    async fn meta_objects(&self, _: &MetaQuery) -> Result<MetaObjects, QueryError> {
        self.error()
    }
    async fn histogram(&self, _: &HistogramQuery) -> Result<Histogram, QueryError> {
        self.error()
    }
    async fn history(&self, _: &HistoryQuery) -> Result<History, QueryError> {
        self.error()
    }
    async fn records(&self, _: &Filter, _: u64) -> Result<Records, QueryError> {
        self.error()
    }
    async fn status(&self) -> Result<Status, QueryError> {
        self.error()
    }
}

/// Reads, writes and barriers at distinct times; no locks, so no order but that of time.
fn records() -> impl Strategy<Value = Vec<Record>> {
    let one = (
        1u64..50,
        0u64..90,
        0usize..3,
        1u32..=3,
        any::<bool>(),
        0u32..4,
        0u32..8,
        any::<bool>(),
    );
    prop::collection::vec(one, 0..200).prop_map(|all| {
        let mut now = 1_000;
        let record = |(gap, duration, op, origin, optimized, ap, index, owner)| {
            now += gap;
            let op = [Op::Read, Op::Write, Op::Barrier][op];
            let optimized = optimized && op == Op::Read && origin == 1;
            Record {
                start: Nanos(now),
                duration: Nanos(duration),
                wait: Nanos(0),
                service: Nanos(0),
                op,
                side: if owner && origin != 1 {
                    Side::Owner
                } else {
                    Side::Requester
                },
                origin: Origin::from_number(origin).unwrap(),
                flags: Flags {
                    optimized,
                    ..Flags::default()
                },
                object: ObjectId::new(VarId(1 + index % 2), index / 2),
                ap: ApId(ap),
                mp: MpId(ap),
                // The owner of an object is one and the same process.
                peer: if origin == 1 {
                    MpId(ap)
                } else {
                    MpId(index % 4)
                },
                count: 1,
                bytes: 8,
                version: 0,
                range: (0, 1),
            }
        };
        all.into_iter().map(record).collect()
    })
}

fn fused(parts: Vec<Memory>) -> Fused {
    Fused::new(
        parts
            .into_iter()
            .map(|m| Arc::new(m) as Arc<dyn TraceSource>)
            .collect(),
    )
}

/// `all` dealt out to `k` sources as `deal` says.
fn dealt(all: &[Record], deal: &[usize], k: usize) -> Fused {
    let part = |i: usize| {
        let its = all.iter().zip(deal).filter(|(_, d)| **d % k == i);
        Memory::new(support::catalog(), its.map(|(r, _)| *r).collect())
    };
    fused((0..k).map(part).collect())
}

fn filter() -> impl Strategy<Value = Filter> {
    let range = prop::option::of((900u64..6_000, 0u64..6_000));
    (
        prop::collection::vec(1u32..3, 0..2),
        prop::collection::vec(0u32..4, 0..3),
        prop::collection::vec(1u32..=5, 0..3),
        range,
        any::<bool>(),
    )
        .prop_map(|(variables, aps, ops, range, everything)| Filter {
            variables: variables.into_iter().map(VarId).collect(),
            object: None,
            aps: aps.into_iter().map(ApId).collect(),
            ops: ops.into_iter().filter_map(Op::from_number).collect(),
            origins: Vec::new(),
            range: range.map(|(from, length)| TimeRange {
                from: Nanos(from),
                to: Nanos(from + length),
            }),
            once: false,
            everything,
        })
}

proptest! {
    #![proptest_config(dosmos_testseeds::config(256))]

    #[test]
    fn fusing_the_parts_is_asking_the_whole(
        all in records(),
        deal in prop::collection::vec(0usize..64, 200),
        k in 1usize..6,
        filter in filter(),
        buckets in 1u32..200,
        limit in 0u64..50,
        most in 1u32..300,
    ) {
        let whole = Memory::new(support::catalog(), all.clone());
        let parts = dealt(&all, &deal, k);

        let (a, b) = (block_on(parts.catalog()).unwrap(), block_on(whole.catalog()).unwrap());
        prop_assert_eq!(&a, &b);

        let query = HistogramQuery { filter: filter.clone(), buckets };
        let (a, b) = (block_on(parts.histogram(&query)).unwrap(), block_on(whole.histogram(&query)).unwrap());
        prop_assert_eq!(&a, &b);

        let query = HistoryQuery { filter: filter.clone(), max_points: 1_000 };
        let (a, b) = (block_on(parts.history(&query)).unwrap(), block_on(whole.history(&query)).unwrap());
        prop_assert_eq!(&a, &b);
        // Gathered, the points may be others, but no access is lost.
        let query = HistoryQuery { filter: filter.clone(), max_points: most };
        let a = block_on(parts.history(&query)).unwrap();
        prop_assert!(a.points.len() <= most as usize);
        prop_assert_eq!(a.points.iter().map(|p| p.count).sum::<u64>(), b.matched);
        prop_assert_eq!(a.matched, b.matched);

        let (a, b) = (block_on(parts.records(&filter, limit)).unwrap(), block_on(whole.records(&filter, limit)).unwrap());
        prop_assert_eq!(a, b);
    }
}

#[test]
fn meta_objects_of_the_event_managers_together_are_those_of_the_whole() {
    let all = support::records(7);
    let whole = Memory::new(support::catalog(), all.clone());
    let parts = fused(support::split(&all));
    for variables in [vec![], vec![support::GRID], vec![support::SUM]] {
        let query = MetaQuery {
            variables,
            objects: vec![],
        };
        let a = block_on(parts.meta_objects(&query)).unwrap();
        let b = block_on(whole.meta_objects(&query)).unwrap();
        assert_eq!(a, b);
    }
    // Locks and their order, too.
    let query = HistoryQuery {
        filter: Filter::default(),
        max_points: 100_000,
    };
    let a = block_on(parts.history(&query)).unwrap();
    let b = block_on(whole.history(&query)).unwrap();
    assert_eq!(sorted(a), sorted(b));
}

/// Points of one start come in the order of the sources.
fn sorted(mut history: History) -> History {
    history
        .points
        .sort_by_key(|p| (p.start, p.ap, p.object, p.op));
    history
}

#[test]
fn who_does_not_answer_is_named_and_the_others_are_heard() {
    let all = support::records(3);
    let mut sources: Vec<Arc<dyn TraceSource>> = Vec::new();
    for part in support::split(&all) {
        sources.push(Arc::new(part));
    }
    sources.push(Arc::new(Dead("emp9")));
    sources.insert(0, Arc::new(Dead("emp8")));
    let fused = Fused::new(sources);
    let missing = ["emp8", "emp9"];
    let catalog = block_on(fused.catalog()).unwrap();
    assert_eq!(catalog.completeness.missing, missing);
    assert_eq!(catalog.records, all.len() as u64);
    assert_eq!(catalog.event_managers, ["emp0", "emp1"]);
    let query = HistogramQuery {
        filter: Filter::default(),
        buckets: 10,
    };
    let histogram = block_on(fused.histogram(&query)).unwrap();
    assert_eq!(histogram.completeness.missing, missing);
    let query = HistoryQuery {
        filter: Filter::default(),
        max_points: 10,
    };
    assert_eq!(
        block_on(fused.history(&query))
            .unwrap()
            .completeness
            .missing,
        missing
    );
    assert_eq!(
        block_on(fused.status()).unwrap().completeness.missing,
        missing
    );
    let metas = block_on(fused.meta_objects(&MetaQuery::default())).unwrap();
    assert_eq!(metas.completeness.missing, missing);
    let records = block_on(fused.records(&Filter::default(), 0)).unwrap();
    assert!(!records.is_empty());
    assert_eq!(records.completeness.missing, missing);
}

#[test]
fn only_if_nobody_answers_is_there_an_error_and_it_names_all() {
    let fused = Fused::new(vec![Arc::new(Dead("emp8")), Arc::new(Dead("emp9"))]);
    let error = block_on(fused.catalog()).unwrap_err().to_string();
    assert!(error.contains("emp8") && error.contains("emp9"), "{error}");
    let error = block_on(Fused::new(Vec::new()).status()).unwrap_err();
    assert!(error.to_string().contains("no event manager"), "{error}");
    let query = HistogramQuery {
        filter: Filter::default(),
        buckets: 0,
    };
    let error = block_on(fused.histogram(&query)).unwrap_err();
    assert!(matches!(error, QueryError::BadQuery(_)), "{error}");
}

#[test]
fn a_source_named_twice_or_of_another_cluster_is_told_apart() {
    let all = support::records(2);
    let mut parts = support::split(&all);
    let mut other = support::catalog();
    let mut topology = TopologyBuilder::from(other.topology);
    topology.name = "elsewhere".into();
    other.topology = topology.build().unwrap();
    other.event_managers = vec!["emp7".into()];
    other.variables[0] = support::variable(support::GRID, "mesh", (1024, 64), 8, &[0]);
    parts.push(Memory::new(other, Vec::new()));
    let catalog = block_on(fused(parts.clone()).catalog()).unwrap();
    let notes = catalog.completeness.notes.join("; ");
    assert!(notes.contains("emp7 belongs to another cluster"), "{notes}");
    assert!(notes.contains("mesh"), "{notes}");

    let once = block_on(fused(parts[..1].to_vec()).meta_objects(&MetaQuery::default())).unwrap();
    let twice = vec![parts[0].clone(), parts[0].clone()];
    let twice = block_on(fused(twice).meta_objects(&MetaQuery::default())).unwrap();
    assert_eq!(once.primaries, twice.primaries);
}

/// The clocks of the second event manager's processes run 5 ms behind.
#[test]
fn sections_come_in_the_order_of_their_versions_whatever_the_clocks() {
    let all = support::records(4);
    let late = |r: &Record| r.side == Side::Requester && r.mp.0 >= 2;
    let skewed = all.iter().map(|r| Record {
        start: if late(r) {
            r.start - Nanos(5_000_000)
        } else {
            r.start
        },
        ..*r
    });
    let skewed: Vec<Record> = skewed.collect();
    let query = HistoryQuery {
        filter: Filter {
            variables: vec![support::SUM],
            ops: vec![Op::Acquire, Op::Release],
            ..Filter::default()
        },
        max_points: 1_000,
    };
    let history = block_on(fused(support::split(&skewed)).history(&query)).unwrap();
    let released = |version| {
        let its = |p: &&HistoryPoint| p.op == Op::Release && p.version == version;
        history.points.iter().find(its).map(|p| p.start)
    };
    let acquires = history.points.iter().filter(|p| p.op == Op::Acquire);
    let mut compared = 0;
    for acquire in acquires {
        if let Some(before) = released(acquire.version) {
            assert!(before <= acquire.start + acquire.duration, "{acquire:?}");
            compared += 1;
        }
    }
    assert_eq!(compared, 15);
}

/// A run with many variables: owners anywhere, accesses of everybody.
fn crowded() -> impl Strategy<Value = (Catalog, Vec<Record>)> {
    let owners = prop::collection::vec(prop::collection::vec(0u32..4, 1..4), 1..24);
    let access = (
        any::<prop::sample::Index>(),
        0u32..4,
        0u32..4,
        0usize..4,
        0u64..90,
    );
    let accesses = prop::collection::vec((access, any::<bool>()), 0..300);
    (owners, accesses).prop_map(|(owners, accesses)| {
        let mut catalog = support::catalog();
        catalog.variables = (1u32..)
            .zip(&owners)
            .map(|(id, owners)| {
                let name = format!("{}{id}", ["grid", "sum", "täble"][id as usize % 3]);
                let rows = owners.len() as u32;
                support::variable(VarId(id), &name, (u64::from(rows) * 4, 2), rows, owners)
            })
            .collect();
        let mut now = 1_000;
        let mut records = Vec::new();
        for ((variable, index, ap, op, wait), optimized) in accesses {
            now += 100;
            let variable = variable.get(&catalog.variables);
            let object = ObjectId::new(variable.id(), index % variable.owners().len() as u32);
            let owner = variable.owners()[object.index as usize];
            let far = match (owner.0 == ap, owner.0 / 2 == ap / 2) {
                (true, _) => Origin::Local,
                (_, true) => Origin::Intra,
                _ => Origin::Inter,
            };
            let op = [Op::Read, Op::Write, Op::Acquire, Op::Release][op];
            let optimized = optimized && op == Op::Read && far == Origin::Intra;
            let record = Record {
                start: Nanos(now),
                duration: Nanos(wait + 5),
                wait: Nanos(if op == Op::Acquire { wait } else { 0 }),
                service: Nanos(1),
                op,
                side: Side::Requester,
                origin: if optimized { Origin::Local } else { far },
                flags: Flags {
                    optimized,
                    ..Flags::default()
                },
                object,
                ap: ApId(ap),
                mp: MpId(ap),
                peer: owner,
                count: 1,
                bytes: 8,
                version: 0,
                range: (0, 1),
            };
            records.push(record);
            if record.origin != Origin::Local {
                records.push(Record {
                    side: Side::Owner,
                    start: Nanos(now + 1),
                    ..record
                });
            }
        }
        (catalog, records)
    })
}

proptest! {
    #![proptest_config(dosmos_testseeds::config(256))]

    #[test]
    fn every_page_of_the_fused_table_is_that_of_the_whole(
        (catalog, all) in crowded(),
        sort in prop::sample::select(SortKey::ALL.to_vec()),
        reverse in any::<bool>(),
        offset in 0u32..30,
        limit in 0u32..12,
        pattern in prop::sample::select(vec!["", "grid", "!grid", "1", "re:^t.b", "t*"]),
    ) {
        let whole = Memory::new(catalog.clone(), all.clone());
        let parts = fused(
            support::split(&all)
                .into_iter()
                .map(|part| {
                    let mut catalog = catalog.clone();
                    catalog.event_managers = part.catalog.event_managers.clone();
                    let its = block_on(part.records(&Filter { everything: true, ..Filter::default() }, 0));
                    Memory::new(catalog, its.unwrap().records)
                })
                .collect(),
        );
        let pattern = NamePattern::parse(pattern).unwrap();
        let query = TableQuery { pattern, sort, reverse, offset, limit };
        let a = block_on(parts.table(&query)).unwrap();
        let b = block_on(whole.table(&query)).unwrap();
        let names = |t: &Table| t.rows.iter().map(|r| r.variable.spec().name().to_owned()).collect::<Vec<_>>();
        prop_assert_eq!(names(&a), names(&b));
        prop_assert_eq!(&a.rows, &b.rows);
        prop_assert_eq!((a.known, a.matched), (b.known, b.matched));
        // The places of some variables only.
        let among = a.rows.iter().map(|r| r.variable.id()).collect();
        let some = RankQuery { among, skip: 0, take: u32::MAX, ..query.rank() };
        if !some.among.is_empty() {
            let (a, b) = (block_on(parts.rank(&some)).unwrap(), block_on(whole.rank(&some)).unwrap());
            prop_assert_eq!(a.entries.len(), some.among.len());
            prop_assert_eq!((a.entries, a.known, a.matched), (b.entries, b.known, b.matched));
        }
    }
}

/// Ranks whatever it knows, whichever variables it is asked for, as event managers did once.
struct Old(Memory);

#[async_trait]
impl TraceSource for Old {
    fn name(&self) -> String {
        "old".into()
    }
    async fn catalog(&self) -> Result<Catalog, QueryError> {
        self.0.catalog().await
    }
    async fn meta_objects(&self, query: &MetaQuery) -> Result<MetaObjects, QueryError> {
        self.0.meta_objects(query).await
    }
    async fn histogram(&self, query: &HistogramQuery) -> Result<Histogram, QueryError> {
        self.0.histogram(query).await
    }
    async fn history(&self, query: &HistoryQuery) -> Result<History, QueryError> {
        self.0.history(query).await
    }
    async fn records(&self, filter: &Filter, limit: u64) -> Result<Records, QueryError> {
        self.0.records(filter, limit).await
    }
    async fn status(&self) -> Result<Status, QueryError> {
        self.0.status().await
    }
    async fn rank(&self, query: &RankQuery) -> Result<Ranking, QueryError> {
        let all = RankQuery {
            among: Vec::new(),
            ..query.clone()
        };
        self.0.rank(&all).await
    }
}

#[test]
fn who_ranks_other_variables_than_those_it_is_asked_for_is_named() {
    // What takes most by one of them takes least by the other.
    let number = 40;
    let part = |name: &str, ap: u32, duration: &dyn Fn(u32) -> u64| {
        let variables = (0..number)
            .map(|i| support::variable(VarId(i), &format!("v{i}"), (1, 1), 1, &[ap]))
            .collect();
        let catalog = Catalog {
            event_managers: vec![name.into()],
            variables,
            ..support::catalog()
        };
        let access = |i: u32| Record {
            start: Nanos(1_000 + u64::from(i)),
            duration: Nanos(duration(i)),
            wait: Nanos(0),
            service: Nanos(1),
            op: Op::Read,
            side: Side::Requester,
            origin: Origin::Local,
            flags: Flags::default(),
            object: ObjectId::new(VarId(i), 0),
            ap: ApId(ap),
            mp: MpId(ap),
            peer: MpId(ap),
            count: 1,
            bytes: 8,
            version: 0,
            range: (0, 1),
        };
        Memory::new(catalog, (0..number).map(access).collect())
    };
    let ascending = part("emp0", 0, &|i| 1_000 + u64::from(i));
    let descending = part("emp1", 2, &|i| 1_000 + u64::from(number - i));
    let sources: Vec<Arc<dyn TraceSource>> = vec![Arc::new(Old(ascending)), Arc::new(descending)];
    let query = TableQuery {
        limit: 1,
        ..TableQuery::default()
    };
    let table = block_on(Fused::new(sources).table(&query)).unwrap();
    assert_eq!(table.completeness.missing, ["old"]);
}

#[test]
fn a_table_says_which_event_manager_is_missing_in_it() {
    let mut sources: Vec<Arc<dyn TraceSource>> = vec![Arc::new(Dead("emp9"))];
    for part in support::split(&support::records(3)) {
        sources.push(Arc::new(part));
    }
    let query = TableQuery {
        limit: 10,
        ..TableQuery::default()
    };
    let table = block_on(Fused::new(sources).table(&query)).unwrap();
    assert_eq!(table.rows.len(), 2);
    assert_eq!(table.completeness.missing, ["emp9"]);
    let bad = TableQuery {
        pattern: Some(NamePattern {
            text: "re:a(".into(),
            negate: false,
        }),
        ..query
    };
    let parts = fused(support::split(&support::records(3)));
    let error = block_on(parts.table(&bad)).unwrap_err();
    assert!(matches!(error, QueryError::BadQuery(_)), "{error}");
}
