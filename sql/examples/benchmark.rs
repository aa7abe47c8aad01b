//! How long SQL takes over a large run: a filtered count over one store, a group-by divided among four event managers, and an answer
//! while one of them is killed.
//!
//! `cargo run --release --manifest-path sql/Cargo.toml --example benchmark -- [RECORDS] [DIR]`, after
//! `cargo build --release --manifest-path sql/Cargo.toml`, as the event managers are processes of their own. DIR keeps the stores
//! (about 10 bytes per record, twice) for the next time.

#![allow(clippy::unwrap_used, clippy::print_stdout)] // a benchmark may

#[path = "../tests/runs/mod.rs"]
mod runs;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use dosmos_sql::{Database, Settings};
use runs::RunDir;

const ROUNDS: usize = 7;

const COUNT: &str = "SELECT count(*) FROM accesses WHERE op = 'acquire' AND origin = 'inter'";
const GROUPS: &str =
    "SELECT variable, op, count(*), sum(wait_ns) FROM accesses GROUP BY variable, op";

#[tokio::main]
async fn main() {
    let mut words = std::env::args().skip(1);
    let records: u64 = words.next().map_or(100_000_000, |n| n.parse().unwrap());
    let kept = words.next().map(PathBuf::from);
    let temporary = tempfile::tempdir().unwrap();
    let dir = kept.unwrap_or_else(|| temporary.path().to_owned());
    let one = made(&dir.join("one"), 1, records);
    let four = made(&dir.join("four"), 4, records);

    let database = one.database(Settings::default()).await;
    report(
        "filtered count, one store",
        COUNT,
        &measured(&database, COUNT).await,
    );
    report(
        "group-by, one store",
        GROUPS,
        &measured(&database, GROUPS).await,
    );
    drop(database);

    let program = std::env::current_exe().unwrap();
    let program = program
        .parent()
        .and_then(Path::parent)
        .unwrap()
        .join("dosmos-sql");
    let mut serving = four.serve(&program);
    let database = four.database(Settings::default()).await;
    assert!(database.query(GROUPS).await.unwrap().is_divided());
    report(
        "filtered count, four event managers",
        COUNT,
        &measured(&database, COUNT).await,
    );
    report(
        "group-by, four event managers",
        GROUPS,
        &measured(&database, GROUPS).await,
    );

    serving[2].signal("STOP");
    let begin = Instant::now();
    let (rows, ()) = tokio::join!(runs::rows(&database, GROUPS), async { serving[2].kill() });
    let took = begin.elapsed();
    let missing = database.completeness().await.missing.join(", ");
    println!(
        "one of four killed: {} rows after {took:.2?}, missing: {missing}",
        rows.len()
    );
}

fn made(dir: &Path, managers: usize, records: u64) -> RunDir {
    if let Some(run) = RunDir::made(dir, managers) {
        return run;
    }
    std::fs::create_dir_all(dir).unwrap();
    RunDir::make(dir, managers, records, 1998)
}

async fn measured(database: &Database, sql: &str) -> Vec<Duration> {
    let mut times = Vec::new();
    for round in 0..=ROUNDS {
        let begin = Instant::now();
        database.query(sql).await.unwrap().all().await.unwrap();
        // The first one warms up.
        if round > 0 {
            times.push(begin.elapsed());
        }
    }
    times.sort();
    times
}

fn report(what: &str, sql: &str, times: &[Duration]) {
    let median = times[times.len() / 2];
    let (least, most) = (times[0], times[times.len() - 1]);
    println!(
        "{what}: {median:.2?} (of {}: {least:.2?} to {most:.2?})  {sql}",
        times.len()
    );
}
