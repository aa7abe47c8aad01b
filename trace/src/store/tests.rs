//! Stores as their readers see them: after a clean close, a crash, damage, and while in use.

use std::path::Path;

use dosmos_proto::{ApId, EmpId, MpId, Nanos, ObjectId, Topology, VarId};
use proptest::prelude::*;

use super::*;
use crate::chunk::MOST_RECORDS;
use crate::meta::{MetaState, SecondaryContent};
use crate::query::{
    Filter, HistogramQuery, HistoryQuery, MetaQuery, OriginCounts, TimeRange, TraceSource,
};
use crate::record::{Flags, Op, Origin, Record, Side};

fn identity() -> Identity {
    Identity {
        event_manager: "emp0".into(),
        emp: EmpId(0),
        topology: Topology {
            name: "test".into(),
            ..Topology::default()
        },
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

#[test]
fn what_was_committed_is_there_after_a_crash() {
    let dir = tempfile::tempdir().unwrap();
    let (mut writer, _) = StoreWriter::open(&dir.path().join("a"), &identity()).unwrap();
    writer.commit(&commit(1, records(0..20_000))).unwrap();
    writer.commit(&commit(2, records(20_000..20_010))).unwrap();
    // The files as a killed process leaves them: copied while the writer still has them open.
    let crashed = dir.path().join("b");
    copy(&dir.path().join("a"), &crashed);
    let (mut again, recovered) = StoreWriter::open(&crashed, &identity()).unwrap();
    assert_eq!(recovered.marks()[&MpId(0)].sequence, 2);
    again.commit(&commit(3, records(20_010..20_020))).unwrap();
    let found = again.view().records(&Filter::default(), 0);
    assert_eq!(found, records(0..20_020));
    let mut replayed = Vec::new();
    recovered
        .replay(|item| {
            if let Item::Record(r) = item {
                replayed.push(*r);
            }
        })
        .unwrap();
    assert_eq!(
        replayed, found,
        "the log is read in the order it was written"
    );
}

#[test]
fn events_keep_their_place_between_records() {
    let dir = tempfile::tempdir().unwrap();
    let (mut writer, _) = StoreWriter::open(dir.path(), &identity()).unwrap();
    let most = MOST_RECORDS as u32;
    let events: Vec<(u32, Event)> = [0, 1, most, most + 3, 2 * most + 5]
        .iter()
        .zip(1..)
        .map(|(&at, n)| {
            (
                at,
                Event::Received {
                    from: EmpId(1),
                    content: content(n),
                },
            )
        })
        .collect();
    let all = Commit {
        events: events.clone(),
        ..commit(1, records(0..u64::from(2 * most + 5)))
    };
    writer.commit(&all).unwrap();
    let only_event = Commit {
        events: vec![(
            0,
            Event::Received {
                from: EmpId(1),
                content: content(9),
            },
        )],
        ..Commit::default()
    };
    writer.commit(&only_event).unwrap();
    drop(writer);
    let (_, recovered) = StoreWriter::open(dir.path(), &identity()).unwrap();
    let (mut before, mut places) = (0, Vec::new());
    recovered
        .replay(|item| match item {
            Item::Record(_) => before += 1,
            Item::Event(Event::Received { content, .. }) => places.push((before, content.sequence)),
            Item::Event(e) => panic!("{e:?}"),
        })
        .unwrap();
    assert_eq!(
        places,
        [
            (0, 1),
            (1, 2),
            (most, 3),
            (most + 3, 4),
            (2 * most + 5, 5),
            (2 * most + 5, 9)
        ]
    );
}

#[test]
fn databases_rotate_and_stay_one_log() {
    let dir = tempfile::tempdir().unwrap();
    let (mut writer, _) = StoreWriter::open(dir.path(), &identity()).unwrap();
    writer.rotate_at(1);
    for i in 0..5 {
        writer
            .commit(&commit(i + 1, records(i * 100..(i + 1) * 100)))
            .unwrap();
    }
    drop(writer);
    assert!(dir.path().join("db.004").is_dir());
    let (writer, recovered) = StoreWriter::open(dir.path(), &identity()).unwrap();
    assert_eq!(recovered.marks()[&MpId(0)].sequence, 5);
    assert_eq!(
        writer.view().records(&Filter::default(), 0),
        records(0..500)
    );
}

#[test]
fn a_damaged_chunk_is_skipped_counted_and_named() {
    let dir = tempfile::tempdir().unwrap();
    let (mut writer, _) = StoreWriter::open(dir.path(), &identity()).unwrap();
    writer.commit(&commit(1, records(0..100))).unwrap();
    writer.commit(&commit(2, records(100..200))).unwrap();
    drop(writer);
    {
        let engine = engine::Engine::open(&dir.path().join("db.000")).unwrap();
        let key = keys::key(keys::CHUNK, 0);
        let mut bytes = engine.get(key).unwrap().unwrap().to_vec();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        let mut writes = engine::Writes::default();
        writes.put(key, &bytes);
        engine.commit(writes).unwrap();
    }
    let source = StoreSource::open(dir.path()).unwrap();
    let found = block_on(source.records(&Filter::default(), 0)).unwrap();
    assert_eq!(found, records(100..200));
    let completeness = block_on(source.catalog()).unwrap().completeness;
    assert_eq!(completeness.corrupt_chunks, 1);
    assert!(
        completeness.notes[0].contains("chunk 0"),
        "{completeness:?}"
    );
}

#[test]
fn a_store_in_use_names_who_answers() {
    let dir = tempfile::tempdir().unwrap();
    let (mut writer, _) = StoreWriter::open(dir.path(), &identity()).unwrap();
    writer.answers_at("127.0.0.1:4711").unwrap();
    writer.commit(&commit(1, records(0..10))).unwrap();
    // The engine locks per process: what another process would be told is told by the manifest.
    let error = StoreSource::open(dir.path()).unwrap_err();
    assert!(
        error.to_string().contains("--emp 127.0.0.1:4711"),
        "{error}"
    );
    writer.close().unwrap();
    let source = StoreSource::open(dir.path()).unwrap();
    assert_eq!(block_on(source.catalog()).unwrap().records, 10);
}

#[test]
fn wrong_directories_are_refused_by_name() {
    let dir = tempfile::tempdir().unwrap();
    let error = StoreSource::open(dir.path()).unwrap_err();
    assert!(error.to_string().contains("is no trace store"), "{error}");
    drop(StoreWriter::open(dir.path(), &identity()).unwrap());
    let other = Identity {
        event_manager: "emp1".into(),
        ..identity()
    };
    let error = StoreWriter::open(dir.path(), &other).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("emp0 of test, not of emp1 of test"),
        "{error}"
    );
    std::fs::write(dir.path().join("manifest.json"), "{").unwrap();
    let error = StoreSource::open(dir.path()).unwrap_err();
    assert!(error.to_string().contains("is damaged"), "{error}");
}

#[test]
fn questions_that_make_no_sense_are_refused() {
    let dir = tempfile::tempdir().unwrap();
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

#[test]
fn a_store_gives_the_metas_its_writer_had() {
    let dir = tempfile::tempdir().unwrap();
    let (mut writer, _) = StoreWriter::open(dir.path(), &identity()).unwrap();
    let mut live = MetaState::new(identity().topology, EmpId(0));
    let received = Event::Received {
        from: EmpId(1),
        content: content(1),
    };
    writer
        .commit(&Commit {
            events: vec![(40, received)],
            ..commit(1, records(0..50))
        })
        .unwrap();
    records(0..50).iter().for_each(|r| live.apply(r));
    live.receive(EmpId(1), &content(1));
    writer.close().unwrap();
    let source = StoreSource::open(dir.path()).unwrap();
    let metas = block_on(source.meta_objects(&MetaQuery::default())).unwrap();
    let expected = live.query(&MetaQuery::default(), metas.completeness.clone());
    assert_eq!(metas, expected);
    assert!(metas.primaries.iter().any(|p| p.reads_on_copies == 3));
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
            everything: false,
        })
}

#[test]
fn answers_equal_those_of_looking_at_every_record() {
    let dir = tempfile::tempdir().unwrap();
    let (mut writer, _) = StoreWriter::open(dir.path(), &identity()).unwrap();
    let all = records(0..500);
    for (i, part) in all.chunks(37).enumerate() {
        writer.commit(&commit(i as u64 + 1, part.to_vec())).unwrap();
    }
    let view = writer.view();
    let extent = view.catalog().extent.unwrap();
    assert_eq!((extent.from, extent.to), (Nanos(1_000), Nanos(5_996)));
    proptest!(|(filter in filters(), buckets in 1u32..40, points in 1u32..600)| {
        let wanted: Vec<Record> = all.iter().filter(|r| filter.matches(r)).copied().collect();
        prop_assert_eq!(&view.records(&filter, 0), &wanted);
        let h = view.histogram(&HistogramQuery { filter: filter.clone(), buckets }).unwrap();
        let mut expected = vec![OriginCounts::default(); buckets as usize];
        for r in &wanted {
            if let Some(at) = view::bucket(h.range, buckets, r.start) {
                expected[at].count(r.origin, r.flags.optimized);
            }
        }
        prop_assert_eq!(h.buckets, expected);
        let history = view.history(&HistoryQuery { filter, max_points: points }).unwrap();
        prop_assert_eq!(history.matched, wanted.len() as u64);
        prop_assert!(history.points.len() <= points as usize);
        prop_assert_eq!(history.points.iter().map(|p| p.count).sum::<u64>(), history.matched);
    });
}
