//! Every kind of bad sharing and its cure, as real programs: `dosmos check` names the one and says nothing of
//! the other; `dosmos diff` tells them apart.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use dosmos_integration_tests::{Lab, UP, said};
use serde_json::{Value, json};

/// Two groups of two memory processes, an application process each.
const CLUSTER: &str = include_str!("../../../cli/src/demo.toml");

fn lab() -> Lab {
    let lab = Lab::new(env!("CARGO_BIN_EXE_dosmos-under-test"));
    lab.cluster(CLUSTER);
    lab
}

fn answer(lab: &Lab, args: &[&str]) -> Value {
    let output = lab.dosmos(&[args, &["--format", "json"]].concat());
    let broken = |e| panic!("{e}: {}", said(&output));
    serde_json::from_slice(&output.stdout).unwrap_or_else(broken)
}

/// Thresholds that leave out how much time is lost, which a busy machine decides: what is left are counts and orders,
/// which the program decides. What the default thresholds find is tested on traces in simulated time (`testkit/`).
const COUNTS_ONLY: &str = "\
time_lost = 0.0
negligible_loss = 0.0
patch_gain = 0.0
bottleneck_waiting = 0.0001
ping_pong_hand_overs = 2
ping_pong_work = 1.0
assignment_gain = 0.0
imbalance = 0.0
imbalance_in_turns = 0.0
";

/// Runs the program sick and cured; what `check` finds in each, and `diff` between them.
fn sick_and_cured(kind: &str, rounds: &str) -> [Value; 3] {
    let lab = lab();
    std::fs::write(lab.path().join("counts.toml"), COUNTS_ONLY).unwrap();
    let thresholds = ["--thresholds", "counts.toml"];
    let mut answers = Vec::new();
    for (name, healthy) in [("sick", &[][..]), ("cured", &["--healthy"])] {
        let args = ["pathology", "--kind", kind, "--rounds", rounds];
        lab.must_up(&[&args[..], healthy].concat());
        let check = [&["check", "--run-dir", "run"][..], &thresholds].concat();
        answers.push(answer(&lab, &check));
        std::fs::rename(lab.path().join("run"), lab.path().join(name)).unwrap();
    }
    let diff = answer(
        &lab,
        &[&["diff", "sick", "cured"][..], &thresholds].concat(),
    );
    [answers.remove(0), answers.remove(0), diff]
}

/// The finding of this kind about this variable.
fn finding<'a>(findings: &'a Value, kind: &str, variable: Option<&str>) -> Option<&'a Value> {
    let mut findings = findings.as_array().unwrap().iter();
    findings.find(|f| f["kind"] == kind && f["variable"].as_str() == variable)
}

/// The sick program has this finding, the cured one has not.
fn check(kind: &str, rounds: &str, variable: Option<&str>) {
    let [sick, cured, diff] = sick_and_cured(kind, rounds);
    let found = finding(&sick["findings"], kind, variable);
    let found = found.unwrap_or_else(|| panic!("{kind} is not found: {sick:#}"));
    assert!(!found["advice"].as_str().unwrap().is_empty());
    assert_eq!(found["completeness"], 1.0, "{found:#}");
    assert!(
        finding(&cured["findings"], kind, variable).is_none(),
        "{kind} cured: {cured:#}"
    );
    assert!(
        finding(&diff["findings"]["gone"], kind, variable).is_some(),
        "{:#}",
        diff["findings"]
    );
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
    check("no-sharing", "300", Some("scratch"));
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
fn read_only_locking() {
    check("read-only-locking", "300", Some("table"));
}

#[test]
fn data_race() {
    let [sick, cured, _] = sick_and_cured("data-race", "60");
    let found = &sick["findings"][0];
    assert_eq!(found["kind"], "data-race", "{sick:#}");
    assert_eq!(found["variable"], "counter");
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let accesses = ["first_access", "second_access"].map(|key| text(&found["evidence"][key]));
    assert!(
        accesses.iter().all(|a| a.contains("without acquiring it")),
        "{found:#}"
    );
    assert!(accesses.iter().any(|a| a.starts_with("write of ")));
    assert!(text(&found["advice"]).contains("let both acquire counter[0]"));
    assert_eq!(found["aps"].as_array().unwrap().len(), 2);
    for answer in [&sick, &cured] {
        assert_eq!(answer["races"]["looked"], true);
        assert_eq!(answer["races"]["undecided"], Value::Array(Vec::new()));
    }
    assert!(finding(&cured["findings"], "data-race", Some("counter")).is_none());
}

/// Process 0 stands for six times as long in each round as the others take to compute in it.
#[test]
fn slow_process() {
    let [sick, _, _] = sick_and_cured("slow-process", "12");
    let found = finding(&sick["findings"], "slow-process", None);
    let found = found.unwrap_or_else(|| panic!("{sick:#}"));
    assert_eq!(found["aps"], json!(["ap0"]), "{found:#}");
    let without = found["evidence"]["without_processor_ns"]
        .as_object()
        .unwrap();
    assert_eq!(without.len(), 4, "{found:#}");
    // The first and the last phase are not of the loop.
    assert!(
        without["ap0"].as_u64().unwrap() >= 11 * 30_000_000,
        "{found:#}"
    );
    assert!(
        found["advice"]
            .as_str()
            .unwrap()
            .starts_with("ap0 is without a processor")
    );
}

#[test]
fn misplaced_owner() {
    check("misplaced-owner", "300", Some("array"));
}

/// Between barriers process 0 sleeps 80 ms and the others 20 ms; cured: all 40 ms. A sleep may be longer, never shorter.
#[test]
fn imbalance() {
    let [sick, cured, _] = sick_and_cured("imbalance", "6");
    let busy_ns = |answer: &Value| -> Vec<u64> {
        let found = finding(&answer["findings"], "imbalance", None);
        let evidence = &found.unwrap_or_else(|| panic!("{answer:#}"))["evidence"];
        let phases = evidence["phases"].as_u64().unwrap();
        assert!(phases >= 5, "{answer:#}");
        let busy = evidence["busy_ns"].as_object().unwrap();
        assert_eq!(busy.len(), 4, "{answer:#}");
        (0..4)
            .map(|i| busy[&format!("ap{i}")].as_u64().unwrap())
            .collect()
    };
    let (sick, cured) = (busy_ns(&sick), busy_ns(&cured));
    // The first and the last phase are not of the loop.
    let loops = |ms: u64| 5 * ms * 1_000_000;
    assert!(sick[0] >= loops(80), "{sick:?}");
    assert!(sick.iter().all(|ns| *ns >= loops(20)), "{sick:?}");
    assert!(cured.iter().all(|ns| *ns >= loops(40)), "{cured:?}");
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
    let program = [binary, "app", "pathology"];
    let forever = ["--kind", "deadlock", "--deadline", "100000"];
    let mut command: Command = lab.command(&[&UP[..], &program, &forever].concat());
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
    let diff = answer(&lab, &["diff", "one", "run"]);
    let (first, second) = (&diff["first"]["phases"], &diff["second"]["phases"]);
    assert!(
        first.as_u64().unwrap() > 0 && first.as_u64() < second.as_u64(),
        "{first} {second}"
    );
    let phases = diff["phases"].as_array().unwrap();
    assert!(phases.last().unwrap()["first_ns"].is_null());
    // What both runs do is the same, phase by phase, in number and origin, but for what takes no message: of that
    // is known between which times it was, which may be on both sides of a barrier.
    let before_the_end = first.as_u64().unwrap() as usize - 2;
    for phase in &phases[1..before_the_end] {
        let rows = phase["rows"].as_array().unwrap().iter();
        for row in rows.filter(|row| row["variable"] != "sor.grid") {
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
    let row = &diff["matched"][0]["first"];
    assert!(row["p99_ns"].as_u64() <= row["max_ns"].as_u64() && row["max_ns"].as_u64() > Some(0));
    // Only what both did is concluded upon.
    assert_eq!(&diff["conclusion"]["phases"], first);
    let verdict = diff["conclusion"]["verdict"].as_str().unwrap();
    let shown = said(&lab.dosmos(&["diff", "one", "run"]));
    assert!(
        shown.contains(verdict) && verdict.contains(&format!("the {first} phases of both")),
        "{verdict}\n{shown}"
    );
    assert_eq!(diff["warnings"], Value::Array(Vec::new()));
    std::fs::rename(lab.path().join("run"), lab.path().join("sor")).unwrap();
    lab.must_up(&["is", "--keys", "200", "--buckets", "8", "--iterations", "2"]);
    let other = said(&lab.dosmos(&["diff", "sor", "run"]));
    assert!(
        other.contains("warning: the runs are of different programs: sor and is")
            && other.contains("not comparable: the runs use different variables"),
        "{other}"
    );
    let output = lab.dosmos(&["diff", "one", "two"]);
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
}
