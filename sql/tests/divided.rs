//! A query divided among running event managers, each a worker over its own store.

#![allow(clippy::unwrap_used)] // tests may

mod runs;

use std::path::Path;
use std::time::Duration;

use datafusion_distributed::GetWorkerInfoRequest;
use datafusion_distributed::grpc::{BoxCloneSyncChannel, create_worker_client};
use dosmos_client::Run;
use dosmos_client::text::with_causes;
use dosmos_proto::AddressBook;
use dosmos_proto::access::{Access, Credentials, Files};
use dosmos_proto::transport::{self, Address};
use dosmos_sql::{Database, Settings};
use runs::{RunDir, rows};

const RECORDS: u64 = 40_000;

const QUESTIONS: [&str; 8] = [
    "SELECT count(*) FROM records",
    "SELECT count(*) FROM accesses WHERE op = 'acquire' AND wait_ns > 20000",
    "SELECT op, origin, count(*), sum(wait_ns), max(duration_ns) FROM accesses GROUP BY op, origin",
    "SELECT variable, ap, count(DISTINCT object), min(start), avg(bytes) FROM records WHERE at_s < 0.05 GROUP BY 1, 2",
    "SELECT ap, side, avg(wait_ns), min(start_ns), count(*) FROM records GROUP BY 1, 2",
    "SELECT event_manager, count(*) FROM records GROUP BY 1 HAVING count(*) > 10",
    "SELECT start_ns, ap, variable, object FROM records ORDER BY start_ns, ap LIMIT 50",
    "SELECT a.ap, count(*) FROM records a JOIN (SELECT DISTINCT ap FROM records WHERE op = 'release') b ON a.ap = b.ap GROUP BY 1",
];

fn program() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_dosmos-sql"))
}

/// Asks, and says whether the event managers carried the query out.
async fn divided(database: &Database, sql: &str) -> bool {
    database
        .query(sql)
        .await
        .unwrap_or_else(|e| panic!("{sql}: {e}"))
        .is_divided()
}

/// What those are told that may not begin a query.
const DENIED: Option<&str> = Some("may not call GetWorkerInfo");

/// Begins to speak to a worker; what it says if it refuses.
async fn greet(worker: &Address, access: Access) -> Result<(), String> {
    let channel = transport::connect(worker, access, Duration::from_secs(60)).await;
    let channel = channel.map_err(|e| e.to_string())?;
    let mut worker = create_worker_client(BoxCloneSyncChannel::new(channel));
    let answer = worker.get_worker_info(GetWorkerInfoRequest {}).await;
    answer.map(|_| ()).map_err(|e| e.to_string())
}

#[tokio::test(flavor = "multi_thread")]
async fn event_managers_answer_as_their_stores_do() {
    let dir = tempfile::tempdir().unwrap();
    let run = RunDir::make(dir.path(), 4, RECORDS, 5);
    let stores: Vec<_> = run.managers.iter().map(|name| run.store(name)).collect();
    let mut expected = Vec::new();
    {
        let closed = runs::open(&stores, Settings::default()).await;
        for sql in QUESTIONS {
            assert!(!divided(&closed, sql).await, "{sql}");
            expected.push(rows(&closed, sql).await);
        }
    }
    let _serving = run.serve(program());
    let live = run.database(Settings::default()).await;
    for (sql, expected) in QUESTIONS.iter().zip(expected) {
        assert!(divided(&live, sql).await, "{sql}");
        assert_eq!(rows(&live, sql).await, expected, "{sql}");
    }
    // The small tables are worked out here, and can be joined with records.
    let joined = "SELECT v.variable, count(*) FROM records r JOIN variables v ON r.variable = v.variable GROUP BY 1";
    assert!(!divided(&live, joined).await);
    assert_eq!(rows(&live, joined).await.len(), 64);
}

#[tokio::test(flavor = "multi_thread")]
async fn with_certificates_workers_answer_those_who_may_look_and_nobody_else() {
    let dir = tempfile::tempdir().unwrap();
    let run = RunDir::make(dir.path(), 3, RECORDS, 7);
    let stores: Vec<_> = run.managers.iter().map(|name| run.store(name)).collect();
    let mut expected = Vec::new();
    {
        let closed = runs::open(&stores, Settings::default()).await;
        for sql in QUESTIONS {
            expected.push(rows(&closed, sql).await);
        }
    }
    let run = run.secured(program());
    let _serving = run.serve(program());
    let worker: Address = run.address("emp0.sql").parse().unwrap();
    assert!(matches!(worker, Address::Tcp(_)), "{worker}");
    for holder in ["observer", "operator"] {
        let opened = Run::open(&run.target(holder)).await.unwrap();
        let live = Database::open(opened, Settings::default()).await.unwrap();
        for (sql, expected) in QUESTIONS.iter().zip(&expected) {
            assert!(divided(&live, sql).await, "{holder}: {sql}");
            assert_eq!(&rows(&live, sql).await, expected, "{holder}: {sql}");
        }
    }
    // Who may begin a query with a worker; that workers may ask each other shows above.
    let token = AddressBook::new(Default::default(), Some(dir.path())).token();
    for (holder, denied) in [
        ("observer", None),
        ("emp1", DENIED),
        ("ap0", DENIED),
        ("mp0", DENIED),
    ] {
        let files = Files::in_folder(&dir.path().join("tls").join(holder));
        let access = Access::new(token.clone(), Some(Credentials::read(files).unwrap()));
        let said = greet(&worker, access.expecting("emp0")).await.err();
        match denied {
            None => assert_eq!(said, None, "{holder}"),
            Some(why) => assert!(said.is_some_and(|said| said.contains(why)), "{holder}"),
        }
    }
    // A certificate, the right one, and the token: each is asked for.
    let observer = Credentials::read(Files::in_folder(&dir.path().join("tls/observer"))).unwrap();
    let without = [
        Access::new(token.clone(), None),
        Access::new(token, Some(observer.clone())).expecting("emp1"),
        Access::new(None, Some(observer)),
    ];
    for access in without {
        assert!(greet(&worker, access.clone()).await.is_err(), "{access:?}");
    }
    // Whoever may not look gets no rows in another way either.
    let application = Run::open(&run.target("ap0")).await.unwrap();
    let denied = Database::open(application, Settings::default()).await;
    let why = denied.err().map(|e| with_causes(&e)).unwrap_or_default();
    assert!(why.contains("application"), "{why}");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_workers_event_managers_are_asked_for_their_records() {
    let dir = tempfile::tempdir().unwrap();
    let run = RunDir::make(dir.path(), 2, RECORDS, 6);
    let _serving = run.serve(program());
    let divided_among = run.database(Settings::default()).await;
    let target = dosmos_client::Target {
        event_managers: run.managers.iter().map(|name| run.address(name)).collect(),
        ..Default::default()
    };
    // A program in the environment of the run shows its token; here it is given by the run directory.
    let token = std::fs::read_to_string(dir.path().join("token")).unwrap_or_default();
    let output = std::process::Command::new(program())
        .args(["sql", QUESTIONS[2], "--format", "csv"])
        .args(target.event_managers.iter().flat_map(|a| ["--emp", a]))
        .env("DOSMOS_TOKEN", token.trim())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let mut asked: Vec<String> = String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .skip(1)
        .map(|line| line.replace(',', " | "))
        .collect();
    asked.sort();
    assert_eq!(asked, rows(&divided_among, QUESTIONS[2]).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_manager_killed_during_a_query_is_named_and_the_others_answer() {
    let dir = tempfile::tempdir().unwrap();
    let run = RunDir::make(dir.path(), 4, RECORDS, 8);
    let mut serving = run.serve(program());
    let database = run.database(Settings::default()).await;
    let sql = "SELECT event_manager, count(*) FROM records GROUP BY 1";
    let all = rows(&database, sql).await;
    assert_eq!(all.len(), 4);
    assert!(database.completeness().await.missing.is_empty());
    // It holds the query up, then it is gone in the middle of it.
    serving[2].signal("STOP");
    let answer = tokio::join!(async { rows(&database, sql).await }, async {
        serving[2].kill();
    },);
    let expected: Vec<String> = all
        .iter()
        .filter(|row| !row.starts_with("emp2"))
        .cloned()
        .collect();
    assert_eq!(answer.0, expected);
    let missing = database.completeness().await.missing;
    assert!(
        missing.iter().any(|name| name.contains("emp2")),
        "{missing:?}"
    );
    assert!(
        !missing.iter().any(|name| name.contains("emp1")),
        "{missing:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_manager_that_is_stopped_holds_no_query_up_for_ever() {
    let dir = tempfile::tempdir().unwrap();
    let run = RunDir::make(dir.path(), 2, RECORDS, 9);
    let serving = run.serve(program());
    let database = run.database(Settings::default()).await;
    serving[1].signal("STOP");
    let sql = "SELECT event_manager, count(*) FROM records GROUP BY 1";
    let answer = tokio::time::timeout(Duration::from_secs(120), rows(&database, sql)).await;
    let answer = answer.expect("an answer");
    assert!(
        answer.len() == 1 && answer[0].starts_with("emp0"),
        "{answer:?}"
    );
    let missing = database.completeness().await.missing;
    assert!(
        missing.iter().any(|name| name.contains("emp1")),
        "{missing:?}"
    );
}
