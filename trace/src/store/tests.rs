//! Stores as their readers see them: after a clean close, a crash, damage, and while in use.

use std::path::Path;

use dosmos_proto::{ApId, EmpId, MpId, Nanos, ObjectId, TopologyBuilder, VarId};
use proptest::prelude::*;

mod upkeep;

use super::*;
use crate::chunk::MOST_RECORDS;
use crate::meta::{MetaState, SecondaryContent};
use crate::query::{
    Filter, HistogramQuery, HistoryQuery, MetaQuery, OriginCounts, TimeRange, TraceSource,
};
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
    let found = again.view().records(&Filter::default(), 0).records;
    assert_eq!(found, records(0..20_020));
    let mut replayed = Vec::new();
    recovered.replay(|item| {
        if let Item::Record(r) = item {
            replayed.push(*r);
        }
    });
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
    recovered.replay(|item| match item {
        Item::Record(_) => before += 1,
        Item::Event(Event::Received { content, .. }) => places.push((before, content.sequence)),
        Item::Event(e) => panic!("{e:?}"),
    });
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
        writer.view().records(&Filter::default(), 0).records,
        records(0..500)
    );
}

#[test]
fn a_damaged_chunk_is_skipped_counted_and_named() {
    let dir = tempfile::tempdir().unwrap();
    let (mut writer, _) = StoreWriter::open(dir.path(), &identity()).unwrap();
    writer.commit(&commit(1, records(0..100))).unwrap();
    writer.rotate_at(1);
    writer.commit(&commit(2, records(100..200))).unwrap();
    writer.close().unwrap();
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
    let found = block_on(source.records(&Filter::default(), 0))
        .unwrap()
        .records;
    assert_eq!(found, records(100..200));
    let completeness = block_on(source.catalog()).unwrap().completeness;
    assert_eq!(completeness.corrupt_chunks, 1);
    assert!(
        completeness.notes[0].contains("chunk 0"),
        "{completeness:?}"
    );
}

#[test]
fn many_read_a_closed_store_at_once_and_no_writer_comes_between() {
    let dir = tempfile::tempdir().unwrap();
    let (mut writer, _) = StoreWriter::open(dir.path(), &identity()).unwrap();
    writer.commit(&commit(1, records(0..10))).unwrap();
    writer.close().unwrap();
    let readers = [(); 3].map(|()| StoreSource::open(dir.path()).unwrap());
    for reader in &readers {
        let found = block_on(reader.records(&Filter::default(), 0))
            .unwrap()
            .records;
        assert_eq!(found, records(0..10));
    }
    let error = StoreWriter::open(dir.path(), &identity()).unwrap_err();
    assert!(error.to_string().contains("another process"), "{error}");
    drop(readers);
    StoreWriter::open(dir.path(), &identity()).unwrap();
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

#[test]
fn reading_leaves_what_a_crash_left_as_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let crashed = dir.path().join("crashed");
    let (mut writer, _) = StoreWriter::open(&dir.path().join("a"), &identity()).unwrap();
    writer.commit(&commit(1, records(0..3_000))).unwrap();
    copy(&dir.path().join("a"), &crashed);
    let before = files(&crashed);
    let source = StoreSource::open(&crashed).unwrap();
    let found = block_on(source.records(&Filter::default(), 0))
        .unwrap()
        .records;
    assert_eq!(found, records(0..3_000));
    let metas = block_on(source.meta_objects(&MetaQuery::default())).unwrap();
    assert!(!metas.primaries.is_empty());
    drop(source);
    assert!(files(&crashed) == before, "a reader changed it");
    // Its writer goes on in place all the same.
    let (mut again, _) = StoreWriter::open(&crashed, &identity()).unwrap();
    again.commit(&commit(2, records(3_000..3_001))).unwrap();
}

#[test]
fn a_batch_is_stored_once() {
    let dir = tempfile::tempdir().unwrap();
    let (mut writer, _) = StoreWriter::open(dir.path(), &identity()).unwrap();
    writer.commit(&commit(1, records(0..10))).unwrap();
    writer.commit(&commit(3, records(10..20))).unwrap();
    for (sequence, incarnation) in [(3, 1), (2, 1), (9, 0)] {
        let mut again = commit(sequence, records(0..5));
        again.marks[0].incarnation = incarnation;
        let error = writer.commit(&again).unwrap_err();
        assert!(matches!(error, StoreError::Duplicate { .. }), "{error}");
    }
    writer.close().unwrap();
    let (mut writer, _) = StoreWriter::open(dir.path(), &identity()).unwrap();
    assert!(writer.commit(&commit(3, records(0..5))).is_err());
    let mut restarted = commit(1, records(20..21));
    restarted.marks[0].incarnation = 2;
    writer.commit(&restarted).unwrap();
    assert_eq!(writer.view().usage().records, 21);
}

#[test]
fn small_commits_share_chunks() {
    let dir = tempfile::tempdir().unwrap();
    let (mut writer, _) = StoreWriter::open(dir.path(), &identity()).unwrap();
    for i in 0..100 {
        let part = records(i * 20..(i + 1) * 20);
        writer.commit(&commit(i + 1, part)).unwrap();
    }
    assert_eq!(writer.view().usage().chunks, 2);
    let found = writer.view().records(&Filter::default(), 0).records;
    assert_eq!(found, records(0..2_000));
    assert_eq!(
        writer.view().records(&Filter::default(), 7).records,
        records(0..7)
    );
}

proptest! {
    #![proptest_config(dosmos_testseeds::config(12))]

    /// Whatever is committed in whatever portions, with restarts and crashes between, is read back in
    /// that order.
    #[test]
    fn the_log_is_what_was_committed(
        commits in prop::collection::vec(
            (prop_oneof![0u64..50, 900u64..1_100, 8_000u64..18_000], prop::collection::vec(any::<prop::sample::Index>(), 0..4), 0u8..4),
            1..7,
        ),
        rotate in any::<bool>(),
    ) {
        let dir = tempfile::tempdir().unwrap();
        let mut at = dir.path().join("0");
        let (mut writer, _) = StoreWriter::open(&at, &identity()).unwrap();
        let (mut log, mut next, mut number) = (Vec::new(), 0, 0);
        for (i, (count, places, then)) in commits.into_iter().enumerate() {
            if rotate {
                writer.rotate_at(1 << 17);
            }
            let mut places: Vec<u32> = places.iter().map(|p| p.index(count as usize + 1) as u32).collect();
            places.sort_unstable();
            let part = records(next..next + count);
            next += count;
            let mut events = Vec::new();
            for (r, record) in part.iter().enumerate() {
                for _ in places.iter().filter(|p| **p == r as u32) {
                    number += 1;
                    events.push((r as u32, Event::Received { from: EmpId(1), content: content(number) }));
                    log.push(Err(number));
                }
                log.push(Ok(*record));
            }
            for _ in places.iter().filter(|p| u64::from(**p) == count) {
                number += 1;
                events.push((count as u32, Event::Received { from: EmpId(1), content: content(number) }));
                log.push(Err(number));
            }
            writer.commit(&Commit { events, ..commit(i as u64 + 1, part) }).unwrap();
            match then {
                0 => {
                    writer.close().unwrap();
                    writer = StoreWriter::open(&at, &identity()).unwrap().0;
                }
                1 => {
                    let crashed = dir.path().join((i + 1).to_string());
                    copy(&at, &crashed);
                    at = crashed;
                    writer = StoreWriter::open(&at, &identity()).unwrap().0;
                }
                _ => {}
            }
        }
        let everything = Filter { everything: true, ..Filter::default() };
        prop_assert_eq!(writer.view().records(&everything, 0).records, records(0..next));
        drop(writer);
        let (_, recovered) = StoreWriter::open(&at, &identity()).unwrap();
        let mut replayed = Vec::new();
        recovered.replay(|item| replayed.push(match item {
            Item::Record(r) => Ok(*r),
            Item::Event(Event::Received { content, .. }) => Err(content.sequence),
            Item::Event(e) => panic!("{e:?}"),
        }));
        prop_assert!(replayed == log, "{} entries, {} expected", replayed.len(), log.len());
    }
}

#[test]
fn a_database_that_is_garbage_is_named_and_the_others_answer() {
    let dir = tempfile::tempdir().unwrap();
    let (mut writer, _) = StoreWriter::open(dir.path(), &identity()).unwrap();
    writer.commit(&commit(1, records(0..100))).unwrap();
    writer.rotate_at(1);
    writer.commit(&commit(2, records(100..200))).unwrap();
    writer.close().unwrap();
    let conf = dir.path().join("db.000/conf");
    std::fs::write(conf, b"no configuration at all").unwrap();
    let source = StoreSource::open(dir.path()).unwrap();
    let found = block_on(source.records(&Filter::default(), 0))
        .unwrap()
        .records;
    assert_eq!(found, records(100..200));
    let completeness = block_on(source.catalog()).unwrap().completeness;
    assert_eq!(completeness.corrupt_chunks, 1);
    assert!(completeness.notes[0].contains("db.000"), "{completeness:?}");
    drop(source);
    let error = StoreWriter::open(dir.path(), &identity()).unwrap_err();
    assert!(error.to_string().contains("db.000"), "{error}");
}

#[test]
fn noise_in_the_database_file_never_panics() {
    let dir = tempfile::tempdir().unwrap();
    let original = dir.path().join("original");
    let (mut writer, _) = StoreWriter::open(&original, &identity()).unwrap();
    writer.commit(&commit(1, records(0..9_000))).unwrap();
    writer.close().unwrap();
    let length = std::fs::metadata(original.join("db.000/db")).unwrap().len() as usize;
    for (i, at) in (0..length).step_by(length / 8).enumerate() {
        let damaged = dir.path().join(i.to_string());
        copy(&original, &damaged);
        let file = damaged.join("db.000/db");
        let mut bytes = std::fs::read(&file).unwrap();
        let end = bytes.len().min(at + 5_000);
        bytes[at..end].iter_mut().for_each(|b| *b ^= 0x5a);
        std::fs::write(&file, bytes).unwrap();
        // What is left is the engine's to say; that it says so, or answers, is ours.
        if let Ok(source) = StoreSource::open(&damaged) {
            let found = block_on(source.records(&Filter::default(), 0))
                .unwrap()
                .records;
            assert!(found.len() <= 9_000);
            let _ = block_on(source.meta_objects(&MetaQuery::default()));
        }
    }
}

#[test]
fn a_store_in_use_names_who_answers() {
    let dir = tempfile::tempdir().unwrap();
    let (mut writer, _) = StoreWriter::open(dir.path(), &identity()).unwrap();
    writer.answers_at("127.0.0.1:4711").unwrap();
    writer.commit(&commit(1, records(0..10))).unwrap();
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
    assert!(
        error.to_string().contains("is not a trace store"),
        "{error}"
    );
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
    proptest!(dosmos_testseeds::config(256), |(filter in filters(), buckets in 1u32..40, points in 1u32..600)| {
        let wanted: Vec<Record> = all.iter().filter(|r| filter.matches(r)).copied().collect();
        prop_assert_eq!(&view.records(&filter, 0).records, &wanted);
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

#[test]
fn every_chunk_is_worked_on_once_however_many_threads() {
    let summary = crate::chunk::Summary::of(&records(0..1)).unwrap();
    let chunk = |number| {
        std::sync::Arc::new(index::ChunkRef {
            number,
            database: 0,
            bytes: 0,
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
