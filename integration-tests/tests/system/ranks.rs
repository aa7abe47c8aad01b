//! Ranks as a launcher starts them, on hosts that are only names: who meets, who does what, how all end. Real launchers and
//! networks: `.ci/launchers`.

use std::process::{Child, Output, Stdio};

use dosmos_integration_tests::{Lab, said};
use serde_json::Value;

const BINARY: &str = env!("CARGO_BIN_EXE_dosmos-under-test");
const RULE: &str = "name = \"many\"\n[launch]\nnetwork = \"127.0.0.0/8\"\n";
const SOR: [&str; 8] = [
    "app",
    "sor",
    "--rows",
    "20",
    "--columns",
    "12",
    "--iterations",
    "5",
];

/// Ranks that run; killed if the test fails before they have ended.
struct Ranks(Vec<Option<Child>>);

impl Ranks {
    /// Starts a process of `dosmos node` for each entry: its settings, and what it runs.
    fn start(lab: &Lab, options: &[&str], program: &[&str], settings: &[&[(&str, &str)]]) -> Self {
        let mut ranks = Self(Vec::new());
        for settings in settings {
            let node = ["node", "-c", "cluster.toml", "--run-dir", "run"];
            let args = [&node[..], options, &["--"], program].concat();
            let mut command = lab.command(&args);
            command.envs(settings.iter().copied()).stdin(Stdio::null());
            command.stdout(Stdio::piped()).stderr(Stdio::piped());
            ranks.0.push(Some(command.spawn().unwrap()));
        }
        ranks
    }

    /// What each printed, and its status, once all have ended.
    fn ended(mut self) -> Vec<Output> {
        let taken = self.0.iter_mut().filter_map(Option::take);
        taken.map(|rank| rank.wait_with_output().unwrap()).collect()
    }
}

impl Drop for Ranks {
    fn drop(&mut self) {
        for rank in self.0.iter_mut().flatten() {
            // It may have ended.
            let _ = rank.kill();
            let _ = rank.wait();
        }
    }
}

fn two_hosts(lab: &Lab, program: &[&str]) -> Vec<Output> {
    let settings: [&[(&str, &str)]; 2] = [
        &[("DOSMOS_HOSTS", "h[1-2]"), ("DOSMOS_HOST", "h1")],
        &[("DOSMOS_HOSTS", "h[1-2]"), ("DOSMOS_HOST", "h2")],
    ];
    Ranks::start(lab, &["--whole-host"], program, &settings).ended()
}

/// What the first host printed of a program that all processes ended well.
fn verified(lab: &Lab, program: &[&str]) -> String {
    let hosts = two_hosts(lab, program);
    for host in &hosts {
        assert!(host.status.success(), "{}", said(host));
    }
    let first = said(&hosts[0]);
    assert!(
        first.contains("equal to a sequential run bit for bit"),
        "{first}"
    );
    first
}

/// A rule by which each of two application processes of a host has its memory process within it.
fn in_application(deadline_ms: u32) -> String {
    let defaults = format!("[defaults]\nin_application = true\ndeadline_ms = {deadline_ms}\n");
    RULE.replace("[launch]", &(defaults + "[launch]")) + "application_processes = 2\n"
}

/// What `dosmos runs` says of the run.
fn listed(lab: &Lab) -> Value {
    let output = lab.dosmos(&["runs", ".", "--format", "json"]);
    let runs: Value = serde_json::from_slice(&output.stdout).unwrap();
    let runs = runs["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 1, "{}", said(&output));
    runs[0].clone()
}

#[test]
fn the_ranks_of_two_hosts_run_a_program_and_end_with_it() {
    let lab = Lab::new(BINARY);
    lab.cluster(&format!(
        "{RULE}memory_processes = 2\napplication_processes = 3\n"
    ));
    let program = [&[BINARY], &SOR[..]].concat();
    let first = verified(&lab, &program);
    assert!(
        first
            .contains("14 ranks of dosmos on 2 hosts: 6 application processes, 4 memory processes"),
        "{first}"
    );
    let run = listed(&lab);
    assert_eq!(run["complete"], true, "{run}");
    let ranks = run["run"]["ranks"].as_array().unwrap();
    assert_eq!(ranks.len(), 6);
    assert!(ranks.iter().all(|r| r["exit"]["code"] == 0), "{ranks:?}");
    assert_eq!(ranks[3]["host"], "h2", "{ranks:?}");
    // Each application process uses a memory process of its host, in turn.
    let processes = lab.query(&["processes"]);
    let used: Vec<&str> = processes["processes"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|p| p["kind"] == "application")
        .map(|p| p["memory_process"].as_str().unwrap())
        .collect();
    assert_eq!(used, ["mp0", "mp1", "mp0", "mp2", "mp3", "mp2"]);
    // A run is never written over, and no rank waits for one that does not come for that reason.
    for rank in two_hosts(&lab, &program) {
        assert_eq!(rank.status.code(), Some(2), "{}", said(&rank));
        assert!(said(&rank).contains("holds an earlier run"));
    }
}

#[test]
fn memory_processes_within_their_programs_need_no_rank() {
    let lab = Lab::new(BINARY);
    lab.cluster(&in_application(20_000));
    let program = [&[BINARY], &SOR[..], &["--counts", "counts"]].concat();
    let first = verified(&lab, &program);
    assert!(
        first.contains("8 ranks of dosmos on 2 hosts: 4 application processes, 4 memory processes"),
        "{first}"
    );
    assert_eq!(listed(&lab)["complete"], true);
    lab.assert_invariant();
}

#[test]
fn programs_with_memory_processes_within_end_although_one_never_joins_or_is_killed() {
    let others = format!("exec {BINARY} {}", SOR.join(" "));
    for end in ["exit 0", "kill -9 $$"] {
        let lab = Lab::new(BINARY);
        lab.cluster(&in_application(1_000));
        let script = format!("[ $DOSMOS_AP = ap1 ] || {others}; {end}");
        let hosts = two_hosts(&lab, &["sh", "-c", &script]);
        let first = said(&hosts[0]);
        assert_eq!(hosts[0].status.code(), Some(1), "{first}");
        assert!(first.contains("ap0 failed"), "{first}");
    }
}

#[test]
fn how_each_application_process_ended_is_in_every_store() {
    let lab = Lab::new(BINARY);
    lab.cluster(&format!("{RULE}application_processes = 1\n"));
    let script = "case $DOSMOS_AP in ap0) exit 0;; *) echo no luck >&2; exit 3;; esac";
    let hosts = two_hosts(&lab, &["sh", "-c", script]);
    let first = said(&hosts[0]);
    assert!(
        first.contains("ap1 failed (exit status: 3, on h2): no luck"),
        "{first}"
    );
    assert_eq!(hosts[1].status.code(), Some(3), "that of its program");
    assert_eq!(hosts[0].status.code(), Some(1), "the run failed");
    for store in ["run/store/emp0", "run/store/emp1"] {
        let text = std::fs::read_to_string(lab.path().join(store).join("run.json")).unwrap();
        assert!(
            text.contains("\"code\":3") || text.contains("\"code\": 3"),
            "{text}"
        );
    }
}

#[test]
fn ranks_that_are_missing_or_there_twice_are_named_and_nobody_waits() {
    let of = |ranks: &[&str], deadline: u32| {
        let lab = Lab::new(BINARY);
        lab.cluster(&format!("{RULE}deadline_s = {deadline}\n"));
        let settings: Vec<[(&str, &str); 3]> = ranks
            .iter()
            .map(|rank| {
                [
                    ("DOSMOS_RANK", *rank),
                    ("DOSMOS_SIZE", "4"),
                    ("DOSMOS_HOST", "h"),
                ]
            })
            .collect();
        let settings: Vec<&[(&str, &str)]> = settings.iter().map(|s| &s[..]).collect();
        let ended = Ranks::start(&lab, &[], &["true"], &settings).ended();
        for rank in &ended {
            assert_eq!(rank.status.code(), Some(2), "{}", said(rank));
        }
        said(&ended[0])
    };
    let said = of(&["0", "2"], 1);
    assert!(
        said.contains("ranks 1, 3 of 4 did not come within 1s"),
        "{said}"
    );
    let said = of(&["0", "1", "1"], 60);
    assert!(said.contains("rank 1 is there twice: process "), "{said}");
}
