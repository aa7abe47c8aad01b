//! The applications on real processes: each verifies its own result, at small sizes, with 1, 2 and 4
//! application processes in one group and in two.

#![allow(clippy::unwrap_used)] // a test may

use dosmos_integration_tests::{Lab, said};

/// Every application once, small; whoever adds one adds a line.
const APPLICATIONS: &[&str] = &[
    "is --keys 600 --buckets 32 --iterations 5",
    "barnes --bodies 60 --iterations 3",
    "water --molecules 50 --blocks 2 --iterations 4",
    "spmv --rows 40 --per-row 6 --iterations 6",
    "workpile --chunks 40 --work 200",
    "fft --side 8 --iterations 4",
    "lu --n 21 --block 5 --iterations 2",
    "radix --keys 700 --bits 7 --iterations 2",
    "sphere --rows 9 --columns 12 --iterations 12 --check 4",
    "raytrace --rows 20 --columns 28 --tile 6 --depth 1 --iterations 2",
    "edge --rows 24 --columns 20 --levels 5 --iterations 2",
    "sor --rows 20 --columns 12 --iterations 5",
];

/// A cluster file: a memory process for each application process, dealt out to the groups in turn.
fn cluster(groups: usize, processes: usize) -> String {
    let mut text = "name = \"applications\"\n[[emp]]\nname = \"emp0\"\n".to_owned();
    for group in 0..groups {
        text += &format!("[[group]]\nname = \"g{group}\"\n");
    }
    for i in 0..processes {
        text += &format!(
            "[[mp]]\nname = \"mp{i}\"\ngroup = \"g{}\"\nemp = \"emp0\"\n[[ap]]\nname = \"ap{i}\"\nmp = \"mp{i}\"\n",
            i % groups
        );
    }
    text
}

/// All in one cluster, which is started once.
fn all_verify(groups: usize, processes: usize) {
    let lab = Lab::new(env!("CARGO_BIN_EXE_dosmos-under-test"));
    lab.cluster(&cluster(groups, processes));
    let mut command = vec!["suite"];
    command.extend(APPLICATIONS);
    let said = lab.must_up(&command);
    for application in APPLICATIONS {
        let name = application.split(' ').next().unwrap();
        let line = format!("{name}: ");
        assert!(said.contains(&line), "{name} did not verify:\n{said}");
    }
}

#[test]
fn alone() {
    all_verify(1, 1);
}

#[test]
fn two_in_a_group() {
    all_verify(1, 2);
}

#[test]
fn two_in_two_groups() {
    all_verify(2, 2);
}

#[test]
fn four_in_a_group() {
    all_verify(1, 4);
}

#[test]
fn four_in_two_groups() {
    all_verify(2, 4);
}

/// As a new user starts them; on the smallest cluster, an iteration each.
#[test]
fn each_is_a_demo() {
    for application in APPLICATIONS {
        let name = application.split(' ').next().unwrap();
        let lab = Lab::new(env!("CARGO_BIN_EXE_dosmos-under-test"));
        let small = ["--groups", "2", "--processes", "2", "--seconds", "0"];
        let output = lab.dosmos(&[&["demo", "--headless", "--app", name], &small[..]].concat());
        let said = said(&output);
        assert!(output.status.success(), "{name}:\n{said}");
        assert!(said.contains(&format!("{name}: ")), "{name}:\n{said}");
        assert!(said.contains("2 groups, 2 memory"), "{name}:\n{said}");
    }
}

#[test]
fn nonsense_is_told_before_anything_starts() {
    let lab = Lab::new(env!("CARGO_BIN_EXE_dosmos-under-test"));
    for (args, about) in [
        (&["--groups", "3", "--processes", "2"][..], "--groups"),
        (&["--app", "is", "--", "--kyes", "3"], "--kyes"),
    ] {
        let output = lab.dosmos(&[&["demo", "--headless"], args].concat());
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(said(&output).contains(about), "{}", said(&output));
        assert!(!lab.path().join("dosmos-run").exists(), "{args:?}");
    }
}
