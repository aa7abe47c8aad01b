//! Damage takes what it hits, is named in every answer, and is still known after restarts.

use super::*;
use crate::chunk::MOST_RECORDS;
use crate::query::HistogramQuery;
use crate::store::frame::{Header, Kind};
use crate::store::manifest::Manifest;

const FULL: u64 = MOST_RECORDS as u64;
/// Records of [`store`].
const ALL: u64 = 4 * FULL;

/// Flips a bit in the middle of chunk `number`, which stands in this file.
fn flip_in_chunk(dir: &Path, file: &str, number: u64) {
    let source = StoreSource::open(dir).unwrap();
    let place = source.view().read(|index| {
        let chunk = index.chunks.iter().find(|c| c.number == number);
        chunk.unwrap().place
    });
    drop(source);
    flip(&dir.join(file), place.at + u64::from(place.bytes) / 2);
}

fn flip(file: &Path, at: u64) {
    let mut bytes = std::fs::read(file).unwrap();
    bytes[at as usize] ^= 1;
    std::fs::write(file, bytes).unwrap();
}

/// Four commits of a full chunk each; closed, or left by a crash.
fn store(dir: &Path, closed: bool) {
    let (mut writer, _) = StoreWriter::open(dir, &identity()).unwrap();
    for i in 0..4 {
        writer
            .commit(&commit(i + 1, records(i * FULL..(i + 1) * FULL)))
            .unwrap();
    }
    if closed {
        writer.close().unwrap();
    }
}

#[test]
fn a_damaged_chunk_is_skipped_counted_and_named_in_every_answer() {
    for closed in [true, false] {
        let dir = dosmos_testseeds::scratch();
        let (mut writer, _) = StoreWriter::open(dir.path(), &identity()).unwrap();
        writer.commit(&commit(1, records(0..20_000))).unwrap();
        if closed {
            writer.close().unwrap();
        } else {
            drop(writer);
        }
        flip_in_chunk(dir.path(), "log.000", 1);
        let source = StoreSource::open(dir.path()).unwrap();
        // Also an answer for which no chunk is read says so.
        let catalog = block_on(source.catalog()).unwrap();
        assert_eq!(catalog.completeness.damaged, 8_192);
        assert_eq!(catalog.completeness.recorded, 20_000);
        let notes = catalog.completeness.notes.join("; ");
        assert!(notes.contains("records 8192 to 16383 of 20000"), "{notes}");
        let found = block_on(source.records(&Filter::default(), 0)).unwrap();
        let whole: Vec<_> = records(0..8_192)
            .into_iter()
            .chain(records(16_384..20_000))
            .collect();
        assert_eq!(found.records, whole);
        assert!(!found.completeness.is_complete());
        let histogram = HistogramQuery {
            filter: Filter::default(),
            buckets: 3,
        };
        let histogram = block_on(source.histogram(&histogram)).unwrap();
        assert_eq!(histogram.completeness.damaged, 8_192);
        let metas = block_on(source.meta_objects(&MetaQuery::default())).unwrap();
        assert_eq!(metas.completeness.damaged, 8_192);
        assert!(source.verify().damaged > 0);
    }
}

#[test]
fn damage_that_compacting_would_hide_stops_it() {
    let dir = dosmos_testseeds::scratch();
    store(dir.path(), true);
    flip(&dir.path().join("log.000"), 3_000);
    let before = files(dir.path());
    let refused = compact(dir.path()).unwrap_err();
    assert!(
        refused.to_string().contains("nothing was changed"),
        "{refused}"
    );
    let log = dir.path().join("log.000");
    assert!(std::fs::read(&log).unwrap().starts_with(&before[&log]));
}

#[test]
fn what_was_lost_stays_known_as_lost_however_often_the_store_is_written_again() {
    for closed in [true, false] {
        let dir = dosmos_testseeds::scratch();
        store(dir.path(), closed);
        flip_in_chunk(dir.path(), "log.000", 2);
        let lost = StoreSource::open(dir.path())
            .unwrap()
            .completeness()
            .damaged;
        assert_eq!(lost, FULL);
        for again in 0..3u64 {
            let (mut writer, _) = StoreWriter::open(dir.path(), &identity()).unwrap();
            let next = ALL + again * 10;
            writer
                .commit(&commit(10 + again, records(next..next + 10)))
                .unwrap();
            assert_eq!(writer.view().completeness().damaged, lost);
            writer.close().unwrap();
            let source = StoreSource::open(dir.path()).unwrap();
            assert_eq!(source.completeness().damaged, lost, "{closed} {again}");
            assert_eq!(source.describe().records, ALL + 10 + again * 10 - lost);
            assert!(source.verify().damaged > 0);
        }
    }
}

#[test]
fn the_end_of_a_log_that_was_cut_off_is_known_as_lost() {
    for closed in [true, false] {
        let dir = dosmos_testseeds::scratch();
        store(dir.path(), closed);
        let log = dir.path().join("log.000");
        let length = std::fs::metadata(&log).unwrap().len();
        for cut in [length - 1, length / 2, 100, 0] {
            std::fs::OpenOptions::new()
                .write(true)
                .open(&log)
                .unwrap()
                .set_len(cut)
                .unwrap();
            let lacking = StoreSource::open(dir.path()).unwrap().completeness();
            assert!(!lacking.is_complete(), "{closed} {cut}");
            assert_eq!(lacking.recorded, ALL, "{closed} {cut}");
        }
        let (mut writer, recovered) = StoreWriter::open(dir.path(), &identity()).unwrap();
        // The engine's account of the batches is not hit.
        assert_eq!(recovered.marks()[&MpId(0)].sequence, 4);
        assert!(writer.commit(&commit(4, records(0..1))).is_err());
        writer.commit(&commit(5, records(ALL..ALL + 10))).unwrap();
        writer.close().unwrap();
        let source = StoreSource::open(dir.path()).unwrap();
        assert_eq!(source.completeness().damaged, ALL);
        assert_eq!(all_of(&source), records(ALL..ALL + 10));
    }
}

/// A cut leaves a frame that claims more bytes than there are. What is written behind it is not part of it.
#[test]
fn what_is_written_behind_a_frame_that_was_cut_is_found() {
    let base = dosmos_testseeds::scratch();
    store(base.path(), true);
    let length = std::fs::metadata(base.path().join("log.000"))
        .unwrap()
        .len();
    for at in (1..20).map(|part| length * part / 20) {
        let dir = dosmos_testseeds::scratch();
        copy(base.path(), dir.path());
        let log = std::fs::File::options()
            .write(true)
            .open(dir.path().join("log.000"))
            .unwrap();
        log.set_len(at).unwrap();
        drop(log);
        let left = all_of(&StoreSource::open(dir.path()).unwrap());
        let (mut writer, _) = StoreWriter::open(dir.path(), &identity()).unwrap();
        writer.commit(&commit(5, records(ALL..ALL + 10))).unwrap();
        writer.close().unwrap();
        let found = all_of(&StoreSource::open(dir.path()).unwrap());
        assert_eq!(
            found,
            [left, records(ALL..ALL + 10)].concat(),
            "cut at {at}"
        );
    }
}

/// Sums of such numbers would not fit.
#[test]
fn numbers_that_no_log_has_are_damage_although_their_checksum_holds() {
    let numbers: [fn(&mut Header); 4] = [
        |h| h.records_before = u64::MAX - 1,
        |h| h.events_before = u64::MAX - 1,
        |h| h.last = u64::MAX,
        |h| h.commit = u64::MAX,
    ];
    for wrong in numbers {
        let dir = dosmos_testseeds::scratch();
        store(dir.path(), true);
        let mut header = Header {
            kind: Kind::Events,
            first: 5,
            last: 5,
            commit: 5,
            records_before: ALL,
            events_before: 0,
            records: 9,
            events: 9,
        };
        wrong(&mut header);
        let log = dir.path().join("log.000");
        let mut bytes = std::fs::read(&log).unwrap();
        header.put(b"", &mut bytes);
        std::fs::write(&log, bytes).unwrap();
        let source = StoreSource::open(dir.path()).unwrap();
        assert_eq!(all_of(&source), records(0..ALL), "{header:?}");
    }
}

#[test]
fn counters_of_any_size_are_added_up() {
    let dir = dosmos_testseeds::scratch();
    let (mut writer, _) = StoreWriter::open(dir.path(), &identity()).unwrap();
    let counters = RecordingCounters {
        recorded: u64::MAX,
        dropped: u64::MAX - 1,
        extra_dropped: u64::MAX,
        unselected: u64::MAX,
        sampling: 1.0,
    };
    let of = |incarnation| Event::Counters {
        mp: MpId(0),
        incarnation,
        counters,
    };
    let mut all = commit(1, records(0..10));
    all.events = vec![(0, of(1)), (0, of(2))];
    writer.commit(&all).unwrap();
    writer.close().unwrap();
    let mut lacking = StoreSource::open(dir.path()).unwrap().completeness();
    lacking.merge(&lacking.clone());
    assert_eq!((lacking.dropped, lacking.recorded), (u64::MAX, u64::MAX));
}

/// The same of what the store is said to have.
#[test]
fn an_extent_that_no_log_has_is_not_believed() {
    let dir = dosmos_testseeds::scratch();
    store(dir.path(), true);
    let mut manifest = Manifest::read(dir.path()).unwrap();
    manifest.removed.records = u64::MAX;
    manifest.write(dir.path()).unwrap();
    let source = StoreSource::open(dir.path()).unwrap();
    let lacking = source.completeness();
    assert!(lacking.notes.join("; ").contains("manifest"), "{lacking:?}");
    assert_eq!(all_of(&source), records(0..ALL));
}

#[test]
fn a_log_file_that_is_garbage_or_gone_is_named_and_the_others_answer() {
    let dir = dosmos_testseeds::scratch();
    let (mut writer, _) = StoreWriter::open(dir.path(), &identity()).unwrap();
    writer.commit(&commit(1, records(0..100))).unwrap();
    writer.rotate_at(1);
    writer.commit(&commit(2, records(100..200))).unwrap();
    writer.close().unwrap();
    let log = dir.path().join("log.000");
    for gone in [false, true] {
        if gone {
            std::fs::remove_file(&log).unwrap();
        } else {
            std::fs::write(&log, vec![0x5a; 5_000]).unwrap();
        }
        let source = StoreSource::open(dir.path()).unwrap();
        assert_eq!(all_of(&source), records(100..200));
        let lacking = source.completeness();
        assert_eq!((lacking.damaged, lacking.recorded), (100, 200));
        drop(source);
        let (writer, _) = StoreWriter::open(dir.path(), &identity()).unwrap();
        assert_eq!(writer.view().completeness().damaged, 100);
    }
}

#[test]
fn a_damaged_manifest_is_replaced_by_its_copy_in_the_log() {
    let dir = dosmos_testseeds::scratch();
    store(dir.path(), true);
    flip(&dir.path().join("manifest.json"), 120);
    let source = StoreSource::open(dir.path()).unwrap();
    assert_eq!(source.identity(), &identity());
    assert_eq!(all_of(&source), records(0..ALL));
    let lacking = source.completeness();
    assert!(
        lacking.notes[0].contains("manifest.json is damaged"),
        "{lacking:?}"
    );
    assert_eq!(lacking.damaged, 0);
    drop(source);
    // Whoever writes it again makes it whole: nothing was lost.
    StoreWriter::open(dir.path(), &identity())
        .unwrap()
        .0
        .close()
        .unwrap();
    assert!(
        StoreSource::open(dir.path())
            .unwrap()
            .completeness()
            .is_complete()
    );
}

#[test]
fn the_engine_s_files_are_not_needed() {
    let dir = dosmos_testseeds::scratch();
    store(dir.path(), false);
    let engine = dir.path().join("engine");
    for damage in 0..3 {
        match damage {
            0 => std::fs::remove_dir_all(&engine).unwrap(),
            1 => std::fs::write(engine.join("conf"), b"no configuration at all").unwrap(),
            _ => {
                let db = engine.join("db");
                let length = std::fs::metadata(&db).unwrap().len() as usize;
                std::fs::write(db, vec![0xa5; length]).unwrap();
            }
        }
        assert!(
            StoreSource::open(dir.path())
                .unwrap()
                .completeness()
                .is_complete()
        );
        let (mut writer, recovered) = StoreWriter::open(dir.path(), &identity()).unwrap();
        let last = recovered.marks()[&MpId(0)].sequence;
        writer.commit(&commit(last + 1, records(0..1))).unwrap();
        assert!(writer.view().completeness().is_complete());
    }
}
