//! What a run lacks is said by every command, and `dosmos check` exits with 2 whenever it could not look at everything.

use dosmos_integration_tests::{Lab, NESTED, UP, said, up_args};
use serde_json::Value;

const WORK: [&str; 7] = [
    "sor",
    "--rows",
    "16",
    "--columns",
    "16",
    "--iterations",
    "4",
];

/// A run of `app` on the nested cluster with `more` in its file.
fn run(more: &str, app: &[&str]) -> Lab {
    let lab = Lab::new(env!("CARGO_BIN_EXE_dosmos-under-test"));
    lab.cluster(&format!("{NESTED}\n{more}"));
    lab.must_up(app);
    lab
}

/// Exit status of `dosmos check`, its answer, and what it said on standard error.
fn check(lab: &Lab, args: &[&str]) -> (i32, Value, String) {
    let question = ["check", "--run-dir", "run", "--format", "json"];
    let output = lab.dosmos(&[&question[..], args].concat());
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    let answer =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {}", said(&output)));
    (output.status.code().unwrap(), answer, stderr)
}

/// What a command about the run in `run` printed.
fn asked(lab: &Lab, args: &[&str]) -> String {
    let output = lab.dosmos(&[args, &["--run-dir", "run"]].concat());
    assert!(output.status.success(), "{args:?}: {}", said(&output));
    said(&output)
}

#[test]
fn the_process_that_failed_is_named_first_and_those_that_waited_for_it_together() {
    let lab = Lab::new(env!("CARGO_BIN_EXE_dosmos-under-test"));
    lab.cluster(NESTED);
    let binary = env!("CARGO_BIN_EXE_dosmos-under-test");
    let script = format!(
        "case $DOSMOS_AP in ap2) exec {binary} app is --buckets 1;; *) exec {binary} app is --keys 600;; esac"
    );
    let output = lab.dosmos(&up_args(&script));
    let said = said(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    let at = |words: &str| {
        said.find(words)
            .unwrap_or_else(|| panic!("{words}: {said}"))
    };
    let cause = at("ap2 failed (exit status: 1): is: --buckets 1");
    let others = at("ap0, ap1, ap3 failed because ap2 had left: ");
    assert!(cause < others, "{said}");
}

#[test]
fn a_run_that_failed_is_never_a_run_in_which_nothing_was_found() {
    let lab = Lab::new(env!("CARGO_BIN_EXE_dosmos-under-test"));
    lab.cluster(NESTED);
    let binary = env!("CARGO_BIN_EXE_dosmos-under-test");
    let script = format!(
        "{binary} app {} && case $DOSMOS_AP in ap1) exit 3;; ap2) kill -9 $$;; esac",
        WORK.join(" ")
    );
    assert_eq!(lab.dosmos(&up_args(&script)).status.code(), Some(1));
    let (code, answer, stderr) = check(&lab, &[]);
    let failed = "the run failed: ap1 exited with 3, ap2 was ended by signal 9";
    assert_eq!(code, 2, "{answer:#}");
    assert!(stderr.contains(failed), "{stderr}");
    assert_eq!(answer["complete"], 1.0, "its records are all there");
    assert_eq!(answer["incomplete"], serde_json::json!([failed]));
    // Also when nothing that is found counts.
    assert_eq!(check(&lab, &["--fail-on", "deadlock:99%"]).0, 2);
    let exits: Vec<&Value> = answer["run"]["ranks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|rank| &rank["exit"])
        .collect();
    assert_eq!(*exits[1], serde_json::json!({ "code": 3 }));
    assert_eq!(*exits[2], serde_json::json!({ "signal": 9 }));

    // Every command says so, and how the run was started.
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    let version = format!("version: {}", env!("CARGO_PKG_VERSION"));
    let html = || {
        asked(&lab, &["report", "-o", "page.html"]);
        std::fs::read_to_string(lab.path().join("page.html")).unwrap()
    };
    let diff = said(&lab.dosmos(&["diff", "run", "run"]));
    let query = asked(&lab, &["query", "histogram"]);
    for text in [&diff, &query, &html()] {
        assert!(text.contains(failed), "{text}");
        for fact in [
            "up -c cluster.toml --run-dir run",
            host.trim(),
            "ap1 exited with 3",
        ] {
            assert!(text.contains(fact), "{fact}: {text}");
        }
    }
    assert!(query.contains(&version), "{query}");
    let table = said(&lab.dosmos(&["check", "--run-dir", "run"]));
    assert!(table.contains("exit status "), "{table}");
    let json = lab.query(&["histogram"]);
    assert_eq!(json["run"]["version"], env!("CARGO_PKG_VERSION"));
    let diff = lab.dosmos(&["diff", "run", "run", "--format", "json"]);
    let diff: Value = serde_json::from_slice(&diff.stdout).unwrap();
    assert_eq!(diff["second"]["run"], answer["run"]);
}

#[test]
fn a_program_that_was_never_started_is_said() {
    let lab = Lab::new(env!("CARGO_BIN_EXE_dosmos-under-test"));
    lab.cluster(NESTED);
    let args = [&UP[..], &["./none"]].concat();
    assert_eq!(lab.dosmos(&args).status.code(), Some(2));
    let (code, answer, stderr) = check(&lab, &[]);
    assert_eq!(code, 2, "{answer:#}");
    assert!(
        stderr.contains("ap0 was not started (cannot start ./none for ap0: no such program)"),
        "{stderr}"
    );
    assert!(stderr.contains("nothing was recorded"), "{stderr}");
}

#[test]
fn findings_of_a_run_that_lacks_something_do_not_hide_that() {
    let lab = run("", &["ping-pong", "--rounds", "100"]);
    let some = "time_lost = 0.0\nnegligible_loss = 0.0\npatch_gain = 0.0\nping_pong_hand_overs = 2\nping_pong_work = 1.0\n";
    std::fs::write(lab.path().join("some.toml"), some).unwrap();
    let (code, answer, _) = check(&lab, &["--thresholds", "some.toml"]);
    assert_eq!(code, 1, "{answer:#}");
    std::fs::rename(lab.path().join("run/store/emp1"), lab.path().join("away")).unwrap();
    let (code, _, stderr) = check(&lab, &["--thresholds", "some.toml"]);
    assert_eq!(code, 2, "{stderr}");
    assert!(
        stderr.contains("emp1 belongs to this run and its store is missing"),
        "{stderr}"
    );
}

#[test]
fn processes_started_one_by_one_say_that_it_is_unknown_how() {
    let lab = run("", &WORK);
    for store in ["emp0", "emp1"] {
        let file = lab.path().join("run/store").join(store).join("run.json");
        std::fs::remove_file(file).unwrap();
    }
    let query = asked(&lab, &["query", "histogram"]);
    assert!(
        query.contains("command: unknown how it was started"),
        "{query}"
    );
    assert_eq!(lab.query(&["histogram"])["run"], Value::Null);
}

#[test]
fn what_was_not_recorded_is_lacking() {
    for (recording, lacking) in [
        ("mode = \"off\"", "the mode is off"),
        ("mode = \"counters\"", "the mode is counters"),
        ("variables = [\"nothing*\"]", "only variables nothing*"),
        ("ops = [\"write\"]", "only operations write"),
        ("processes = [\"ap0\"]", "only processes ap0"),
        ("sample_one_in = 3", "one access in 3 was recorded"),
    ] {
        let lab = run(&format!("[recording]\n{recording}\n"), &WORK);
        let (code, answer, stderr) = check(&lab, &[]);
        assert_eq!(code, 2, "{recording}: {answer:#}");
        assert!(stderr.contains(lacking), "{recording}: {stderr}");
        let report = asked(&lab, &["query", "histogram"]);
        assert!(report.contains(lacking), "{recording}: {report}");
    }
}

#[test]
fn a_selection_that_matches_nothing_is_said_by_every_command() {
    let lab = run("", &WORK);
    let nothing = "warning: no record matches the selection";
    let select = [
        "--op", "acquire", "--ap", "ap0", "--from", "+0s", "--to", "+1ns",
    ];
    for question in ["histogram", "history", "events", "breakdown"] {
        let all = asked(&lab, &["query", question]);
        assert!(!all.contains(nothing), "{question}: {all}");
    }
    for question in ["histogram", "history", "events"] {
        let some = asked(&lab, &[&["query", question][..], &select].concat());
        assert!(some.contains(nothing), "{question}: {some}");
    }
    for format in ["jsonl", "csv", "perfetto"] {
        let export = ["export", "--format", format, "-o", "out"];
        let all = asked(&lab, &export);
        assert!(!all.contains(nothing), "{format}: {all}");
        let some = asked(&lab, &[&export[..], &select].concat());
        assert!(some.contains(nothing), "{format}: {some}");
    }
    // A part of the run without a record is not a part in which nothing is wrong.
    let year = [
        "--from",
        "2001-01-01T00:00:00Z",
        "--to",
        "2002-01-01T00:00:00Z",
    ];
    let (code, _, stderr) = check(&lab, &year);
    assert_eq!(code, 2, "{stderr}");
    assert!(
        stderr.contains("no record matches the selection"),
        "{stderr}"
    );
    // What does not exist at all is an error.
    for wrong in [["--var", "none"], ["--ap", "none"], ["--op", "none"]] {
        let output = lab.dosmos(&[&["query", "events", "--run-dir", "run"][..], &wrong].concat());
        assert_eq!(output.status.code(), Some(2), "{wrong:?}");
    }
}
