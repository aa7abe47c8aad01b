//! The Perfetto format, decoded again: every operation, wait and section is there, and slices nest.

#![allow(clippy::unwrap_used)] // a test may

mod common;

use std::collections::HashMap;

use common::generate::{contended, traces};
use common::{SAMPLE, all, import, run, store_of};
use dosmos_interchange::jsonl::BadLines;
use dosmos_interchange::perfetto::Perfetto;
use dosmos_interchange::perfetto::schema::{AnnotationValue, EventType, Trace, TrackDescriptor};
use dosmos_proto::Nanos;
use dosmos_trace::record::{Op, Record, Side};
use dosmos_trace::store::StoreSource;
use proptest::prelude::*;
use prost::Message;

/// A slice as a viewer sees it.
#[derive(Clone, Debug, PartialEq)]
struct Slice {
    track: u64,
    category: u64,
    name: String,
    begin: u64,
    end: u64,
    flows_out: Vec<u64>,
    flows_in: Vec<u64>,
}

impl Slice {
    fn length(&self) -> u128 {
        u128::from(self.end - self.begin)
    }
}

const ACCESS: u64 = 1;
const WAIT: u64 = 2;
const SECTION: u64 = 3;
const SERVED: u64 = 4;

/// A trace file, read as its specification says: in the order of time stamps, a slice ends with the next end on its
/// timeline.
#[derive(Debug, Default)]
struct View {
    slices: Vec<Slice>,
    tracks: HashMap<u64, TrackDescriptor>,
    counters: HashMap<String, Vec<(u64, f64)>>,
    instants: Vec<String>,
    packets_lost: bool,
}

fn view(bytes: &[u8]) -> View {
    let trace = Trace::decode(bytes).unwrap();
    let mut view = View::default();
    let mut names = HashMap::new();
    let mut events = Vec::new();
    for packet in trace.packet {
        if let Some(track) = packet.track_descriptor {
            assert!(view.tracks.insert(track.uuid.unwrap(), track).is_none());
        }
        for name in packet.interned_data.unwrap_or_default().event_names {
            assert!(
                names
                    .insert(name.iid.unwrap(), name.name.unwrap())
                    .is_none()
            );
        }
        view.packets_lost |= packet.previous_packet_dropped.unwrap_or(0) > 0;
        if let Some(event) = packet.track_event {
            events.push((packet.timestamp.unwrap(), event));
        }
    }
    events.sort_by_key(|(at, _)| *at);
    let mut open: HashMap<u64, Vec<Slice>> = HashMap::new();
    for (at, event) in events {
        let track = event.track_uuid.unwrap();
        let name = event.name_iid.map(|iid| names[&iid].clone());
        let name = name.or(event.name.clone());
        assert!(view.tracks.contains_key(&track), "no such timeline");
        match event.r#type() {
            EventType::SliceBegin => open.entry(track).or_default().push(Slice {
                track,
                category: event.category_iids.first().copied().unwrap_or(0),
                name: name.unwrap(),
                begin: at,
                end: 0,
                flows_out: event.flow_ids,
                flows_in: event.terminating_flow_ids,
            }),
            EventType::SliceEnd => {
                let mut slice = open.get_mut(&track).unwrap().pop().unwrap();
                slice.end = at;
                view.slices.push(slice);
            }
            EventType::Instant => view.instants.push(name.unwrap()),
            EventType::Counter => {
                let name = view.tracks[&track].name.clone().unwrap();
                let value = event.double_counter_value.unwrap();
                view.counters.entry(name).or_default().push((at, value));
            }
            EventType::Unspecified => panic!("an event of no type"),
        }
    }
    assert!(open.values().all(Vec::is_empty), "slices without end");
    view
}

impl View {
    fn of(&self, category: u64) -> Vec<&Slice> {
        let slices = self.slices.iter();
        slices.filter(|s| s.category == category).collect()
    }

    /// Name of the process that a slice's timeline is of.
    fn process(&self, slice: &Slice) -> String {
        let parent = self.tracks[&slice.track].parent_uuid.unwrap();
        let process = self.tracks[&parent].process.clone().unwrap();
        process.process_name.unwrap()
    }
}

fn exported(store: StoreSource) -> View {
    let mut bytes = Vec::new();
    run(&[store], &all(), &mut Perfetto::new(&mut bytes));
    view(&bytes)
}

#[test]
fn the_example_shows_its_operations_waits_and_sections() {
    let dir = dosmos_testseeds::scratch();
    let view = exported(store_of(SAMPLE, &dir.path().join("store")));
    assert_eq!(view.of(ACCESS).len(), 9);
    let mut waits: Vec<_> = view
        .of(WAIT)
        .iter()
        .map(|s| (s.name.as_str(), s.length()))
        .collect();
    waits.sort_unstable();
    let end = 60_000_000_000;
    assert_eq!(
        waits,
        [
            ("wait at barrier phase", 9_000),
            ("wait at barrier phase", 9_000),
            ("wait for x[0]", end - 190_000),
            ("wait for y[1]", 20_000),
        ]
    );
    let sections = view.of(SECTION);
    assert_eq!(sections.len(), 1);
    let section = sections[0];
    assert_eq!((section.begin, section.end), (130_000, 160_000));
    assert_eq!(section.name, "section y[1]");
    assert_eq!(view.process(section), "ap2 (/b/c)");
    assert_eq!(view.instants, ["9 records were made"]);
    assert!(!view.packets_lost);
    // What the counters say adds up: a bucket is 60 ms, all of it happened in the first.
    let local = &view.counters["local accesses"];
    assert_eq!(local[0], (0, 2.0 / 0.06), "the read, and a barrier");
    assert_eq!(local[1], (60_000_000, 0.0));
    let waiting = &view.counters["processes waiting"];
    assert!((waiting[0].1 - 38_000.0 / 60e6).abs() < 1e-9, "{waiting:?}");
}

#[test]
fn arrows_go_from_a_release_to_the_section_that_followed() {
    let line = |t: u64, dur: u64, wait: u64, op: &str, ap: &str, version: u64| {
        format!(
            r#"{{"type":"record","t_ns":{t},"dur_ns":{dur},"wait_ns":{wait},"op":"{op}","var":"x","ap":"{ap}","version":{version}}}"#
        ) + "\n"
    };
    let head: String = SAMPLE
        .lines()
        .take(8)
        .map(|l| l.to_owned() + "\n")
        .collect();
    // ap1 asks while ap0 is inside; ap1 then enters twice, which hands nothing over.
    let text = head
        + &line(100, 10, 0, "acquire", "ap0", 0)
        + &line(150, 160, 150, "acquire", "ap1", 1)
        + &line(300, 5, 0, "release", "ap0", 1)
        + &line(400, 5, 0, "release", "ap1", 2)
        + &line(500, 5, 0, "acquire", "ap1", 2)
        + &line(600, 5, 0, "release", "ap1", 3);
    let dir = dosmos_testseeds::scratch();
    let view = exported(store_of(&text, &dir.path().join("store")));
    let arrows: Vec<_> = view
        .slices
        .iter()
        .filter(|s| !s.flows_in.is_empty())
        .collect();
    assert_eq!(arrows.len(), 1, "{arrows:?}");
    let to = arrows[0];
    assert_eq!((to.name.as_str(), to.begin), ("section x[0]", 310));
    assert_eq!(view.process(to), "ap1 (/a)");
    let mut from = view.slices.iter();
    let from = from.find(|s| s.flows_out == to.flows_in).unwrap();
    assert_eq!((from.name.as_str(), from.begin), ("release x[0]", 300));
    assert_eq!(view.process(from), "ap0 (/a)");
}

#[test]
fn arrows_go_between_the_stores_of_a_long_run_too() {
    let dir = dosmos_testseeds::scratch();
    let turns = 70_000;
    let mut bytes = Vec::new();
    let stores = contended(dir.path(), turns, Nanos::ZERO, false);
    run(&stores, &all(), &mut Perfetto::new(&mut bytes));
    let view = view(&bytes);
    assert_eq!(view.of(SECTION).len() as u64, turns);
    let arrows = view
        .of(SECTION)
        .into_iter()
        .filter(|s| !s.flows_in.is_empty());
    assert_eq!(
        arrows.count() as u64,
        turns - 1,
        "each section follows one of the other process"
    );
}

#[test]
fn hosts_whose_clocks_differ_are_on_one_timeline() {
    let dir = dosmos_testseeds::scratch();
    let turns = 2_000;
    let drawn = |name: &str, ahead: Nanos, told: bool| {
        let mut bytes = Vec::new();
        let stores = contended(&dir.path().join(name), turns, ahead, told);
        let exported = run(&stores, &all(), &mut Perfetto::new(&mut bytes));
        let view = view(&bytes);
        for line in &exported.clocks {
            assert!(view.instants.contains(line), "{line} is not in the file");
        }
        (view, exported.clocks.join("; "))
    };
    let ahead = Nanos::from_millis(90_000);
    let (view, said) = drawn("ahead", ahead, true);
    assert_eq!(
        said,
        "times of emp1 were moved by -90.00 s (+0.0 ppm) to the clock of emp0, within 207 ns"
    );
    // What was served is within what was asked for, to 207 ns.
    let remote = |what: u64, name: &str| {
        let its = view.of(what).into_iter();
        let mut its: Vec<_> = its.filter(|s| view.process(s).starts_with(name)).collect();
        its.sort_by_key(|s| s.begin);
        its.retain(|s| s.name.starts_with("acquire"));
        its
    };
    let (asked, served) = (remote(ACCESS, "ap1"), remote(SERVED, "mp0"));
    assert_eq!((asked.len(), served.len()), (1_000, 1_000));
    for (asked, served) in asked.iter().zip(served) {
        assert!(asked.begin <= served.begin + 207, "{asked:?} {served:?}");
        assert!(served.end <= asked.end + 207, "{asked:?} {served:?}");
    }
    let mut sections = view.of(SECTION);
    sections.sort_by_key(|s| s.begin);
    let whose = sections.iter().map(|s| view.process(s));
    let whose: Vec<bool> = whose.map(|p| p.starts_with("ap1")).collect();
    assert!(whose.windows(2).all(|two| two[0] != two[1]));

    let (_, said) = drawn("same", Nanos::ZERO, true);
    assert_eq!(said, "the clocks of emp1 and emp0 agree within 207 ns");
    // An owner's record may be missing: nothing tells which request one is of.
    let (view, said) = drawn("incomplete", ahead, false);
    assert!(
        said.starts_with("nothing recorded relates the clock of emp1 to that of emp0"),
        "{said}"
    );
    let last = view.of(SECTION).iter().map(|s| s.begin).max();
    assert!(last > Some(ahead.0), "times were moved all the same");
}

#[test]
fn what_is_lacking_is_marked_over_the_whole_run() {
    let text = SAMPLE.replace(r#""op":"read","var":"x""#, r#""op":"read","var":"lost""#);
    let dir = dosmos_testseeds::scratch();
    let path = dir.path().join("store");
    import(text.as_bytes(), &path, BadLines::Skip).unwrap();
    let view = exported(StoreSource::open(&path).unwrap());
    let marks = view.of(0);
    assert_eq!(marks.len(), 2, "{marks:?}");
    assert!(
        marks
            .iter()
            .all(|m| (m.begin, m.end) == (0, 60_000_000_000))
    );
    assert!(
        marks
            .iter()
            .any(|m| m.name == "incomplete: 3 of 9 records were dropped")
    );
    assert!(view.packets_lost);
}

#[test]
fn annotations_carry_what_a_slice_cannot_show() {
    let dir = dosmos_testseeds::scratch();
    let store = store_of(SAMPLE, &dir.path().join("store"));
    let mut bytes = Vec::new();
    run(&[store], &all(), &mut Perfetto::new(&mut bytes));
    let trace = Trace::decode(&bytes[..]).unwrap();
    let mut names = HashMap::new();
    let mut sum = 0;
    for packet in trace.packet {
        for name in packet
            .interned_data
            .unwrap_or_default()
            .debug_annotation_names
        {
            names.insert(name.iid, name.name.unwrap());
        }
        for note in packet.track_event.unwrap_or_default().debug_annotations {
            if let (Some("bytes"), Some(AnnotationValue::Uint(n))) =
                (names.get(&note.name_iid).map(String::as_str), note.value)
            {
                sum += n;
            }
        }
    }
    assert_eq!(sum, 3 * 8 + 128);
}

/// As a viewer can show it.
fn length(r: &Record, start: u64, length: u64) -> u128 {
    let begin = r.start.0 - start;
    u128::from(begin.saturating_add(length).min(i64::MAX as u64) - begin)
}

proptest! {
    #![proptest_config(dosmos_testseeds::config(64))]

    #[test]
    fn every_operation_wait_and_section_is_kept(trace in traces()) {
        let dir = dosmos_testseeds::scratch();
        let view = exported(trace.store(&dir.path().join("store")));
        let start = trace.records.iter().map(|r| r.start.0).min().unwrap();
        let done = || trace.records.iter().filter(|r| r.side == Side::Requester && !r.flags.waiting);
        let served = trace.records.iter().filter(|r| r.side == Side::Owner && !r.flags.waiting);
        let pending = view.of(ACCESS).len() - done().count();
        prop_assert!(pending <= trace.records.iter().filter(|r| r.flags.waiting).count());
        prop_assert_eq!(view.of(SERVED).len(), served.count());
        let of_section = |r: &&&Record| r.is_access() && r.op == Op::Acquire && !r.is_of_past_sections();
        let acquires = done().filter(|r| of_section(&r));
        prop_assert_eq!(view.of(SECTION).len(), acquires.count());
        if pending == 0 {
            let waited: u128 = done().map(|r| length(r, start, r.wait.0)).sum();
            prop_assert_eq!(view.of(WAIT).iter().map(|s| s.length()).sum::<u128>(), waited);
            let lasted: u128 = done().map(|r| length(r, start, r.duration.max(r.wait).0)).sum();
            prop_assert_eq!(view.of(ACCESS).iter().map(|s| s.length()).sum::<u128>(), lasted);
        }
    }
}
