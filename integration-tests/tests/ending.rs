//! However a run ends, nothing of it stays behind.

#![allow(clippy::unwrap_used)] // a test may

use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use dosmos_integration_tests::{Lab, NESTED};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

const DEADLINE: Duration = Duration::from_secs(60);

/// Waits until `condition` holds.
fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let started = Instant::now();
    while !condition() {
        assert!(
            started.elapsed() < DEADLINE,
            "{what} did not come about in {DEADLINE:?}"
        );
        std::thread::yield_now();
    }
}

/// Processes whose command line names this test's directory.
fn processes_of(lab: &Lab) -> Vec<String> {
    let marker = lab.path().join("run").canonicalize().unwrap();
    let marker = marker.to_str().unwrap();
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    entries
        .filter_map(|e| std::fs::read_to_string(e.path().join("cmdline")).ok())
        .filter(|line| line.contains(marker))
        .map(|line| line.replace('\0', " "))
        .collect()
}

/// Starts a program that never ends on the nested cluster, and waits until it runs.
fn start(lab: &Lab) -> Child {
    lab.cluster(NESTED);
    let args = [
        "up",
        "-c",
        "cluster.toml",
        "--run-dir",
        "run",
        "--",
        "sh",
        "-c",
        "echo running; exec sleep 1000",
    ];
    let up = lab
        .command(&args)
        .stderr(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let log = lab.path().join("run/log/ap3.log");
    eventually("the program", || {
        std::fs::read_to_string(&log).is_ok_and(|text| text.contains("running"))
    });
    // Six memory and link processes, two event managers.
    assert_eq!(processes_of(lab).len(), 9, "{:#?}", processes_of(lab));
    up
}

#[test]
fn an_interrupt_ends_everything_and_keeps_the_trace() {
    for signal in [Signal::SIGINT, Signal::SIGTERM] {
        let lab = Lab::new(env!("CARGO_BIN_EXE_dosmos-under-test"));
        let mut up = start(&lab);
        kill(Pid::from_raw(up.id() as i32), signal).unwrap();
        let status = up.wait().unwrap();
        assert_eq!(status.code(), Some(2));
        let mut said = String::new();
        up.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        assert!(said.contains("interrupted"), "{said}");
        assert_eq!(processes_of(&lab), Vec::<String>::new());
        lab.query(&["processes"]);
    }
}

#[test]
fn killing_the_starter_ends_its_processes() {
    let lab = Lab::new(env!("CARGO_BIN_EXE_dosmos-under-test"));
    let mut up = start(&lab);
    up.kill().unwrap();
    assert_eq!(up.wait().unwrap().signal(), Some(9));
    eventually("the end of all processes", || processes_of(&lab).is_empty());
}
