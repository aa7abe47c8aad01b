//! From a real run to models and back: what `model inputs` writes the models read, and what they say adds up.

use dosmos_integration_tests::{Lab, NESTED, in_groups};
use dosmos_trace::store::RunMetadata;
use serde_json::Value;

/// A small program with many barriers.
const SOR: [&str; 7] = [
    "sor",
    "--rows",
    "32",
    "--columns",
    "32",
    "--iterations",
    "20",
];

fn json(lab: &Lab, args: &[&str]) -> Value {
    let output = lab.dosmos(args);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{args:?}: {said}");
    serde_json::from_slice(&output.stdout).unwrap()
}

fn us(value: &Value) -> f64 {
    value.as_f64().unwrap()
}

#[test]
fn a_run_becomes_inputs_that_the_models_read_and_a_prediction_that_adds_up() {
    let lab = Lab::new(env!("CARGO_BIN_EXE_dosmos-under-test"));
    lab.cluster(NESTED);
    lab.must_up(&SOR);

    // What messages cost, as a file: the typical machine's. `bench/tests/network.rs` measures.
    let typical = json(&lab, &["model", "inputs", "--run-dir", "run"]);
    let record = &typical["network"];
    assert!(us(&record["hop"]["read_us"][0]) > 0.0, "{record}");
    std::fs::write(lab.path().join("net.json"), record.to_string()).unwrap();

    // How many processors the machine has decides whether the processes lack some.
    let lack = |processors: u32| {
        let mut machine = record.clone();
        machine["processors"] = processors.into();
        std::fs::write(lab.path().join("machine.json"), machine.to_string()).unwrap();
        let args = [
            "check",
            "--run-dir",
            "run",
            "--network",
            "machine.json",
            "--format",
            "json",
        ];
        let output = lab.dosmos(&args);
        let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
        answer["oversubscribed"].clone()
    };
    let on_one = lack(1);
    assert_eq!(on_one["application_processes"], 4, "{on_one}");
    assert_eq!(on_one["processors"], 1, "{on_one}");
    assert!(us(&on_one["gain"]) >= 0.05, "{on_one}");
    assert!(lack(4).is_null());
    // How many processors several hosts have together is not known where `check` runs.
    for store in std::fs::read_dir(lab.path().join("run/store")).unwrap() {
        let store = store.unwrap().path();
        let mut started = RunMetadata::read(&store).unwrap().unwrap();
        started.hosts.push("another".to_owned());
        started.write(&store).unwrap();
    }
    assert!(lack(1).is_null());

    let from = ["--run-dir", "run", "--network", "net.json"];
    let inputs = json(&lab, &[&["model", "inputs"][..], &from].concat());
    assert_eq!(inputs["about"]["processes"].as_array().unwrap().len(), 4);
    let phases = inputs["dvsm"]["phases"].as_array().unwrap();
    assert_eq!(
        phases.len(),
        43,
        "declared, then two half sweeps per iteration, then the result, then the end"
    );

    // Counts are those of the records. What a process did before the last one was there is left out of the first phase,
    // in proportion; from the first barrier on everybody is there, and every access counts.
    let events = lab.query(&["events", "--limit", "0"]);
    let events = events["events"].as_array().unwrap();
    let passed_first = |ap: &Value| {
        let own = events
            .iter()
            .filter(|e| e["ap"] == *ap && e["op"] == "barrier");
        own.map(|e| e["start_ns"].as_u64().unwrap()).min().unwrap()
    };
    let is_remote = |e: &&Value| {
        let data = ["read", "write"].contains(&e["op"].as_str().unwrap());
        // What a section served itself took no message.
        data && e["origin"] != "local" && e["in_process"] != true
    };
    let (before, after): (Vec<&Value>, Vec<&Value>) = (events.iter().filter(is_remote))
        .partition(|e| e["start_ns"].as_u64().unwrap() < passed_first(&e["ap"]));
    let counted = |phases: &[Value]| -> f64 {
        let procs = phases.iter().flat_map(|p| p["procs"].as_array().unwrap());
        let lists = procs.flat_map(|p| [&p["faults"], &p["empties"]]);
        let entries = lists.flat_map(|list| list.as_array().unwrap());
        entries.map(|entry| us(&entry[0])).sum()
    };
    let exactly = after.len() as f64;
    assert!(
        (counted(&phases[1..]) - exactly).abs() < 1e-6 * exactly,
        "{exactly}"
    );
    assert!(counted(&phases[..1]) <= before.len() as f64 + 1e-6);

    // Each model reads its document.
    for (model, answer) in [("dvsm", "time_us"), ("general", "R"), ("lopc", "R")] {
        let args = [&["model", "inputs", "--for", model][..], &from].concat();
        let document = lab.dosmos(&args).stdout;
        std::fs::write(lab.path().join("in.json"), document).unwrap();
        let said = json(
            &lab,
            &["model", model, "--input", "in.json", "--format", "json"],
        );
        assert!(!said[answer].is_null(), "{model}: {said}");
    }
    let args = [
        &["model", "inputs", "--for", "fit", "--process", "ap2"][..],
        &from,
    ]
    .concat();
    let references = json(&lab, &args);
    let own = events
        .iter()
        .filter(|e| e["ap"] == "ap2" && ["read", "write"].contains(&e["op"].as_str().unwrap()));
    let own: u64 = own.map(|e| e["count"].as_u64().unwrap()).sum();
    assert_eq!(references["trace"].as_array().unwrap().len() as u64, own);

    // The prediction: parts add up; a machine eight times as fast is faster.
    let ask = |what: &str| {
        let args = ["model", "predict", "--format", "json", "--what-if", what];
        json(&lab, &[&args[..], &from].concat())
    };
    let without_delays = |what: &str| {
        let args = ["model", "predict", "--no-delays", "--format", "json"];
        json(&lab, &[&args[..], &["--what-if", what], &from].concat())
    };
    let said = without_delays("speed=8,protocol=0.2,prefetch=0.5,procs=16");
    for times in ["measured", "modelled", "changed"] {
        let t = &said[times];
        let parts = [
            "busy_us",
            "service_us",
            "local_us",
            "fault_us",
            "cold_us",
            "lock_us",
            "barrier_us",
        ];
        let sum: f64 = parts.iter().map(|part| us(&t[*part])).sum();
        let run = us(&t["run_us"]);
        assert!((sum - run).abs() < 0.02 * run, "{times}: {sum} of {run}");
    }
    assert!(us(&said["gain"]) > 0.0, "{said}");

    // Other processors and links are replayed; the phase model says nothing then, since it has the delays of the run.
    let said = ask("speed=8,protocol=0.2");
    assert!(us(&said["replay"]["gain"]) > 0.0, "{said}");
    let said = ask("switch=1000");
    assert!(us(&said["replay"]["gain"]) < 0.0, "{said}");
    assert!(said["gain"].is_null() && said["error"].is_null(), "{said}");

    // The same as CSV, in nanoseconds.
    let args = [
        "model",
        "predict",
        "--format",
        "csv",
        "--what-if",
        "speed=8",
    ];
    let output = lab.dosmos(&[&args[..], &from].concat());
    let csv = String::from_utf8(output.stdout).unwrap();
    let mut rows = csv.lines();
    let heading = "component,measured_ns,modelled_ns,changed_ns";
    assert_eq!(rows.next(), Some(heading), "{csv}");
    let run: Vec<&str> = rows.next_back().unwrap().split(',').collect();
    let measured: f64 = run[1].parse().unwrap();
    assert!(
        (measured - 1e3 * us(&said["measured"]["run_us"])).abs() < 1.0,
        "{csv}"
    );

    // All in one group: nothing crosses groups any more.
    let one_group = NESTED
        .replace("group = \"north\"", "group = \"ocean\"")
        .replace("group = \"land\"", "group = \"ocean\"");
    std::fs::write(lab.path().join("proposed.toml"), one_group).unwrap();
    let near = ask("groups=proposed.toml");
    assert!(
        us(&near["changed"]["fault_us"]) < us(&near["modelled"]["fault_us"]),
        "{near}"
    );

    // What cannot be asked is said to be so.
    for (what, word) in [
        ("speed=fast", "number"),
        ("sped=8", "keys are"),
        ("speed=0", "greater than 0"),
        ("groups=nowhere.toml", "nowhere.toml"),
        ("speed", "KEY=VALUE"),
        ("prefetch=0.5", "--no-delays"),
        ("procs=16", "one group"),
    ] {
        let output = lab.dosmos(&["model", "predict", "--what-if", what, "--run-dir", "run"]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{what}: {said}");
        assert!(said.contains(word), "{what}: {said}");
    }
}

#[test]
fn another_number_of_processes_is_replayed_where_each_has_a_memory_process_of_one_group() {
    let lab = Lab::new(env!("CARGO_BIN_EXE_dosmos-under-test"));
    lab.cluster(&in_groups(1, 2));
    lab.must_up(&SOR);
    let args = ["model", "predict", "--run-dir", "run", "--format", "json"];
    let four = json(&lab, &[&args[..], &["--what-if", "procs=4"]].concat())["replay"].clone();
    assert!(us(&four["expected_us"]) > 0.0, "{four}");
    assert_eq!(us(&four["part"]), 1.0, "{four}");
}
