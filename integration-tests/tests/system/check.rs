//! `dosmos check` on real runs: the programs of figures 8 to 11 of the DOSMOS-Trace paper, bad and cured.

use std::process::Output;

use dosmos_integration_tests::{Lab, said};
use serde_json::Value;

/// Two groups of two memory processes, an application process each.
const CLUSTER: &str = include_str!("../../../cli/src/demo.toml");

/// A run of a built-in program on the demo's cluster. Rounds, not seconds: a busy machine makes it longer, not less.
fn run(app: &[&str]) -> Lab {
    let lab = Lab::new(env!("CARGO_BIN_EXE_dosmos-under-test"));
    lab.cluster(CLUSTER);
    lab.must_up(app);
    lab
}

/// Thresholds that leave out how much time is lost, which a busy machine decides.
const COUNTS_ONLY: &str = "\
time_lost = 0.0
negligible_loss = 0.0
patch_gain = 0.0
ping_pong_hand_overs = 2
ping_pong_work = 1.0
assignment_gain = 0.0
# How evenly a busy machine lets processes run is not the program's doing.
imbalance = 1.0
imbalance_in_turns = 1.0
";

/// Exit status and answer of `dosmos check` on the run, by counts only.
fn check_counts(lab: &Lab, args: &[&str]) -> (i32, Value) {
    std::fs::write(lab.path().join("counts.toml"), COUNTS_ONLY).unwrap();
    check(lab, &[&["--thresholds", "counts.toml"][..], args].concat())
}

/// Exit status and answer of `dosmos check` on the run.
fn check(lab: &Lab, args: &[&str]) -> (i32, Value) {
    let question = ["check", "--run-dir", "run", "--format", "json"];
    let output = lab.dosmos(&[&question[..], args].concat());
    let answer =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {}", said(&output)));
    (output.status.code().unwrap(), answer)
}

fn finding<'a>(answer: &'a Value, kind: &str) -> &'a Value {
    let mut findings = answer["findings"].as_array().unwrap().iter();
    let found = findings.find(|f| f["kind"] == kind);
    found.unwrap_or_else(|| panic!("no {kind}: {answer:#}"))
}

/// Its number, for `--apply`.
fn number(answer: &Value, kind: &str) -> usize {
    let findings = answer["findings"].as_array().unwrap();
    1 + findings.iter().position(|f| f["kind"] == kind).unwrap()
}

/// The cluster file of the run with the patch of this finding, written to `file`.
fn applied(lab: &Lab, number: usize, file: &str) -> String {
    let output = apply(lab, &number.to_string(), &["-o", file]);
    assert!(output.status.success(), "{}", said(&output));
    assert!(said(&output).contains(&format!("dosmos up --cluster {file} -- ")));
    std::fs::read_to_string(lab.path().join(file)).unwrap()
}

/// `dosmos check --apply` on the run, by counts only.
fn apply(lab: &Lab, number: &str, more: &[&str]) -> Output {
    let question = [
        "check",
        "--run-dir",
        "run",
        "--thresholds",
        "counts.toml",
        "--apply",
        number,
    ];
    lab.dosmos(&[&question[..], more].concat())
}

fn kinds(answer: &Value) -> Vec<&str> {
    let findings = answer["findings"].as_array().unwrap();
    findings
        .iter()
        .map(|f| f["kind"].as_str().unwrap())
        .collect()
}

#[test]
fn a_bad_group_is_named_and_its_patch_cures_it() {
    let lab = run(&["bad-group", "--rounds", "10"]);
    let (code, answer) = check_counts(&lab, &[]);
    assert_eq!(code, 1, "{answer:#}");
    let finding = finding(&answer, "bad-group");
    // Wherever owners are shown, they are in the same place.
    let shown = |question| said(&lab.dosmos(&["query", question, "--run-dir", "run"]));
    let groups = shown("groups");
    assert!(groups.contains("table/north (owner in /south)"), "{groups}");
    let variables = shown("variables");
    let north = variables
        .lines()
        .find(|l| l.starts_with("table/north"))
        .unwrap();
    assert!(
        north.contains("/north") && north.contains("in /south: "),
        "{variables}"
    );
    assert!(finding["patch"].as_str().unwrap().contains("owners"));
    let cured = applied(&lab, number(&answer, "bad-group"), "cured.toml");
    // Only tables to add: all that was there stays as it was.
    assert!(cured.starts_with(CLUSTER) && cured != CLUSTER, "{cured}");
    lab.cluster(&cured);
    std::fs::remove_dir_all(lab.path().join("run")).unwrap();
    lab.must_up(&["bad-group", "--rounds", "10"]);
    let (_, answer) = check_counts(&lab, &[]);
    assert!(!kinds(&answer).contains(&"bad-group"), "{answer:#}");
    let reads = lab.query(&["histogram", "--op", "read"]);
    assert_eq!(reads["total"]["inter"], 0, "{reads}");
}

#[test]
fn a_patch_is_applied_to_a_new_file_or_nothing_is_written() {
    let lab = run(&["bad-group", "--rounds", "10"]);
    let (_, answer) = check_counts(&lab, &[]);
    let number = number(&answer, "bad-group").to_string();
    // To standard output, from a file of one's own.
    let commented = format!("# My cluster.\n{CLUSTER}");
    std::fs::write(lab.path().join("mine.toml"), &commented).unwrap();
    let output = apply(&lab, &number, &["-c", "mine.toml"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        text.starts_with(&commented) && text.len() > commented.len(),
        "{text}"
    );
    let refused = |number: &str, more: &[&str], says: &str| {
        let output = apply(&lab, number, more);
        assert_eq!(output.status.code(), Some(2), "{}", said(&output));
        assert!(said(&output).contains(says), "{}", said(&output));
        assert!(output.stdout.is_empty());
    };
    refused("0", &[], "there is no finding 0");
    refused("99", &[], "there is no finding 99");
    refused(&number, &["-o", "mine.toml"], "mine.toml exists already");
    let kept = std::fs::read_to_string(lab.path().join("mine.toml")).unwrap();
    assert_eq!(kept, commented);
    let other = commented.replace("mp0", "mp7");
    std::fs::write(lab.path().join("other.toml"), other).unwrap();
    refused(&number, &["-c", "other.toml"], "does not exist");
    refused(&number, &["--format", "json"], "cannot be used with");
    let answer = said(&lab.dosmos(&["check", "--run-dir", "run", "--output", "x"]));
    assert!(answer.contains("--apply"), "{answer}");
}

#[test]
fn a_finding_whose_cure_is_in_the_program_says_so() {
    let lab = run(&["pathology", "--kind", "imbalance", "--rounds", "4"]);
    std::fs::write(
        lab.path().join("counts.toml"),
        "imbalance = 0.0\nimbalance_in_turns = 0.0\ntime_lost = 0.0\n",
    )
    .unwrap();
    let (_, answer) = check(&lab, &["--thresholds", "counts.toml"]);
    let output = apply(&lab, &number(&answer, "imbalance").to_string(), &[]);
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    let advice = finding(&answer, "imbalance")["advice"].as_str().unwrap();
    let expected =
        format!("has no patch for the cluster file: the cure is in the program; {advice}");
    assert!(said(&output).contains(&expected), "{}", said(&output));
}

/// The parts of the efficiency are there and add up, and the sentence tells it.
fn efficiency_adds_up(answer: &Value) {
    let efficiency = &answer["efficiency"];
    let part = |key: &str| efficiency[key].as_f64().unwrap();
    let lost = efficiency["lost"].as_array().unwrap().iter();
    let lost: f64 = lost.map(|l| l["share"].as_f64().unwrap()).sum();
    assert!(
        (part("parallel") + lost - 1.0).abs() < 0.01,
        "{efficiency:#}"
    );
    let product = part("load_balance") * part("communication");
    assert!((part("parallel") - product).abs() < 0.01, "{efficiency:#}");
    let verdict = answer["verdict"].as_str().unwrap();
    let expected = format!("efficiency {:.0} %", 100.0 * part("parallel"));
    assert!(verdict.starts_with(&expected), "{verdict}");
    assert_eq!(
        verdict.contains("most was lost"),
        part("parallel") < 0.8,
        "{verdict}"
    );
}

#[test]
fn the_efficiency_of_a_program_and_its_largest_loss_are_named() {
    for app in [
        &["water", "--molecules", "64", "--iterations", "2"][..],
        &["is", "--keys", "20000", "--iterations", "2"],
        &["bad-group", "--rounds", "10"],
    ] {
        let lab = run(app);
        let (_, answer) = check_counts(&lab, &[]);
        efficiency_adds_up(&answer);
        let text = lab.dosmos(&["check", "--run-dir", "run"]);
        let text = String::from_utf8_lossy(&text.stdout).into_owned();
        assert!(
            text.starts_with(
                answer["verdict"]
                    .as_str()
                    .unwrap()
                    .split(';')
                    .next()
                    .unwrap()
            ),
            "{text}"
        );
    }
}

/// One process has four times the work of the others, which wait at the barrier for more than half of their time.
#[test]
fn a_program_bound_by_barriers_is_said_to_lose_most_there() {
    let lab = run(&["pathology", "--kind", "imbalance", "--rounds", "10"]);
    let (_, answer) = check_counts(&lab, &[]);
    efficiency_adds_up(&answer);
    assert_eq!(
        answer["efficiency"]["lost"][0]["to"], "barriers",
        "{answer:#}"
    );
    let verdict = answer["verdict"].as_str().unwrap();
    assert!(verdict.contains("most was lost at barriers"), "{verdict}");
}

#[test]
fn a_ping_pong_is_named_and_exit_statuses_follow_what_is_asked() {
    let lab = run(&["ping-pong", "--rounds", "200"]);
    let (code, answer) = check_counts(&lab, &[]);
    assert_eq!(code, 1, "{answer:#}");
    let found = finding(&answer, "ping-pong");
    assert_eq!(found["variable"], "ball");
    assert_eq!(found["aps"], serde_json::json!(["ap0", "ap1"]));
    assert_eq!(found["completeness"], 1.0);
    assert_eq!(found["change"], Value::Null);
    // Of the whole run the model says what the cure saves.
    assert_eq!(found["gain_from"], "replay");
    let gain = found["predicted_gain"].as_f64().unwrap();
    assert!((0.0..1.0).contains(&gain), "{found:#}");
    // The times of processes are not those of a part of it.
    let (_, part) = check_counts(&lab, &["--from", "+0s"]);
    assert_eq!(finding(&part, "ping-pong")["gain_from"], "costs");
    // What messages cost can be told, and is read.
    let no_file = lab.dosmos(&["check", "--run-dir", "run", "--network", "none.json"]);
    assert_eq!(no_file.status.code(), Some(2));
    assert!(said(&no_file).contains("none.json"), "{}", said(&no_file));
    // What is asked for decides.
    assert_eq!(check(&lab, &["--fail-on", "deadlock,99%"]).0, 0);
    let either = ["--fail-on", "deadlock", "--fail-on", "ping-pong:0%"];
    assert_eq!(check_counts(&lab, &either).0, 1);
    // Known is not new.
    std::fs::write(lab.path().join("base.json"), answer.to_string()).unwrap();
    let (code, again) = check_counts(&lab, &["--baseline", "base.json"]);
    let change = |answer: &Value| finding(answer, "ping-pong")["change"].clone();
    assert_eq!((code, change(&again)), (0, "known".into()));
    std::fs::write(lab.path().join("base.json"), r#"{"findings":[]}"#).unwrap();
    let (code, again) = check_counts(&lab, &["--baseline", "base.json"]);
    assert_eq!((code, change(&again)), (1, "new".into()));
    // Thresholds from a file; people's format.
    let toml = lab.path().join("t.toml");
    std::fs::write(&toml, "ping_pong_hand_overs = 1000000000\n").unwrap();
    let (_, answer) = check(&lab, &["--thresholds", "t.toml"]);
    assert!(!kinds(&answer).contains(&"ping-pong"), "{answer:#}");
    let output = lab.dosmos(&["check", "--run-dir", "run", "--thresholds", "counts.toml"]);
    let text = said(&output);
    assert!(
        text.contains("ap0 and ap1 take ball[0] from each other"),
        "{text}"
    );
    for (args, expected) in [
        (&["--fail-on", "pingpong"][..], "is not a kind of finding"),
        (&["--baseline", "t.toml"], "is not the output of"),
        (&["--from", "+1h"], "--from is not before --to"),
    ] {
        fails(&lab, args, expected);
    }
    std::fs::write(&toml, "ping_pong_handovers = 3\n").unwrap();
    fails(
        &lab,
        &["--thresholds", "t.toml"],
        "unknown field `ping_pong_handovers`",
    );
    std::fs::write(&toml, "imbalance = 20\n").unwrap();
    fails(
        &lab,
        &["--thresholds", "t.toml"],
        "it is a fraction, 0 to 1",
    );
}

fn fails(lab: &Lab, args: &[&str], expected: &str) {
    let output = lab.dosmos(&[&["check", "--run-dir", "run"][..], args].concat());
    let said = said(&output);
    assert_eq!(output.status.code(), Some(2), "{args:?}: {said}");
    assert!(said.contains(expected), "{args:?}: {said}");
}

/// What is cured is not found, however few accesses count; and the exit status is that of the answer.
#[test]
fn cured_programs_do_not_have_the_finding() {
    let size = ["sor", "--rows", "32", "--columns", "32"];
    let sor = [&size[..], &["--iterations", "25"]].concat();
    let programs = [
        (&["good-group", "--rounds", "10"][..], "bad-group"),
        (&["ping-pong-split", "--rounds", "200"], "ping-pong"),
        (&sor, "deadlock"),
    ];
    for (app, kind) in programs {
        let lab = run(app);
        let (code, answer) = check_counts(&lab, &[]);
        assert_eq!(answer["complete"], 1.0, "{app:?}: {answer:#}");
        assert_eq!(code, i32::from(!kinds(&answer).is_empty()), "{app:?}");
        assert!(!kinds(&answer).contains(&kind), "{app:?}: {answer:#}");
    }
}
