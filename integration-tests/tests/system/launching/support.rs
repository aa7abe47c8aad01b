//! Runs in the background, their processes and what they say.

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

pub(crate) use dosmos_integration_tests::up_args;
use dosmos_integration_tests::{Lab, NESTED};
use nix::unistd::Pid;

pub(crate) const DEADLINE: Duration = Duration::from_secs(60);

/// Waits until `condition` holds.
pub(crate) fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
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
pub(crate) fn processes_of(lab: &Lab) -> Vec<String> {
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
pub(crate) fn pid_of(lab: &Lab, name: &str) -> Pid {
    found_pid(lab, name).unwrap()
}

/// The same, if there is one.
pub(crate) fn found_pid(lab: &Lab, name: &str) -> Option<Pid> {
    let marker = lab.path().join("run").canonicalize().unwrap();
    let marker = marker.to_str().unwrap();
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let mut pids = entries.filter_map(|e| {
        let line = std::fs::read_to_string(e.path().join("cmdline")).ok()?;
        let is_it = line.contains(marker) && line.split('\0').any(|word| word == name);
        is_it.then(|| e.file_name().to_str()?.parse().ok())?
    });
    pids.next().map(Pid::from_raw)
}

/// `dosmos up`, killed if the test fails before it has ended; what it started ends with it.
pub(crate) struct Up(pub(crate) Child);

impl Drop for Up {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub(crate) fn spawn(lab: &Lab, args: &[&str]) -> Up {
    let mut command = lab.command(args);
    command.stderr(Stdio::piped()).stdout(Stdio::null());
    Up(command.spawn().unwrap())
}

/// Command names of all processes that this test's run started, directly or not: they inherit its addresses.
pub(crate) fn relatives(lab: &Lab) -> Vec<String> {
    let marker = lab.path().join("run").canonicalize().unwrap();
    let marker = marker.to_str().unwrap();
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let entries = entries.filter(|e| {
        let names_it = |file: &str| {
            let text = std::fs::read(e.path().join(file)).unwrap_or_default();
            String::from_utf8_lossy(&text).contains(marker)
        };
        names_it("cmdline") || names_it("environ")
    });
    entries
        .filter_map(|e| std::fs::read_to_string(e.path().join("comm")).ok())
        .collect()
}

/// Runs a shell script on the nested cluster, and waits until every process has printed `running`.
pub(crate) fn start_program(lab: &Lab, script: &str) -> Up {
    lab.cluster(NESTED);
    let up = spawn(lab, &up_args(script));
    says_running(lab, 4);
    up
}

/// Waits until the first `processes` application processes have printed `running`.
pub(crate) fn says_running(lab: &Lab, processes: usize) {
    for ap in 0..processes {
        let log = lab.path().join(format!("run/log/ap{ap}.log"));
        eventually("the program", || {
            std::fs::read_to_string(&log).is_ok_and(|text| text.contains("running"))
        });
    }
}

/// Runs a program that never ends on the nested cluster.
pub(crate) fn start(lab: &Lab) -> Up {
    let up = start_program(lab, "echo running; exec sleep 1000");
    // Four memory processes, three link processes, two event managers.
    assert_eq!(processes_of(lab).len(), 9, "{:#?}", processes_of(lab));
    up
}

/// Collects what a process writes to its standard error while it runs.
pub(crate) fn listen(up: &mut Up) -> Arc<Mutex<String>> {
    let said = Arc::new(Mutex::new(String::new()));
    let (theirs, stderr) = (said.clone(), up.0.stderr.take().unwrap());
    std::thread::spawn(move || {
        for line in BufReader::new(stderr).lines() {
            theirs.lock().unwrap().push_str(&(line.unwrap() + "\n"));
        }
    });
    said
}

pub(crate) fn says(said: &Mutex<String>, text: &str) {
    eventually(text, || said.lock().unwrap().contains(text));
}
