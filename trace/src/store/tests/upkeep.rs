//! What happens to a store beside being written and read: saved states, merging, retention, compaction.

use super::*;
use proptest::prelude::*;

use crate::chunk::MOST_RECORDS;
use crate::query::{BarrierName, page};

const ALL: u64 = 30_000;

/// Commits of 1,500 records with an event in the middle of each; none of the chunks is full.
fn write_all(writer: &mut StoreWriter) {
    for (part, sequence) in (0..ALL / 1_500).zip(1..) {
        let received = Event::Received {
            from: EmpId(1),
            content: content(sequence),
        };
        let all = Commit {
            events: vec![(700, received)],
            ..commit(sequence, records(part * 1_500..(part + 1) * 1_500))
        };
        writer.commit(&all).unwrap();
    }
}

fn fold(recovered: &mut Recovered) -> (MetaState, u64) {
    let new = MetaState::new(identity().topology, EmpId(0));
    let mut metas = recovered.take_snapshot().map_or(new, |s| s.metas);
    let mut entries = 0;
    recovered.replay(|item| {
        entries += 1;
        match item {
            Item::Record(record) => metas.apply(record),
            Item::Event(Event::Received { from, content }) => {
                metas.receive(*from, content);
            }
            Item::Event(e) => panic!("{e:?}"),
        }
    });
    (metas, entries)
}

fn metas_of(metas: &MetaState) -> crate::query::MetaObjects {
    metas.query(&MetaQuery::default(), Default::default())
}

fn snapshot(dir: &Path) -> Snapshot {
    // What an event manager would have in memory.
    let copied = dosmos_testseeds::scratch();
    copy(dir, copied.path());
    let (_, mut recovered) = StoreWriter::open(copied.path(), &identity()).unwrap();
    Snapshot {
        metas: fold(&mut recovered).0,
        due: vec![(EmpId(1), content(9))],
    }
}

#[test]
fn a_saved_state_spares_reading_the_log_before_it() {
    let dir = dosmos_testseeds::scratch();
    let (mut writer, _) = StoreWriter::open(dir.path(), &identity()).unwrap();
    writer.commit(&commit(1, records(0..10_000))).unwrap();
    // The last chunk is small: it grows after the state is saved.
    writer.commit(&commit(2, records(10_000..10_005))).unwrap();
    let state = snapshot(dir.path());
    writer.save(&state).unwrap();
    writer.commit(&commit(3, records(10_005..10_020))).unwrap();
    drop(writer);
    let (writer, mut recovered) = StoreWriter::open(dir.path(), &identity()).unwrap();
    let (whole, all) = fold(&mut recovered.clone_without_snapshot());
    let due = recovered.clone().take_snapshot().unwrap().due;
    assert_eq!(due, state.due);
    let (resumed, entries) = fold(&mut recovered);
    assert_eq!((all, entries), (10_020, 15));
    assert_eq!(metas_of(&resumed), metas_of(&whole));
    writer.close().unwrap();
    drop(recovered);
    let source = StoreSource::open(dir.path()).unwrap();
    let metas = block_on(source.meta_objects(&MetaQuery::default())).unwrap();
    assert_eq!(metas.primaries, metas_of(&whole).primaries);
    drop(source);
    // A damaged state counts as none.
    let file = dir.path().join("state");
    let mut bytes = std::fs::read(&file).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&file, bytes).unwrap();
    let (_, mut recovered) = StoreWriter::open(dir.path(), &identity()).unwrap();
    assert!(recovered.clone().take_snapshot().is_none());
    assert_eq!(fold(&mut recovered).1, 10_020);
}

#[test]
fn merging_changes_no_answer() {
    let dir = dosmos_testseeds::scratch();
    let (mut writer, _) = StoreWriter::open(dir.path(), &identity()).unwrap();
    let small = 100;
    let view = writer.view();
    let mut log = Vec::new();
    for (part, sequence) in (0..ALL / small).zip(1..) {
        let received = Event::Received {
            from: EmpId(1),
            content: content(sequence),
        };
        let here = records(part * small..(part + 1) * small);
        log.extend(here[..70].iter().map(|r| Ok(*r)));
        log.push(Err(sequence));
        log.extend(here[70..].iter().map(|r| Ok(*r)));
        let all = Commit {
            events: vec![(70, received)],
            ..commit(sequence, here)
        };
        writer.commit(&all).unwrap();
        if sequence == 40 {
            // A state saved within what is merged later.
            writer.save(&snapshot(dir.path())).unwrap();
        }
    }
    let before = ALL / small;
    let usage = view.usage();
    assert!(usage.chunks < before / 3, "{} of {before}", usage.chunks);
    assert_eq!(view.records(&Filter::default(), 0).records, records(0..ALL));
    writer.close().unwrap();
    let source = StoreSource::open(dir.path()).unwrap();
    assert!(source.view().usage().chunks <= ALL.div_ceil(MOST_RECORDS as u64) + 1);
    assert_eq!(all_of(&source), records(0..ALL));
    assert_eq!(source.verify().damaged, 0);
    drop(source);
    let (_, mut recovered) = StoreWriter::open(dir.path(), &identity()).unwrap();
    let mut replayed = Vec::new();
    recovered.clone_without_snapshot().replay(|item| {
        replayed.push(match item {
            Item::Record(r) => Ok(*r),
            Item::Event(Event::Received { content, .. }) => Err(content.sequence),
            Item::Event(e) => panic!("{e:?}"),
        });
    });
    assert!(replayed == log);
    assert_eq!(
        metas_of(&fold(&mut recovered.clone_without_snapshot()).0),
        metas_of(&fold(&mut recovered).0)
    );
}

#[test]
fn a_flight_recorder_keeps_the_newest_and_counts_the_rest() {
    let dir = dosmos_testseeds::scratch();
    let (mut writer, _) = StoreWriter::open(dir.path(), &identity()).unwrap();
    writer.retain(Retention {
        max_bytes: Some(16 << 10),
        max_age: None,
    });
    writer.rotate_at(1);
    let variable = Event::Barrier(BarrierName {
        id: VarId(1 << 31),
        group: None,
        name: "known early".into(),
    });
    let mut live = MetaState::new(identity().topology, EmpId(0));
    for (part, sequence) in (0..ALL / 1_000).zip(1..) {
        let here = records(part * 1_000..(part + 1) * 1_000);
        here.iter().for_each(|r| live.apply(r));
        let events = match sequence {
            1 => vec![(0, variable.clone())],
            _ => Vec::new(),
        };
        let all = Commit {
            events,
            ..commit(sequence, here)
        };
        writer.commit(&all).unwrap();
        let state = || Snapshot {
            metas: live.clone(),
            due: Vec::new(),
        };
        let now = Nanos(sequence * 2_000_000_000);
        writer.maintain(now, state).unwrap();
    }
    let check = |view: &StoreView| {
        let kept = view.records(&Filter::default(), 0);
        let removed = ALL - kept.len() as u64;
        let used = view.usage();
        assert!(
            removed > 0 && !kept.is_empty(),
            "{removed} removed, {used:?}"
        );
        assert_eq!(kept.records, records(removed..ALL));
        assert_eq!(kept.completeness.removed, removed);
        assert_eq!(kept.completeness.recorded, ALL);
        assert_eq!(kept.completeness.corrupt_chunks, 0);
        assert!(!kept.completeness.is_complete());
        assert_eq!(view.catalog().barriers.len(), 1);
    };
    check(&writer.view());
    assert!(writer.view().usage().bytes < 32 << 10);
    assert!(!dir.path().join("log.000").exists());
    writer.close().unwrap();
    let source = StoreSource::open(dir.path()).unwrap();
    check(source.view());
    let metas = block_on(source.meta_objects(&MetaQuery::default())).unwrap();
    assert_eq!(
        metas.primaries,
        metas_of(&live).primaries,
        "all are counted"
    );
    drop(source);
    let (_, mut recovered) = StoreWriter::open(dir.path(), &identity()).unwrap();
    assert_eq!(recovered.marks()[&MpId(0)].sequence, ALL / 1_000);
    assert_eq!(metas_of(&fold(&mut recovered).0), metas_of(&live));
}

#[test]
fn what_is_too_old_goes() {
    let dir = dosmos_testseeds::scratch();
    let (mut writer, _) = StoreWriter::open(dir.path(), &identity()).unwrap();
    writer.retain(Retention {
        max_bytes: None,
        max_age: Some(Nanos(80_000_000_000)),
    });
    let fresh = || Snapshot {
        metas: MetaState::new(identity().topology, EmpId(0)),
        due: Vec::new(),
    };
    for second in 0..200u64 {
        let at = Nanos(second * 1_000_000_000);
        let one = Record {
            start: at,
            ..record(second)
        };
        writer.commit(&commit(second + 1, vec![one])).unwrap();
        writer.maintain(at, fresh).unwrap();
    }
    let kept = writer.view().records(&Filter::default(), 0);
    let oldest = kept[0].start.0 / 1_000_000_000;
    assert!((100..=119).contains(&oldest), "{oldest}");
    assert_eq!(kept.len() as u64, 200 - oldest);
    assert_eq!(kept.completeness.removed, oldest);
}

#[test]
fn compacting_keeps_everything_in_less_space() {
    let dir = dosmos_testseeds::scratch();
    let (mut writer, _) = StoreWriter::open(dir.path(), &identity()).unwrap();
    writer.rotate_at(1 << 20);
    write_all(&mut writer);
    writer.save(&snapshot(dir.path())).unwrap();
    writer.close().unwrap();
    let before = StoreSource::open(dir.path()).unwrap();
    let metas = block_on(before.meta_objects(&MetaQuery::default())).unwrap();
    drop(before);
    // What a compaction that was killed leaves.
    let left = dir.path().join("g1.log.000");
    std::fs::copy(dir.path().join("log.000"), &left).unwrap();
    let done = compact(dir.path()).unwrap();
    assert_eq!(done.records, ALL);
    assert_eq!(done.chunks.1, ALL.div_ceil(MOST_RECORDS as u64));
    assert!(!dir.path().join("log.000").exists() && left.exists());
    let source = StoreSource::open(dir.path()).unwrap();
    assert_eq!(
        source.view().records(&Filter::default(), 0).records,
        records(0..ALL)
    );
    assert_eq!(
        block_on(source.meta_objects(&MetaQuery::default())).unwrap(),
        metas
    );
    let verified = source.verify();
    assert_eq!((verified.damaged, verified.records), (0, ALL));
    assert_eq!(verified.events, ALL / 1_500);
    drop(source);
    let (_, mut recovered) = StoreWriter::open(dir.path(), &identity()).unwrap();
    assert_eq!(recovered.marks()[&MpId(0)].sequence, ALL / 1_500);
    assert_eq!(fold(&mut recovered).1, 0, "the state was saved");
}

#[test]
fn databases_that_do_not_count_are_not_read() {
    let dir = dosmos_testseeds::scratch();
    let (mut writer, _) = StoreWriter::open(dir.path(), &identity()).unwrap();
    writer.rotate_at(1);
    for i in 0..3 {
        let part = records(i * 100..(i + 1) * 100);
        writer.commit(&commit(i + 1, part)).unwrap();
    }
    writer.close().unwrap();
    // Retention, killed between saying so and deleting.
    let mut manifest = Manifest::read(dir.path()).unwrap();
    manifest.first = 2;
    manifest.removed.records = 200;
    manifest.write(dir.path()).unwrap();
    let source = StoreSource::open(dir.path()).unwrap();
    assert_eq!(
        source.view().records(&Filter::default(), 0).records,
        records(200..300)
    );
    drop(source);
    assert!(
        dir.path().join("log.001").exists(),
        "a reader deletes nothing"
    );
    let (_, recovered) = StoreWriter::open(dir.path(), &identity()).unwrap();
    assert_eq!(recovered.marks()[&MpId(0)].sequence, 3);
    assert!(!dir.path().join("log.001").exists());
}

#[test]
fn pages_one_after_another_hold_every_record_once() {
    let dir = dosmos_testseeds::scratch();
    let (mut writer, _) = StoreWriter::open(dir.path(), &identity()).unwrap();
    // Seven records start at each instant.
    let all: Vec<Record> = (0..200)
        .map(|i| Record {
            start: Nanos(i / 7 * 10),
            ..record(i)
        })
        .collect();
    writer.commit(&commit(1, all.clone())).unwrap();
    writer.close().unwrap();
    let source = StoreSource::open(dir.path()).unwrap();
    proptest!(dosmos_testseeds::config(256), |(limit in 1u64..60, ops in prop::sample::subsequence(Op::ALL.to_vec(), 0..3))| {
        let filter = Filter { ops, ..Filter::default() };
        let (mut found, mut after) = (Vec::new(), None);
        loop {
            let (records, next) = block_on(page::page(&source, &filter, after, limit)).unwrap();
            prop_assert!(records.len() as u64 <= limit);
            found.extend(records);
            let Some(next) = next else { break };
            prop_assert_eq!(next.to_string().parse(), Ok(next));
            after = Some(next);
        }
        let wanted: Vec<Record> = all.iter().filter(|r| filter.matches(r)).copied().collect();
        prop_assert_eq!(found, wanted);
    });
}
