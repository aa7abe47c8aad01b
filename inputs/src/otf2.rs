//! Archives of OTF2: a store of as many records as were made of the events, or an error and no store.
//!
//! An input is the files of an archive one after another, each with its length (two bytes) before it.

use std::fs;
use std::io::Cursor;
use std::ops::ControlFlow;
use std::path::Path;

use dosmos_interchange::export;
use dosmos_interchange::jsonl::{self, BadLines};
use dosmos_interchange::otf2::{Otf2, import};
use dosmos_trace::query::{Filter, TraceSource};
use dosmos_trace::store::StoreSource;
use futures::executor::block_on;

/// The files of an archive of two processes, in the order of an input.
const FILES: [&str; 6] = [
    "traces.otf2",
    "traces.def",
    "traces/0.def",
    "traces/0.evt",
    "traces/1.def",
    "traces/1.evt",
];

pub(crate) fn take(input: &[u8]) {
    let scratch = dosmos_testseeds::scratch();
    let archive = scratch.path().join("archive");
    fs::create_dir_all(archive.join("traces")).unwrap();
    let mut rest = input;
    for name in FILES {
        let Some((length, behind)) = rest.split_at_checked(2) else {
            break;
        };
        let length = usize::from(u16::from_le_bytes([length[0], length[1]]));
        let (file, behind) = behind.split_at(length.min(behind.len()));
        fs::write(archive.join(name), file).unwrap();
        rest = behind;
    }
    let path = scratch.path().join("store");
    match import(&archive, &path, |_| ControlFlow::Continue(())) {
        Ok(imported) => {
            let store = StoreSource::open(&path).unwrap();
            let found = block_on(store.records(&everything(), 0)).unwrap();
            assert_eq!(found.len() as u64, imported.records);
        }
        Err(error) => {
            assert!(!error.to_string().is_empty());
            let left = fs::read_dir(scratch.path()).unwrap().count();
            assert_eq!(left, 1, "{error} left something behind");
        }
    }
}

fn everything() -> Filter {
    Filter {
        everything: true,
        ..Filter::default()
    }
}

/// An archive as it is written here, and as one of another program.
pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let lines = [
        r#"{"type":"run","name":"r","start":"2026-01-01T00:00:00Z","end_ns":60000000000}"#,
        r#"{"type":"mp","name":"mp0","group":"/a"}"#,
        r#"{"type":"ap","name":"ap0","mp":"mp0"}"#,
        r#"{"type":"variable","name":"x","objects":2,"owner":"mp0","bytes":64}"#,
        r#"{"type":"record","t_ns":1000,"dur_ns":80,"op":"read","var":"x","object":1,"ap":"ap0","bytes":8}"#,
        r#"{"type":"record","t_ns":2000,"dur_ns":80,"op":"acquire","var":"x","ap":"ap0","wait_ns":9}"#,
        r#"{"type":"record","t_ns":3000,"dur_ns":80,"op":"write","var":"x","ap":"ap0","atomic":true,"range":[0,1]}"#,
        r#"{"type":"record","t_ns":4000,"dur_ns":80,"op":"release","var":"x","ap":"ap0","version":3}"#,
        r#"{"type":"record","t_ns":5000,"dur_ns":80,"op":"barrier","barrier":"phase","ap":"ap0"}"#,
        r#"{"type":"record","t_ns":6000,"op":"acquire","var":"x","ap":"ap0","pending":true}"#,
    ];
    let scratch = dosmos_testseeds::scratch();
    let (store, archive) = (scratch.path().join("store"), scratch.path().join("archive"));
    let text = Cursor::new(lines.join("\n"));
    jsonl::import(
        text,
        &store,
        BadLines::Refuse,
        |_| ControlFlow::Continue(()),
    )
    .unwrap();
    fs::create_dir(&archive).unwrap();
    let stores = [StoreSource::open(&store).unwrap()];
    let go_on = |_| ControlFlow::Continue(());
    export(&stores, &everything(), &mut Otf2::new(&archive), go_on).unwrap();
    let ours = packed(&archive);
    let property = b"DOSMOS::ABOUT";
    let at = ours.windows(property.len()).position(|w| w == property);
    let mut of_others = ours.clone();
    of_others[at.unwrap()] = b'X';
    vec![ours, of_others]
}

fn packed(archive: &Path) -> Vec<u8> {
    let mut input = Vec::new();
    for name in FILES {
        let file = fs::read(archive.join(name)).unwrap();
        input.extend(u16::try_from(file.len()).unwrap().to_le_bytes());
        input.extend(file);
    }
    input
}
