//! However a run ends, nothing of it stays behind.

use std::io::Read;
use std::os::unix::process::ExitStatusExt;

use dosmos_integration_tests::{Lab, NESTED};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::support::*;

#[test]
fn an_interrupt_ends_everything_and_keeps_the_trace() {
    for signal in [Signal::SIGINT, Signal::SIGTERM] {
        let lab = Lab::new(env!("CARGO_BIN_EXE_dosmos-under-test"));
        let mut up = start(&lab);
        kill(Pid::from_raw(up.0.id() as i32), signal).unwrap();
        let status = up.0.wait().unwrap();
        assert_eq!(status.code(), Some(2));
        let mut said = String::new();
        up.0.stderr
            .take()
            .unwrap()
            .read_to_string(&mut said)
            .unwrap();
        assert!(said.contains("interrupted"), "{said}");
        assert_eq!(processes_of(&lab), Vec::<String>::new());
        lab.query(&["processes"]);
    }
}

#[test]
fn a_second_interrupt_does_not_wait_for_a_process_that_hangs() {
    let lab = Lab::new(env!("CARGO_BIN_EXE_dosmos-under-test"));
    let mut up = start(&lab);
    let said = listen(&mut up);
    let stopped = pid_of(&lab, "mp1");
    kill(stopped, Signal::SIGSTOP).unwrap();
    let this = Pid::from_raw(up.0.id() as i32);
    kill(this, Signal::SIGINT).unwrap();
    says(&said, "interrupt again to kill");
    kill(this, Signal::SIGINT).unwrap();
    assert_eq!(up.0.wait().unwrap().code(), Some(2));
    says(&said, "interrupted again");
    eventually("the end of all processes", || processes_of(&lab).is_empty());
}

#[test]
fn event_managers_stay_to_answer_until_they_are_told_to_go() {
    let lab = Lab::new(env!("CARGO_BIN_EXE_dosmos-under-test"));
    lab.cluster(NESTED);
    let binary = env!("CARGO_BIN_EXE_dosmos-under-test");
    let args = "up -c cluster.toml --run-dir run --keep-emps --";
    let app = "app sor --rows 8 --columns 8 --iterations 3";
    let args: Vec<&str> = args
        .split(' ')
        .chain([binary])
        .chain(app.split(' '))
        .collect();
    let mut up = spawn(&lab, &args);
    let said = listen(&mut up);
    says(&said, "the event managers run until Ctrl-C");
    assert_eq!(processes_of(&lab).len(), 2, "the two event managers");
    // Asked as the message says.
    let text = said.lock().unwrap().clone();
    let asked = text
        .split("dosmos top ")
        .nth(1)
        .unwrap()
        .lines()
        .next()
        .unwrap();
    let mut query = vec!["query", "histogram", "--op", "write", "--format", "json"];
    query.extend(asked.split(' '));
    let answer = lab.dosmos(&query);
    let answer: serde_json::Value = serde_json::from_slice(&answer.stdout).unwrap();
    assert!(answer["total"]["local"].as_u64().unwrap() > 0, "{answer}");
    kill(Pid::from_raw(up.0.id() as i32), Signal::SIGINT).unwrap();
    assert_eq!(up.0.wait().unwrap().code(), Some(0));
    assert_eq!(processes_of(&lab), Vec::<String>::new());
}

#[test]
fn killing_the_starter_ends_its_processes() {
    let lab = Lab::new(env!("CARGO_BIN_EXE_dosmos-under-test"));
    let mut up = start(&lab);
    up.0.kill().unwrap();
    assert_eq!(up.0.wait().unwrap().signal(), Some(9));
    eventually("the end of all processes", || processes_of(&lab).is_empty());
}

/// A program of a shell, two of its children, and one of these in a session of its own.
const FAMILY: &str =
    "sleep 1000 & setsid sleep 1000 & (trap '' TERM; sleep 1000) & echo running; wait";

#[test]
fn nothing_that_the_program_started_survives_the_end_of_the_starter() {
    let ends_with_it = |signal| {
        let lab = Lab::new(env!("CARGO_BIN_EXE_dosmos-under-test"));
        let mut up = start_program(&lab, FAMILY);
        // The test can fail: shells and what they started are there.
        assert!(relatives(&lab).len() > 9 + 4 * 3, "{:#?}", relatives(&lab));
        kill(Pid::from_raw(up.0.id() as i32), signal).unwrap();
        up.0.wait().unwrap();
        eventually("the end of all processes", || relatives(&lab).is_empty());
    };
    std::thread::scope(|scope| {
        for signal in [
            Signal::SIGKILL,
            Signal::SIGHUP,
            Signal::SIGTERM,
            Signal::SIGINT,
        ] {
            scope.spawn(move || ends_with_it(signal));
        }
    });
}

#[test]
fn what_a_program_leaves_running_ends_with_it() {
    let lab = Lab::new(env!("CARGO_BIN_EXE_dosmos-under-test"));
    let mut up = start_program(&lab, "setsid sleep 1000 & echo running");
    assert_eq!(up.0.wait().unwrap().code(), Some(0));
    assert_eq!(relatives(&lab), Vec::<String>::new());
}

#[test]
fn a_program_ended_by_a_signal_is_reported_with_it() {
    let lab = Lab::new(env!("CARGO_BIN_EXE_dosmos-under-test"));
    lab.cluster(NESTED);
    let output = lab.dosmos(&up_args("kill -9 $$"));
    assert_eq!(output.status.code(), Some(1));
    let said = dosmos_integration_tests::said(&output);
    assert!(said.contains("signal: 9"), "{said}");
}
