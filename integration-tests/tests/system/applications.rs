//! The applications on real processes: each verifies its own result, at small sizes, with 1, 2 and 4
//! application processes in one group and in two.

use dosmos_integration_tests::{APPLICATIONS, Lab, in_groups, said};

/// All in one cluster, which is started once.
fn all_verify(groups: usize, processes: usize) {
    let lab = Lab::new(env!("CARGO_BIN_EXE_dosmos-under-test"));
    lab.cluster(&in_groups(groups, processes));
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
