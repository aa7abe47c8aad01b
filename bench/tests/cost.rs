//! The applications, the sequential programs and, where there is MPI, the MPI programs compute the same; the table has all of
//! them. Nothing is said of times.

#![allow(clippy::unwrap_used)] // a test may

use std::ffi::OsStr;
use std::process::Command;

use serde_json::Value;

fn cost(args: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_dosmos-bench"))
        .arg("cost")
        .args(args)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    String::from_utf8(output.stdout).unwrap()
}

fn ways(program: &Value) -> Vec<String> {
    let ways = program["ways"].as_array().unwrap().iter();
    ways.map(|w| w["way"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn all_applications_agree_and_a_later_run_is_compared_with_the_first() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("cost.json");
    let file = file.to_str().unwrap();
    let table = cost(&["--quick", "--no-mpi", "--json", file]);
    let written: Value = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
    let programs = written["programs"].as_array().unwrap();
    assert_eq!(programs.len(), 12);
    for program in programs {
        let name = program["program"].as_str().unwrap();
        assert_eq!(table.matches(name).count(), 9, "{table}");
        let expected = [
            "sequential",
            "1 processes",
            "1 processes, in application",
            "1 processes, monitored",
            "sequential, 2 at once",
            "2 processes",
            "2 processes, bound",
            "2 processes, in application",
            "2 processes, monitored",
        ];
        assert_eq!(ways(program), expected, "{name}");
    }
    let compared = cost(&[
        "is --iterations 1",
        "--quick",
        "--no-mpi",
        "--compare",
        file,
    ]);
    assert!(compared.contains("now / then"), "{compared}");
}

#[test]
fn mpi_programs_agree_where_there_is_mpi() {
    let dir = tempfile::tempdir().unwrap();
    let probe = dir.path().join("probe.c");
    std::fs::write(&probe, "#include <mpi.h>\n").unwrap();
    let works = |program: &str, args: &[&OsStr]| {
        let output = Command::new(program).args(args).output();
        output.is_ok_and(|output| output.status.success())
    };
    let compiles = works("mpicc", &["-fsyntax-only".as_ref(), probe.as_ref()]);
    let there = compiles && works("mpirun", &["--version".as_ref()]);
    let text = cost(&[
        "sor --iterations 2",
        "is --iterations 2",
        "spmv --iterations 3",
        "fft --iterations 2",
        "--quick",
        "--format",
        "json",
    ]);
    let measured: Value = serde_json::from_str(&text).unwrap();
    for program in measured["programs"].as_array().unwrap() {
        let mpi = ways(program)
            .iter()
            .filter(|w| w.starts_with("MPI"))
            .count();
        assert_eq!(mpi, if there { 4 } else { 0 }, "{program}");
    }
}
