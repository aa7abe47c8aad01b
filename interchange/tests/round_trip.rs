//! Any trace goes out and comes back the same.

#![allow(clippy::unwrap_used)] // a test may

mod common;

use common::generate::traces;
use common::{SAMPLE, all, import, jsonl_of, records, store_of};
use dosmos_interchange::Names;
use dosmos_interchange::jsonl::BadLines;
use dosmos_trace::query::Catalog;
use dosmos_trace::record::{Op, Record};
use dosmos_trace::store::StoreSource;
use proptest::prelude::*;

/// A record with names in the place of numbers: numbers of variables are a store's own.
fn named(catalog: &Catalog, record: &Record) -> (String, Record) {
    let names = Names::of(catalog);
    let object = match record.op {
        Op::Barrier => format!("{:?}", names.barrier(record.object.var)),
        _ => names.variable(record.object.var).into_owned(),
    };
    let processes = (
        names.ap(record.ap),
        names.mp(record.mp),
        names.mp(record.peer),
    );
    let name = format!("{object} {processes:?}");
    let mut record = *record;
    record.object.var = dosmos_proto::VarId(0);
    (name, record)
}

fn all_named(store: &StoreSource) -> Vec<(String, Record)> {
    let catalog = store.describe();
    records(store).iter().map(|r| named(&catalog, r)).collect()
}

/// What is declared of the variables, by name.
fn declared(store: &StoreSource) -> Vec<String> {
    let variables = store.describe().variables;
    let mut list: Vec<String> = variables
        .iter()
        .map(|v| {
            let s = v.spec();
            let kinds = (s.policy(), s.lock(), s.cache());
            format!("{} {:?} {kinds:?}", s.name(), s.layout())
        })
        .collect();
    list.sort();
    list
}

/// Fields of a record that may be absent.
const OPTIONAL: [&str; 14] = [
    "dur_ns",
    "wait_ns",
    "service_ns",
    "object",
    "mp",
    "owner",
    "origin",
    "optimized",
    "bytes",
    "version",
    "range",
    "side",
    "sampled",
    "waiting",
];

/// Leaves out, of each record's line, those optional fields whose bit is set.
fn with_less(text: &str, mut absent: impl FnMut() -> u16) -> String {
    let less = |line: &str| {
        let mut fields: serde_json::Map<String, serde_json::Value> =
            serde_json::from_str(line).unwrap();
        let absent = absent();
        for (bit, name) in OPTIONAL.iter().enumerate() {
            if fields["type"] == "record" && absent >> bit & 1 == 1 {
                fields.remove(*name);
            }
        }
        serde_json::to_string(&fields).unwrap() + "\n"
    };
    text.lines().map(less).collect()
}

proptest! {
    #![proptest_config(dosmos_testseeds::config(64))]

    #[test]
    fn a_store_goes_out_and_comes_back(trace in traces(), absent in any::<[u16; 7]>()) {
        let dir = dosmos_testseeds::scratch();
        let store = trace.store(&dir.path().join("store"));
        let text = jsonl_of(std::slice::from_ref(&store), &all());
        let back = store_of(&text, &dir.path().join("back"));
        prop_assert_eq!(all_named(&store), all_named(&back));
        prop_assert_eq!(store.completeness(), back.completeness());
        prop_assert_eq!(declared(&store), declared(&back));
        let (was, is) = (store.describe().topology, back.describe().topology);
        prop_assert_eq!(was.groups(), is.groups());
        prop_assert_eq!(was.application_processes(), is.application_processes());
        let again = jsonl_of(&[back], &all());
        prop_assert_eq!(&text, &again);

        // What others write has less in its lines; what that means does not change on its way either.
        let mut turn = absent.iter().cycle();
        let less = with_less(&text, || *turn.next().unwrap());
        let less = store_of(&less, &dir.path().join("less"));
        let more = jsonl_of(std::slice::from_ref(&less), &all());
        let more = store_of(&more, &dir.path().join("more"));
        prop_assert_eq!(records(&less), records(&more));
    }

    #[test]
    fn only_damaged_records_are_lost(
        flips in proptest::collection::vec((any::<proptest::sample::Index>(), 0u8..8), 1..4),
    ) {
        let head = SAMPLE.find(r#"{"type":"record""#).unwrap();
        let whole = SAMPLE.lines().filter(|l| l.starts_with(r#"{"type":"record""#)).count();
        let mut text = SAMPLE.as_bytes().to_vec();
        let mut ends = 0;
        for (at, bit) in &flips {
            let at = head + at.index(text.len() - head);
            // A flipped line end joins two records, and both are damaged.
            ends += usize::from(text[at] == b'\n');
            text[at] ^= 1 << bit;
        }
        let dir = dosmos_testseeds::scratch();
        let path = dir.path().join("store");
        let imported = import(&text, &path, BadLines::Skip).unwrap();
        prop_assert!(imported.records as usize + flips.len() + ends >= whole);
        let store = StoreSource::open(&path).unwrap();
        prop_assert_eq!(records(&store).len() as u64, imported.records);
        prop_assert!(store.completeness().dropped <= imported.skipped);
        prop_assert_eq!(store.completeness().notes.len(), usize::from(imported.skipped > 0));
    }
}
