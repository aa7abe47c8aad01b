//! Ranks and pages of variables; the selection of what is recorded.

use dosmos_proto::wire::{self, ingest_reply, ingest_request};
use dosmos_proto::{GroupId, MpId, VarId};
use dosmos_trace::store::StoreSource;
use tonic::Code;

use crate::common::{DEADLINE, Emp, Mp, post, records};

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
    let dir = dosmos_testseeds::scratch();
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
    let second = client.rank_variables(rank("re:^[a-m]", 1)).await.unwrap();
    let second = second.into_inner();
    assert_eq!((second.known, second.matched, second.more), (3, 2, false));
    assert_eq!(second.entries[0].name, "idle");
    // Other event managers may know of the time of any variable.
    let by_time = wire::RankRequest {
        sort: wire::SortKey::Time.into(),
        ..rank("", 0)
    };
    let by_time = client.rank_variables(by_time).await.unwrap().into_inner();
    let most = &by_time.entries[0];
    let total: u64 = records(0..3).iter().map(|r| r.duration.0).sum();
    let costly = ("busy", total as f64, true);
    assert_eq!((most.name.as_str(), most.key, most.split), costly);
    let refused = client.rank_variables(rank("re:a(", 0)).await.unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument);
    let ask = wire::DescribeRequest {
        variables: vec![7, 99],
    };
    let rows = client.describe_variables(ask).await.unwrap();
    let rows = rows.into_inner().rows;
    assert_eq!(rows.len(), 1, "{rows:?}");
    assert_eq!(rows[0].counts.unwrap().writes, 3);
    let writes = rows[0].times.clone().unwrap().writes.unwrap();
    assert_eq!(writes.total_ns, total);
    emp.stop().await;
}

#[tokio::test]
async fn the_selection_reaches_memory_processes_now_and_when_they_connect() {
    let dir = dosmos_testseeds::scratch();
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
    let dir = dosmos_testseeds::scratch();
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
    let dir = dosmos_testseeds::scratch();
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
