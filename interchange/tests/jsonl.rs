//! The exchange format: the documented example, what it means, and what is refused.

#![allow(clippy::unwrap_used)] // a test may

mod common;

use std::ops::ControlFlow;

use common::{SAMPLE, all, import, jsonl_of, records, store_of};
use dosmos_interchange::jsonl::{self, BadLines, ImportError};
use dosmos_proto::{ApId, MpId, Nanos, ObjectId};
use dosmos_trace::query::{Filter, MetaQuery, TraceSource};
use dosmos_trace::record::{Op, Origin};
use futures::executor::block_on;

fn scratch() -> tempfile::TempDir {
    dosmos_testseeds::scratch()
}

#[test]
fn the_example_means_what_it_says() {
    let dir = scratch();
    let store = store_of(SAMPLE, &dir.path().join("store"));
    let catalog = store.describe();
    let groups: Vec<&str> = catalog
        .topology
        .groups()
        .iter()
        .map(|g| g.path.as_str())
        .collect();
    assert_eq!(groups, ["/a", "/b", "/b/c"]);
    assert_eq!(catalog.variable("y").unwrap().owner(2), MpId(1));
    let records = records(&store);
    assert_eq!(records.len(), 9);
    let start = 1_767_225_600_000_000_000;
    assert_eq!(records[0].start, Nanos(start + 1000));
    assert_eq!(records[0].version, 3);
    // What the lines leave out follows from the declarations.
    assert_eq!(records[4].origin, Origin::Inter);
    assert_eq!((records[4].mp, records[4].peer), (MpId(2), MpId(1)));
    assert_eq!(records[4].range, (0, 16));
    // Both arrivals are of the same generation of one barrier.
    assert_eq!(records[6].object, records[7].object);
    assert_eq!(catalog.name_of(records[6].object.var), "barrier phase");
    let pending = records[8];
    assert!(pending.flags.waiting && !pending.is_access());
}

#[test]
fn a_file_of_requests_alone_makes_whole_meta_objects() {
    let dir = scratch();
    let store = store_of(SAMPLE, &dir.path().join("store"));
    let meta = block_on(store.meta_objects(&MetaQuery::default())).unwrap();
    let x = store.describe().variable("x").unwrap().id();
    let y = store.describe().variable("y").unwrap().id();
    let of = |object| {
        let found = meta.primaries.iter().find(|p| p.object == object);
        found.unwrap().clone()
    };
    let x = of(ObjectId::new(x, 0));
    assert_eq!(x.counts.reads, 2, "the local one and the remote one");
    assert_eq!(x.copies_at, [MpId(1)], "the remote read made a copy");
    let secondary = &meta.secondaries[0];
    assert_eq!(
        (secondary.object, secondary.reads),
        (x.object, 1),
        "{secondary:?}"
    );
    assert_eq!(
        x.delayed_acquires.len(),
        1,
        "ap1 waits at the end of the run"
    );
    let y = of(ObjectId::new(y, 1));
    assert_eq!(y.counts.writes, 1);
    assert_eq!(y.counts.acquires, 1);
    assert_eq!(y.wait, Nanos(20_000));
    assert_eq!(y.hold, Nanos(30_000), "from the grant to the release");
}

#[test]
fn what_is_exported_is_imported_as_the_same() {
    let dir = scratch();
    let first = store_of(SAMPLE, &dir.path().join("first"));
    let text = jsonl_of(std::slice::from_ref(&first), &all());
    let second = store_of(&text, &dir.path().join("second"));
    assert_eq!(records(&first), records(&second));
    assert_eq!(text, jsonl_of(&[second], &all()));
    assert!(
        text.lines().next().unwrap().contains("60000000000"),
        "the end of the run is kept"
    );
    let pending = text.lines().filter(|l| l.contains(r#""pending":true"#));
    assert_eq!(pending.count(), 1);
}

#[test]
fn a_filter_lets_only_its_records_pass() {
    let dir = scratch();
    let store = store_of(SAMPLE, &dir.path().join("store"));
    let filter = Filter {
        ops: vec![Op::Read],
        aps: vec![ApId(1)],
        ..Filter::default()
    };
    let text = jsonl_of(&[store], &filter);
    let lines = text.lines().filter(|l| l.contains(r#""type":"record""#));
    assert_eq!(lines.count(), 2);
    let again = store_of(&text, &dir.path().join("again"));
    assert_eq!(records(&again).len(), 2);
}

/// Replaces a line of the example (counted from 1).
fn with_line(number: usize, line: &str) -> String {
    let mut lines: Vec<&str> = SAMPLE.lines().collect();
    lines[number - 1] = line;
    lines.join("\n")
}

#[test]
fn a_bad_line_is_named_with_what_is_wrong_and_leaves_nothing_behind() {
    let record = |rest: &str| format!(r#"{{"type":"record","t_ns":1,{rest}}}"#);
    let cases = [
        (10, "nonsense".to_owned(), "expected"),
        (10, r#"{"type":"rekord"}"#.to_owned(), "rekord"),
        (10, r#"{"t_ns":1}"#.to_owned(), "type"),
        (
            10,
            record(r#""op":"read","var":"x","ap":"nobody""#),
            "nobody",
        ),
        (10, record(r#""op":"read","var":"z","ap":"ap0""#), "\"z\""),
        (10, record(r#""op":"read","ap":"ap0""#), "var"),
        (10, record(r#""op":"grab","var":"x","ap":"ap0""#), "grab"),
        (
            10,
            record(r#""op":"read","var":"y","object":4,"ap":"ap0""#),
            "4 objects",
        ),
        (
            10,
            record(r#""op":"read","var":"x","ap":"ap0","bytes":-1"#),
            "-1",
        ),
        (
            10,
            record(r#""op":"read","var":"x","ap":"ap0","range":[3,1]"#),
            "range",
        ),
        (
            10,
            record(r#""op":"read","var":"x","ap":"ap0","dur_ns":9223372036854775807"#),
            "2262",
        ),
        (
            10,
            record(r#""op":"read","var":"x","ap":"ap0","owner":"mp9""#),
            "mp9",
        ),
        (
            1,
            r#"{"type":"run","name":"demo","start":"yesterday"}"#.to_owned(),
            "yesterday",
        ),
        (2, r#"{"type":"run","name":"again"}"#.to_owned(), "second"),
        (
            2,
            r#"{"type":"mp","name":"mp0","group":"a"}"#.to_owned(),
            "begin with /",
        ),
        (
            3,
            r#"{"type":"mp","name":"mp0","group":"/a"}"#.to_owned(),
            "mp0",
        ),
        (
            5,
            r#"{"type":"ap","name":"ap0","mp":"mp7"}"#.to_owned(),
            "mp7",
        ),
        (
            5,
            r#"{"type":"ap","name":"ap0","mp":"mp0","group":"/b"}"#.to_owned(),
            "/b",
        ),
        (
            8,
            r#"{"type":"variable","name":"x","owner":[]}"#.to_owned(),
            "owner",
        ),
        (
            8,
            r#"{"type":"variable","name":"x","owner":"mp0","objects":0}"#.to_owned(),
            "0",
        ),
        (
            11,
            r#"{"type":"mp","name":"late","group":"/a"}"#.to_owned(),
            "after the first record",
        ),
    ];
    for (number, line, expected) in cases {
        let dir = scratch();
        let target = dir.path().join("store");
        let text = with_line(number, &line);
        let error = import(text.as_bytes(), &target, BadLines::Refuse).unwrap_err();
        let message = error.to_string();
        assert!(
            message.starts_with(&format!("line {number}: ")) && message.contains(expected),
            "{line} gave {message:?}"
        );
        let left: Vec<_> = std::fs::read_dir(dir.path()).unwrap().collect();
        assert!(left.is_empty(), "{line} left {left:?}");
    }
}

#[test]
fn a_file_without_a_run_is_no_trace() {
    let dir = scratch();
    for text in ["", "\n\n", "\0\0\0\0", "PAR1"] {
        let error = import(text.as_bytes(), &dir.path().join("s"), BadLines::Refuse).unwrap_err();
        assert!(matches!(error, ImportError::Line { .. }), "{error:?}");
        let error = import(text.as_bytes(), &dir.path().join("s"), BadLines::Skip).unwrap_err();
        assert!(error.to_string().contains("no line of type run"), "{error}");
    }
}

#[test]
fn skipped_lines_count_as_lost_everywhere() {
    let dir = scratch();
    let text = with_line(10, r#"{"type":"record","t_ns":1000,"dur_"#);
    let text = text.replace(r#""ap":"ap2","range""#, r#""ap":"ghost","range""#);
    let path = dir.path().join("store");
    let imported = import(text.as_bytes(), &path, BadLines::Skip).unwrap();
    assert_eq!((imported.records, imported.skipped), (7, 2));
    assert!(imported.first_skipped.unwrap().starts_with("line 10: "));
    let store = dosmos_trace::store::StoreSource::open(&path).unwrap();
    let lacking = store.completeness();
    assert_eq!((lacking.recorded, lacking.dropped), (9, 2));
    assert!(lacking.notes[0].contains("2 bad lines"), "{lacking:?}");
    // And once more, after another journey.
    let text = jsonl_of(&[store], &all());
    let again = store_of(&text, &dir.path().join("again"));
    assert_eq!(again.completeness(), lacking);
}

/// Found by fuzzing: two lines in one, of which the first was no record.
#[test]
fn a_skipped_line_counts_as_lost_whatever_it_begins_like() {
    let dir = scratch();
    let merged = r#"{"type":"ap","name":"ap9","mp":"mp0d","t_ns":3000,"op":"acquire"}"#;
    let lacks = r#"{"type":"completeness","recorded":9,"dropped":no}"#;
    for line in [merged, lacks] {
        let path = dir
            .path()
            .join(if line == merged { "merged" } else { "lacks" });
        let text = with_line(10, line);
        let imported = import(text.as_bytes(), &path, BadLines::Skip).unwrap();
        assert_eq!(imported.skipped, 1);
        let store = dosmos_trace::store::StoreSource::open(&path).unwrap();
        assert_eq!(store.completeness().dropped, 1, "{line}");
        assert!(!store.completeness().is_complete());
    }
}

#[test]
fn what_exists_is_not_overwritten() {
    let dir = scratch();
    std::fs::write(dir.path().join("precious"), "x").unwrap();
    let error = import(SAMPLE.as_bytes(), dir.path(), BadLines::Refuse).unwrap_err();
    assert!(matches!(error, ImportError::Exists(_)), "{error:?}");
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
}

#[test]
fn a_line_without_end_takes_no_memory() {
    let dir = scratch();
    let head = r#"{"type":"run","name":""#.as_bytes();
    let endless = std::io::Read::chain(head, std::io::Read::take(std::io::repeat(b'a'), 1 << 28));
    let input = std::io::BufReader::new(endless);
    let target = dir.path().join("store");
    let go_on = |_| ControlFlow::Continue(());
    let error = jsonl::import(input, &target, BadLines::Refuse, go_on).unwrap_err();
    assert!(error.to_string().contains("longer than"), "{error}");
}

#[test]
fn an_import_that_is_stopped_leaves_nothing_behind() {
    let dir = scratch();
    let line = SAMPLE.lines().nth(9).unwrap();
    let mut text = SAMPLE.to_owned();
    for _ in 0..40_000 {
        text += line;
        text += "\n";
    }
    let mut asked = 0;
    let stop = |_| {
        asked += 1;
        ControlFlow::Break(())
    };
    let input = std::io::Cursor::new(text);
    let error = jsonl::import(input, &dir.path().join("s"), BadLines::Refuse, stop).unwrap_err();
    assert!(matches!(error, ImportError::Stopped), "{error:?}");
    assert_eq!(asked, 1);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}
