//! An event manager that ends does not end the run.

use dosmos_integration_tests::Lab;
use nix::sys::signal::{Signal, kill};

use super::support::*;

/// Waits for the file `go`, then runs a program that counts what it does.
fn waiting_program() -> String {
    let binary = env!("CARGO_BIN_EXE_dosmos-under-test");
    format!(
        "echo running; while [ ! -e go ]; do sleep 0.05; done; \
         exec {binary} app sor --rows 24 --columns 24 --iterations 20 --counts counts"
    )
}

#[test]
fn a_killed_event_manager_is_started_again_and_no_record_is_lost() {
    let lab = Lab::new(env!("CARGO_BIN_EXE_dosmos-under-test"));
    let mut up = start_program(&lab, &waiting_program());
    let said = listen(&mut up);
    // One before the program accesses anything, the other at some moment while it does.
    let first = pid_of(&lab, "emp0");
    kill(first, Signal::SIGKILL).unwrap();
    eventually("another emp0", || {
        found_pid(&lab, "emp0").is_some_and(|pid| pid != first)
    });
    std::fs::write(lab.path().join("go"), "").unwrap();
    kill(pid_of(&lab, "emp1"), Signal::SIGKILL).unwrap();
    assert_eq!(
        up.0.wait().unwrap().code(),
        Some(0),
        "{}",
        said.lock().unwrap()
    );
    says(&said, "event manager emp0 ended");
    says(&said, "restarting it on its store");
    let stored = lab.stored();
    assert_eq!(stored, lab.done());
    assert!(!stored.is_empty());
}

#[test]
fn a_run_goes_on_without_an_event_manager_that_cannot_be_started_again() {
    let lab = Lab::new(env!("CARGO_BIN_EXE_dosmos-under-test"));
    let mut up = start_program(&lab, &waiting_program());
    let said = listen(&mut up);
    let store = lab.path().join("run/store/emp0");
    std::fs::rename(&store, lab.path().join("elsewhere")).unwrap();
    std::fs::write(&store, "in the way").unwrap();
    kill(pid_of(&lab, "emp0"), Signal::SIGKILL).unwrap();
    says(
        &said,
        "is not restarted: the run continues, and its trace will be incomplete",
    );
    std::fs::write(lab.path().join("go"), "").unwrap();
    assert_eq!(
        up.0.wait().unwrap().code(),
        Some(0),
        "{}",
        said.lock().unwrap()
    );
    assert!(!lab.done().is_empty(), "the program has done its work");
    // Nobody waits for what will not come back.
    for mp in ["mp0", "mp3"] {
        let log = std::fs::read_to_string(lab.path().join(format!("run/log/{mp}.log"))).unwrap();
        let why = "no event manager has: emp0 has ended and is not started again";
        assert!(log.contains(why), "{log}");
    }

    // Its store, which looks whole, does not have all: every memory process that reported to it is named, and nobody
    // is told that nothing was found.
    std::fs::remove_file(&store).unwrap();
    std::fs::rename(lab.path().join("elsewhere"), &store).unwrap();
    let output = lab.dosmos(&["check", "--run-dir", "run"]);
    let said = dosmos_integration_tests::said(&output);
    assert_eq!(output.status.code(), Some(2), "{said}");
    for mp in ["mp0", "mp3"] {
        assert!(
            said.contains(&format!("{mp} did not report to its end")),
            "{said}"
        );
    }
}

#[test]
fn a_store_that_is_removed_while_the_run_goes_on_is_missed() {
    let lab = Lab::new(env!("CARGO_BIN_EXE_dosmos-under-test"));
    let mut up = start_program(&lab, &waiting_program());
    let said = listen(&mut up);
    std::fs::remove_dir_all(lab.path().join("run/store/emp1")).unwrap();
    std::fs::write(lab.path().join("go"), "").unwrap();
    let status = up.0.wait().unwrap();
    assert_eq!(status.code(), Some(0), "{}", said.lock().unwrap());
    assert!(!lab.done().is_empty(), "the program has done its work");
    let log = std::fs::read_to_string(lab.path().join("run/log/emp1.log")).unwrap();
    assert!(log.contains("was removed while it was written"), "{log}");
    let output = lab.dosmos(&["check", "--run-dir", "run"]);
    let said = dosmos_integration_tests::said(&output);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(
        said.contains("emp1 belongs to this run and its store is missing"),
        "{said}"
    );
}
