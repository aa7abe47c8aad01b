//! However a run ends, nothing of it stays behind.

#![allow(clippy::unwrap_used)] // a test may

use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex};
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

/// The process of this test's run that plays `name`.
fn pid_of(lab: &Lab, name: &str) -> Pid {
    let marker = lab.path().join("run").canonicalize().unwrap();
    let marker = marker.to_str().unwrap();
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let mut pids = entries.filter_map(|e| {
        let line = std::fs::read_to_string(e.path().join("cmdline")).ok()?;
        let is_it = line.contains(marker) && line.split('\0').any(|word| word == name);
        is_it.then(|| e.file_name().to_str()?.parse().ok())?
    });
    Pid::from_raw(pids.next().unwrap())
}

/// `dosmos up`, killed if the test fails before it has ended; what it started ends with it.
struct Up(Child);

impl Drop for Up {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn spawn(lab: &Lab, args: &[&str]) -> Up {
    let mut command = lab.command(args);
    command.stderr(Stdio::piped()).stdout(Stdio::null());
    Up(command.spawn().unwrap())
}

/// Starts a program that never ends on the nested cluster, and waits until it runs.
fn start(lab: &Lab) -> Up {
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
    let up = spawn(lab, &args);
    let log = lab.path().join("run/log/ap3.log");
    eventually("the program", || {
        std::fs::read_to_string(&log).is_ok_and(|text| text.contains("running"))
    });
    // Four memory processes, three link processes, two event managers.
    assert_eq!(processes_of(lab).len(), 9, "{:#?}", processes_of(lab));
    up
}

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

/// Collects what a process writes to its standard error while it runs.
fn listen(up: &mut Up) -> Arc<Mutex<String>> {
    let said = Arc::new(Mutex::new(String::new()));
    let (theirs, stderr) = (said.clone(), up.0.stderr.take().unwrap());
    std::thread::spawn(move || {
        for line in BufReader::new(stderr).lines() {
            theirs.lock().unwrap().push_str(&(line.unwrap() + "\n"));
        }
    });
    said
}

fn says(said: &Mutex<String>, text: &str) {
    eventually(text, || said.lock().unwrap().contains(text));
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
    says(&said, "interrupt again to end it at once");
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
    says(&said, "the event managers stay until Ctrl-C");
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
