//! Processes that a cluster file has bound run on their share of the processors, with all their threads.

use dosmos_integration_tests::Lab;
use nix::unistd::Pid;

use super::support::*;

/// Two memory processes, one of them with two application processes, bound.
const BOUND: &str = r#"
name = "bound"
[defaults]
bind = "cores"
[[group]]
name = "all"
[[emp]]
name = "emp0"
[[mp]]
name = "mp0"
group = "all"
emp = "emp0"
[[mp]]
name = "mp1"
group = "all"
emp = "emp0"
[[ap]]
name = "ap0"
mp = "mp0"
[[ap]]
name = "ap1"
mp = "mp1"
[[ap]]
name = "ap2"
mp = "mp1"
"#;

/// Says on which processors it runs, as the kernel lists them.
const SAY: &str = "grep Cpus_allowed_list /proc/self/status";

/// On which processors each thread of a process may run.
fn processors(pid: Pid) -> Vec<String> {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let mut all: Vec<String> = threads
        .flatten()
        .filter_map(|t| std::fs::read_to_string(t.path().join("status")).ok())
        .filter_map(|status| listed(&status))
        .collect();
    all.sort();
    all.dedup();
    all
}

fn listed(text: &str) -> Option<String> {
    let line = text.lines().find(|l| l.contains("Cpus_allowed_list"))?;
    Some(line.rsplit([':', '\t', ' ']).next()?.to_owned())
}

#[test]
fn memory_processes_and_their_programs_share_processors_and_the_others_have_all() {
    let lab = Lab::new(env!("CARGO_BIN_EXE_dosmos-under-test"));
    lab.cluster(BOUND);
    let script = format!("{SAY}; exec sleep 1000");
    let args = [
        "up",
        "-c",
        "cluster.toml",
        "--run-dir",
        "run",
        "--",
        "sh",
        "-c",
        &script,
    ];
    let up = spawn(&lab, &args);
    let said = |ap: &str| {
        let log = lab.path().join("run/log").join(format!("{ap}.log"));
        std::fs::read_to_string(log).ok().and_then(|t| listed(&t))
    };
    eventually("what programs say", || {
        ["ap0", "ap1", "ap2"].iter().all(|ap| said(ap).is_some())
    });
    let ours = listed(&std::fs::read_to_string("/proc/self/status").unwrap()).unwrap();
    let [mp0, mp1] = ["mp0", "mp1"].map(|name| processors(pid_of(&lab, name)));
    assert_eq!(mp0, [said("ap0").unwrap()]);
    assert_eq!(mp1, [said("ap1").unwrap()]);
    assert_eq!(mp1, [said("ap2").unwrap()]);
    assert_eq!(processors(pid_of(&lab, "emp0")), [ours.as_str()]);
    assert_eq!(processors(Pid::from_raw(up.0.id() as i32)), [ours.as_str()]);
    let several = std::thread::available_parallelism().unwrap().get() > 1;
    assert_eq!(mp0 != mp1, several, "{mp0:?} {mp1:?} of {ours}");
}

#[test]
fn without_it_the_system_decides() {
    let lab = Lab::new(env!("CARGO_BIN_EXE_dosmos-under-test"));
    let _up = start(&lab);
    let ours = listed(&std::fs::read_to_string("/proc/self/status").unwrap()).unwrap();
    assert_eq!(processors(pid_of(&lab, "mp0")), [ours]);
}
