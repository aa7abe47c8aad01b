//! What is written is a Parquet file with the same rows. (That other readers agree is checked by `.ci/interchange`.)

#![allow(clippy::unwrap_used)] // a test may

use std::collections::BTreeMap;
use std::io::Cursor;
use std::ops::ControlFlow;

use dosmos_interchange::jsonl::{self, BadLines};
use dosmos_parquet::{Parquet, ROW_GROUP};
use dosmos_trace::query::Filter;
use dosmos_trace::store::StoreSource;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::{Field, Row};

/// A file of `records` records: reads, and now and then a barrier and an acquire that waits.
fn text(records: u64) -> String {
    let mut text = concat!(
        r#"{"type":"run","name":"r","start":"2026-01-01T00:00:00Z"}"#,
        "\n",
        r#"{"type":"mp","name":"mp0","group":"/a"}"#,
        "\n",
        r#"{"type":"ap","name":"ap0","mp":"mp0"}"#,
        "\n",
        r#"{"type":"variable","name":"x","objects":8,"owner":"mp0","bytes":64}"#,
        "\n",
    )
    .to_owned();
    for i in 0..records {
        text += &match i % 5 {
            3 => format!(
                r#"{{"type":"record","t_ns":{i},"dur_ns":9,"wait_ns":5,"op":"barrier","barrier":"b","ap":"ap0"}}"#
            ),
            4 => format!(
                r#"{{"type":"record","t_ns":{i},"dur_ns":{i},"wait_ns":{i},"op":"acquire","var":"x","object":2,"ap":"ap0"}}"#
            ),
            _ => format!(
                r#"{{"type":"record","t_ns":{i},"dur_ns":2,"op":"read","var":"x","object":1,"ap":"ap0","bytes":8,"range":[0,{i}]}}"#
            ),
        };
        text.push('\n');
    }
    text += r#"{"type":"completeness","dropped":7}"#;
    text
}

fn exported(text: &str) -> SerializedFileReader<bytes::Bytes> {
    let dir = dosmos_testseeds::scratch();
    let path = dir.path().join("store");
    let go_on = |_| ControlFlow::Continue(());
    jsonl::import(Cursor::new(text), &path, BadLines::Refuse, go_on).unwrap();
    let store = StoreSource::open(&path).unwrap();
    let all = Filter {
        everything: true,
        ..Filter::default()
    };
    let mut file = Vec::new();
    let mut to = Parquet::new(&mut file).unwrap();
    let go_on = |_| ControlFlow::Continue(());
    dosmos_interchange::export(&[store], &all, &mut to, go_on).unwrap();
    drop(to);
    SerializedFileReader::new(bytes::Bytes::from(file)).unwrap()
}

fn fields(row: &Row) -> BTreeMap<String, Field> {
    let pairs = row.get_column_iter();
    pairs.map(|(n, f)| (n.clone(), f.clone())).collect()
}

#[test]
fn rows_are_the_records_also_over_several_row_groups() {
    let records = ROW_GROUP as u64 + 10;
    let file = exported(&text(records));
    assert_eq!(file.num_row_groups(), 2);
    let (mut rows, mut waited, mut barriers) = (0, 0, 0);
    for (i, row) in file.get_row_iter(None).unwrap().enumerate() {
        let row = fields(&row.unwrap());
        rows += 1;
        let Field::ULong(wait) = row["wait_ns"] else {
            panic!("{:?}", row["wait_ns"]);
        };
        waited += wait;
        assert_eq!(row["ap"], Field::Str("ap0".into()));
        match i % 5 {
            3 => {
                barriers += 1;
                assert_eq!(row["barrier"], Field::Str("b".into()));
                assert_eq!(row["variable"], Field::Null);
            }
            _ => {
                assert_eq!(row["variable"], Field::Str("x".into()));
                assert_eq!(row["barrier"], Field::Null);
            }
        }
    }
    assert_eq!(rows, records);
    assert_eq!(barriers, (0..records).filter(|i| i % 5 == 3).count());
    let expected = |i: u64| match i % 5 {
        3 => 5,
        4 => i,
        _ => 0,
    };
    assert_eq!(waited, (0..records).map(expected).sum::<u64>());
}

#[test]
fn metadata_say_what_run_it_is_and_what_is_lacking() {
    let file = exported(&text(3));
    let about = file.metadata().file_metadata();
    let of = |key: &str| {
        let entries = about.key_value_metadata().unwrap();
        let entry = entries.iter().find(|e| e.key == key).unwrap();
        serde_json::from_str::<serde_json::Value>(entry.value.as_deref().unwrap()).unwrap()
    };
    assert_eq!(of("dosmos.run")["start_ns"], 1_767_225_600_000_000_000u64);
    assert_eq!(of("dosmos.completeness")["dropped"], 7);
    assert_eq!(of("dosmos.completeness")["recorded"], 10);
}

#[test]
fn a_trace_without_records_is_a_file_without_rows() {
    let file = exported(&text(0));
    assert_eq!(file.get_row_iter(None).unwrap().count(), 0);
}
