//! `dosmos verify` on real runs: published programs keep the contract and are not accused of races; a program that races on
//! purpose is; records that are missing make it undecided.

use dosmos_integration_tests::{APPLICATIONS, Lab, in_groups, said};
use serde_json::{Value, json};

/// Two groups of two memory processes, an application process each.
const CLUSTER: &str = include_str!("../../../cli/src/demo.toml");

fn run(cluster: &str, app: &[&str]) -> Lab {
    let lab = Lab::new(env!("CARGO_BIN_EXE_dosmos-under-test"));
    lab.cluster(cluster);
    lab.must_up(app);
    lab
}

/// Exit status and answer.
fn verify(lab: &Lab, args: &[&str]) -> (i32, Value) {
    let question = ["verify", "--format", "json"];
    let output = lab.dosmos(&[&question[..], args].concat());
    let answer =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {}", said(&output)));
    (output.status.code().unwrap(), answer)
}

#[track_caller]
fn accepted(app: &[&str], args: &[&str]) {
    accepted_on(CLUSTER, app, args);
}

#[track_caller]
fn accepted_on(cluster: &str, app: &[&str], args: &[&str]) {
    let lab = run(cluster, app);
    let (code, answer) = verify(&lab, &[&["--run-dir", "run"][..], args].concat());
    assert_eq!(answer["violations"], Value::Array(Vec::new()), "{app:?}");
    assert_eq!(
        (code, &answer["verdict"]),
        (0, &"consistent".into()),
        "{app:?}: {answer:#}"
    );
    assert!(answer["looked"]["records"].as_u64().unwrap() > 0);
    if args.is_empty() {
        without_races_in_check(&lab, app);
    }
}

/// `dosmos check` looks for races too, and finds none either.
#[track_caller]
fn without_races_in_check(lab: &Lab, app: &[&str]) {
    let output = lab.dosmos(&["check", "--run-dir", "run", "--format", "json"]);
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    let looked = json!({"looked": true, "undecided": []});
    assert_eq!(answer["races"], looked, "{app:?}");
    let findings = answer["findings"].as_array().unwrap().iter();
    let races = findings.filter(|f| f["kind"] == "data-race").count();
    assert_eq!(races, 0, "{app:?}: {answer:#}");
}

#[test]
fn programs_that_use_locks_and_barriers_are_consistent_and_without_races() {
    accepted(&["ping-pong", "--rounds", "50"], &[]);
    accepted(&["bad-group", "--rounds", "5"], &[]);
}

#[test]
fn every_application_is_consistent_and_without_races() {
    for application in APPLICATIONS {
        let app: Vec<&str> = application.split(' ').collect();
        accepted_on(&in_groups(1, 2), &app, &[]);
    }
}

#[test]
fn programs_that_race_on_purpose_are_consistent() {
    accepted(&["random", "--operations", "1000"], &["--no-races"]);
    let litmus = ["litmus", "--rounds", "40", "--test"];
    for test in ["mp", "sb", "iriw", "coherence", "mutex"] {
        accepted(&[&litmus[..], &[test]].concat(), &["--no-races"]);
    }
}

#[test]
fn a_store_exported_and_imported_has_the_same_verdict_and_a_part_of_a_run_has_none() {
    let lab = run(CLUSTER, &["ping-pong", "--rounds", "20"]);
    let export = [
        "export",
        "--run-dir",
        "run",
        "--format",
        "jsonl",
        "-o",
        "run.jsonl",
    ];
    assert!(lab.dosmos(&export).status.success());
    assert!(
        lab.dosmos(&["import", "run.jsonl", "--store", "imported"])
            .status
            .success()
    );
    let (code, answer) = verify(&lab, &["--store", "imported"]);
    assert_eq!(
        (code, &answer["verdict"]),
        (0, &"consistent".into()),
        "{answer:#}"
    );
    // A version that nobody made.
    let text = std::fs::read_to_string(lab.path().join("run.jsonl")).unwrap();
    let changed = text.replacen("\"version\":9,", "\"version\":7,", 2);
    assert_ne!(text, changed);
    std::fs::write(lab.path().join("bad.jsonl"), changed).unwrap();
    assert!(
        lab.dosmos(&["import", "bad.jsonl", "--store", "bad"])
            .status
            .success()
    );
    let (code, answer) = verify(&lab, &["--store", "bad"]);
    assert_eq!(
        (code, &answer["verdict"]),
        (1, &"violated".into()),
        "{answer:#}"
    );
    // One store of two.
    let stores = lab.path().join("run").join("store");
    let one = std::fs::read_dir(stores)
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    let (code, answer) = verify(&lab, &["--store", &one.display().to_string()]);
    let decided = answer["undecided"][0]["decided_by"].as_str().unwrap();
    assert_eq!(code, 2, "{answer:#}");
    assert!(decided.contains("store"), "{decided}");
}
