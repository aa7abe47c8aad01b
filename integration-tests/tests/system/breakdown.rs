//! Where the time went, as the application processes measured it, against what the memory processes
//! recorded of the same calls.

use std::time::Instant;

use dosmos_integration_tests::{Lab, NESTED};
use serde_json::Value;

const CALLS: [&str; 3] = ["local", "fault", "cold"];

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap()
}

#[test]
fn components_add_up_to_the_wall_time_and_agree_with_the_records() {
    let lab = Lab::new(env!("CARGO_BIN_EXE_dosmos-under-test"));
    // Every access is a message.
    lab.cluster(&format!(
        "{NESTED}[[variable]]\nname = \"*\"\ncache = \"mp\"\n"
    ));
    let begun = Instant::now();
    lab.must_up(&["random", "--seed", "3", "--operations", "300"]);
    let elapsed = begun.elapsed().as_nanos() as u64;

    let events = lab.query(&["events", "--limit", "0"]);
    let events = events["events"].as_array().unwrap();
    let whole = lab.query(&["breakdown"]);
    // Memory and link processes say at their end what serving took of a processor.
    let serving = whole["serving_ns"].as_object().unwrap();
    let status = lab.query(&["processes"]);
    let processes = status["processes"].as_array().unwrap();
    let serves = |p: &&Value| p["kind"] != "application";
    assert_eq!(
        serving.len(),
        processes.iter().filter(serves).count(),
        "{status:#}"
    );
    let most = 2 * elapsed * std::thread::available_parallelism().unwrap().get() as u64;
    for (process, time) in serving {
        assert!((1..most).contains(&number(time)), "{process}: {serving:?}");
    }
    let whole = whole["breakdown"].as_array().unwrap();
    assert_eq!(whole.len(), 4, "one entry per process: {whole:?}");
    for process in whole {
        let name = process["process"].as_str().unwrap();
        let wall = number(&process["wall_ns"]);
        let of = |c: &str, what: &str| number(&process[c][what]);
        let parts = [
            "busy", "service", "local", "fault", "cold", "lock", "barrier", "other",
        ];
        let sum: u64 = parts.iter().map(|c| of(c, "time_ns")).sum();
        assert_eq!(sum, wall, "{process}");
        assert!(wall <= elapsed, "{name} ran longer than its run: {process}");

        // The memory process saw every call, from its arrival to its reply: less than the program did.
        let mine: Vec<&Value> = events.iter().filter(|e| e["ap"] == name).collect();
        let (first, last) = mine.iter().fold((u64::MAX, 0), |(first, last), e| {
            let start = number(&e["start_ns"]);
            (
                first.min(start),
                last.max(start + number(&e["duration_ns"])),
            )
        });
        assert!(wall >= last - first, "records outlast {process}");
        for (op, parts) in [
            (&["read", "write"][..], &CALLS[..]),
            (&["acquire", "release"], &["lock"]),
            (&["barrier"], &["barrier"]),
        ] {
            let seen: Vec<_> = mine
                .iter()
                .filter(|e| is_call(e))
                .filter(|e| op.contains(&e["op"].as_str().unwrap()))
                .collect();
            let calls: u64 = parts.iter().map(|c| of(c, "calls")).sum();
            assert_eq!(calls, seen.len() as u64, "{op:?} of {process}");
            let served: u64 = seen.iter().map(|e| number(&e["duration_ns"])).sum();
            let waited: u64 = parts.iter().map(|c| of(c, "time_ns")).sum();
            assert!(waited >= served, "{op:?}: {waited} < {served} of {process}");
        }
        let remote = mine
            .iter()
            .filter(|e| is_call(e))
            .filter(|e| ["read", "write"].contains(&e["op"].as_str().unwrap()))
            .filter(|e| e["origin"] != "local")
            .count() as u64;
        assert_eq!(
            of("fault", "calls") + of("cold", "calls"),
            remote,
            "{process}"
        );
    }

    // Phases: as many as barriers passed, and one more; together the whole.
    let phases = lab.query(&["breakdown", "--all"]);
    let phases = phases["breakdown"].as_array().unwrap();
    for process in whole {
        let mine: Vec<_> = phases
            .iter()
            .filter(|p| p["process"] == process["process"])
            .collect();
        let wall: u64 = mine.iter().map(|p| number(&p["wall_ns"])).sum();
        assert_eq!(wall, number(&process["wall_ns"]));
        assert_eq!(mine.len() as u64, number(&process["barrier"]["calls"]) + 1);
    }
}

/// Whether an access was a call of its own. Those that a section served itself were none.
fn is_call(event: &Value) -> bool {
    event["in_process"] != true
}
