//! Conditions that are worked out on chunks find the same rows as conditions that the engine works out on all rows.

mod runs;

use dosmos_sql::Settings;
use proptest::prelude::*;
use runs::{RunDir, rows};

const RECORDS: u64 = 60_000;
const SECONDS: f64 = 0.12;

fn text(column: &'static str, values: Vec<&'static str>) -> BoxedStrategy<String> {
    let one = prop::sample::select(values.clone());
    let many = prop::sample::subsequence(values.clone(), 0..values.len());
    prop_oneof![
        one.clone().prop_map(move |v| format!("{column} = '{v}'")),
        one.clone().prop_map(move |v| format!("{column} <> '{v}'")),
        many.prop_map(move |all| {
            let all: Vec<String> = all.iter().map(|v| format!("'{v}'")).collect();
            match all.is_empty() {
                true => format!("{column} IS NULL"),
                false => format!("{column} IN ({})", all.join(", ")),
            }
        }),
        one.prop_map(move |v| format!("{column} LIKE '%{}%'", &v[..1])),
    ]
    .boxed()
}

fn number(column: &'static str, most: i64) -> BoxedStrategy<String> {
    let op = prop::sample::select(vec!["<", "<=", ">", ">=", "=", "<>"]);
    (op, 0..most).prop_map(move |(op, n)| format!("{column} {op} {n}")).boxed()
}

fn time() -> BoxedStrategy<String> {
    let begin = 1_767_225_600_000_000_000i64;
    let op = prop::sample::select(vec!["<", "<=", ">", ">="]);
    let at = 0.0..SECONDS;
    prop_oneof![
        (op.clone(), at.clone()).prop_map(|(op, at)| format!("at_s {op} {at:.6}")),
        (op.clone(), at.clone()).prop_map(|(op, at)| format!("{at:.6} {op} at_s")),
        (op.clone(), at.clone())
            .prop_map(move |(op, at)| format!("start_ns {op} {}", begin + (at * 1e9) as i64)),
        (op, at.clone()).prop_map(|(op, at)| {
            let micros = (at * 1e6) as u32;
            format!("start {op} '2026-01-01T00:00:00.{micros:06}Z'")
        }),
        (at.clone(), at).prop_map(|(a, b)| format!("at_s BETWEEN {a:.6} AND {b:.6}")),
    ]
    .boxed()
}

fn condition() -> BoxedStrategy<String> {
    let leaf = prop_oneof![
        2 => text("op", vec!["read", "write", "acquire", "release", "barrier", "none"]),
        2 => text("origin", vec!["local", "intra", "inter"]),
        2 => text("ap", vec!["ap0", "ap1", "ap5", "ap7", "nobody"]),
        2 => text("variable", vec!["v00", "v01", "v07", "v63", "nothing"]),
        1 => text("mp", vec!["mp0", "mp3", "mp7"]),
        1 => text("owner", vec!["mp0", "mp4"]),
        1 => text("side", vec!["requester", "owner"]),
        1 => text("event_manager", vec!["emp0", "emp1", "emp9"]),
        1 => number("object", 4),
        1 => number("wait_ns", 60_000),
        1 => number("duration_ns", 60_000),
        1 => number("bytes", 1_024),
        1 => number("version", 200),
        1 => number("range_first", 128),
        1 => number("duration_ns - wait_ns", 20_000),
        1 => Just("optimized".to_owned()),
        1 => Just("NOT failed".to_owned()),
        1 => Just("barrier IS NULL".to_owned()),
        3 => time(),
    ];
    leaf.prop_recursive(3, 8, 3, |inner| {
        prop_oneof![
            4 => (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a} AND {b})")),
            2 => (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a} OR {b})")),
            1 => inner.prop_map(|a| format!("NOT ({a})")),
        ]
    })
    .boxed()
}

proptest! {
    #![proptest_config(dosmos_testseeds::config(48))]

    #[test]
    fn conditions_find_the_same_rows_on_chunks_as_on_rows(conditions in prop::collection::vec(condition(), 1..8)) {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        let dir = tempfile::tempdir().unwrap();
        runtime.block_on(async {
            // Few records for each case of many, so that the engine is done soon; many for the bounds of chunks.
            let run = RunDir::make(dir.path(), 2, RECORDS / 8, dosmos_testseeds::seed());
            let pushed = run.database(Settings::default()).await;
            let plain = run.database(Settings { pushdown: false, ..Settings::default() }).await;
            for condition in &conditions {
                let count = format!("SELECT count(*) FROM records WHERE {condition}");
                assert_eq!(rows(&pushed, &count).await, rows(&plain, &count).await, "{count}");
                let sums = format!(
                    "SELECT op, origin, variable, count(*), sum(start_ns - 1767225600000000000), sum(wait_ns), \
                     min(range_end), max(bytes), count(DISTINCT ap) FROM records WHERE {condition} GROUP BY 1, 2, 3"
                );
                assert_eq!(rows(&pushed, &sums).await, rows(&plain, &sums).await, "{sums}");
            }
        });
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn chunks_are_skipped_by_time_operation_object_origin_and_process() {
    let dir = tempfile::tempdir().unwrap();
    let run = RunDir::make(dir.path(), 2, RECORDS, 7);
    let database = run.database(Settings::default()).await;
    let skipped = async |condition: &str| -> (u64, u64) {
        let plan = rows(&database, &format!("EXPLAIN SELECT count(*) FROM accesses WHERE {condition}")).await;
        let plan = plan.join("\n");
        let number = |key: &str| -> u64 {
            let (_, rest) = plan.split_once(key).unwrap_or_else(|| panic!("{plan}"));
            rest.chars().take_while(char::is_ascii_digit).collect::<String>().parse().unwrap()
        };
        (number("chunks="), number("skipped="))
    };
    let (all, none) = skipped("wait_ns > 0").await;
    assert!(all >= 8 && none == 0, "{all} {none}");
    assert_eq!(skipped("op = 'barrier'").await, (0, all));
    assert_eq!(skipped("origin IN ('intra')").await.0, all);
    // The processes of one group report to the other event manager.
    let (of_one, others) = skipped("ap = 'ap0'").await;
    assert!(of_one > 0 && others > 0 && of_one + others == all, "{of_one} {others}");
    let (early, late) = skipped("at_s < 0.000001").await;
    assert!(early == 2 && late == all - 2, "{early} {late}");
    let never = skipped("start > '2027-01-01T00:00:00Z'").await;
    assert_eq!(never, (0, all));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_limit_ends_the_scan_and_no_row_is_read_for_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let run = RunDir::make(dir.path(), 1, RECORDS, 7);
    let database = run.database(Settings::default()).await;
    let plan = rows(&database, "EXPLAIN ANALYZE SELECT ap FROM records WHERE op = 'read' LIMIT 5").await;
    let plan = plan.join("\n");
    assert!(plan.contains("limit=5"), "{plan}");
    let read = plan.split("chunks_read=").nth(1).unwrap_or_else(|| panic!("{plan}"));
    let read: String = read.chars().take_while(char::is_ascii_digit).collect();
    assert!(read.parse::<u64>().unwrap() <= 2, "{plan}");
    assert_eq!(rows(&database, "SELECT ap FROM records WHERE op = 'read' LIMIT 5").await.len(), 5);
}
