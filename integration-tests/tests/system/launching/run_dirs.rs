//! A run directory is for one run, of one user.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use dosmos_integration_tests::{Lab, NESTED, said};

use super::support::*;

#[test]
fn a_second_run_in_a_directory_in_use_or_used_is_refused() {
    let lab = Lab::new(env!("CARGO_BIN_EXE_dosmos-under-test"));
    let mut up = start(&lab);
    let before = processes_of(&lab);
    let second = lab.dosmos(&up_args("true"));
    assert_eq!(second.status.code(), Some(2));
    assert!(
        said(&second).contains("is in use (process"),
        "{}",
        said(&second)
    );
    assert_eq!(processes_of(&lab), before);
    up.0.kill().unwrap();
    up.0.wait().unwrap();
    eventually("the end of all processes", || processes_of(&lab).is_empty());
    let third = lab.dosmos(&up_args("true"));
    assert_eq!(third.status.code(), Some(2));
    assert!(
        said(&third).contains("holds an earlier run"),
        "{}",
        said(&third)
    );
}

#[test]
fn a_second_process_of_one_name_is_refused_and_the_first_stays_reachable() {
    let lab = Lab::new(env!("CARGO_BIN_EXE_dosmos-under-test"));
    let _up = start(&lab);
    for name in ["emp0", "mp0", "lp.land"] {
        let address = lab.path().join("run/addr").join(name);
        let before = std::fs::read_to_string(&address).unwrap();
        let args = [
            "node",
            "-c",
            "cluster.toml",
            "--run-dir",
            "run",
            "--name",
            name,
        ];
        let second = lab.dosmos(&args);
        assert_eq!(second.status.code(), Some(2), "{name}");
        let text = said(&second);
        assert!(
            text.contains(&format!("{name} is already running (process")),
            "{text}"
        );
        assert_eq!(std::fs::read_to_string(&address).unwrap(), before);
    }
    lab.query(&["processes"]);
}

#[test]
fn a_program_is_started_by_its_name_when_its_run_has_begun_long_ago() {
    let lab = Lab::new(env!("CARGO_BIN_EXE_dosmos-under-test"));
    let _up = start(&lab);
    assert!(lab.path().join("run/store/emp0").exists());
    let node = ["node", "-c", "cluster.toml", "--run-dir", "run"];
    let program = ["--name", "ap0", "--", "sh", "-c", "exit 7"];
    let ended = lab.dosmos(&[&node[..], &program[..]].concat());
    assert_eq!(ended.status.code(), Some(7), "{}", said(&ended));
}

fn mode(path: &Path) -> u32 {
    path.symlink_metadata().unwrap().permissions().mode() & 0o777
}

/// Files and directories below `dir` that others than the user can use.
fn open_to_others(dir: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut todo = vec![dir.to_owned()];
    while let Some(path) = todo.pop() {
        if mode(&path) & 0o077 != 0 {
            found.push(format!("{:o} {}", mode(&path), path.display()));
        }
        if path.is_dir() {
            todo.extend(std::fs::read_dir(&path).unwrap().map(|e| e.unwrap().path()));
        }
    }
    found
}

#[test]
fn what_a_run_writes_is_private_and_what_the_program_writes_is_not_changed() {
    let lab = Lab::new(env!("CARGO_BIN_EXE_dosmos-under-test"));
    lab.cluster(NESTED);
    let output = lab.dosmos(&up_args("echo mine > $DOSMOS_AP.txt"));
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(
        open_to_others(&lab.path().join("run")),
        Vec::<String>::new()
    );
    let usual = lab.path().join("cluster.toml");
    assert_eq!(mode(&lab.path().join("ap0.txt")), mode(&usual));
}

#[test]
fn every_store_says_how_the_run_was_started_and_how_it_ended() {
    let lab = Lab::new(env!("CARGO_BIN_EXE_dosmos-under-test"));
    lab.cluster(NESTED);
    let script = "case $DOSMOS_AP in ap1) exit 3;; ap2) kill -9 $$;; esac";
    let output = lab.dosmos(&up_args(script));
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    for store in ["emp0", "emp1"] {
        let path = lab.path().join("run/store").join(store).join("run.json");
        let run: serde_json::Value =
            serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        assert_eq!(run["name"], "nested");
        assert_eq!(run["application"], serde_json::json!(["sh", "-c", script]));
        assert_eq!(run["cluster_file"], NESTED);
        assert!(run["command"].as_array().unwrap().contains(&"up".into()));
        assert!(run["ended"].as_u64() > run["started"].as_u64(), "{run}");
        let exits: Vec<_> = run["ranks"]
            .as_array()
            .unwrap()
            .iter()
            .map(|r| &r["exit"])
            .collect();
        let code = |n: u8| serde_json::json!({ "code": n });
        assert_eq!(
            exits,
            [
                &code(0),
                &code(3),
                &serde_json::json!({ "signal": 9 }),
                &code(0)
            ]
        );
    }
}
