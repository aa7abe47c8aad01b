//! Runs that keep the contract are accepted: labelled traces in simulated time, and recorded runs of real programs.

#![allow(clippy::unwrap_used)] // a test may

use std::ops::ControlFlow;

use dosmos_interchange::jsonl::{self, BadLines};
use dosmos_testkit::{labelled, recorded};
use dosmos_trace::query::{Completeness, Filter};
use dosmos_trace::record::{Record, Side};
use dosmos_trace::store::{Item, StoreSource};
use dosmos_verify::{Options, State, Verdict, Verifier};

#[test]
fn labelled_traces_keep_the_contract() {
    // Their programs were made for their sharing, and write as they please.
    let options = Options {
        races: false,
        ..Options::default()
    };
    for seed in 0..60 {
        let trace = labelled::generate(seed);
        let mut verifier = Verifier::new(trace.catalog.clone(), options);
        // When an owner served what is made up in these traces.
        let asked = trace.records.iter().filter(|r| r.side == Side::Requester);
        asked.for_each(|r| verifier.add(r));
        let verdict = verifier.finish(&Completeness::default(), false, &[]);
        assert!(verdict.violations.is_empty(), "seed {seed}: {verdict:#?}");
        // Some are of a deadlock in which nobody did anything.
        let expected = match verdict.looked.records {
            0 => State::Undecided,
            _ => State::Consistent,
        };
        assert_eq!(verdict.state, expected, "seed {seed}: {verdict:#?}");
    }
}

fn of_recorded(name: &str, options: Options) -> Verdict {
    let dir = dosmos_testseeds::scratch();
    let store = dir.path().join("store");
    let text = recorded::jsonl(name).unwrap();
    let go_on = |_| ControlFlow::Continue(());
    jsonl::import(&text[..], &store, BadLines::Refuse, go_on).unwrap();
    let source = StoreSource::open(&store).unwrap();
    let mut records: Vec<Record> = Vec::new();
    let all = Filter {
        everything: true,
        ..Filter::default()
    };
    source
        .scan(&all, |item| {
            if let Item::Record(record) = item {
                records.push(*record);
            }
            ControlFlow::Continue(())
        })
        .unwrap();
    records.sort_by_key(|r| r.start);
    let mut verifier = Verifier::new(source.describe(), options);
    records.iter().for_each(|r| verifier.add(r));
    verifier.finish(&source.completeness(), false, &[])
}

#[test]
fn recorded_runs_keep_the_contract() {
    let kinds = [
        "bad-group",
        "bottleneck",
        "deadlock",
        "false-sharing",
        "imbalance",
        "misplaced-owner",
        "no-sharing",
        "ping-pong",
        "policy-mismatch",
    ];
    for kind in kinds {
        for how in ["sick", "cured"] {
            // They were recorded before atomic operations were marked.
            let options = Options {
                races: false,
                ..Options::default()
            };
            let verdict = of_recorded(&format!("{kind}-{how}"), options);
            assert!(verdict.violations.is_empty(), "{kind}-{how}: {verdict:#?}");
            let decided = verdict.state == State::Consistent;
            assert!(decided || kind == "deadlock", "{kind}-{how}: {verdict:#?}");
        }
    }
}
