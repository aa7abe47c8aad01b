//! SQL says what `dosmos query`, `check` and `runs` say of the same store.

#![allow(clippy::unwrap_used)] // tests may

mod runs;

use std::path::{Path, PathBuf};
use std::process::Command;

use runs::RunDir;
use serde_json::Value;

fn program() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_dosmos-sql"))
}

/// What a command prints, as JSON.
fn asked(run: &Path, words: &[&str]) -> Value {
    let output = Command::new(program())
        .args(words)
        .arg("--run-dir")
        .arg(run)
        .args(["--format", "json"])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.code().is_some_and(|c| c < 2),
        "{words:?}: {said}"
    );
    serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{words:?}: {e}: {said}"))
}

fn sql(run: &Path, query: &str) -> Vec<Value> {
    let answer = asked(run, &["sql", query]);
    assert_eq!(answer["complete"], Value::Bool(true), "{answer}");
    answer["rows"].as_array().unwrap().clone()
}

/// Some keys of each object, in the order of the first ones.
fn only(objects: &[Value], keys: &[(&str, &str)]) -> Vec<String> {
    let mut rows: Vec<String> = objects
        .iter()
        .map(|o| {
            let cells: Vec<String> = keys
                .iter()
                .map(|(key, _)| match &o[*key] {
                    Value::Array(list) => {
                        let words: Vec<&str> = list.iter().filter_map(Value::as_str).collect();
                        words.join(" ")
                    }
                    Value::String(text) => text.clone(),
                    other => other.to_string(),
                })
                .collect();
            cells.join(" | ")
        })
        .collect();
    rows.sort();
    rows
}

/// Compares the rows of a query with a list of `dosmos query`, column by column: (name there, name in SQL).
fn same(run: &Path, list: &[Value], query: &str, keys: &[(&str, &str)]) {
    let columns: Vec<String> = keys
        .iter()
        .map(|(_, column)| format!("\"{column}\""))
        .collect();
    let query = query.replace("COLUMNS", &columns.join(", "));
    let found = sql(run, &query);
    let turned: Vec<(&str, &str)> = keys.iter().map(|(a, b)| (*b, *a)).collect();
    assert!(!list.is_empty(), "nothing to compare: {query}");
    assert_eq!(only(list, keys), only(&found, &turned), "{query}");
}

const RECORD: [(&str, &str); 25] = [
    ("start_ns", "start_ns"),
    ("duration_ns", "duration_ns"),
    ("wait_ns", "wait_ns"),
    ("service_ns", "service_ns"),
    ("op", "op"),
    ("origin", "origin"),
    ("ap", "ap"),
    ("mp", "mp"),
    ("owner", "owner"),
    ("variable", "variable"),
    ("object", "object"),
    ("bytes", "bytes"),
    ("version", "version"),
    ("side", "side"),
    ("optimized", "optimized"),
    ("sampled", "sampled"),
    ("failed", "failed"),
    ("waiting", "waiting"),
    ("in_process", "in_process"),
    ("atomic", "atomic"),
    ("first", "first"),
    ("own_clock", "own_clock"),
    ("ahead", "ahead"),
    ("posted", "posted"),
    ("count", "count"),
];

#[test]
fn records_are_those_of_query_events_under_every_filter() {
    let dir = tempfile::tempdir().unwrap();
    let run = RunDir::make(dir.path(), 2, 20_000, 11);
    let filters: [(&[&str], &str); 7] = [
        (&["--all"], "SELECT COLUMNS FROM records"),
        (&[], "SELECT COLUMNS FROM accesses"),
        (
            &["--op", "acquire,release"],
            "SELECT COLUMNS FROM accesses WHERE op IN ('acquire', 'release')",
        ),
        (
            &["--var", "v00", "--origin", "inter"],
            "SELECT COLUMNS FROM accesses WHERE variable = 'v00' AND origin = 'inter'",
        ),
        (
            &["--ap", "ap3", "--op", "write"],
            "SELECT COLUMNS FROM accesses WHERE ap = 'ap3' AND op = 'write'",
        ),
        (
            &["--var", "v01[1]"],
            "SELECT COLUMNS FROM accesses WHERE variable = 'v01' AND object = 1",
        ),
        (
            &["--from", "+1ms", "--to", "+3ms"],
            "SELECT COLUMNS FROM accesses WHERE at_s >= 0.001 AND at_s < 0.003",
        ),
    ];
    for (options, query) in filters {
        let words = [&["query", "events", "--limit", "0"], options].concat();
        let events = asked(&run.dir, &words);
        same(
            &run.dir,
            events["events"].as_array().unwrap(),
            query,
            &RECORD,
        );
    }
}

/// A run of a program, recorded: with barriers, copies, owners' records, counted records and phases.
fn recorded(dir: &Path) -> PathBuf {
    let run = dir.join("run");
    let output = Command::new(program())
        .args([
            "demo",
            "--headless",
            "--app",
            "sor",
            "--seconds",
            "1",
            "--run-dir",
        ])
        .arg(&run)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    run
}

#[test]
fn every_table_says_what_the_commands_say_of_a_recorded_run() {
    let dir = tempfile::tempdir().unwrap();
    let run = recorded(dir.path());
    let list = |words: &[&str], key: &str| asked(&run, words)[key].as_array().unwrap().clone();

    let events = list(&["query", "events", "--all", "--limit", "0"], "events");
    let with_barriers = "SELECT COLUMNS FROM (SELECT * EXCEPT (variable), \
         CASE WHEN barrier IS NULL THEN variable WHEN barrier = '' THEN 'barrier' \
         ELSE concat('barrier ', barrier) END AS variable FROM records)";
    same(&run, &events, with_barriers, &RECORD);
    assert!(
        events.iter().any(|e| e["op"] == "barrier") && events.iter().any(|e| e["side"] == "owner")
    );

    let variables = list(&["query", "variables"], "variables");
    let keys = [
        "element",
        "policy",
        "group",
        "owners",
        "rows",
        "columns",
        "objects",
        "copies",
        "reads",
        "reads_on_copies",
        "writes",
        "acquires",
        "releases",
        "delayed",
        "wait_ns",
        "hold_ns",
        "time_ns",
        "p50_ns",
        "p99_ns",
        "max_ns",
    ];
    let keys: Vec<(&str, &str)> = [("name", "variable")]
        .into_iter()
        .chain(keys.map(|k| (k, k)))
        .collect();
    same(&run, &variables, "SELECT COLUMNS FROM variables", &keys);

    let processes = list(&["query", "processes"], "processes");
    let keys = [("name", "process"), ("kind", "kind"), ("group", "group")];
    same(&run, &processes, "SELECT COLUMNS FROM processes", &keys);

    let meta = asked(&run, &["query", "meta"]);
    let primaries = meta["primaries"].as_array().unwrap();
    let objects = sql(
        &run,
        "SELECT count(*) AS n, sum(writes) AS w, sum(wait_ns) AS t FROM objects WHERE kind = 'primary'",
    );
    let sum = |of: &dyn Fn(&Value) -> u64| primaries.iter().map(of).sum::<u64>();
    assert_eq!(objects[0]["n"], primaries.len());
    assert_eq!(
        objects[0]["w"],
        sum(&|p| p["counts"]["writes"].as_u64().unwrap())
    );
    assert_eq!(objects[0]["t"], sum(&|p| p["wait"].as_u64().unwrap()));
    let secondaries = sql(
        &run,
        "SELECT count(*) AS n FROM objects WHERE kind = 'secondary'",
    );
    assert_eq!(
        secondaries[0]["n"],
        meta["secondaries"].as_array().unwrap().len()
    );

    let phases = list(&["query", "breakdown", "--all"], "breakdown");
    let keys = ["process", "phase", "start_ns", "wall_ns"].map(|k| (k, k));
    same(&run, &phases, "SELECT COLUMNS FROM phases", &keys);
    let barrier: u64 = phases
        .iter()
        .map(|p| p["barrier"]["time_ns"].as_u64().unwrap())
        .sum();
    assert_eq!(
        sql(&run, "SELECT sum(barrier_ns) AS t FROM phases")[0]["t"],
        barrier
    );

    let findings = list(&["check"], "findings");
    let keys = [
        "kind", "variable", "object", "aps", "groups", "severity", "advice",
    ]
    .map(|k| (k, k));
    same(&run, &findings, "SELECT COLUMNS FROM findings", &keys);

    let runs = asked_in(dir.path(), &["runs", "--format", "json"]);
    let keys = [
        ("name", "run"),
        ("program", "program"),
        ("started_ns", "started_ns"),
        ("bytes", "bytes"),
        ("complete", "complete"),
    ];
    same(
        &run,
        runs["runs"].as_array().unwrap(),
        "SELECT COLUMNS FROM runs",
        &keys,
    );
}

fn asked_in(folder: &Path, words: &[&str]) -> Value {
    let output = Command::new(program())
        .args(words)
        .arg(folder)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    serde_json::from_slice(&output.stdout).unwrap()
}

fn refused(run: &Path, query: &str) -> String {
    let output = Command::new(program())
        .args(["sql", query, "--run-dir"])
        .arg(run)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2), "{query}");
    assert!(output.stdout.is_empty(), "{query}");
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn what_is_wrong_with_a_query_is_said_with_the_cure() {
    let dir = tempfile::tempdir().unwrap();
    let run = RunDir::make(dir.path(), 1, 100, 1).dir;
    let said = refused(&run, "SELECT varable FROM records");
    assert!(
        said.contains("did you mean \"variable\"?") && said.lines().count() == 1,
        "{said}"
    );
    let said = refused(&run, "SELECT * FROM recods");
    assert!(
        said.contains("did you mean \"records\"?") && said.contains("findings"),
        "{said}"
    );
    for changes in [
        "DROP TABLE records",
        "CREATE TABLE t AS SELECT 1",
        "SET a = 1",
        "INSERT INTO records SELECT * FROM records",
        "COPY records TO 'x.csv'",
        "CREATE EXTERNAL TABLE t STORED AS CSV LOCATION '/etc/passwd'",
    ] {
        let said = refused(&run, changes);
        assert!(said.contains("only reads"), "{changes}: {said}");
    }
    let said = refused(&run, "SELECT FROM WHERE");
    assert!(!said.contains("panicked"), "{said}");
    let deep = format!(
        "SELECT {}1{} FROM records",
        "(".repeat(5_000),
        ")".repeat(5_000)
    );
    assert!(!refused(&run, &deep).contains("panicked"));
    let said = refused(&dir.path().join("nowhere"), "SELECT 1");
    assert!(said.contains("nowhere"), "{said}");
}

#[test]
fn the_footer_says_what_an_answer_lacks() {
    let dir = tempfile::tempdir().unwrap();
    let run = RunDir::make(dir.path(), 2, 5_000, 1);
    let one = Command::new(program())
        .args(["sql", "SELECT count(*) FROM records", "--store"])
        .arg(run.store("emp0"))
        .output()
        .unwrap();
    let said = String::from_utf8(one.stdout).unwrap();
    let footer = said.lines().last().unwrap();
    assert!(
        footer.contains("incomplete") && footer.contains("emp1"),
        "{said}"
    );
    let both = Command::new(program())
        .args(["sql", "SELECT count(*) FROM records", "--run-dir"])
        .arg(&run.dir)
        .output()
        .unwrap();
    let said = String::from_utf8(both.stdout).unwrap();
    assert!(
        said.contains("5000") && said.ends_with("1 row; complete\n"),
        "{said}"
    );
}

#[test]
fn a_damaged_chunk_is_left_out_and_named() {
    let dir = tempfile::tempdir().unwrap();
    let run = RunDir::make(dir.path(), 1, 30_000, 1);
    let log = run.store("emp0").join("log.000");
    let mut bytes = std::fs::read(&log).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0xff;
    std::fs::write(&log, bytes).unwrap();
    let answer = asked(
        &run.dir,
        &[
            "sql",
            "SELECT count(*) AS n FROM records WHERE duration_ns >= 0",
        ],
    );
    assert_eq!(answer["complete"], Value::Bool(false));
    let (n, damaged) = (
        answer["rows"][0]["n"].as_u64().unwrap(),
        answer["completeness"]["damaged"].as_u64().unwrap(),
    );
    assert!(damaged > 0 && n + damaged == 30_000, "{answer}");
}
