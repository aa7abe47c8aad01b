//! An event manager whose disk is full: it answers from what it has, acknowledges nothing that is not on disk, and goes on when
//! there is room again, without being started again.

use std::process::Command;
use std::time::Instant;

use dosmos_proto::wire;
use dosmos_trace::store::StoreSource;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::{SigSet, Signal};

use crate::common::*;

/// Set in the process whose files may not grow.
const CHILD: &str = "DOSMOS_TEST_FULL_DISK";
const TEST: &str = "disk_full::a_full_disk_stops_no_answer_and_needs_no_restart";

#[test]
fn a_full_disk_stops_no_answer_and_needs_no_restart() {
    if std::env::var_os(CHILD).is_some() {
        return fill_and_go_on();
    }
    // The limit is the whole process's, so it is another one's.
    let this = std::env::current_exe().unwrap();
    let child = Command::new(this)
        .args(["--exact", TEST, "--nocapture"])
        .env(CHILD, "1")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&child.stdout).into_owned()
        + &String::from_utf8_lossy(&child.stderr);
    assert!(child.status.success(), "{said}");
}

fn fill_and_go_on() {
    // The signal that comes with the limit ends a process that does not block it; threads started later inherit that.
    let mut signals = SigSet::empty();
    signals.add(Signal::SIGXFSZ);
    signals.thread_block().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let dir = tempfile::tempdir().unwrap();
        let emp = Emp::start(dir.path(), 0, dir.path().join("s0")).await;
        let mut mp = Mp::connect(&emp, "mp0", 5).await.unwrap();
        mp.batch(1, &records(0..1_000), &[]);
        mp.durable(1).await;
        let (_, most) = getrlimit(Resource::RLIMIT_FSIZE).unwrap();
        setrlimit(Resource::RLIMIT_FSIZE, 1, most).unwrap();
        for n in 1..20 {
            mp.batch(n + 1, &records(n * 1_000..(n + 1) * 1_000), &[]);
        }
        let mut client = emp.client().await;
        let started = Instant::now();
        let trouble = loop {
            let status = client.get_status(wire::StatusRequest {}).await.unwrap();
            let trouble = status.into_inner().trouble;
            if !trouble.is_empty() {
                break trouble;
            }
            assert!(started.elapsed() < DEADLINE, "no trouble is said");
            tokio::task::yield_now().await;
        };
        assert!(trouble.contains("cannot be written"), "{trouble}");
        // It answers, with what is on disk, and says why there is not more.
        let catalog = client.get_catalog(wire::CatalogRequest::default()).await;
        let catalog = catalog.unwrap().into_inner();
        assert_eq!(catalog.records, 1_000);
        let lacking = catalog.completeness.unwrap();
        assert!(lacking.notes.contains(&trouble), "{lacking:?}");
        let mut parts = client
            .get_records(wire::RecordsRequest::default())
            .await
            .unwrap()
            .into_inner();
        let first = parts.message().await.unwrap().unwrap().records.unwrap();
        assert_eq!(dosmos_trace::wire::decode(&first).unwrap().len(), 1_000);
        // There is room again.
        setrlimit(Resource::RLIMIT_FSIZE, most, most).unwrap();
        mp.durable(20).await;
        let status = client.get_status(wire::StatusRequest {}).await.unwrap();
        assert_eq!(status.into_inner().trouble, "");
        emp.stop().await;
        let store = StoreSource::open(&dir.path().join("s0")).unwrap();
        assert_eq!(store.describe().records, 20_000);
    });
}
