//! What the tests of the formats share: traces to write, in stores and as text.

#![allow(dead_code, clippy::unwrap_used)] // each test binary uses a part of it; a test may

pub(crate) mod generate;

use std::io::Cursor;
use std::ops::ControlFlow;
use std::path::Path;

use dosmos_interchange::jsonl::{self, BadLines, ImportError, Imported, Jsonl};
use dosmos_interchange::{Export, Exported, export};
use dosmos_trace::query::Filter;
use dosmos_trace::record::Record;
use dosmos_trace::store::{Item, StoreSource};

/// The example of docs/design/monitoring.md#interchange, with one of everything optional.
pub(crate) const SAMPLE: &str = r#"{"type":"run","name":"demo","start":"2026-01-01T00:00:00Z","end_ns":60000000000}
{"type":"mp","name":"mp0","group":"/a"}
{"type":"mp","name":"mp1","group":"/a"}
{"type":"mp","name":"mp2","group":"/b/c","colour":"unknown fields are ignored"}
{"type":"ap","name":"ap0","mp":"mp0","group":"/a"}
{"type":"ap","name":"ap1","mp":"mp1","group":"/a"}
{"type":"ap","name":"ap2","mp":"mp2"}
{"type":"variable","name":"x","objects":1,"owner":"mp0","group":"/a","bytes":8,"policy":"invalidate"}
{"type":"variable","name":"y","objects":4,"owner":["mp0","mp1","mp1","mp0"],"group":"/a","bytes":4096,"policy":"update"}
{"type":"record","t_ns":1000,"dur_ns":80000,"wait_ns":0,"op":"read","var":"x","object":0,"ap":"ap0","mp":"mp0","owner":"mp0","origin":"local","optimized":false,"bytes":8,"version":3}
{"type":"record","t_ns":2000,"dur_ns":90000,"wait_ns":0,"op":"read","var":"x","object":0,"ap":"ap1","mp":"mp1","owner":"mp0","origin":"intra","optimized":false,"bytes":8,"version":3}
{"type":"record","t_ns":95000,"dur_ns":900,"wait_ns":0,"op":"read","var":"x","object":0,"ap":"ap1","mp":"mp1","owner":"mp0","origin":"intra","optimized":true,"bytes":8,"version":3}

{"type":"record","t_ns":100000,"dur_ns":30000,"wait_ns":20000,"op":"acquire","var":"y","object":1,"ap":"ap2","mp":"mp2","origin":"inter"}
{"type":"record","t_ns":140000,"dur_ns":10000,"op":"write","var":"y","object":1,"ap":"ap2","range":[0,16],"bytes":128,"version":1}
{"type":"record","t_ns":160000,"dur_ns":10000,"op":"release","var":"y","object":1,"ap":"ap2","version":2}
{"type":"record","t_ns":170000,"dur_ns":10000,"wait_ns":9000,"op":"barrier","var":null,"barrier":"phase","ap":"ap0"}
{"type":"record","t_ns":170500,"dur_ns":9500,"wait_ns":9000,"op":"barrier","var":null,"barrier":"phase","ap":"ap1"}
{"type":"record","t_ns":190000,"op":"acquire","var":"x","object":0,"ap":"ap1","pending":true}
"#;

/// Everything there is.
pub(crate) fn all() -> Filter {
    Filter {
        everything: true,
        ..Filter::default()
    }
}

/// Makes a store of text.
pub(crate) fn import(text: &[u8], dir: &Path, bad: BadLines) -> Result<Imported, ImportError> {
    jsonl::import(Cursor::new(text), dir, bad, |_| ControlFlow::Continue(()))
}

/// Makes a store of text that is as it should be, and opens it.
pub(crate) fn store_of(text: &str, dir: &Path) -> StoreSource {
    import(text.as_bytes(), dir, BadLines::Refuse).unwrap();
    StoreSource::open(dir).unwrap()
}

/// Feeds an exporter.
pub(crate) fn run(stores: &[StoreSource], filter: &Filter, to: &mut dyn Export) -> Exported {
    export(stores, filter, to, |_| ControlFlow::Continue(())).unwrap()
}

/// Stores as text.
pub(crate) fn jsonl_of(stores: &[StoreSource], filter: &Filter) -> String {
    let mut text = Vec::new();
    run(stores, filter, &mut Jsonl::new(&mut text));
    String::from_utf8(text).unwrap()
}

/// Every record of a store, in order.
pub(crate) fn records(store: &StoreSource) -> Vec<Record> {
    let mut records = Vec::new();
    let each = |item: Item<'_>| {
        if let Item::Record(record) = item {
            records.push(*record);
        }
        ControlFlow::Continue(())
    };
    store.scan(&all(), each).unwrap();
    records
}
