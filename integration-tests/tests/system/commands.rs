//! The commands that look at a run, as scripts and shells use them.

use std::collections::BTreeMap;
use std::process::Command;

use dosmos_integration_tests::{Lab, in_groups, said};
use serde_json::Value;

/// A finished run in `runs/sor`.
fn sor() -> Lab {
    let lab = Lab::new(env!("CARGO_BIN_EXE_dosmos-under-test"));
    lab.cluster(&in_groups(2, 2));
    lab.must_up(&[
        "sor",
        "--rows",
        "16",
        "--columns",
        "16",
        "--iterations",
        "20",
    ]);
    std::fs::create_dir(lab.path().join("runs")).unwrap();
    std::fs::rename(lab.path().join("run"), lab.path().join("runs/sor")).unwrap();
    lab
}

/// What a command that must succeed printed.
fn printed(lab: &Lab, args: &[&str]) -> String {
    let output = lab.dosmos(&[args, &["--run-dir", "runs/sor"]].concat());
    assert!(output.status.success(), "{args:?}: {}", said(&output));
    String::from_utf8(output.stdout).unwrap()
}

/// The columns `names` of a table in CSV, by the name in the first column.
fn figures(text: &str, names: [&str; 2]) -> BTreeMap<String, [u64; 2]> {
    let mut lines = text.lines();
    let header: Vec<&str> = lines.next().unwrap().split(',').collect();
    let at = names.map(|name| header.iter().position(|h| *h == name).unwrap());
    let mut sums: BTreeMap<String, [u64; 2]> = BTreeMap::new();
    for line in lines {
        let cells: Vec<&str> = line.split(',').collect();
        let name = cells[0].split('[').next().unwrap();
        let sum = sums.entry(name.to_owned()).or_default();
        for (sum, at) in sum.iter_mut().zip(at) {
            *sum += cells[at].parse().unwrap_or(0);
        }
    }
    sums
}

#[test]
fn reads_are_all_reads_and_cached_ones_are_among_them_in_every_table() {
    let lab = Lab::new(env!("CARGO_BIN_EXE_dosmos-under-test"));
    lab.cluster(&in_groups(1, 2));
    lab.must_up(&["latency", "--ops", "20", "--warm-up", "0", "--at", "remote"]);
    let run = |args: &[&str]| {
        let output = lab.dosmos(&[args, &["--run-dir", "run"]].concat());
        String::from_utf8(output.stdout).unwrap()
    };
    let of = |question| {
        let text = run(&["query", question, "--format", "csv"]);
        figures(&text, ["reads", "cached"])["latency.remote"]
    };
    let [reads, cached] = of("variables");
    assert_eq!([reads, cached], of("meta"));
    // Twenty from the owner, each after a write, and twenty of a copy.
    assert!(cached >= 19 && reads == cached + 20, "{cached} of {reads}");
    let histogram = run(&[
        "query",
        "histogram",
        "--var",
        "latency.remote",
        "--op",
        "read",
    ]);
    let total = histogram.lines().find(|l| l.starts_with("all ")).unwrap();
    let counts = total.split_whitespace().skip(1);
    let counts: Vec<u64> = counts.map(|n| n.parse().unwrap()).collect();
    assert_eq!(counts[..3].iter().sum::<u64>(), reads, "{histogram}");
}

#[test]
fn csv_is_made_of_plain_numbers_under_plain_names() {
    let lab = sor();
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    for question in [
        "variables",
        "times",
        "processes",
        "groups",
        "meta",
        "histogram",
        "history",
        "events",
        "breakdown",
    ] {
        let text = printed(&lab, &["query", question, "--format", "csv"]);
        let mut lines = text.lines();
        let header: Vec<&str> = lines.next().unwrap().split(',').collect();
        assert!(
            header
                .iter()
                .all(|name| !name.is_empty() && name.chars().all(plain)),
            "{question}: {header:?}"
        );
        let mut times = 0;
        for line in lines.filter(|line| !line.contains('"')) {
            for (name, cell) in header.iter().zip(line.split(',')) {
                if name.ends_with("_ns") && !cell.is_empty() {
                    times += 1;
                    assert!(cell.parse::<u64>().is_ok(), "{question}: {name} {cell}");
                }
            }
        }
        // What processes count is known while they run only.
        let has_times = header.iter().any(|n| n.ends_with("_ns") && *n != "cpu_ns");
        assert_eq!(has_times, times > 0, "{question}");
    }
}

#[test]
fn patterns_choose_and_options_without_effect_are_refused() {
    let lab = sor();
    let names = |pattern: &str| -> Vec<String> {
        let text = printed(
            &lab,
            &["query", "variables", "--format", "csv", "--var", pattern],
        );
        let names = text.lines().skip(1).filter_map(|l| l.split(',').next());
        names.map(str::to_owned).collect()
    };
    assert_eq!(names("sor.gr?d"), ["sor.grid"]);
    assert_eq!(names("re:grid$"), ["sor.grid"]);
    assert!(names("*").len() > 1);
    for (args, says) in [
        (
            &["query", "groups", "--top", "3"][..],
            "--top has no effect on `query groups`",
        ),
        (
            &["query", "variables", "--var", "x*"],
            "no variable matches \"x*\"",
        ),
        (
            &["check", "--from", "+0s", "--network", "net.json"],
            "--network has no effect with --from",
        ),
        (
            &["model", "inputs", "--process", "ap0"],
            "--process has no effect without --for fit",
        ),
    ] {
        let output = lab.dosmos(&[args, &["--run-dir", "runs/sor"]].concat());
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(said(&output).contains(says), "{args:?}: {}", said(&output));
    }
    let screen = lab.dosmos(&["demo", "--headless", "--ascii"]);
    assert_eq!(screen.status.code(), Some(2));
    assert!(said(&screen).contains("--ascii has no effect with --headless"));
}

#[test]
fn a_reader_that_stops_is_no_error() {
    let lab = sor();
    let binary = env!("CARGO_BIN_EXE_dosmos-under-test");
    for command in [
        "query events --limit 0 --all --format json",
        "export --format jsonl -o -",
        "check --format json",
    ] {
        // The reader is gone before the first byte is written.
        let script = format!(
            "{{ sleep 0.2; {binary} {command} --run-dir runs/sor; echo \"status $?\" >&2; }} | true"
        );
        let output = Command::new("sh")
            .args(["-c", &script])
            .current_dir(lab.path())
            .output()
            .unwrap();
        let said = said(&output);
        let fine =
            said.contains("status 0") || command.starts_with("check") && said.contains("status 1");
        assert!(fine && !said.contains("panicked"), "{command}: {said}");
    }
}

#[test]
fn runs_are_listed_and_removed_by_a_rule_after_a_question() {
    let lab = sor();
    let runs = |args: &[&str]| lab.dosmos(&[&["runs", "runs"], args].concat());
    let listed: Value = serde_json::from_slice(&runs(&["--format", "json"]).stdout).unwrap();
    let run = &listed["runs"][0];
    assert_eq!(
        (&run["name"], &run["program"]),
        (&"sor".into(), &"sor".into())
    );
    assert_eq!(
        (&run["processes"], &run["complete"]),
        (&2.into(), &true.into())
    );
    assert!(run["efficiency"].as_f64().is_some() && run["bytes"].as_u64() > Some(0));
    let table = said(&runs(&[]));
    assert!(
        table.contains("efficiency") && table.contains("complete"),
        "{table}"
    );

    let unruled = runs(&["--prune"]);
    assert!(
        said(&unruled).contains("--prune needs a rule"),
        "{}",
        said(&unruled)
    );
    let kept = runs(&["--prune", "--keep", "1", "--yes"]);
    assert!(kept.status.success() && said(&kept).contains("nothing to remove"));
    // Nobody answers the question.
    let asked = runs(&["--prune", "--keep", "0"]);
    assert_eq!(asked.status.code(), Some(1));
    assert!(said(&asked).contains("remove 1 run") && lab.path().join("runs/sor").exists());
    let removed = runs(&["--prune", "--keep", "0", "--yes"]);
    assert!(removed.status.success(), "{}", said(&removed));
    assert!(!lab.path().join("runs/sor").exists());
}

#[test]
fn a_shell_completes_the_names_of_a_run() {
    let lab = sor();
    let complete = |words: &[&str]| {
        let mut command = lab.command(&[&["--", "dosmos"], words].concat());
        let command = command
            .env("COMPLETE", "bash")
            .env("_CLAP_COMPLETE_INDEX", words.len().to_string())
            .env("_CLAP_COMPLETE_COMP_TYPE", "9")
            .env("_CLAP_COMPLETE_SPACE", "true");
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", said(&output));
        String::from_utf8(output.stdout).unwrap()
    };
    let variables = complete(&["query", "events", "--run-dir", "runs/sor", "--var", "sor.g"]);
    assert_eq!(variables.trim(), "sor.grid");
    let processes = complete(&["query", "events", "--run-dir", "runs/sor", "--ap", "ap"]);
    assert_eq!(processes.lines().collect::<Vec<_>>(), ["ap0", "ap1"]);
    let nothing = complete(&["query", "events", "--run-dir", "elsewhere", "--ap", "a"]);
    assert_eq!(nothing.trim(), "");
}
