//! What the system tests share: cluster files, runs of the real binary, its answers.
//!
//! Every test has a run directory of its own; the processes of a run die with the `dosmos up` that started
//! them, and that dies with its handle.

#![allow(clippy::unwrap_used)] // test support: a failure here is a failed test

pub mod blackbox;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

/// Two nested groups and one beside them; two event managers that share the memory processes of
/// `/ocean`, so that hand-overs cross between them.
pub const NESTED: &str = r#"
name = "nested"
[[group]]
name = "ocean"
[[group]]
name = "north"
parent = "ocean"
[[group]]
name = "land"
[[emp]]
name = "emp0"
[[emp]]
name = "emp1"
[[mp]]
name = "mp0"
group = "ocean"
emp = "emp0"
[[mp]]
name = "mp1"
group = "ocean"
emp = "emp1"
[[mp]]
name = "mp2"
group = "north"
emp = "emp1"
listen = "unix"
[[mp]]
name = "mp3"
group = "land"
emp = "emp0"
[[ap]]
name = "ap0"
mp = "mp0"
[[ap]]
name = "ap1"
mp = "mp1"
[[ap]]
name = "ap2"
mp = "mp2"
[[ap]]
name = "ap3"
mp = "mp3"
"#;

/// Every application once, small; whoever adds one adds a line.
pub const APPLICATIONS: &[&str] = &[
    "is --keys 600 --buckets 32 --iterations 5",
    "barnes --bodies 60 --iterations 3",
    "water --molecules 50 --blocks 2 --iterations 4",
    "spmv --rows 40 --per-row 6 --iterations 6",
    "workpile --chunks 40 --work 200",
    "fft --side 8 --iterations 4",
    "lu --n 21 --block 5 --iterations 2",
    "radix --keys 700 --bits 7 --iterations 2",
    "sphere --rows 9 --columns 12 --iterations 12 --check 4",
    "raytrace --rows 20 --columns 28 --tile 6 --depth 1 --iterations 2",
    "edge --rows 24 --columns 20 --levels 5 --iterations 2",
    "sor --rows 20 --columns 12 --iterations 5",
];

/// A cluster file with a memory process for each application process, dealt out to the groups in turn.
pub fn in_groups(groups: usize, processes: usize) -> String {
    let mut text = "name = \"applications\"\n[[emp]]\nname = \"emp0\"\n".to_owned();
    for group in 0..groups {
        text += &format!("[[group]]\nname = \"g{group}\"\n");
    }
    for i in 0..processes {
        text += &format!(
            "[[mp]]\nname = \"mp{i}\"\ngroup = \"g{}\"\nemp = \"emp0\"\n[[ap]]\nname = \"ap{i}\"\nmp = \"mp{i}\"\n",
            i % groups
        );
    }
    text
}

/// A directory for one test, and the binary to run in it.
#[derive(Debug)]
pub struct Lab {
    dir: TempDir,
    binary: PathBuf,
}

impl Lab {
    /// A fresh directory; `binary` is `env!("CARGO_BIN_EXE_dosmos-under-test")`.
    pub fn new(binary: &str) -> Self {
        Self {
            dir: dosmos_testseeds::scratch(),
            binary: binary.into(),
        }
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    /// The binary.
    pub fn binary(&self) -> &Path {
        &self.binary
    }

    /// Leaves the directory where it is.
    pub fn keep(&mut self) {
        self.dir.disable_cleanup(true);
    }

    /// A command of the binary in this directory.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(&self.binary);
        command
            .args(args)
            .current_dir(self.path())
            .env("RUST_LOG", "warn");
        command
    }

    /// Runs the binary to its end.
    pub fn dosmos(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }

    /// Writes a cluster file.
    pub fn cluster(&self, text: &str) {
        std::fs::write(self.path().join("cluster.toml"), text).unwrap();
    }

    /// Runs a built-in program on the cluster file to its end; the run is then in `run`, instead of an earlier one.
    pub fn up(&self, app: &[&str]) -> Output {
        let run = self.path().join("run");
        if run.exists() {
            std::fs::remove_dir_all(run).unwrap();
        }
        let binary = self.binary.display().to_string();
        self.dosmos(&[&UP[..], &[&binary, "app"], app].concat())
    }

    /// Runs a built-in program and fails the test, showing what was said, if the program failed.
    pub fn must_up(&self, app: &[&str]) -> String {
        let output = self.up(app);
        let said = said(&output);
        assert!(output.status.success(), "{app:?} failed:\n{said}");
        said
    }

    /// The answer to a question about the run in `run`, as JSON.
    pub fn query(&self, args: &[&str]) -> Value {
        let mut all = vec!["query"];
        all.extend(args);
        all.extend(["--run-dir", "run", "--format", "json"]);
        let output = self.dosmos(&all);
        assert!(output.status.success(), "{args:?}:\n{}", said(&output));
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// What the application processes say they did (`--counts counts`), by object and operation.
    pub fn done(&self) -> Counts {
        let mut counts = Counts::new();
        for entry in std::fs::read_dir(self.path()).unwrap() {
            let path = entry.unwrap().path();
            if !path
                .file_name()
                .unwrap()
                .to_str()
                .unwrap()
                .starts_with("counts.")
            {
                continue;
            }
            for line in std::fs::read_to_string(path).unwrap().lines() {
                let line: Value = serde_json::from_str(line).unwrap();
                let Some(variable) = line["variable"].as_str() else {
                    continue;
                };
                for op in OPS {
                    let key = (variable.to_owned(), line["object"].as_u64().unwrap(), op);
                    *counts.entry(key).or_default() += line[op].as_u64().unwrap();
                }
            }
        }
        counts.retain(|_, n| *n > 0);
        counts
    }

    /// The same, as the stored records tell it.
    pub fn stored(&self) -> Counts {
        let mut counts = Counts::new();
        for event in self.query(&["events", "--limit", "0"])["events"]
            .as_array()
            .unwrap()
        {
            let op = format!("{}s", event["op"].as_str().unwrap());
            if let Some(op) = OPS.into_iter().find(|o| *o == op) {
                let variable = event["variable"].as_str().unwrap().to_owned();
                *counts
                    .entry((variable, event["object"].as_u64().unwrap(), op))
                    .or_default() += event["count"].as_u64().unwrap();
            }
        }
        counts
    }

    /// The same, as primary and secondary meta-objects tell it together.
    pub fn in_metas(&self) -> Counts {
        let groups = self.query(&["variables"]);
        let names: BTreeMap<u64, String> = groups["variables"]
            .as_array()
            .unwrap()
            .iter()
            .map(|v| {
                (
                    v["id"].as_u64().unwrap(),
                    v["name"].as_str().unwrap().to_owned(),
                )
            })
            .collect();
        let metas = self.query(&["meta"]);
        let mut counts = Counts::new();
        let mut add = |meta: &Value, op, n: &Value| {
            let variable = names[&meta["object"]["var"].as_u64().unwrap()].clone();
            let index = meta["object"]["index"].as_u64().unwrap();
            *counts.entry((variable, index, op)).or_default() += n.as_u64().unwrap();
        };
        for p in metas["primaries"].as_array().unwrap() {
            for op in OPS {
                add(p, op, &p["counts"][op]);
            }
            add(p, "reads", &p["reads_on_copies"]);
        }
        for s in metas["secondaries"].as_array().unwrap() {
            add(s, "reads", &s["reads"]);
        }
        counts.retain(|_, n| *n > 0);
        counts
    }

    /// docs/design/monitoring.md#invariant: meta-objects = stored records = what the application processes did, and that is something.
    pub fn assert_invariant(&self) -> Counts {
        let done = self.done();
        assert!(!done.is_empty());
        assert_eq!(self.stored(), done, "stored records against what was done");
        assert_eq!(self.in_metas(), done, "meta-objects against what was done");
        done
    }
}

/// Operations on objects, as the counts name them.
pub const OPS: [&str; 4] = ["reads", "writes", "acquires", "releases"];

/// Number of operations by (variable, object, operation); none is zero.
pub type Counts = BTreeMap<(String, u64, &'static str), u64>;

/// Arguments that run a program, whose name follows, on the cluster.
pub const UP: [&str; 6] = ["up", "-c", "cluster.toml", "--run-dir", "run", "--"];

/// Arguments that run a shell script on the cluster.
pub fn up_args(script: &str) -> Vec<&str> {
    [&UP[..], &["sh", "-c", script]].concat()
}

/// Everything a command printed.
pub fn said(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    text(&output.stdout) + &text(&output.stderr)
}
