//! Event managers as their memory processes and readers see them: real gRPC, real stores.

#![allow(clippy::unwrap_used)] // a test may

mod support;

use std::path::Path;

use dosmos_proto::transport;
use dosmos_proto::wire::event_manager_client::EventManagerClient;
use dosmos_proto::wire::{self, ingest_reply, ingest_request};
use dosmos_proto::{EmpId, GroupId, MpId, Nanos, Token, VarId};
use dosmos_trace::meta::{HandOver, OpCounts};
use dosmos_trace::query::{Filter, MetaObjects, MetaQuery, TraceSource};
use dosmos_trace::record::{Op, Origin, Record, Side};
use dosmos_trace::store::StoreSource;
use tonic::Code;

use support::*;

async fn stored(emp: &Emp) -> Vec<Record> {
    let request = wire::RecordsRequest {
        filter: Some(
            Filter {
                everything: true,
                ..Filter::default()
            }
            .into(),
        ),
        limit: 0,
    };
    let mut stream = emp
        .client()
        .await
        .get_records(request)
        .await
        .unwrap()
        .into_inner();
    let mut all = Vec::new();
    let mut lacking = None;
    while let Some(part) = stream.message().await.unwrap() {
        all.extend(dosmos_trace::wire::decode(part.records.unwrap_or_default()).unwrap());
        lacking = part.completeness.or(lacking);
    }
    assert!(lacking.is_some(), "records say what they lack");
    all
}

async fn metas(emp: &Emp) -> MetaObjects {
    let request = wire::MetaRequest::from(MetaQuery::default());
    emp.client()
        .await
        .get_meta_objects(request)
        .await
        .unwrap()
        .into_inner()
        .into()
}

#[tokio::test]
async fn every_record_once_whatever_is_resent() {
    let dir = tempfile::tempdir().unwrap();
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
    let dir = tempfile::tempdir().unwrap();
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
    let dir = tempfile::tempdir().unwrap();
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
    let dir = tempfile::tempdir().unwrap();
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
async fn times_are_corrected_once_by_what_the_memory_process_makes_of_its_clock() {
    let dir = tempfile::tempdir().unwrap();
    let emp = Emp::start(dir.path(), 0, dir.path().join("s")).await;
    let mut mp = Mp::connect(&emp, "mp0", 5).await.unwrap();
    // 50 ms behind when its clock says 1 ms, and 200 ppm slow.
    let estimate = wire::ClockEstimate {
        reference_ns: 1_000_000,
        offset_ns: 50_000_000,
        drift_ppb: 200_000,
        error_ns: 100,
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
}

#[tokio::test]
async fn batches_of_an_older_start_are_not_taken_for_those_of_the_newer() {
    let dir = tempfile::tempdir().unwrap();
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

/// mp1 read X, owned by mp0: once remotely, then `reads` times its copy, which is then invalidated.
async fn read_and_invalidate(mp: &Mp, sequence: u64, reads: u64) {
    let mut list = vec![record(0, 1, Side::Requester, Op::Read)];
    for i in 0..reads {
        let mut read = record(i + 1, 1, Side::Requester, Op::Read);
        read.flags.optimized = true;
        read.origin = Origin::Local;
        list.push(read);
    }
    let hand_over = HandOver {
        object: X,
        copy_at: MpId(1),
        primary_emp: EmpId(0),
        dropped: true,
    };
    mp.batch(sequence, &list, &[hand_over]);
}

#[tokio::test]
async fn hand_overs_reach_the_primary_once_also_if_its_event_manager_was_away() {
    let dir = tempfile::tempdir().unwrap();
    let emp1 = Emp::start(dir.path(), 1, dir.path().join("s1")).await;
    let mut mp1 = Mp::connect(&emp1, "mp1", 1).await.unwrap();
    read_and_invalidate(&mp1, 1, 4).await;
    mp1.durable(1).await;
    let emp0 = Emp::start(dir.path(), 0, dir.path().join("s0")).await;
    emp1.client()
        .await
        .flush(wire::FlushRequest {})
        .await
        .unwrap();
    assert_eq!(metas(&emp0).await.primaries[0].reads_on_copies, 4);
    emp0.stop().await;
    read_and_invalidate(&mp1, 2, 3).await;
    mp1.durable(2).await;
    let emp0 = Emp::start(dir.path(), 0, dir.path().join("s0")).await;
    emp1.client()
        .await
        .flush(wire::FlushRequest {})
        .await
        .unwrap();
    let found = metas(&emp0).await;
    assert_eq!(found.primaries[0].reads_on_copies, 7);
    drop(mp1);
    emp1.stop().await;
    emp0.stop().await;
    // The directory says the same as the live event manager did.
    let source = StoreSource::open(&dir.path().join("s0")).unwrap();
    let dead = source.meta_objects(&MetaQuery::default()).await.unwrap();
    assert_eq!(dead.primaries, found.primaries);
}

#[tokio::test]
async fn meta_objects_sum_up_to_the_records() {
    let dir = tempfile::tempdir().unwrap();
    let emp0 = Emp::start(dir.path(), 0, dir.path().join("s0")).await;
    let emp1 = Emp::start(dir.path(), 1, dir.path().join("s1")).await;
    let mp0 = Mp::connect(&emp0, "mp0", 1).await.unwrap();
    let mp1 = Mp::connect(&emp1, "mp1", 1).await.unwrap();
    for round in 1..=20 {
        mp0.batch(
            round,
            &[
                record(round, 1, Side::Owner, Op::Read),
                record(round, 0, Side::Requester, Op::Write),
            ],
            &[],
        );
        read_and_invalidate(&mp1, round, round % 3).await;
    }
    // Both flush: the first one's hand-overs, then what they brought.
    for emp in [&emp1, &emp0] {
        emp.client()
            .await
            .flush(wire::FlushRequest {})
            .await
            .unwrap();
    }
    let eventually_all = async {
        loop {
            let mut seen = OpCounts::default();
            let mut done = OpCounts::default();
            for emp in [&emp0, &emp1] {
                let metas = metas(emp).await;
                for p in &metas.primaries {
                    seen.add(&p.counts);
                    seen.reads += p.reads_on_copies;
                }
                seen.reads += metas.secondaries.iter().map(|s| s.reads).sum::<u64>();
                let accesses = stored(emp).await;
                accesses
                    .iter()
                    .filter(|r| r.is_access())
                    .for_each(|r| done.count(r.op, r.accesses()));
            }
            if seen == done
                && done.writes == 20
                && done.reads == 20 + (1..=20).map(|r| r % 3).sum::<u64>()
            {
                return;
            }
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(DEADLINE, eventually_all)
        .await
        .expect("the sums to meet");
}

#[tokio::test]
async fn strangers_are_told_what_is_wrong() {
    let dir = tempfile::tempdir().unwrap();
    let emp = Emp::start(dir.path(), 0, dir.path().join("s")).await;
    let refused = Mp::connect(&emp, "mp1", 1).await.err().unwrap();
    assert!(
        refused.message().contains("mp1 does not report to emp0"),
        "{refused}"
    );
    Mp::connect(&emp, "mp0", 7).await.unwrap();
    let refused = Mp::connect(&emp, "mp0", 6).await.err().unwrap();
    assert!(
        refused
            .message()
            .contains("incarnation 0-00000006 is older than 0-00000007"),
        "{refused}"
    );
    let mut mp = Mp::connect(&emp, "mp0", 8).await.unwrap();
    let broken = wire::Batch {
        sequence: 1,
        records: Some(wire::RecordColumns {
            kind: vec![1],
            ..Default::default()
        }),
        ..Default::default()
    };
    post(&mp.send, ingest_request::Body::Batch(broken));
    let status = mp.replies.message().await.unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument);
    let bad = wire::HistogramRequest::default();
    let status = emp.client().await.get_histogram(bad).await.unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument);
    assert!(status.message().contains("0 buckets"), "{status}");
}

#[tokio::test]
async fn an_unusable_store_is_named_at_the_start() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("occupied");
    std::fs::write(&file, "").unwrap();
    let emp = Emp::start(dir.path(), 0, file).await;
    let error = emp.task.await.unwrap().unwrap_err().to_string();
    assert!(
        error.contains("emp0 cannot use its store") && error.contains("occupied"),
        "{error}"
    );
}

/// Whoever does not show the token of the run can neither ask nor report.
#[tokio::test]
async fn strangers_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let emp = Emp::start(dir.path(), 0, dir.path().join("s")).await;
    emp.client().await;
    let other = Token::generate().unwrap();
    for token in [None, Some(&other)] {
        let channel = transport::connect(&emp.address, token, DEADLINE)
            .await
            .unwrap();
        let mut client = EventManagerClient::new(channel);
        let selection = client.set_selection(wire::SelectionRequest::default());
        let said = selection.await.unwrap_err();
        assert_eq!(said.code(), Code::Unauthenticated, "{said}");
        let ingest = client.ingest(tokio_stream::empty());
        let said = ingest.await.unwrap_err();
        assert_eq!(said.code(), Code::Unauthenticated, "{said}");
        assert!(said.message().contains("DOSMOS_TOKEN"), "{said}");
    }
    emp.stop().await;
}

#[tokio::test]
async fn standard_tools_find_their_way() {
    let dir = tempfile::tempdir().unwrap();
    let emp = Emp::start(dir.path(), 0, dir.path().join("s")).await;
    emp.client().await;
    let channel = transport::connect(&emp.address, Some(&emp.token), DEADLINE)
        .await
        .unwrap();
    let mut health = tonic_health::pb::health_client::HealthClient::new(channel.clone());
    let request = tonic_health::pb::HealthCheckRequest {
        service: "dosmos.v1.EventManager".into(),
    };
    let answer = health.check(request).await.unwrap().into_inner();
    assert_eq!(
        answer.status(),
        tonic_health::pb::health_check_response::ServingStatus::Serving
    );
}

fn declared(id: u32, name: &str) -> wire::Variable {
    use dosmos_proto::{ElementType, Layout, Placement, Variable, VariableSpec};
    let layout = Layout::new(ElementType::F64, (1, 1), (1, 1)).unwrap();
    let spec = VariableSpec::new(name, layout).unwrap();
    let spec = spec.with_placement(Placement::RoundRobin(None));
    let variable = Variable::new(VarId(id), spec, vec![MpId(0)], GroupId(0));
    variable.unwrap().into()
}

#[tokio::test]
async fn variables_are_ranked_paged_and_described() {
    let dir = tempfile::tempdir().unwrap();
    let emp = Emp::start(dir.path(), 0, dir.path().join("s0")).await;
    let mut mp = Mp::connect(&emp, "mp0", 5).await.unwrap();
    let batch = wire::Batch {
        sequence: 1,
        records: Some(dosmos_trace::wire::encode(&records(0..3))),
        variables: vec![declared(7, "busy"), declared(8, "idle"), declared(9, "x")],
        sampling: 1.0,
        ..Default::default()
    };
    post(&mp.send, ingest_request::Body::Batch(batch));
    mp.durable(1).await;
    let rank = |pattern: &str, skip| wire::RankRequest {
        pattern: pattern.into(),
        sort: wire::SortKey::Writes.into(),
        skip,
        take: 1,
        ..Default::default()
    };
    let mut client = emp.client().await;
    let first = client.rank_variables(rank("", 0)).await.unwrap();
    let first = first.into_inner();
    assert_eq!((first.known, first.matched, first.more), (3, 3, true));
    let [entry] = &first.entries[..] else {
        panic!("{first:?}");
    };
    // mp1 of the same group belongs to another event manager, which may hold copies.
    let busy = ("busy", 3.0, true);
    assert_eq!((entry.name.as_str(), entry.key, entry.split), busy);
    let second = client.rank_variables(rank("^[a-m]", 1)).await.unwrap();
    let second = second.into_inner();
    assert_eq!((second.known, second.matched, second.more), (3, 2, false));
    assert_eq!(second.entries[0].name, "idle");
    let refused = client.rank_variables(rank("a(", 0)).await.unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument);
    let ask = wire::DescribeRequest {
        variables: vec![7, 99],
    };
    let rows = client.describe_variables(ask).await.unwrap();
    let rows = rows.into_inner().rows;
    assert_eq!(rows.len(), 1, "{rows:?}");
    assert_eq!(rows[0].counts.unwrap().writes, 3);
    emp.stop().await;
}

#[tokio::test]
async fn the_selection_reaches_memory_processes_now_and_when_they_connect() {
    let dir = tempfile::tempdir().unwrap();
    let emp = Emp::start(dir.path(), 0, dir.path().join("s0")).await;
    let mut mp = Mp::connect(&emp, "mp0", 5).await.unwrap();
    let selection = wire::Selection {
        sample_one_in: 10,
        variables: vec!["grid*".into()],
        ..wire::Selection::from(dosmos_trace::selection::Selection::default())
    };
    let mut client = emp.client().await;
    let request = wire::SelectionRequest {
        selection: Some(selection.clone()),
    };
    let reply = client.set_selection(request).await.unwrap().into_inner();
    assert_eq!((reply.told, reply.absent), (1, 0));
    assert_eq!(told(&mut mp).await, selection);
    drop(mp);
    let mut mp = Mp::connect(&emp, "mp0", 6).await.unwrap();
    assert_eq!(told(&mut mp).await, selection);
    let status = client.get_status(wire::StatusRequest {}).await.unwrap();
    assert_eq!(status.into_inner().selection, Some(selection.clone()));
    emp.stop().await;
    // Who reads the store later knows that a part was not recorded, and which.
    let store = StoreSource::open(&dir.path().join("s0")).unwrap();
    let lacking = store.completeness();
    assert_eq!(lacking.selections, [selection.try_into().unwrap()]);
    assert!(!lacking.is_complete());
}

#[tokio::test]
async fn sampling_that_ended_is_not_forgotten() {
    let dir = tempfile::tempdir().unwrap();
    let emp = Emp::start(dir.path(), 0, dir.path().join("s0")).await;
    let mut mp = Mp::connect(&emp, "mp0", 5).await.unwrap();
    for (sequence, sampling) in [(1, 0.1), (2, 1.0)] {
        let batch = wire::Batch {
            sequence,
            records: Some(dosmos_trace::wire::encode(&records(sequence..sequence + 1))),
            counters: Some(wire::ProcessCounters::default()),
            sampling,
            ..Default::default()
        };
        post(&mp.send, ingest_request::Body::Batch(batch));
        mp.durable(sequence).await;
    }
    emp.stop().await;
    let store = StoreSource::open(&dir.path().join("s0")).unwrap();
    let lacking = store.completeness();
    assert!((lacking.sampling - 0.1).abs() < 1e-9, "{lacking:?}");
}

#[tokio::test]
async fn nobody_can_ask_for_one_access_in_none() {
    let dir = tempfile::tempdir().unwrap();
    let emp = Emp::start(dir.path(), 0, dir.path().join("s0")).await;
    let selection = wire::Selection {
        sample_one_in: 0,
        ..wire::Selection::from(dosmos_trace::selection::Selection::default())
    };
    let request = wire::SelectionRequest {
        selection: Some(selection),
    };
    let mut client = emp.client().await;
    let refused = client.set_selection(request).await.unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument);
    assert!(refused.message().contains("one in 0"), "{refused}");
    emp.stop().await;
}

/// The next selection that the event manager tells.
async fn told(mp: &mut Mp) -> wire::Selection {
    let wait = async {
        loop {
            let reply = mp.replies.message().await.unwrap().unwrap();
            if let Some(ingest_reply::Body::Selection(selection)) = reply.body {
                return selection;
            }
        }
    };
    let waited = tokio::time::timeout(DEADLINE, wait).await;
    waited.expect("a selection")
}
