//! The log: what is committed is there, once, in its order.

use proptest::prelude::*;

use super::*;
use crate::chunk::MOST_RECORDS;

#[test]
fn what_was_committed_is_there_after_a_crash() {
    let dir = dosmos_testseeds::scratch();
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
    let dir = dosmos_testseeds::scratch();
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
    let dir = dosmos_testseeds::scratch();
    let (mut writer, _) = StoreWriter::open(dir.path(), &identity()).unwrap();
    writer.rotate_at(1);
    for i in 0..5 {
        writer
            .commit(&commit(i + 1, records(i * 100..(i + 1) * 100)))
            .unwrap();
    }
    drop(writer);
    assert!(dir.path().join("log.004").is_file());
    let (writer, recovered) = StoreWriter::open(dir.path(), &identity()).unwrap();
    assert_eq!(recovered.marks()[&MpId(0)].sequence, 5);
    assert_eq!(
        writer.view().records(&Filter::default(), 0).records,
        records(0..500)
    );
}

#[test]
fn a_batch_is_stored_once() {
    let dir = dosmos_testseeds::scratch();
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
    let dir = dosmos_testseeds::scratch();
    let (mut writer, _) = StoreWriter::open(dir.path(), &identity()).unwrap();
    for i in 0..100 {
        let part = records(i * 20..(i + 1) * 20);
        writer.commit(&commit(i + 1, part)).unwrap();
    }
    assert_eq!(writer.view().usage().chunks, 100);
    let found = writer.view().records(&Filter::default(), 0).records;
    assert_eq!(found, records(0..2_000));
    assert_eq!(
        writer.view().records(&Filter::default(), 7).records,
        records(0..7)
    );
    writer.close().unwrap();
    let source = StoreSource::open(dir.path()).unwrap();
    assert_eq!(source.view().usage().chunks, 1);
    assert_eq!(all_of(&source), records(0..2_000));
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
        let dir = dosmos_testseeds::scratch();
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
