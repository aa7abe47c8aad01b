//! What is acknowledged is stored, once, in order, and named where it is missing.

use std::path::Path;

use dosmos_proto::wire::{self, ingest_request};
use dosmos_proto::{MpId, Nanos};
use dosmos_trace::clock::{Apart, ProcessClock};
use dosmos_trace::store::StoreSource;
use tonic::Code;

use crate::common::{Emp, Mp, metas, post, records, stored};

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        if entry.path().is_dir() {
            copy(&entry.path(), &to.join(entry.file_name()));
        } else {
            std::fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
        }
    }
}

#[tokio::test]
async fn every_record_once_whatever_is_resent() {
    let dir = dosmos_testseeds::scratch();
    let emp = Emp::start(dir.path(), 0, dir.path().join("s")).await;
    let mut mp = Mp::connect(&emp, "mp0", 5).await.unwrap();
    assert_eq!(mp.welcome, 0);
    mp.batch(1, &records(0..10), &[]);
    mp.batch(1, &records(0..10), &[]);
    mp.batch(2, &records(10..20), &[]);
    mp.durable(2).await;
    // A gap ends the stream; the next connection is told where to go on.
    mp.batch(4, &records(30..40), &[]);
    let ended = loop {
        match mp.replies.message().await {
            Ok(Some(_)) => {}
            Ok(None) => panic!("the gap was accepted"),
            Err(status) => break status,
        }
    };
    assert_eq!(ended.code(), Code::OutOfRange);
    let mut mp = Mp::connect(&emp, "mp0", 5).await.unwrap();
    assert_eq!(mp.welcome, 2);
    mp.batch(2, &records(10..20), &[]);
    mp.batch(3, &records(20..30), &[]);
    mp.durable(3).await;
    assert_eq!(stored(&emp).await, records(0..30));
    drop(mp);
    assert_eq!(emp.stop().await.records, 30);
}

#[tokio::test]
async fn a_killed_event_manager_knows_the_same_again() {
    let dir = dosmos_testseeds::scratch();
    let emp = Emp::start(dir.path(), 0, dir.path().join("s")).await;
    let mut mp = Mp::connect(&emp, "mp0", 5).await.unwrap();
    mp.batch(1, &records(0..1000), &[]);
    mp.durable(1).await;
    let before = metas(&emp).await;
    // The files as a killed process leaves them.
    let crashed = dir.path().join("crashed");
    copy(&dir.path().join("s"), &crashed);
    let again = Emp::start(dir.path(), 0, crashed).await;
    assert_eq!(metas(&again).await, before);
    assert_eq!(
        before.completeness.dropped, 2,
        "what the memory process dropped is told"
    );
    let mut mp = Mp::connect(&again, "mp0", 5).await.unwrap();
    assert_eq!(mp.welcome, 1);
    mp.batch(1, &records(0..1000), &[]);
    mp.batch(2, &records(1000..1001), &[]);
    mp.durable(2).await;
    assert_eq!(stored(&again).await, records(0..1001));
}

#[tokio::test]
async fn one_that_lost_its_store_goes_on_and_says_what_is_gone() {
    let dir = dosmos_testseeds::scratch();
    let emp = Emp::start(dir.path(), 0, dir.path().join("lost")).await;
    let mut mp = Mp::connect(&emp, "mp0", 5).await.unwrap();
    mp.batch(1, &records(0..10), &[]);
    mp.batch(2, &records(10..20), &[]);
    mp.durable(2).await;
    drop(mp);
    emp.stop().await;
    // Its disk is replaced: the same event manager, an empty store.
    let emp = Emp::start(dir.path(), 0, dir.path().join("new")).await;
    let mut mp = Mp::connect(&emp, "mp0", 5).await.unwrap();
    assert_eq!(mp.welcome, 0);
    let skip = wire::Skip { to: 2, records: 20 };
    post(&mp.send, ingest_request::Body::Skip(skip));
    mp.batch(3, &records(20..30), &[]);
    mp.durable(3).await;
    assert_eq!(stored(&emp).await, records(20..30));
    drop(mp);
    let mp = Mp::connect(&emp, "mp0", 5).await.unwrap();
    assert_eq!(mp.welcome, 3, "nothing is sent for ever");
}

#[tokio::test]
async fn a_store_names_the_memory_processes_that_did_not_report_to_their_end() {
    let dir = dosmos_testseeds::scratch();
    let lacking = async |last: Option<u64>, store: &str| {
        let store = dir.path().join(store);
        let emp = Emp::start(dir.path(), 0, store.clone()).await;
        let mut mp = Mp::connect(&emp, "mp0", 5).await.unwrap();
        mp.batch(1, &records(0..10), &[]);
        mp.durable(1).await;
        if let Some(last) = last {
            let bye = wire::IngestBye { last };
            post(&mp.send, ingest_request::Body::Bye(bye));
            // The event manager ends the stream when it has heard it.
            while let Ok(Some(_)) = mp.replies.message().await {}
        }
        drop(mp);
        emp.stop().await;
        StoreSource::open(&store).unwrap().completeness().silent
    };
    assert_eq!(lacking(Some(1), "all").await, [""; 0]);
    assert_eq!(lacking(Some(2), "one batch is missing").await, ["mp0"]);
    assert_eq!(lacking(None, "killed").await, ["mp0"]);
}

#[tokio::test]
async fn a_start_that_did_not_report_to_its_end_is_not_forgotten_when_a_later_one_does() {
    let dir = dosmos_testseeds::scratch();
    let store = dir.path().join("s");
    let emp = Emp::start(dir.path(), 0, store.clone()).await;
    // The first is killed.
    let mut mp = Mp::connect(&emp, "mp0", 5).await.unwrap();
    mp.batch(1, &records(0..10), &[]);
    mp.durable(1).await;
    drop(mp);
    let mut mp = Mp::connect(&emp, "mp0", 6).await.unwrap();
    mp.batch(1, &records(10..20), &[]);
    mp.durable(1).await;
    let bye = wire::IngestBye { last: 1 };
    post(&mp.send, ingest_request::Body::Bye(bye));
    while let Ok(Some(_)) = mp.replies.message().await {}
    drop(mp);
    emp.stop().await;
    let lacking = StoreSource::open(&store).unwrap().completeness();
    assert_eq!(lacking.silent, ["mp0"]);
    assert!(!lacking.is_complete());
}

#[tokio::test]
async fn times_are_corrected_once_by_what_the_memory_process_makes_of_its_clock() {
    let dir = dosmos_testseeds::scratch();
    let emp = Emp::start(dir.path(), 0, dir.path().join("s")).await;
    let mut mp = Mp::connect(&emp, "mp0", 5).await.unwrap();
    // 50 ms behind when its clock says 1 ms, and 200 ppm slow.
    let estimate = wire::ClockEstimate {
        reference_ns: 1_000_000,
        offset_ns: 50_000_000,
        drift_ppb: 200_000,
        error_ns: 100,
        since_ns: 0,
        until_ns: 1_000_000_000,
        growth_ppb: 1_000,
    };
    let probe = wire::ClockProbe {
        sent_ns: 0,
        estimate: Some(estimate),
    };
    post(&mp.send, ingest_request::Body::Clock(probe));
    mp.batch(1, &records(0..10_001), &[]);
    mp.durable(1).await;
    let stored = stored(&emp).await;
    assert_eq!(stored[0].start, Nanos(51_000_000));
    assert_eq!(stored[10_000].start, Nanos(51_010_002));
    drop(mp);
    // What was done to the times, and how far they may be off, is in the store, also for another start of the process.
    let mut mp = Mp::connect(&emp, "mp0", 6).await.unwrap();
    mp.batch(1, &records(0..1), &[]);
    mp.durable(1).await;
    drop(mp);
    emp.stop().await;
    let catalog = StoreSource::open(&dir.path().join("s")).unwrap().describe();
    let clock = ProcessClock {
        mp: MpId(0),
        offset_ns: 0,
        drift_ppb: 0,
        error: None,
    };
    assert_eq!(
        catalog.clocks,
        [clock],
        "nothing is known of the second one's"
    );
    // The other one reports to another event manager.
    assert_eq!(catalog.apart(MpId(0), MpId(1)), Apart::Unknown);
}

#[tokio::test]
async fn the_bound_of_times_is_stored_and_outlives_the_event_manager() {
    let dir = dosmos_testseeds::scratch();
    let store = dir.path().join("s");
    let estimate = |offset_ns: i64, error_ns: u64| wire::ClockEstimate {
        offset_ns,
        drift_ppb: -7,
        error_ns,
        until_ns: 10_000_000_000,
        ..Default::default()
    };
    for (start, offset, error) in [(5, 40, 900), (6, 50, 300)] {
        let emp = Emp::start(dir.path(), 0, store.clone()).await;
        let mut mp = Mp::connect(&emp, "mp0", start).await.unwrap();
        let probe = wire::ClockProbe {
            sent_ns: 0,
            estimate: Some(estimate(offset, error)),
        };
        post(&mp.send, ingest_request::Body::Clock(probe));
        mp.batch(1, &records(0..10), &[]);
        mp.durable(1).await;
        drop(mp);
        emp.stop().await;
    }
    let catalog = StoreSource::open(&store).unwrap().describe();
    let [clock] = catalog.clocks[..] else {
        panic!("{:?}", catalog.clocks);
    };
    assert_eq!((clock.offset_ns, clock.drift_ppb), (50, -7));
    // The worst of both.
    let error = clock.error.unwrap();
    assert!(Nanos(900) <= error && error < Nanos(1_000), "{error}");
}

#[tokio::test]
async fn batches_of_an_older_start_are_not_taken_for_those_of_the_newer() {
    let dir = dosmos_testseeds::scratch();
    let emp = Emp::start(dir.path(), 0, dir.path().join("s")).await;
    let mut ghost = Mp::connect(&emp, "mp0", 5).await.unwrap();
    let mut mp = Mp::connect(&emp, "mp0", 6).await.unwrap();
    // Its stream is still open.
    ghost.batch(1, &records(100..110), &[]);
    let ended = loop {
        match ghost.replies.message().await {
            Ok(Some(_)) => {}
            Ok(None) => panic!("the batch was accepted"),
            Err(status) => break status,
        }
    };
    assert_eq!(ended.code(), Code::AlreadyExists);
    mp.batch(1, &records(0..10), &[]);
    mp.durable(1).await;
    assert_eq!(stored(&emp).await, records(0..10));
}

/// Starts are counted.
#[tokio::test]
async fn a_start_that_ended_before_it_reported_is_missed() {
    let dir = dosmos_testseeds::scratch();
    for (start, silent) in [(1, &[][..]), (2, &["mp0"])] {
        let store = dir.path().join(start.to_string());
        let emp = Emp::start(dir.path(), 0, store.clone()).await;
        let mp = Mp::connect(&emp, "mp0", start << 32 | 7).await.unwrap();
        let mut replies = mp.replies;
        let bye = wire::IngestBye { last: 0 };
        post(&mp.send, ingest_request::Body::Bye(bye));
        while let Ok(Some(_)) = replies.message().await {}
        drop(mp.send);
        emp.stop().await;
        let lacking = StoreSource::open(&store).unwrap().completeness();
        assert_eq!(lacking.silent, silent, "start {start}");
    }
}
