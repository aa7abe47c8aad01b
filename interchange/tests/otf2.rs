//! OTF2: what goes out comes back, other programs' one-sided operations become accesses, damage is refused.

#![allow(clippy::unwrap_used)] // a test may

mod common;

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::path::Path;

use common::generate::traces;
use common::{SAMPLE, all, jsonl_of, run, store_of};
use dosmos_interchange::otf2::{self, Otf2, Otf2Error};
use dosmos_trace::store::StoreSource;
use proptest::prelude::*;
use proptest::sample::Index;

fn write(stores: &[StoreSource], dir: &Path) {
    std::fs::create_dir(dir).unwrap();
    run(stores, &all(), &mut Otf2::new(dir));
}

fn read(archive: &Path, dir: &Path) -> Result<otf2::Imported, Otf2Error> {
    otf2::import(archive, dir, |_| ControlFlow::Continue(()))
}

/// Lines of records of what processes did, in any order, and the others.
fn told(text: &str) -> (Vec<String>, Vec<String>) {
    let (mut records, others): (Vec<String>, Vec<String>) = text
        .lines()
        .map(str::to_owned)
        .partition(|line| line.starts_with(r#"{"type":"record""#));
    // What owners say is derived from it, but for who waits at the end.
    records
        .retain(|line| !line.contains(r#""side":"owner""#) || line.contains(r#""pending":true"#));
    records.sort();
    let kept = |line: &String| {
        let left_out = [r#"{"type":"hand_over""#, r#"{"type":"run""#];
        !left_out.iter().any(|kind| line.starts_with(kind))
    };
    // How many records and accesses were made differs by those of owners.
    let comparable = |line: String| {
        let mut line: serde_json::Value = serde_json::from_str(&line).unwrap();
        if line["type"] == "completeness" {
            line["recorded"] = 0.into();
            line["extra_accesses"] = 0.into();
        }
        line.to_string()
    };
    let others = others.into_iter().filter(kept).map(comparable);
    (records, others.collect())
}
/// The lines of one that are not in the other.
fn only<'a>(these: &'a [String], those: &[String]) -> Vec<&'a String> {
    let those: HashSet<&String> = those.iter().collect();
    these.iter().filter(|line| !those.contains(line)).collect()
}

/// Whether a trace comes back that goes out.
fn there_and_back(store: impl FnOnce(&Path) -> StoreSource) {
    let scratch = dosmos_testseeds::scratch();
    let place = scratch.path();
    let first = store(&place.join("first"));
    write(std::slice::from_ref(&first), &place.join("archive"));
    let imported = read(&place.join("archive"), &place.join("second")).unwrap();
    let second = StoreSource::open(&place.join("second")).unwrap();
    let (before, after) = (jsonl_of(&[first], &all()), jsonl_of(&[second], &all()));
    let ((records, others), (records_again, others_again)) = (told(&before), told(&after));
    assert_eq!(
        only(&records, &records_again),
        only(&records_again, &records)
    );
    assert_eq!(only(&others, &others_again), only(&others_again, &others));
    assert_eq!(records.len(), records_again.len());
    assert_eq!(imported.records, records.len() as u64);
}

#[test]
fn the_sample_comes_back() {
    there_and_back(|dir| store_of(SAMPLE, dir));
}

proptest! {
    #![proptest_config(dosmos_testseeds::config(60))]

    #[test]
    fn any_trace_comes_back(trace in traces()) {
        there_and_back(|dir| trace.store(dir));
    }
}

#[test]
fn an_archive_of_many_chunks_comes_back() {
    let mut text = SAMPLE.to_owned();
    for i in 0..40_000 {
        let t = 200_000 + 7 * i;
        text += &format!(
            "{{\"type\":\"record\",\"t_ns\":{t},\"dur_ns\":6,\"op\":\"write\",\"var\":\"y\",\"object\":{},\"ap\":\"ap2\",\"bytes\":{i},\"range\":[0,{}]}}\n",
            i % 4,
            i % 60
        );
    }
    there_and_back(|dir| store_of(&text, dir));
}

/// One thing that goes wrong with a file of an archive.
#[derive(Clone, Debug)]
enum Harm {
    Set(Index, u8),
    Cut(Index),
    Gone,
}

fn harm() -> impl Strategy<Value = Harm> {
    prop_oneof![
        8 => (any::<Index>(), any::<u8>()).prop_map(|(at, byte)| Harm::Set(at, byte)),
        2 => any::<Index>().prop_map(Harm::Cut),
        1 => Just(Harm::Gone),
    ]
}

/// Every file of an archive.
fn files(dir: &Path) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => found.extend(files(&path)),
            false => found.push(path),
        }
    }
    found.sort();
    found
}

proptest! {
    #![proptest_config(dosmos_testseeds::config(600))]

    #[test]
    fn damage_is_refused_or_read_and_leaves_nothing_half_done(
        harms in prop::collection::vec((any::<Index>(), harm()), 1..4),
    ) {
        let scratch = dosmos_testseeds::scratch();
        let place = scratch.path();
        let store = store_of(SAMPLE, &place.join("first"));
        let archive = place.join("archive");
        write(&[store], &archive);
        let all = files(&archive);
        for (which, harm) in harms {
            let path = which.get(&all);
            let Ok(mut bytes) = std::fs::read(path) else { continue };
            match harm {
                Harm::Set(at, byte) => {
                    let at = at.index(bytes.len());
                    bytes[at] = byte;
                }
                Harm::Cut(at) => bytes.truncate(at.index(bytes.len())),
                Harm::Gone => {
                    std::fs::remove_file(path).unwrap();
                    continue;
                }
            }
            std::fs::write(path, bytes).unwrap();
        }
        match read(&archive, &place.join("second")) {
            Ok(imported) => {
                // Whatever it is now, it can be read.
                let store = StoreSource::open(&place.join("second")).unwrap();
                prop_assert_eq!(common::records(&store).len() as u64, imported.records);
            }
            Err(error) => {
                prop_assert!(!place.join("second").exists(), "{}", error);
                prop_assert!(error.to_string().contains("archive"), "{}", error);
            }
        }
        let left = std::fs::read_dir(place).unwrap().filter(|e| {
            e.as_ref().unwrap().file_name().to_string_lossy().starts_with(".dosmos")
        });
        prop_assert_eq!(left.count(), 0);
    }
}

#[test]
fn a_file_that_was_cut_off_is_named_with_the_place() {
    let scratch = dosmos_testseeds::scratch();
    let place = scratch.path();
    let store = store_of(SAMPLE, &place.join("first"));
    write(&[store], &place.join("archive"));
    let events = place.join("archive/traces/0.evt");
    let bytes = std::fs::read(&events).unwrap();
    std::fs::write(&events, &bytes[..bytes.len() - 2]).unwrap();
    let error = read(&place.join("archive"), &place.join("second")).unwrap_err();
    let said = error.to_string();
    assert!(said.contains("0.evt") && said.contains("cut off"), "{said}");
    assert!(matches!(error, Otf2Error::Damaged { .. }));
}

#[test]
fn what_is_no_archive_is_said() {
    let scratch = dosmos_testseeds::scratch();
    let place = scratch.path();
    std::fs::write(place.join("some.otf2"), "some text").unwrap();
    for path in [place.join("some.otf2"), place.to_owned()] {
        let error = read(&path, &place.join("store")).unwrap_err();
        assert!(matches!(error, Otf2Error::NoArchive(_)), "{error}");
    }
    let error = read(&place.join("nothing.otf2"), &place.join("store")).unwrap_err();
    assert!(error.to_string().contains("nothing.otf2"), "{error}");
}

#[test]
fn one_sided_operations_of_other_programs_are_accesses() {
    let scratch = dosmos_testseeds::scratch();
    let place = scratch.path();
    let store = store_of(SAMPLE, &place.join("first"));
    write(&[store], &place.join("archive"));
    // Without its property nothing says whose archive it is.
    let anchor = place.join("archive/traces.otf2");
    let mut bytes = std::fs::read(&anchor).unwrap();
    let property = b"DOSMOS::ABOUT";
    let at = bytes.windows(property.len()).position(|w| w == property);
    bytes[at.unwrap()] = b'X';
    std::fs::write(&anchor, bytes).unwrap();
    let imported = read(&anchor, &place.join("second")).unwrap();
    let second = StoreSource::open(&place.join("second")).unwrap();
    let text = jsonl_of(&[second], &all());
    let mut found = Vec::new();
    for line in text.lines() {
        let r: serde_json::Value = serde_json::from_str(line).unwrap();
        if r["type"] == "record" {
            let of = if r["op"] == "barrier" {
                &r["barrier"]
            } else {
                &r["var"]
            };
            let word = |v: &serde_json::Value| v.as_str().unwrap().to_owned();
            found.push((
                r["t_ns"].as_u64().unwrap(),
                word(&r["op"]),
                word(of),
                word(&r["ap"]),
                r["dur_ns"].as_u64().unwrap(),
            ));
        }
    }
    found.sort();
    // A cached read travels nowhere, and an acquire that was not granted holds no lock.
    let expected = [
        (1_000, "read", "x", "ap0", 80_000),
        (2_000, "read", "x", "ap1", 90_000),
        (100_000, "acquire", "y", "ap2", 30_000),
        (140_000, "write", "y", "ap2", 10_000),
        (160_000, "release", "y", "ap2", 0),
        (170_000, "barrier", "barrier phase", "ap0", 10_000),
        (170_500, "barrier", "barrier phase", "ap1", 9_500),
    ];
    let expected: Vec<_> = expected
        .map(|(t, op, of, ap, length)| (t, op.to_owned(), of.to_owned(), ap.to_owned(), length))
        .into();
    assert_eq!(found, expected);
    assert_eq!(imported.records, expected.len() as u64);
    assert_eq!(imported.notes, Vec::<String>::new());
}
