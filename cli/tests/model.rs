//! `dosmos model` as a user runs it: the binary, files, standard input, exit status.

#![allow(clippy::unwrap_used)] // a test may

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

fn dosmos(directory: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_dosmos"))
        .current_dir(directory)
        .args(args)
        .output()
        .unwrap()
}

/// (model, document) of every example in the guide.
fn examples() -> Vec<(String, String)> {
    let guide = include_str!("../../docs/guide/models.md");
    let blocks = guide.split("```json ").skip(1);
    blocks
        .map(|block| {
            let (model, rest) = block.split_once('\n').unwrap();
            let (document, _) = rest.split_once("```").unwrap();
            (model.trim().to_owned(), document.to_owned())
        })
        .collect()
}

#[test]
fn every_example_of_the_guide_prints_json_a_table_and_csv() {
    let home = TempDir::new().unwrap();
    let examples = examples();
    assert!(examples.len() > 10);
    for (model, document) in examples {
        std::fs::write(home.path().join("d.json"), &document).unwrap();
        let ask = |format| {
            let output = dosmos(
                home.path(),
                &["model", &model, "--input", "d.json", "--format", format],
            );
            let said = String::from_utf8(output.stderr).unwrap();
            assert!(
                output.status.success() && said.is_empty(),
                "{model}: {said}"
            );
            String::from_utf8(output.stdout).unwrap()
        };
        let answer: Value = serde_json::from_str(&ask("json")).unwrap();
        let fields = answer.as_object().unwrap();
        let (table, csv) = (ask("table"), ask("csv"));
        for name in fields.keys() {
            assert!(
                table.contains(name.as_str()),
                "{model}: {name} is not in\n{table}"
            );
            assert!(
                csv.contains(name.as_str()),
                "{model}: {name} is not in\n{csv}"
            );
        }
    }
}

#[test]
fn a_document_may_come_from_standard_input_and_leave_a_curve() {
    let home = TempDir::new().unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_dosmos"))
        .current_dir(home.path())
        .args([
            "model", "lopc", "--input", "-", "--format", "json", "--plot", "r.svg",
        ])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let document = br#"{"P": 32, "W": 0, "So": 200, "Sl": 6, "C2": 0}"#;
    child.stdin.take().unwrap().write_all(document).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!((answer["R"].as_f64().unwrap() - 696.969_253_894_087_8).abs() < 1e-9);
    let svg = std::fs::read_to_string(home.path().join("r.svg")).unwrap();
    assert!(svg.starts_with("<svg ") && svg.contains("LogP"));
}

#[test]
fn what_is_wrong_goes_to_standard_error_with_status_2() {
    let home = TempDir::new().unwrap();
    std::fs::write(
        home.path().join("bad.json"),
        r#"{"P": 1, "W": 0, "So": 1, "Sl": 1}"#,
    )
    .unwrap();
    for (args, wanted) in [
        (
            &["model", "lopc", "--input", "bad.json"][..],
            "dosmos: bad.json: P: 1 is not allowed",
        ),
        (
            &["model", "general", "--input", "bad.json"],
            "dosmos: bad.json: unknown field `P`",
        ),
        (
            &["model", "lopc", "--input", "none.json"],
            "dosmos: cannot read none.json",
        ),
        (&["model", "lopc"], "--input"),
        (
            &["model", "crystal-ball", "--input", "bad.json"],
            "crystal-ball",
        ),
    ] {
        let output = dosmos(home.path(), args);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{args:?}: {said}");
        assert!(said.contains(wanted), "{args:?}: {said}");
        assert!(output.stdout.is_empty(), "{args:?}");
    }
}
