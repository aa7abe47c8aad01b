//! Processes that a cluster file has bound run on their share of the processors, with all their threads.

use dosmos_integration_tests::Lab;
use nix::unistd::Pid;

use super::support::*;

/// Two memory processes, one of them with two application processes.
const TWO: &str = r#"
name = "bound"
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

/// Who may run where, with `bind` in the cluster file.
struct Seen {
    mps: [Vec<String>; 2],
    aps: [String; 3],
    emp: Vec<String>,
    up: Vec<String>,
    /// This process.
    ours: String,
}

fn seen(bind: Option<&str>) -> Seen {
    let lab = Lab::new(env!("CARGO_BIN_EXE_dosmos-under-test"));
    let bind = bind.map(|bind| format!("[defaults]\nbind = \"{bind}\"\n"));
    lab.cluster(&format!("{TWO}{}", bind.unwrap_or_default()));
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
    let aps = ["ap0", "ap1", "ap2"];
    eventually("what programs say", || {
        aps.iter().all(|ap| said(ap).is_some())
    });
    Seen {
        mps: ["mp0", "mp1"].map(|name| processors(pid_of(&lab, name))),
        aps: aps.map(|ap| said(ap).unwrap()),
        emp: processors(pid_of(&lab, "emp0")),
        up: processors(Pid::from_raw(up.0.id() as i32)),
        ours: listed(&std::fs::read_to_string("/proc/self/status").unwrap()).unwrap(),
    }
}

fn are_there_several() -> bool {
    std::thread::available_parallelism().unwrap().get() > 1
}

#[test]
fn memory_processes_and_their_programs_share_processors_and_the_others_have_all() {
    let seen = seen(Some("cores"));
    let [mp0, mp1] = &seen.mps;
    let [ap0, ap1, ap2] = &seen.aps;
    assert_eq!(*mp0, [ap0.as_str()]);
    assert_eq!(*mp1, [ap1.as_str()]);
    assert_eq!(*mp1, [ap2.as_str()]);
    let ours = seen.ours.as_str();
    assert_eq!((seen.emp, seen.up), (vec![ours.into()], vec![ours.into()]));
    assert_eq!(mp0 != mp1, are_there_several(), "{mp0:?} {mp1:?} of {ours}");
}

#[test]
fn memory_processes_alone_are_bound_unless_the_file_says_otherwise() {
    for bind in [None, Some("memory")] {
        let seen = seen(bind);
        let [mp0, mp1] = &seen.mps;
        let ours = seen.ours.as_str();
        assert!(seen.aps.iter().all(|ap| ap == ours), "{:?}", seen.aps);
        assert_eq!((seen.emp, seen.up), (vec![ours.into()], vec![ours.into()]));
        assert_eq!(mp0 != mp1, are_there_several(), "{mp0:?} {mp1:?} of {ours}");
    }
}

#[test]
fn with_none_the_system_decides() {
    let seen = seen(Some("none"));
    let ours = vec![seen.ours];
    assert!(seen.mps.iter().all(|mp| *mp == ours), "{:?}", seen.mps);
}
