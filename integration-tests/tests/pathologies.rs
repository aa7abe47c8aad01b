//! Every kind of bad sharing and its cure, as real programs: `dosmos check` names the one and says nothing of
//! the other; `dosmos diff` tells them apart.

#![allow(clippy::unwrap_used)] // a test may

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use dosmos_integration_tests::{Lab, said};
use serde_json::Value;

/// Two groups of two memory processes, an application process each.
const CLUSTER: &str = include_str!("../../cli/src/demo.toml");

fn lab() -> Lab {
    let lab = Lab::new(env!("CARGO_BIN_EXE_dosmos-under-test"));
    lab.cluster(CLUSTER);
    lab
}

fn json(lab: &Lab, args: &[&str]) -> Value {
    let output = lab.dosmos(&[args, &["--format", "json"]].concat());
    let broken = |e| panic!("{e}: {}", said(&output));
    serde_json::from_slice(&output.stdout).unwrap_or_else(broken)
}

fn kinds(answer: &Value) -> Vec<&str> {
    let findings = answer["findings"].as_array().unwrap();
    findings
        .iter()
        .map(|f| f["kind"].as_str().unwrap())
        .collect()
}

/// Runs the program sick and cured; what `check` finds in each.
fn sick_and_cured(kind: &str, rounds: &str) -> (Value, Value) {
    let lab = lab();
    let mut answers = Vec::new();
    for healthy in [&[][..], &["--healthy"]] {
        let args = ["pathology", "--kind", kind, "--rounds", rounds];
        lab.must_up(&[&args[..], healthy].concat());
        answers.push(json(&lab, &["check", "--run-dir", "run"]));
        let name = if healthy.is_empty() { "sick" } else { "cured" };
        std::fs::rename(lab.path().join("run"), lab.path().join(name)).unwrap();
    }
    let diff = json(&lab, &["diff", "sick", "cured"]);
    let names = |list: &Value| -> Vec<String> {
        let list = list.as_array().unwrap().iter();
        list.map(|f| f["kind"].as_str().unwrap().to_owned())
            .collect()
    };
    let gone = names(&diff["findings"]["gone"]).contains(&kind.to_owned());
    assert!(gone || kind == "imbalance", "{:#}", diff["findings"]);
    let cured = answers.pop().unwrap();
    (answers.pop().unwrap(), cured)
}

/// The sick program has this finding and no other, the cured one none. How evenly a busy machine lets processes
/// run is not the program's doing: imbalance is asked for only where it is made.
fn check(kind: &str, rounds: &str, variable: Option<&str>) {
    let (sick, cured) = sick_and_cured(kind, rounds);
    let made = |answer: &Value| -> Vec<String> {
        let mut kinds = kinds(answer);
        kinds.retain(|k| *k != "imbalance" || kind == "imbalance");
        kinds.iter().map(ToString::to_string).collect()
    };
    assert_eq!(made(&sick), [kind], "{sick:#}");
    assert_eq!(made(&cured), [""; 0], "{kind} cured: {cured:#}");
    let finding = sick["findings"].as_array().unwrap();
    let finding = finding.iter().find(|f| f["kind"] == kind).unwrap();
    assert_eq!(finding["variable"].as_str(), variable, "{finding:#}");
    assert!(finding["severity"].as_f64().unwrap() > 0.0);
    assert!(!finding["advice"].as_str().unwrap().is_empty());
}

#[test]
fn bottleneck() {
    check("bottleneck", "60", Some("counter"));
}

#[test]
fn ping_pong() {
    check("ping-pong", "300", Some("ball"));
}

#[test]
fn no_sharing() {
    check("no-sharing", "2000", Some("scratch"));
}

#[test]
fn policy_mismatch() {
    check("policy-mismatch", "60", Some("rows"));
}

#[test]
fn false_sharing() {
    check("false-sharing", "200", Some("counts"));
}

#[test]
fn bad_group() {
    check("bad-group", "8", None);
}

#[test]
fn misplaced_owner() {
    check("misplaced-owner", "1000", Some("array"));
}

#[test]
fn imbalance() {
    let (sick, cured) = sick_and_cured("imbalance", "12");
    let of = |answer: &Value| {
        let all = answer["findings"].as_array().unwrap().iter();
        let imbalance = all.clone().find(|f| f["kind"] == "imbalance").cloned();
        assert!(all.count() <= 1, "{answer:#}");
        imbalance
    };
    let (sick, cured) = (of(&sick).unwrap(), of(&cured));
    let advice = sick["advice"].as_str().unwrap();
    assert!(advice.contains("(ap0 most in all)"), "{advice}");
    // A busy machine may be uneven by itself, but not as much.
    let severity = |f: &Value| f["severity"].as_f64().unwrap();
    assert!(cured.is_none_or(|cured| severity(&cured) < severity(&sick)));
}

#[test]
fn deadlock_broken_by_its_deadline() {
    check("deadlock", "1", Some("locks"));
}

/// A running program, killed when dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_standing_deadlock_is_seen_while_it_stands() {
    let lab = lab();
    let binary = env!("CARGO_BIN_EXE_dosmos-under-test");
    let up = [
        "up",
        "-c",
        "cluster.toml",
        "--run-dir",
        "run",
        "--",
        binary,
        "app",
        "pathology",
    ];
    let forever = ["--kind", "deadlock", "--deadline", "100000"];
    let mut command: Command = lab.command(&[&up[..], &forever].concat());
    let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let _running = Running(child.unwrap());
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        // Until the event managers answer and the circle is closed.
        let output = lab.dosmos(&["check", "--run-dir", "run", "--fail-on", "deadlock"]);
        if output.status.code() == Some(1) {
            let text = said(&output);
            assert!(
                text.contains("wait for each other's locks on locks["),
                "{text}"
            );
            return;
        }
        assert!(Instant::now() < deadline, "{}", said(&output));
    }
}

#[test]
fn diff_in_every_format_and_what_is_no_run() {
    let lab = lab();
    lab.must_up(&["sor", "--rows", "8", "--columns", "8", "--iterations", "3"]);
    std::fs::rename(lab.path().join("run"), lab.path().join("one")).unwrap();
    lab.must_up(&["sor", "--rows", "8", "--columns", "8", "--iterations", "5"]);
    let diff = json(&lab, &["diff", "one", "run"]);
    let (first, second) = (&diff["first"]["phases"], &diff["second"]["phases"]);
    assert!(
        first.as_u64().unwrap() > 0 && first.as_u64() < second.as_u64(),
        "{first} {second}"
    );
    let phases = diff["phases"].as_array().unwrap();
    assert!(phases.last().unwrap()["first_ns"].is_null());
    // What both runs do is the same, phase by phase, in number and origin.
    let before_the_end = first.as_u64().unwrap() as usize - 2;
    for phase in &phases[1..before_the_end] {
        for row in phase["rows"].as_array().unwrap() {
            assert_eq!(row["first"]["count"], row["second"]["count"], "{phase:#}");
        }
    }
    for format in ["table", "csv"] {
        let output = lab.dosmos(&["diff", "one", "run", "--format", format]);
        assert!(
            output.status.success() && said(&output).contains("sor.grid"),
            "{}",
            said(&output)
        );
    }
    let output = lab.dosmos(&["diff", "one", "two"]);
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
}
