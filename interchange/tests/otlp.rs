//! OTLP, read again: every operation on locks and barriers is a span, sections follow their acquires, hand-overs are links,
//! and two exports are the same bytes.

#![allow(clippy::unwrap_used)] // a test may

mod common;

use std::collections::{HashMap, HashSet};

use common::generate::{contended, traces};
use common::{SAMPLE, all, import, records, run, store_of};
use dosmos_interchange::jsonl::BadLines;
use dosmos_interchange::otlp::Otlp;
use dosmos_proto::Nanos;
use dosmos_trace::record::{Op, Record, Side};
use dosmos_trace::store::StoreSource;
use proptest::prelude::*;
use serde_json::Value;

/// A span with the service that it is of.
#[derive(Clone, Debug)]
struct Seen {
    service: String,
    span: Value,
}

impl Seen {
    fn text(&self, field: &str) -> &str {
        self.span[field].as_str().unwrap()
    }

    /// Its trace and itself.
    fn id(&self) -> (String, String) {
        (
            self.text("traceId").to_owned(),
            self.text("spanId").to_owned(),
        )
    }

    fn parent(&self) -> Option<(String, String)> {
        let parent = self.span["parentSpanId"].as_str()?;
        Some((self.text("traceId").to_owned(), parent.to_owned()))
    }

    fn linked(&self) -> Vec<(String, String)> {
        let links = self.span["links"].as_array().cloned().unwrap_or_default();
        let text = |v: &Value| v.as_str().unwrap().to_owned();
        let pair = |l: &Value| (text(&l["traceId"]), text(&l["spanId"]));
        links.iter().map(pair).collect()
    }

    /// Begin and end in nanoseconds since 1970.
    fn times(&self) -> (u64, u64) {
        let number = |field| self.text(field).parse().unwrap();
        (number("startTimeUnixNano"), number("endTimeUnixNano"))
    }

    fn attribute(&self, key: &str) -> Option<&Value> {
        attribute(&self.span["attributes"], key)
    }

    fn failed(&self) -> bool {
        self.span["status"]["code"] == 2
    }
}

fn attribute<'a>(attributes: &'a Value, key: &str) -> Option<&'a Value> {
    let mut found = attributes
        .as_array()
        .unwrap()
        .iter()
        .filter(|a| a["key"] == key);
    let value = found.next().map(|a| &a["value"]);
    assert!(found.next().is_none(), "{key} twice");
    value?.as_object().unwrap().values().next()
}

fn exported(stores: &[StoreSource]) -> Vec<u8> {
    let mut bytes = Vec::new();
    run(stores, &all(), &mut Otlp::new(&mut bytes));
    bytes
}

/// The spans of all lines; the last is that of the run.
fn spans(bytes: &[u8]) -> Vec<Seen> {
    let text = std::str::from_utf8(bytes).unwrap();
    let mut found = Vec::new();
    for line in text.lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        let mut in_line = 0;
        for of in line["resourceSpans"].as_array().unwrap() {
            let service = attribute(&of["resource"]["attributes"], "service.name").unwrap();
            for scope in of["scopeSpans"].as_array().unwrap() {
                assert_eq!(scope["scope"]["name"], "dosmos");
                for span in scope["spans"].as_array().unwrap() {
                    in_line += 1;
                    found.push(Seen {
                        service: service.as_str().unwrap().to_owned(),
                        span: span.clone(),
                    });
                }
            }
        }
        // A record completes two spans at most.
        assert!((1..=302).contains(&in_line), "{in_line} spans in a line");
    }
    found
}

fn named<'a>(spans: &'a [Seen], begin: &str) -> Vec<&'a Seen> {
    let of = |s: &&Seen| s.text("name").starts_with(begin);
    spans.iter().filter(of).collect()
}

#[test]
fn the_example_shows_its_locks_sections_and_barriers() {
    let dir = dosmos_testseeds::scratch();
    let spans = spans(&exported(&[store_of(SAMPLE, &dir.path().join("store"))]));
    let mut names: Vec<_> = spans
        .iter()
        .map(|s| (s.service.as_str(), s.text("name")))
        .collect();
    names.sort_unstable();
    assert_eq!(
        names,
        [
            ("ap0", "barrier phase"),
            ("ap1", "acquire x"),
            ("ap1", "barrier phase"),
            ("ap2", "acquire y"),
            ("ap2", "release y"),
            ("ap2", "section y"),
            ("dosmos", "run"),
        ]
    );
    let start = 1_767_225_600_000_000_000;
    let section = named(&spans, "section")[0];
    assert_eq!(section.times(), (start + 130_000, start + 160_000));
    assert_eq!(section.attribute("dosmos.object").unwrap(), "1");
    let acquire = named(&spans, "acquire y")[0];
    assert_eq!(acquire.times(), (start + 100_000, start + 130_000));
    assert_eq!(acquire.attribute("dosmos.wait_ns").unwrap(), "20000");
    assert_eq!(acquire.attribute("dosmos.origin").unwrap(), "inter");
    assert_eq!(acquire.parent(), None);
    assert_eq!(section.parent(), Some(acquire.id()));
    assert_eq!(named(&spans, "release")[0].parent(), Some(section.id()));
    let waits = named(&spans, "acquire x")[0];
    assert_eq!(waits.attribute("dosmos.pending").unwrap(), true);
    assert_eq!(waits.times(), (start + 190_000, start + 60_000_000_000));
    let barriers = named(&spans, "barrier");
    assert_eq!(
        barriers[0].id().0,
        barriers[1].id().0,
        "one opening is one trace"
    );
    assert_ne!(barriers[0].id().1, barriers[1].id().1);
    assert_eq!(
        spans.last().unwrap().attribute("dosmos.records").unwrap(),
        "9"
    );
}

#[test]
fn a_link_goes_from_a_section_to_that_whose_release_handed_the_lock_over() {
    let line = |t: u64, dur: u64, op: &str, ap: &str, more: &str| {
        format!(
            r#"{{"type":"record","t_ns":{t},"dur_ns":{dur},"op":"{op}","var":"x","ap":"{ap}"{more}}}"#
        ) + "\n"
    };
    let head: String = SAMPLE
        .lines()
        .take(8)
        .map(|l| l.to_owned() + "\n")
        .collect();
    // ap1 is refused, then asks while ap0 is inside; ap1 then enters twice, which hands nothing over, and stays.
    let text = head
        + &line(100, 10, "acquire", "ap0", "")
        + &line(120, 10, "acquire", "ap1", r#","failed":true"#)
        + &line(150, 160, "acquire", "ap1", r#","wait_ns":150"#)
        + &line(300, 5, "release", "ap0", "")
        + &line(400, 5, "release", "ap1", "")
        + &line(500, 5, "acquire", "ap1", "");
    let dir = dosmos_testseeds::scratch();
    let spans = spans(&exported(&[store_of(&text, &dir.path().join("store"))]));
    let sections = named(&spans, "section");
    assert_eq!(sections.len(), 3);
    let linked: Vec<_> = sections.iter().filter(|s| !s.linked().is_empty()).collect();
    assert_eq!(linked.len(), 1);
    assert_eq!(linked[0].service, "ap1");
    let before = sections.iter().find(|s| s.service == "ap0").unwrap();
    assert_eq!(linked[0].linked(), [before.id()]);
    assert_eq!(
        linked[0].text("endTimeUnixNano"),
        named(&spans, "release")[1].text("startTimeUnixNano")
    );
    let open: Vec<_> = sections
        .iter()
        .filter(|s| s.attribute("dosmos.open").is_some())
        .collect();
    assert_eq!(open.len(), 1);
    let failed: Vec<_> = spans.iter().filter(|s| s.failed()).collect();
    assert_eq!(failed.len(), 1);
    assert_eq!(
        (failed[0].service.as_str(), failed[0].text("name")),
        ("ap1", "acquire x")
    );
}

#[test]
fn operations_that_are_alike_have_identifiers_of_their_own() {
    let twice = r#"{"type":"record","t_ns":7,"op":"acquire","var":"x","ap":"ap1","failed":true}"#;
    let head: Vec<&str> = SAMPLE.lines().take(8).collect();
    let text = format!("{}\n{twice}\n{twice}\n", head.join("\n"));
    let dir = dosmos_testseeds::scratch();
    let spans = spans(&exported(&[store_of(&text, &dir.path().join("store"))]));
    let both = named(&spans, "acquire");
    assert_eq!(both.len(), 2);
    assert_ne!(both[0].id(), both[1].id());
}

#[test]
fn hand_overs_between_the_stores_of_a_long_run_are_links_too() {
    let dir = dosmos_testseeds::scratch();
    let turns = 5_000;
    let stores = contended(dir.path(), turns, Nanos::ZERO, false);
    let bytes = exported(&stores);
    assert_eq!(bytes, exported(&stores), "two exports are the same bytes");
    let spans = spans(&bytes);
    let sections = named(&spans, "section");
    assert_eq!(sections.len() as u64, turns);
    let in_order: HashMap<_, _> = sections.iter().map(|s| (s.id(), s.times())).collect();
    let linked: Vec<_> = sections
        .iter()
        .flat_map(|s| s.linked().into_iter().map(|l| (l, s.times())))
        .collect();
    assert_eq!(linked.len() as u64, turns - 1);
    for (before, (begin, _)) in linked {
        assert!(in_order[&before].1 <= begin);
    }
}

#[test]
fn what_is_missing_is_said() {
    let text = SAMPLE.to_owned() + "not a record\n";
    let dir = dosmos_testseeds::scratch();
    let path = dir.path().join("store");
    import(text.as_bytes(), &path, BadLines::Skip).unwrap();
    let spans = spans(&exported(&[StoreSource::open(&path).unwrap()]));
    let whole = spans.last().unwrap();
    assert_eq!(
        (whole.service.as_str(), whole.text("name")),
        ("dosmos", "run")
    );
    let events = whole.span["events"].as_array().unwrap();
    assert!(!events.is_empty());
    assert!(events.iter().all(|e| e["name"] == "incomplete"));
}

/// Whether a record is an operation that has a span, as the file says which notices are the last of a wait.
fn has_span(r: &Record, pending: bool) -> bool {
    let asked = match r.flags.waiting {
        true => pending,
        false => r.side == Side::Requester,
    };
    asked && matches!(r.op, Op::Acquire | Op::Release | Op::Barrier)
}

proptest! {
    #![proptest_config(dosmos_testseeds::config(32))]

    #[test]
    fn every_operation_is_there_once_and_all_that_is_named_exists(trace in traces()) {
        let dir = dosmos_testseeds::scratch();
        let store = trace.store(&dir.path().join("store"));
        let pending = records(&store).iter().filter(|r| r.flags.waiting).count();
        let told = records(&store);
        let at_least = told.iter().filter(|r| has_span(r, false)).count();
        let bytes = exported(&[store]);
        let spans = spans(&bytes);
        let sections = named(&spans, "section").len();
        let operations = spans.len() - sections - 1;
        prop_assert!((at_least..=at_least + pending).contains(&operations), "{operations}");
        let failed = told.iter().filter(|r| has_span(r, true) && r.flags.failed).count();
        prop_assert!(spans.iter().filter(|s| s.failed()).count() <= failed);
        let ids: HashSet<_> = spans.iter().map(Seen::id).collect();
        prop_assert_eq!(ids.len(), spans.len(), "an identifier twice");
        for span in &spans {
            let (begin, end) = span.times();
            prop_assert!(begin <= end);
            for named in span.linked().into_iter().chain(span.parent()) {
                prop_assert!(ids.contains(&named), "{:?} is not there", named);
            }
        }
    }
}
