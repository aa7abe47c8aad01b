//! Every question and answer survives the way there and back; what means nothing is refused.

use std::collections::BTreeMap;

use dosmos_proto::topology::EventManager;
use dosmos_proto::{
    ApId, ElementType, EmpId, GroupId, Layout, MpId, Nanos, ObjectId, ProcessCounters,
    TopologyBuilder, VarId, Variable, VariableSpec, wire,
};
use proptest::prelude::*;

use super::*;
use crate::clock::ProcessClock;
use crate::meta::{
    Access, HandOver, OpCounts, OperationTimes, PrimaryMeta, SecondaryContent, SecondaryMeta,
    Sketch, Times,
};
use crate::query::*;
use crate::record::{Op, Origin, PerOrigin};
use crate::run::RunId;
use crate::selection::{Mode, Selection};

fn ops() -> impl Strategy<Value = Vec<Op>> {
    prop::sample::subsequence(Op::ALL.to_vec(), 0..=5)
}
fn range() -> impl Strategy<Value = TimeRange> {
    any::<(u64, u64)>().prop_map(|(a, b)| TimeRange {
        from: Nanos(a),
        to: Nanos(b),
    })
}
fn object() -> impl Strategy<Value = ObjectId> {
    any::<u64>().prop_map(ObjectId::from_wire)
}
fn list<T>(of: impl Strategy<Value = T>) -> impl Strategy<Value = Vec<T>>
where
    T: std::fmt::Debug,
{
    prop::collection::vec(of, 0..4)
}
fn vars() -> impl Strategy<Value = Vec<VarId>> {
    list(any::<u32>().prop_map(VarId))
}
fn aps() -> impl Strategy<Value = Vec<ApId>> {
    list(any::<u32>().prop_map(ApId))
}

fn filter() -> impl Strategy<Value = Filter> {
    let origins = prop::sample::subsequence(Origin::ALL.to_vec(), 0..=3);
    (
        vars(),
        any::<Option<u32>>(),
        aps(),
        ops(),
        origins,
        prop::option::of(range()),
        any::<bool>(),
        any::<bool>(),
    )
        .prop_map(|f| Filter {
            variables: f.0,
            object: f.1,
            aps: f.2,
            ops: f.3,
            origins: f.4,
            range: f.5,
            everything: f.6,
            once: f.7,
        })
}

fn completeness() -> impl Strategy<Value = Completeness> {
    (
        any::<[u64; 7]>(),
        0.001f64..=1.0,
        [list(".*"), list(".*"), list(".*")],
        list(selection()),
        list("[a-z]{0,9}"),
    )
        .prop_map(
            |(n, sampling, [missing, missing_stores, silent], selections, notes)| Completeness {
                damaged: n[3],
                unselected: n[4],
                extra_accesses: n[5],
                extra_lost: n[6],
                selections,
                missing_stores,
                silent,
                recorded: n[0],
                dropped: n[1],
                removed: n[2] / 2,
                sampling,
                missing,
                corrupt_chunks: n[2],
                notes,
            },
        )
}

fn counts() -> impl Strategy<Value = OpCounts> {
    any::<[u64; 4]>().prop_map(|n| OpCounts {
        reads: n[0],
        writes: n[1],
        acquires: n[2],
        releases: n[3],
    })
}

fn per_origin() -> impl Strategy<Value = PerOrigin<OpCounts>> {
    [counts(), counts(), counts()].prop_map(|[local, intra, inter]| PerOrigin {
        local,
        intra,
        inter,
    })
}

fn access() -> impl Strategy<Value = Access> {
    any::<([u32; 3], [u64; 2])>().prop_map(|(who, at)| Access {
        ap: ApId(who[0]),
        mp: MpId(who[1]),
        group: GroupId(who[2]),
        at: Nanos(at[0]),
        wait: Nanos(at[1]),
    })
}

fn sketch() -> impl Strategy<Value = Sketch> {
    list(any::<(u64, u16)>()).prop_map(|values| {
        let mut sketch = Sketch::default();
        let values = values.into_iter();
        values.for_each(|(value, n)| sketch.count(Nanos(value), n.into()));
        sketch
    })
}

fn times() -> impl Strategy<Value = BTreeMap<VarId, OperationTimes>> {
    let each = (any::<[u64; 2]>(), sketch()).prop_map(|([total, longest], sketch)| Times {
        total: Nanos(total),
        longest: Nanos(longest),
        sketch,
    });
    let of_variable = prop::collection::vec(each, 6).prop_map(|mut kinds| OperationTimes {
        reads: kinds.remove(0),
        cached: kinds.remove(0),
        writes: kinds.remove(0),
        acquires: kinds.remove(0),
        releases: kinds.remove(0),
        barriers: kinds.remove(0),
    });
    prop::collection::btree_map(any::<u32>().prop_map(VarId), of_variable, 0..4)
}

fn primary() -> impl Strategy<Value = PrimaryMeta> {
    let lists = (list(access()), list(access()), list(access()));
    let by = (
        per_origin(),
        prop::collection::btree_map(any::<u32>().prop_map(ApId), counts(), 0..4),
    );
    let sketches = (sketch(), sketch());
    (
        object(),
        any::<[u32; 2]>(),
        list(any::<u32>().prop_map(MpId)),
        counts(),
        any::<[u64; 5]>(),
        lists,
        by,
        sketches,
    )
        .prop_map(
            |(object, at, copies_at, counts, n, lists, by, sketches)| PrimaryMeta {
                object,
                group: GroupId(at[0]),
                owner: MpId(at[1]),
                copies_at,
                counts,
                reads_on_copies: n[0],
                last_acquires: lists.0,
                last_writes: lists.1,
                delayed_acquires: lists.2,
                delayed: n[1],
                by_origin: by.0,
                by_ap: by.1,
                wait: Nanos(n[2]),
                hold: Nanos(n[3]),
                wait_sketch: sketches.0,
                hold_sketch: sketches.1,
                version: n[4],
            },
        )
}

fn reads_by_ap() -> impl Strategy<Value = BTreeMap<ApId, u64>> {
    prop::collection::btree_map(any::<u32>().prop_map(ApId), any::<u64>(), 0..4)
}

fn secondary() -> impl Strategy<Value = SecondaryMeta> {
    (object(), any::<([u32; 2], u64)>(), reads_by_ap()).prop_map(|(object, (at, reads), by_ap)| {
        SecondaryMeta {
            object,
            copy_at: MpId(at[0]),
            primary_emp: EmpId(at[1]),
            reads,
            by_ap,
        }
    })
}

fn variable() -> impl Strategy<Value = Variable> {
    (any::<[u32; 2]>(), 1u32..9).prop_map(|(n, parts)| {
        let layout = Layout::new(ElementType::F64, (u64::from(parts), 3), (parts, 1)).unwrap();
        let spec = VariableSpec::new(format!("v{}", n[0]), layout).unwrap();
        let spec = spec.with_lock(dosmos_proto::LockKind::Mcs);
        let owners = vec![MpId(n[1]), MpId(0)];
        Variable::new(VarId(n[0]), spec, owners, GroupId(n[1])).unwrap()
    })
}

fn catalog() -> impl Strategy<Value = Catalog> {
    let barrier = (any::<(u32, Option<u32>)>(), ".*").prop_map(|((id, group), name)| BarrierName {
        id: VarId(id),
        group: group.map(GroupId),
        name,
    });
    let extent = (any::<u64>(), 1u64..).prop_map(|(from, to)| TimeRange {
        from: Nanos(from),
        to: Nanos(to),
    });
    let topology = TopologyBuilder {
        name: "t".into(),
        event_managers: vec![EventManager { name: "e".into() }],
        ..TopologyBuilder::default()
    };
    let topology = topology.build().unwrap();
    (
        list(variable()),
        list(barrier),
        prop::option::of(extent),
        any::<(u64, bool)>(),
        completeness(),
        any::<Option<u128>>(),
        list(any::<(u32, [i64; 2], Option<u32>)>()),
    )
        .prop_map(move |c| Catalog {
            run: c.5.map(RunId::from_bits),
            event_managers: vec!["emp0".into()],
            topology: topology.clone(),
            variables: c.0,
            barriers: c.1,
            extent: c.2,
            records: c.3.0,
            live: c.3.1,
            completeness: c.4,
            clocks: c.6.into_iter().map(process_clock).collect(),
        })
}

fn process_clock(
    (mp, [offset_ns, drift_ppb], error): (u32, [i64; 2], Option<u32>),
) -> ProcessClock {
    ProcessClock {
        mp: MpId(mp),
        offset_ns,
        drift_ppb,
        error: error.map(|e| Nanos(e.into())),
    }
}

fn point() -> impl Strategy<Value = HistoryPoint> {
    (
        any::<[u64; 5]>(),
        1u32..=5,
        1u32..=3,
        any::<(bool, bool, u32)>(),
        object(),
    )
        .prop_map(
            |(n, op, origin, (optimized, in_process, ap), object)| HistoryPoint {
                start: Nanos(n[0]),
                duration: Nanos(n[1]),
                wait: Nanos(n[2]),
                op: Op::from_number(op).unwrap(),
                origin: Origin::from_number(origin).unwrap(),
                optimized,
                in_process,
                ap: ApId(ap),
                object,
                version: n[3],
                count: n[4],
                several: Several {
                    ops: n[0] % 2 == 1,
                    aps: n[1] % 2 == 1,
                    objects: n[2] % 2 == 1,
                },
            },
        )
}

fn process() -> impl Strategy<Value = ProcessStatus> {
    (any::<(u32, bool, i64, [u64; 18])>(), per_origin()).prop_map(
        |((mp, connected, clock_offset_ns, n), by_origin)| ProcessStatus {
            mp: MpId(mp),
            connected,
            counters: ProcessCounters {
                requests: n[0],
                served: n[1],
                forwarded: n[2],
                recorded: n[3],
                dropped: n[4],
                buffered_bytes: n[5],
                cpu: (n[6] % 2 == 0).then_some(Nanos(n[6])),
                started: Nanos(n[16]),
                awake: Nanos(n[17]),
                copies: n[7],
                objects: n[8],
                monitor: Nanos(n[11]),
                unselected: n[12],
                lost_hand_overs: n[13],
                extra_recorded: n[14],
                extra_dropped: n[15],
            },
            clock_offset_ns,
            clock_error: Nanos(n[9]),
            by_origin,
            last_record: Nanos(n[10]),
            aps: vec![ApOrigins {
                ap: ApId(7),
                by_origin,
            }],
        },
    )
}

fn status() -> impl Strategy<Value = EmpStatus> {
    let told = prop::option::of(selection());
    (
        any::<[u64; 8]>(),
        ["[a-z]*", ".*", ".*"],
        list(process()),
        told,
    )
        .prop_map(
            |(n, [name, store, trouble], processes, selection)| EmpStatus {
                name,
                now: Nanos(n[0]),
                processes,
                records: n[1],
                pending: n[2],
                stored_bytes: n[3],
                chunks: n[4],
                cpu: Nanos(n[5]),
                store,
                trouble,
                exchanged_out: n[6],
                exchanged_in: n[7],
                selection,
            },
        )
}

fn selection() -> impl Strategy<Value = Selection> {
    let mode = prop::sample::select(vec![Mode::Off, Mode::Counters, Mode::Events]);
    (mode, 1u32.., list(".*"), ops(), list(".*")).prop_map(|s| Selection {
        mode: s.0,
        sample_one_in: s.1,
        variables: s.2,
        ops: s.3,
        processes: s.4,
    })
}

/// There and back by `From` or `TryFrom`.
macro_rules! survives {
    ($value:expr, $domain:ty, $wire:ty) => {{
        let value: $domain = $value;
        let back = <$domain>::try_from(<$wire>::from(value.clone())).unwrap();
        prop_assert_eq!(back, value);
    }};
}

proptest! {
    #![proptest_config(dosmos_testseeds::config(64))]

    #[test]
    fn questions_survive(filter in filter(), n in any::<u32>(), variables in vars(), objects in list(object())) {
        survives!(filter.clone(), Filter, wire::Filter);
        survives!(MetaQuery { variables, objects }, MetaQuery, wire::MetaRequest);
        survives!(HistogramQuery { filter: filter.clone(), buckets: n }, HistogramQuery, wire::HistogramRequest);
        survives!(HistoryQuery { filter, max_points: n }, HistoryQuery, wire::HistoryRequest);
    }

    #[test]
    fn histograms_and_histories_survive(
        range in range(), buckets in list(any::<[u64; 5]>()), points in list(point()), matched in any::<u64>(),
        completeness in completeness(),
    ) {
        let buckets = buckets.into_iter().map(|[local, intra, inter, optimized, in_process]| OriginCounts { local, intra, inter, optimized, in_process });
        let histogram = Histogram { range, buckets: buckets.collect(), completeness: completeness.clone() };
        survives!(histogram, Histogram, wire::Histogram);
        survives!(History { range, points, matched, completeness }, History, wire::History);
    }

    #[test]
    fn metas_survive(primaries in list(primary()), secondaries in list(secondary()), times in times(), completeness in completeness()) {
        survives!(MetaObjects { primaries, secondaries, times, completeness }, MetaObjects, wire::MetaObjects);
    }

    #[test]
    fn exchanges_survive(object in object(), n in any::<([u64; 3], [u32; 3], bool)>(), by_ap in reads_by_ap()) {
        let ([sequence, reads, fetches], [copy_at, emp, position], dropped) = n;
        let content = SecondaryContent { sequence, object, copy_at: MpId(copy_at), reads, dropped, fetches, by_ap };
        survives!(content, SecondaryContent, wire::SecondaryContent);
        let hand_over = HandOver { object, copy_at: MpId(copy_at), primary_emp: EmpId(emp), dropped };
        let back = hand_over_from_wire(&hand_over_to_wire(&hand_over, position), MpId(copy_at));
        prop_assert_eq!(back, (position, hand_over));
    }

    #[test]
    fn catalogs_states_and_selections_survive(catalog in catalog(), status in status(), selection in selection()) {
        survives!(catalog, Catalog, wire::Catalog);
        survives!(status, EmpStatus, wire::Status);
        survives!(selection, Selection, wire::Selection);
    }
}

#[test]
fn what_means_nothing_is_refused_by_name() {
    let refused = |error: dosmos_proto::Malformed, what: &str| {
        assert!(error.to_string().contains(what), "{error}");
    };
    let filter = wire::Filter {
        ops: vec![6],
        ..Default::default()
    };
    refused(Filter::try_from(filter).unwrap_err(), "operation");
    let filter = wire::Filter {
        origins: vec![-1],
        ..Default::default()
    };
    refused(Filter::try_from(filter).unwrap_err(), "origin");
    let histogram = wire::Histogram {
        local: vec![1],
        ..Default::default()
    };
    refused(Histogram::try_from(histogram).unwrap_err(), "length");
    refused(
        History::try_from(wire::History::default()).unwrap_err(),
        "range",
    );
    refused(
        Catalog::try_from(wire::Catalog::default()).unwrap_err(),
        "topology",
    );
    refused(
        Selection::try_from(wire::Selection::default()).unwrap_err(),
        "mode",
    );
    let completeness: Completeness = wire::Completeness::default().into();
    assert!(completeness.is_complete(), "an absent fraction means all");
}
