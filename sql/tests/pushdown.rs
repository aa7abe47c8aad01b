//! Conditions that are worked out on chunks find the same rows as conditions that the engine works out on all rows.

#![allow(clippy::unwrap_used)] // tests may

mod runs;

use dosmos_sql::{Database, Settings};
use dosmos_testseeds::Random;
use runs::{RunDir, rows};

const RECORDS: u64 = 60_000;
/// When the workload begins, and about how long it is.
const BEGIN_NS: u64 = 1_767_225_600_000_000_000;
const LENGTH_NS: u64 = 60_000_000;

/// One of these.
fn one<'a, T: ?Sized>(random: &mut Random, of: &[&'a T]) -> &'a T {
    of[random.below(of.len() as u64) as usize]
}

fn text(random: &mut Random, column: &str, values: &[&str]) -> String {
    let value = one(random, values);
    match random.below(5) {
        0 => format!("{column} <> '{value}'"),
        1 => {
            let other = one(random, values);
            format!("{column} IN ('{value}', '{other}')")
        }
        2 => format!("{column} LIKE '%{}%'", &value[..1]),
        3 => format!("{column} IS NOT NULL"),
        _ => format!("{column} = '{value}'"),
    }
}

fn number(random: &mut Random, column: &str, most: u64) -> String {
    let op = one(random, &["<", "<=", ">", ">=", "=", "<>"]);
    format!("{column} {op} {}", random.below(most))
}

fn time(random: &mut Random) -> String {
    let op = one(random, &["<", "<=", ">", ">="]);
    let nanos = random.below(LENGTH_NS);
    let at = nanos as f64 / 1e9;
    match random.below(5) {
        0 => format!("at_s {op} {at:.6}"),
        1 => format!("{at:.6} {op} at_s"),
        2 => format!("start_ns {op} {}", BEGIN_NS + nanos),
        3 => format!("start {op} '2026-01-01T00:00:00.{nanos:09}Z'"),
        _ => {
            let to = at + random.below(LENGTH_NS) as f64 / 1e9;
            format!("at_s BETWEEN {at:.6} AND {to:.6}")
        }
    }
}

fn simple(random: &mut Random) -> String {
    match random.below(16) {
        0 => text(
            random,
            "op",
            &["read", "write", "acquire", "release", "barrier", "none"],
        ),
        1 => text(random, "origin", &["local", "intra", "inter"]),
        2 => text(random, "ap", &["ap0", "ap1", "ap5", "ap7", "nobody"]),
        3 => text(random, "variable", &["v00", "v01", "v07", "v63", "nothing"]),
        4 => text(random, "mp", &["mp0", "mp3", "mp7"]),
        5 => text(random, "owner", &["mp0", "mp4"]),
        6 => text(random, "side", &["requester", "owner"]),
        7 => text(random, "event_manager", &["emp0", "emp1", "emp9"]),
        8 => number(random, "object", 4),
        9 => number(random, "wait_ns", 60_000),
        10 => number(random, "duration_ns - wait_ns", 20_000),
        11 => number(random, "version", 200),
        12 => number(random, "range_first", 128),
        13 => one(
            random,
            &["optimized", "NOT failed", "NOT waiting", "barrier IS NULL"],
        )
        .to_owned(),
        _ => time(random),
    }
}

fn condition(random: &mut Random, depth: u32) -> String {
    let inner = |random: &mut Random| condition(random, depth - 1);
    match random.below(8) {
        0..4 if depth > 0 => format!("({} AND {})", inner(random), inner(random)),
        4..6 if depth > 0 => format!("({} OR {})", inner(random), inner(random)),
        6 if depth > 0 => format!("NOT ({})", inner(random)),
        _ => simple(random),
    }
}

/// The run with what is worked out on chunks, and with everything worked out by the engine.
async fn both(run: &RunDir) -> (Database, Database) {
    let plain = Settings {
        pushdown: false,
        ..Settings::default()
    };
    (
        run.database(Settings::default()).await,
        run.database(plain).await,
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn conditions_find_the_same_rows_on_chunks_as_on_rows() {
    let seed = dosmos_testseeds::seed();
    let mut random = Random::new(seed);
    let dir = tempfile::tempdir().unwrap();
    let run = RunDir::make(dir.path(), 2, RECORDS, seed);
    let (pushed, plain) = both(&run).await;
    let mut found = 0;
    for _ in 0..dosmos_testseeds::cases(40) {
        let depth = random.below(4) as u32;
        let condition = condition(&mut random, depth);
        let sums = format!(
            "SELECT op, origin, variable, count(*), sum(start_ns - {BEGIN_NS}), sum(wait_ns), min(range_end), \
             max(bytes), count(DISTINCT ap) FROM records WHERE {condition} GROUP BY 1, 2, 3"
        );
        let rows = runs::rows(&pushed, &sums).await;
        assert_eq!(rows, runs::rows(&plain, &sums).await, "{sums}");
        found += usize::from(!rows.is_empty());
        let count = format!("SELECT count(*) FROM records WHERE {condition}");
        assert_eq!(
            runs::rows(&pushed, &count).await,
            runs::rows(&plain, &count).await,
            "{count}"
        );
    }
    assert!(found > 5, "{found} conditions found anything");
}

/// Some of these, in this order.
fn some<'a>(random: &mut Random, of: &[&'a str]) -> Vec<&'a str> {
    let one_in = random.below(4) + 1;
    let chosen = of.iter().filter(|_| random.below(one_in) == 0);
    chosen.copied().collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn aggregates_of_chunks_are_those_of_rows() {
    let seed = dosmos_testseeds::seed();
    let mut random = Random::new(seed);
    let dir = tempfile::tempdir().unwrap();
    let run = RunDir::make(dir.path(), 2, RECORDS, seed);
    let (pushed, plain) = both(&run).await;
    let mut found = 0;
    for _ in 0..dosmos_testseeds::cases(40) {
        let by = [
            "op",
            "origin",
            "variable",
            "object",
            "barrier",
            "ap",
            "side",
            "optimized",
            "failed",
            "event_manager",
        ];
        let groups = some(&mut random, &by).join(", ");
        // Means are of whole numbers so small that their sums are exact in any order.
        let what = [
            "sum(wait_ns)",
            "min(start_ns)",
            "max(start_ns)",
            "avg(wait_ns)",
            "sum(start_ns)",
            "max(bytes)",
            "avg(duration_ns)",
            "count(op)",
            "min(version)",
            "sum(count)",
        ];
        let mut what = some(&mut random, &what);
        what.push("count(*)");
        let what = what.join(", ");
        let condition = match random.below(3) {
            0 => "true".to_owned(),
            _ => condition(&mut random, 1),
        };
        let sql = match groups.is_empty() {
            true => format!("SELECT {what} FROM records WHERE {condition}"),
            false => {
                format!("SELECT {groups}, {what} FROM records WHERE {condition} GROUP BY {groups}")
            }
        };
        let plan = rows(&pushed, &format!("EXPLAIN {sql}")).await.join("\n");
        // The planner itself knows how many records there are, and that some conditions never hold.
        let scans = plan.contains("RecordsExec");
        assert!(!scans || plan.contains("states=["), "{sql}: {plan}");
        let got = rows(&pushed, &sql).await;
        assert_eq!(got, rows(&plain, &sql).await, "{sql}");
        found += usize::from(got.len() > 1);
    }
    assert!(found > 5, "{found} queries found more than a group");
    // What a chunk does not tell, or what is not put together like that, is the engine's.
    for sql in [
        "SELECT mp, count(*) FROM records GROUP BY mp",
        "SELECT op, count(variable) FROM records GROUP BY op",
        "SELECT op, count(DISTINCT ap), count(DISTINCT object) FROM records GROUP BY op",
        "SELECT op, sum(wait_ns) FILTER (WHERE bytes > 8) FROM records GROUP BY op",
        "SELECT op, ap, count(*) FROM records GROUP BY ROLLUP (op, ap)",
        "SELECT op, stddev(wait_ns) FROM records GROUP BY op",
        "SELECT op, sum(wait_ns) FROM (SELECT * FROM records LIMIT 1000) GROUP BY op",
    ] {
        let plan = rows(&pushed, &format!("EXPLAIN {sql}")).await.join("\n");
        assert!(!plan.contains("states=["), "{sql}: {plan}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn chunks_are_skipped_by_time_operation_object_origin_and_process() {
    let dir = tempfile::tempdir().unwrap();
    let run = RunDir::make(dir.path(), 2, RECORDS, 7);
    let database = run.database(Settings::default()).await;
    let skipped = async |condition: &str| -> (u64, u64) {
        let plan = rows(
            &database,
            &format!("EXPLAIN SELECT count(*) FROM accesses WHERE {condition}"),
        )
        .await;
        let plan = plan.join("\n");
        let number = |key: &str| -> u64 {
            let (_, rest) = plan.split_once(key).unwrap_or_else(|| panic!("{plan}"));
            rest.chars()
                .take_while(char::is_ascii_digit)
                .collect::<String>()
                .parse()
                .unwrap()
        };
        (number("chunks="), number("skipped="))
    };
    let (all, none) = skipped("wait_ns > 0").await;
    assert!(all >= 8 && none == 0, "{all} {none}");
    assert_eq!(skipped("op = 'barrier'").await, (0, all));
    assert_eq!(skipped("origin IN ('intra')").await.0, all);
    // The processes of one group report to the other event manager.
    let (of_one, others) = skipped("ap = 'ap0'").await;
    assert!(
        of_one > 0 && others > 0 && of_one + others == all,
        "{of_one} {others}"
    );
    let (early, late) = skipped("at_s < 0.00005").await;
    assert!(early == 2 && late == all - 2, "{early} {late}");
    let never = skipped("start > '2027-01-01T00:00:00Z'").await;
    assert_eq!(never, (0, all));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_limit_ends_the_scan_and_no_row_is_read_for_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let run = RunDir::make(dir.path(), 1, RECORDS, 7);
    let database = run.database(Settings::default()).await;
    let plan = rows(
        &database,
        "EXPLAIN ANALYZE SELECT ap FROM records WHERE op = 'read' LIMIT 5",
    )
    .await;
    let plan = plan.join("\n");
    assert!(plan.contains("limit=5"), "{plan}");
    let read = plan
        .split("chunks_read=")
        .nth(1)
        .unwrap_or_else(|| panic!("{plan}"));
    let read: String = read.chars().take_while(char::is_ascii_digit).collect();
    assert!(read.parse::<u64>().unwrap() <= 2, "{plan}");
    assert_eq!(
        rows(
            &database,
            "SELECT ap FROM records WHERE op = 'read' LIMIT 5"
        )
        .await
        .len(),
        5
    );
}
