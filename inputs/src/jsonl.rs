//! Traces as lines of JSON: a store of as many records as were taken, or an error and no store. Lines that are left out count.

use std::io::Cursor;
use std::ops::ControlFlow;

use dosmos_interchange::jsonl::{BadLines, import};
use dosmos_trace::query::{Filter, TraceSource};
use dosmos_trace::store::StoreSource;
use futures::executor::block_on;

pub(crate) fn take(input: &[u8]) {
    let Some((how, text)) = input.split_first() else {
        return;
    };
    let bad = [BadLines::Refuse, BadLines::Skip][usize::from(how % 2)];
    let dir = dosmos_testseeds::scratch();
    let path = dir.path().join("store");
    match import(Cursor::new(text), &path, bad, |_| ControlFlow::Continue(())) {
        Ok(imported) => {
            let store = StoreSource::open(&path).unwrap();
            let all = Filter {
                everything: true,
                ..Filter::default()
            };
            let found = block_on(store.records(&all, 0)).unwrap();
            assert_eq!(found.len() as u64, imported.records);
            assert!(imported.skipped == 0 || !found.completeness.is_complete());
        }
        Err(error) => {
            assert!(!error.to_string().is_empty());
            let left = std::fs::read_dir(dir.path()).unwrap().count();
            assert_eq!(left, 0, "{error} left something behind");
        }
    }
}

pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let lines = [
        r#"0{"type":"run","name":"r","start":"2026-01-01T00:00:00Z","end_ns":60000000000}"#,
        r#"{"type":"group","path":"/a"}"#,
        r#"{"type":"mp","name":"mp0","group":"/a"}"#,
        r#"{"type":"ap","name":"ap0","mp":"mp0"}"#,
        r#"{"type":"variable","name":"x","objects":2,"owner":"mp0","bytes":64}"#,
        r#"{"type":"barrier","name":"phase","group":"/a"}"#,
        r#"{"type":"record","t_ns":1000,"dur_ns":80,"op":"write","var":"x","object":1,"ap":"ap0","version":3,"range":[0,1]}"#,
        r#"{"type":"record","t_ns":3000,"op":"acquire","var":"x","ap":"ap0","pending":true}"#,
        r#"{"type":"hand_over","var":"x","object":1,"mp":"mp0","dropped":true}"#,
        r#"{"type":"completeness","recorded":9,"dropped":6}"#,
    ];
    let text = lines.join("\n");
    // Found once: a record in a line that begins like a process, and is skipped.
    let skips = lines[0].replacen('0', "1", 1);
    let merged = r#"{"type":"ap","name":"ap0","mp":"mp0d","t_ns":3000,"op":"acquire"}"#;
    vec![
        text.clone().into_bytes(),
        text.replacen('0', "1", 1).into_bytes(),
        [&skips, lines[1], lines[2], merged].join("\n").into_bytes(),
    ]
}
