//! Answers, compared with looking at every record.

use proptest::prelude::*;

use super::*;
use crate::query::{HistogramQuery, HistoryQuery, OriginCounts};

#[test]
fn questions_that_make_no_sense_are_refused() {
    let dir = dosmos_testseeds::scratch();
    let (writer, _) = StoreWriter::open(dir.path(), &identity()).unwrap();
    let view = writer.view();
    let filter = Filter::default();
    let error = view.histogram(&HistogramQuery {
        filter: filter.clone(),
        buckets: 0,
    });
    assert!(error.unwrap_err().to_string().contains("1 to 10000"));
    let range = Some(TimeRange {
        from: Nanos(5),
        to: Nanos(5),
    });
    let backwards = Filter {
        range,
        ..filter.clone()
    };
    let error = view.histogram(&HistogramQuery {
        filter: backwards,
        buckets: 1,
    });
    assert!(
        error
            .unwrap_err()
            .to_string()
            .contains("ends (5) at or before")
    );
    assert!(
        view.history(&HistoryQuery {
            filter: filter.clone(),
            max_points: 0
        })
        .is_err()
    );
    let empty = view
        .histogram(&HistogramQuery { filter, buckets: 3 })
        .unwrap();
    assert!(empty.buckets.iter().all(|b| b.total() == 0));
}

fn filters() -> impl Strategy<Value = Filter> {
    let range = prop::option::of((900u64..6_000, 1u64..6_000)).prop_map(|r| {
        r.map(|(from, length)| TimeRange {
            from: Nanos(from),
            to: Nanos(from + length),
        })
    });
    (
        prop::collection::vec((0u32..6).prop_map(VarId), 0..3),
        prop::option::of(0u32..3),
        prop::collection::vec((0u32..5).prop_map(ApId), 0..3),
        prop::sample::subsequence(Op::ALL.to_vec(), 0..3),
        prop::sample::subsequence(Origin::ALL.to_vec(), 0..2),
        range,
    )
        .prop_map(|(variables, object, aps, ops, origins, range)| Filter {
            variables,
            object,
            aps,
            ops,
            origins,
            range,
            once: false,
            everything: false,
        })
}

#[test]
fn answers_equal_those_of_looking_at_every_record() {
    let dir = dosmos_testseeds::scratch();
    let (mut writer, _) = StoreWriter::open(dir.path(), &identity()).unwrap();
    let all = records(0..500);
    for (i, part) in all.chunks(37).enumerate() {
        writer.commit(&commit(i as u64 + 1, part.to_vec())).unwrap();
    }
    let view = writer.view();
    let extent = view.catalog().extent.unwrap();
    assert_eq!((extent.from, extent.to), (Nanos(1_000), Nanos(5_996)));
    proptest!(dosmos_testseeds::config(256), |(filter in filters(), buckets in 1u32..40, points in 1u32..600)| {
        let wanted: Vec<Record> = all.iter().filter(|r| filter.matches(r)).copied().collect();
        prop_assert_eq!(&view.records(&filter, 0).records, &wanted);
        let h = view.histogram(&HistogramQuery { filter: filter.clone(), buckets }).unwrap();
        let mut expected = vec![OriginCounts::default(); buckets as usize];
        for r in &wanted {
            for i in 0..r.accesses() {
                if let Some(at) = h.range.bucket(buckets, r.spread().at(i)) {
                    let how = (r.flags.optimized, r.flags.in_process);
                    expected[at].count(r.origin, how, 1);
                }
            }
        }
        prop_assert_eq!(h.buckets, expected);
        let history = view.history(&HistoryQuery { filter, max_points: points }).unwrap();
        let inside = |r: &Record| r.spread().within(history.range);
        prop_assert_eq!(history.matched, wanted.iter().map(inside).sum::<u64>());
        prop_assert!(history.points.len() <= points as usize);
        prop_assert_eq!(history.points.iter().map(|p| p.count).sum::<u64>(), history.matched);
    });
}

/// The same accesses, every seventh a record of several.
fn counted(n: u64) -> Vec<Record> {
    let several = |r: Record| match r.version % 7 {
        0 => Record {
            count: 2 + (r.version % 40) as u32,
            duration: Nanos(r.version % 13 * 31),
            bytes: 8 * (2 + r.version % 40),
            flags: Flags {
                in_process: r.version.is_multiple_of(2),
                ..r.flags
            },
            ..r
        },
        _ => r,
    };
    records(0..n).into_iter().map(several).collect()
}

#[test]
fn records_that_stand_for_several_accesses_are_worth_as_much_as_these() {
    let dir = dosmos_testseeds::scratch();
    let (mut writer, _) = StoreWriter::open(dir.path(), &identity()).unwrap();
    let all = counted(500);
    for (i, part) in all.chunks(37).enumerate() {
        writer.commit(&commit(i as u64 + 1, part.to_vec())).unwrap();
    }
    let view = writer.view();
    let singles: Vec<(Record, Nanos)> = all
        .iter()
        .flat_map(|r| (0..r.accesses()).map(|i| (*r, r.spread().at(i))))
        .collect();
    assert_eq!(view.completeness().accesses(), singles.len() as u64);
    proptest!(dosmos_testseeds::config(256), |(filter in filters(), buckets in 1u32..40, points in 1u32..600, cut in 1_000u64..6_000)| {
        let h = view.histogram(&HistogramQuery { filter: filter.clone(), buckets }).unwrap();
        let asked = Filter { range: None, ..filter.clone() };
        let wanted = singles.iter().filter(|(r, at)| asked.matches(r) && h.range.contains(*at));
        let mut expected = vec![OriginCounts::default(); buckets as usize];
        for (r, at) in wanted.clone() {
            let how = (r.flags.optimized, r.flags.in_process);
            expected[h.range.bucket(buckets, *at).unwrap()].count(r.origin, how, 1);
        }
        prop_assert_eq!(h.buckets, expected);
        let history = view.history(&HistoryQuery { filter: filter.clone(), max_points: points }).unwrap();
        prop_assert_eq!(history.matched, wanted.count() as u64);
        prop_assert!(history.points.len() <= points as usize);
        prop_assert_eq!(history.points.iter().map(|p| p.count).sum::<u64>(), history.matched);
        // Ranges one after another hold each record once, and its parts add up to it.
        let parts = [(0, cut), (cut, 9_000)].map(|(from, to)| TimeRange { from: Nanos(from), to: Nanos(to) });
        let of = |range, once| view.records(&Filter { range: Some(range), once, ..filter.clone() }, 0).records;
        let once: Vec<Record> = [(parts[0], false), (parts[1], true)].iter().flat_map(|(p, o)| of(*p, *o)).collect();
        let whole = of(TimeRange { from: Nanos(0), to: Nanos(9_000) }, false);
        prop_assert_eq!(once, whole.clone());
        let sums = |records: &[Record]| records.iter().fold((0, 0), |s, r| (s.0 + r.accesses(), s.1 + r.bytes));
        let cut: Vec<Record> = parts.iter().flat_map(|p| of(*p, false).into_iter().filter_map(|r| r.within(*p))).collect();
        prop_assert_eq!(sums(&cut), sums(&whole));
    });
}

/// Accesses and waiting time by what was done, how far it went, and how it was served.
type Sums = std::collections::BTreeMap<(Op, Origin, bool, bool), (u64, Nanos)>;

#[test]
fn histories_of_very_many_records_are_exact_in_what_they_count() {
    let dir = dosmos_testseeds::scratch();
    let (mut writer, _) = StoreWriter::open(dir.path(), &identity()).unwrap();
    let waited = |r: Record| Record {
        wait: Nanos(if r.version.is_multiple_of(11) {
            r.version % 97
        } else {
            0
        }),
        ..r
    };
    // More than are decoded while somebody waits.
    let all: Vec<Record> = counted(270_000).into_iter().map(waited).collect();
    for (part, sequence) in all.chunks(50_000).zip(1..) {
        writer.commit(&commit(sequence, part.to_vec())).unwrap();
    }
    let view = writer.view();
    let extent = view.catalog().extent.unwrap();
    let of = |variables: &[u32], object, aps: &[u32], ops: &[Op], range| Filter {
        variables: variables.iter().map(|v| VarId(*v)).collect(),
        object,
        aps: aps.iter().map(|a| ApId(*a)).collect(),
        ops: ops.to_vec(),
        range,
        ..Filter::default()
    };
    let most = Some(TimeRange {
        from: extent.from + Nanos(1_234),
        to: extent.to,
    });
    let filters = [
        of(&[], None, &[], &[], None),
        of(&[all[0].object.var.0], None, &[], &[], most),
        of(&[all[0].object.var.0], None, &[all[0].ap.0], &[], most),
        of(
            &[all[5].object.var.0],
            Some(all[5].object.index),
            &[all[5].ap.0],
            &[all[5].op],
            None,
        ),
        of(&[all[1].object.var.0], None, &[77], &[], None),
        Filter {
            everything: true,
            ..of(&[], None, &[all[0].ap.0], &[], None)
        },
    ];
    for filter in filters {
        let mut expected = Sums::new();
        let found = all.iter().filter(|r| filter.matches(r));
        let range = filter.range.unwrap_or(extent);
        for r in found.clone().filter_map(|r| r.within(range)) {
            let key = (r.op, r.origin, r.flags.optimized, r.flags.in_process);
            let sum = expected.entry(key).or_default();
            *sum = (sum.0 + r.accesses(), sum.1 + r.wait);
        }
        let matched: u64 = expected.values().map(|(count, _)| count).sum();
        for max_points in [50, 100_000] {
            let history = view
                .history(&HistoryQuery {
                    filter: filter.clone(),
                    max_points,
                })
                .unwrap();
            assert_eq!(history.matched, matched, "{filter:?}");
            assert!(history.points.len() <= max_points as usize);
            let mut sums = Sums::new();
            for p in &history.points {
                let key = (p.op, p.origin, p.optimized, p.in_process);
                let sum = sums.entry(key).or_default();
                *sum = (sum.0 + p.count, sum.1 + p.wait);
            }
            assert_eq!(sums, expected, "{filter:?}");
            // A point that names one process stands for accesses of no other one.
            let mut named = std::collections::BTreeMap::<ApId, u64>::new();
            for p in history.points.iter().filter(|p| !p.several.aps) {
                *named.entry(p.ap).or_default() += p.count;
            }
            for (ap, count) in named {
                let its = found.clone().filter(|r| r.ap == ap);
                let its = its.filter_map(|r| r.within(range));
                let its: u64 = its.map(|r| r.accesses()).sum();
                assert!(count <= its, "{ap:?}: {count} of {its}, {filter:?}");
            }
            if matched <= u64::from(max_points) {
                // So few that each is shown.
                assert_eq!(history.points.len(), found.clone().count(), "{filter:?}");
            }
        }
    }
}

#[test]
fn every_chunk_is_worked_on_once_however_many_threads() {
    let summary = crate::chunk::Summary::of(&records(0..1)).unwrap();
    let chunk = |number| {
        std::sync::Arc::new(index::ChunkRef {
            number,
            place: index::Place {
                database: 0,
                at: 0,
                bytes: 0,
            },
            records_before: 0,
            summary: summary.clone(),
        })
    };
    for count in [0, 1, 31, 32, 63, 64, 65, 1_001] {
        let chunks: Vec<_> = (0..count).map(chunk).collect();
        let found = view::in_parts(
            &chunks,
            |part| part.iter().map(|c| c.number).collect::<Vec<_>>(),
            |mut all, part| {
                all.extend(part);
                all
            },
        );
        assert_eq!(found, (0..count).collect::<Vec<_>>());
    }
}
