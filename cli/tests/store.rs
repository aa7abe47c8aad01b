//! Trace stores as a user handles them: import, questions, `dosmos store`, export; whole and damaged.

#![allow(clippy::unwrap_used)] // a test may

use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

const RECORDS: usize = 20_000;

fn dosmos(directory: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_dosmos"))
        .current_dir(directory)
        .args(args)
        .output()
        .unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// What a command that has to succeed prints as JSON.
fn json(directory: &Path, args: &[&str]) -> Value {
    let output = dosmos(directory, &[args, &["--format", "json"]].concat());
    assert!(output.status.success(), "{args:?}: {}", said(&output));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// A store `s`: half of the records are of `busy`, which is mostly read, a third of `even`, the rest of `still`,
/// which alone is waited for.
fn imported() -> TempDir {
    let home = TempDir::new().unwrap();
    let mut text = String::new();
    for line in [
        r#"{"type":"run","name":"r","start":"2026-01-01T00:00:00Z","end_ns":60000000000}"#,
        r#"{"type":"mp","name":"mp0","group":"/a"}"#,
        r#"{"type":"ap","name":"ap0","mp":"mp0","group":"/a"}"#,
    ] {
        writeln!(text, "{line}").unwrap();
    }
    for name in ["still", "even", "busy"] {
        writeln!(text, r#"{{"type":"variable","name":"{name}","objects":1,"owner":"mp0","group":"/a","bytes":8,"policy":"invalidate"}}"#).unwrap();
    }
    for i in 0..RECORDS {
        let (name, op, wait) = match i % 6 {
            0 | 2 => ("busy", "read", 0),
            4 => ("busy", "write", 0),
            1 | 3 => ("even", "write", 0),
            _ => ("still", "acquire", 700),
        };
        let (start, duration) = (i * 2_000, 500 + i % 977 + wait);
        writeln!(
            text,
            r#"{{"type":"record","t_ns":{start},"dur_ns":{duration},"wait_ns":{wait},"op":"{op}","var":"{name}","object":0,"ap":"ap0","mp":"mp0","origin":"local","bytes":8}}"#
        )
        .unwrap();
    }
    std::fs::write(home.path().join("in.jsonl"), text).unwrap();
    let output = dosmos(home.path(), &["import", "in.jsonl", "--store", "s"]);
    assert!(output.status.success(), "{}", said(&output));
    home
}

/// Damages the second half of the one log.
fn damage(home: &Path) {
    let file = home.join("s/log.000");
    let mut bytes = std::fs::read(&file).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle..]
        .chunks_mut(1_024)
        .for_each(|part| part[0] ^= 0x55);
    std::fs::write(file, bytes).unwrap();
}

fn names(answer: &Value) -> Vec<&str> {
    let variables = answer["variables"].as_array().unwrap();
    variables
        .iter()
        .map(|v| v["name"].as_str().unwrap())
        .collect()
}

#[test]
fn a_store_says_what_is_in_it_and_is_smaller_or_equal_when_compacted() {
    let home = imported();
    let info = json(home.path(), &["store", "info", "s"]);
    assert_eq!(info["contents"]["records"], RECORDS, "{info:#}");
    assert_eq!(info["contents"]["variables"], 3);
    assert_eq!(info["removed"]["records"], 0);
    let verdict = json(home.path(), &["store", "verify", "s"]);
    assert_eq!(verdict["whole"], true, "{verdict:#}");
    assert_eq!(verdict["records"], RECORDS);
    let before = json(home.path(), &["query", "variables", "--store", "s"]);
    let done = json(home.path(), &["store", "compact", "s"]);
    assert_eq!(done["records"], RECORDS, "{done:#}");
    assert!(done["chunks"].as_u64() <= done["chunks_before"].as_u64());
    let after = json(home.path(), &["query", "variables", "--store", "s"]);
    assert_eq!(before, after);
    assert_eq!(
        json(home.path(), &["store", "verify", "s"])["whole"],
        true,
        "compacting kept everything"
    );
    // For people, too.
    let output = dosmos(home.path(), &["store", "info", "s"]);
    assert!(String::from_utf8_lossy(&output.stdout).contains("20000"));
}

#[test]
fn times_of_operations_add_up_to_those_of_the_records() {
    let home = imported();
    let times = json(home.path(), &["query", "times", "--store", "s"]);
    let rows = times["times"].as_array().unwrap();
    assert_eq!(rows.len(), 4, "{times:#}");
    let totals = rows.iter().map(|t| t["total_ns"].as_u64().unwrap());
    assert!(totals.is_sorted_by(|a, b| a >= b), "{times:#}");
    let of = |variable: &str, operation: &str| {
        let its = |t: &&Value| t["variable"] == variable && t["operation"] == operation;
        rows.iter().find(its).unwrap()
    };
    for (row, residues) in [
        (of("busy", "read"), &[0, 2][..]),
        (of("even", "write"), &[1, 3]),
        (of("still", "acquire"), &[5]),
        (of("busy", "write"), &[4]),
    ] {
        let wait = if residues == [5] { 700 } else { 0 };
        let its = (0..RECORDS).filter(|i| residues.contains(&(i % 6)));
        let durations: Vec<usize> = its.map(|i| 500 + i % 977 + wait).collect();
        let number = |key: &str| row[key].as_u64().unwrap() as usize;
        assert_eq!(number("number"), durations.len());
        assert_eq!(number("total_ns"), durations.iter().sum::<usize>());
        assert_eq!(Some(&number("max_ns")), durations.iter().max());
        let mut sorted = durations;
        sorted.sort_unstable();
        for (key, per_cent) in [("p50_ns", 50), ("p99_ns", 99)] {
            let exact = sorted[sorted.len() * per_cent / 100];
            let told = number(key);
            assert!(
                (exact..=exact + exact / 4 + 1).contains(&told),
                "{key}: {told}, not {exact}"
            );
        }
    }
}

#[test]
fn variables_are_ranked_by_any_metric_and_cut_to_as_many_as_asked() {
    let home = imported();
    let ask = |args: &[&str]| {
        let question = ["query", "variables", "--store", "s"];
        let answer = json(home.path(), &[&question, args].concat());
        names(&answer).join(" ")
    };
    assert_eq!(ask(&["--sort", "reads", "--top", "1"]), "busy");
    assert_eq!(ask(&["--sort", "writes", "--top", "2"]), "even busy");
    assert_eq!(ask(&["--sort", "wait", "--top", "1"]), "still");
    assert_eq!(ask(&["--sort", "acquires", "--top", "1"]), "still");
    assert_eq!(ask(&["--sort", "name"]), "busy even still");
    // What took most time first, if nothing else is asked for: half of the accesses, though each is short.
    assert_eq!(ask(&[]), "busy even still");
    assert_eq!(ask(&["--top", "1"]), "busy");
    let output = dosmos(
        home.path(),
        &["query", "variables", "--store", "s", "--sort", "beauty"],
    );
    assert_eq!(output.status.code(), Some(2));
    assert!(said(&output).contains("delayed"), "{}", said(&output));
}

#[test]
fn what_an_imported_run_lacks_is_said_with_the_reason() {
    let home = imported();
    for question in ["breakdown", "efficiency"] {
        let output = dosmos(home.path(), &["query", question, "--store", "s"]);
        assert!(output.status.success(), "{question}: {}", said(&output));
        let why = "no execution-time breakdown: the processes did not say where their time went \
                   (recording was off, or the run was imported, and JSONL has no breakdown)";
        assert!(said(&output).contains(why), "{question}: {}", said(&output));
    }
    let output = dosmos(home.path(), &["check", "--store", "s"]);
    let text = said(&output) + &String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("efficiency unknown: "), "{text}");
}

#[test]
fn damage_is_found_counted_and_carried_into_every_answer() {
    let home = imported();
    damage(home.path());
    let output = dosmos(home.path(), &["store", "verify", "s", "--format", "json"]);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    let verdict: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(verdict["whole"], false, "{verdict:#}");
    let left = verdict["records"].as_u64().unwrap();
    assert!(left < RECORDS as u64, "{verdict:#}");
    assert!(!verdict["notes"].as_array().unwrap().is_empty());
    for question in ["variables", "meta", "histogram", "history", "events"] {
        let output = dosmos(home.path(), &["query", question, "--store", "s"]);
        assert!(output.status.success(), "{question}: {}", said(&output));
        let text = said(&output) + &String::from_utf8_lossy(&output.stdout);
        assert!(text.contains("incomplete"), "{question}: {text}");
    }
    let output = dosmos(
        home.path(),
        &["export", "--store", "s", "--format", "csv", "-o", "o.csv"],
    );
    assert!(output.status.success(), "{}", said(&output));
    assert!(said(&output).contains("missing"), "{}", said(&output));
}

#[cfg(not(feature = "parquet"))]
#[test]
fn parquet_that_is_not_built_in_says_how_to_get_it_and_leaves_no_file() {
    let home = imported();
    let output = dosmos(
        home.path(),
        &["export", "--store", "s", "--format", "parquet", "-o", "o"],
    );
    assert_eq!(output.status.code(), Some(2));
    assert!(
        said(&output).contains("--features parquet"),
        "{}",
        said(&output)
    );
    assert!(!home.path().join("o").exists());
}
