//! What readers and strangers ask of an event manager has bounds, and never stops it from taking records.

use dosmos_proto::transport::Channel;
use dosmos_proto::wire::event_manager_client::EventManagerClient;
use dosmos_proto::wire::{self, ingest_request};
use dosmos_proto::{ElementType, GroupId, Layout, MpId, Nanos, VarId, Variable, VariableSpec};
use tokio::sync::{Mutex, mpsc};
use tokio_stream::wrappers::UnboundedReceiverStream;
use tonic::transport::Endpoint;
use tonic::{Code, Request, Status, Streaming};

use crate::common::*;

/// Records in a batch: two messages of an answer.
const BATCH: u64 = 16_384;
/// Scans at the same time.
const SCANS: usize = 16;
/// Enough that an answer does not fit on the way.
const BATCHES: u64 = 12;
/// The tests with many records take turns: they need a processor.
static TURN: Mutex<()> = Mutex::const_new(());

/// An event manager with many records, and the memory process that sent them.
async fn filled(dir: &std::path::Path) -> (Emp, Mp) {
    let emp = Emp::start(dir, 0, dir.join("s0")).await;
    let mut mp = Mp::connect(&emp, "mp0", 5).await.unwrap();
    for n in 0..BATCHES {
        let mut batch = records(n * BATCH..(n + 1) * BATCH);
        for record in &mut batch {
            // Figures without a pattern are large on the way.
            let figure = record.version.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            (record.version, record.bytes) = (figure >> 8, (figure >> 20) as u32 as _);
            record.duration = Nanos(figure >> 24);
        }
        mp.batch(n + 1, &batch, &[]);
        mp.durable(n + 1).await;
    }
    (emp, mp)
}

async fn all_records(
    client: &mut EventManagerClient<Channel>,
) -> Result<Streaming<wire::RecordsPart>, Status> {
    let request = wire::RecordsRequest::default();
    Ok(client.get_records(request).await?.into_inner())
}

/// The number of records in what is left of a stream.
async fn count(mut parts: Streaming<wire::RecordsPart>) -> usize {
    let mut n = 0;
    while let Some(part) = parts.message().await.unwrap() {
        n += dosmos_trace::wire::decode(&part.records.unwrap_or_default())
            .unwrap()
            .len();
    }
    n
}

/// A scan whose reader takes no more at once than 64 KiB: far less than its answer.
async fn narrow_scan(emp: &Emp) -> Result<Streaming<wire::RecordsPart>, Status> {
    let endpoint = Endpoint::from_shared(format!("http://{}", emp.address)).unwrap();
    let endpoint = endpoint
        .initial_stream_window_size(65_535)
        .initial_connection_window_size(65_535);
    let channel = endpoint.connect().await.unwrap();
    let shown = format!("Bearer {}", emp.token.reveal());
    let show = move |mut request: Request<()>| {
        let field = request.metadata_mut();
        field.insert("authorization", shown.parse().unwrap());
        Ok(request)
    };
    let mut client = EventManagerClient::with_interceptor(channel, show);
    let scan = client.get_records(wire::RecordsRequest::default()).await?;
    Ok(scan.into_inner())
}

/// As many scans as there may be have begun, and their readers do not read on. Batches are taken and acknowledged
/// meanwhile, and other questions are answered.
#[tokio::test]
async fn a_scan_that_nobody_reads_stops_neither_ingest_nor_questions() {
    let _turn = TURN.lock().await;
    let dir = dosmos_testseeds::scratch();
    let (emp, mut mp) = filled(dir.path()).await;
    let mut held = Vec::new();
    for _ in 0..SCANS {
        let mut parts = narrow_scan(&emp).await.unwrap();
        let first = parts.message().await.unwrap().unwrap();
        held.push((
            parts,
            dosmos_trace::wire::decode(&first.records.unwrap())
                .unwrap()
                .len(),
        ));
    }
    for n in BATCHES + 1..BATCHES + 11 {
        mp.batch(n, &records(n * BATCH..n * BATCH + 10), &[]);
        mp.durable(n).await;
    }
    let mut other = emp.client().await;
    let catalog = other.get_catalog(wire::CatalogRequest::default());
    let catalog = catalog.await.unwrap().into_inner();
    assert_eq!(catalog.records, BATCHES * BATCH + 100);
    // None of them has ended: there is no place for another.
    let refused = narrow_scan(&emp).await.unwrap_err();
    assert_eq!(refused.code(), Code::ResourceExhausted, "{refused}");
    // What was held comes to its end: all that was there when it was asked for.
    for (parts, first) in held {
        let records = (first + count(parts).await) as u64;
        assert!(records >= BATCHES * BATCH, "{records}");
    }
    emp.stop().await;
}

#[tokio::test]
async fn unread_streams_of_records_are_bounded() {
    let _turn = TURN.lock().await;
    let dir = dosmos_testseeds::scratch();
    let (emp, _mp) = filled(dir.path()).await;
    let mut reader = emp.client().await;
    let mut open = Vec::new();
    let refused = loop {
        match all_records(&mut reader).await {
            Ok(parts) => open.push(parts),
            Err(status) => break status,
        }
        assert!(open.len() < 200, "nobody is refused");
    };
    assert_eq!(refused.code(), Code::ResourceExhausted, "{refused}");
    // One whose whole answer is on its way has ended for the event manager.
    assert!(open.len() >= 16, "{} are open", open.len());
    // Those that are given up make room for others.
    open.clear();
    let again = async {
        while all_records(&mut emp.client().await).await.is_err() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(DEADLINE, again)
        .await
        .expect("a place");
    emp.stop().await;
}

/// A stream whose other side says nothing.
async fn silent(
    client: &mut EventManagerClient<Channel>,
) -> Result<
    (
        mpsc::UnboundedSender<wire::IngestRequest>,
        Streaming<wire::IngestReply>,
    ),
    Status,
> {
    let (send, requests) = mpsc::unbounded_channel();
    let replies = client
        .ingest(UnboundedReceiverStream::new(requests))
        .await?;
    Ok((send, replies.into_inner()))
}

/// Streams that do not introduce themselves are bounded, and ended when their time is over; those that have are not counted.
#[tokio::test]
async fn streams_without_a_greeting_are_bounded_and_end() {
    let dir = dosmos_testseeds::scratch();
    let emp = Emp::start(dir.path(), 0, dir.path().join("s0")).await;
    let mut mp = Mp::connect(&emp, "mp0", 5).await.unwrap();
    let (mut open, mut refused) = (Vec::new(), 0);
    let mut clients = Vec::new();
    for _ in 0..6 {
        clients.push(emp.client().await);
    }
    for client in &mut clients {
        for _ in 0..50 {
            match silent(client).await {
                Ok(stream) => open.push(stream),
                Err(status) => {
                    assert_eq!(status.code(), Code::ResourceExhausted, "{status}");
                    refused += 1;
                }
            }
        }
    }
    assert_eq!((open.len(), refused), (256, 44));
    // Who has introduced itself goes on.
    mp.batch(1, &records(0..10), &[]);
    mp.durable(1).await;
    for (send, mut replies) in open {
        let ended = tokio::time::timeout(DEADLINE, replies.message()).await;
        let status = ended.expect("an end").unwrap_err();
        assert_eq!(status.code(), Code::DeadlineExceeded, "{status}");
        drop(send);
    }
    assert!(silent(&mut clients[0]).await.is_ok(), "there is room again");
    emp.stop().await;
}

/// A batch that declares a variable which these processes own.
fn declaring(sequence: u64, id: u32, owners: wire::placement::Rule) -> ingest_request::Body {
    let layout = Layout::new(ElementType::U8, (1, 1), (1, 1)).unwrap();
    let spec = VariableSpec::new(format!("v{id}"), layout).unwrap();
    let variable = Variable::new(VarId(id), spec, vec![MpId(0)], GroupId(0)).unwrap();
    let mut variable = wire::Variable::from(variable);
    let spec = variable.spec.as_mut().unwrap();
    spec.placement = Some(wire::Placement { rule: Some(owners) });
    ingest_request::Body::Batch(wire::Batch {
        sequence,
        variables: vec![variable],
        sampling: 1.0,
        ..wire::Batch::default()
    })
}

/// Why the stream of a memory process is ended.
async fn refusal(mp: &mut Mp) -> Status {
    let wait = async {
        loop {
            match mp.replies.message().await {
                Ok(Some(_)) => {}
                Ok(None) => panic!("no reason"),
                Err(status) => return status,
            }
        }
    };
    let ended = tokio::time::timeout(DEADLINE, wait).await;
    ended.expect("an end")
}

/// Neither one declaration nor all together take more memory than their bounds; whoever is refused is told why, and
/// others go on.
#[tokio::test]
async fn declarations_are_bounded() {
    use wire::placement::Rule;
    let dir = dosmos_testseeds::scratch();
    let emp = Emp::start(dir.path(), 0, dir.path().join("s0")).await;
    let many = (0..200_000).map(|_| "a").collect();
    let long = std::iter::repeat_n("x".repeat(200), 6_000).collect();
    let group = Some("/a".repeat(1 << 20));
    let hostile = [
        (Rule::Explicit(many), "more than 65536 owners"),
        (Rule::Explicit(long), "more than 1048576 bytes together"),
        (
            Rule::RoundRobin(wire::placement::RoundRobin { group }),
            "at most 4096 bytes",
        ),
    ];
    for (incarnation, (owners, why)) in (5..).zip(hostile) {
        let mut mp = Mp::connect(&emp, "mp0", incarnation).await.unwrap();
        post(&mp.send, declaring(1, 1, owners));
        let status = refusal(&mut mp).await;
        assert_eq!(status.code(), Code::InvalidArgument, "{status}");
        assert!(status.message().contains(why), "{status}");
    }

    let mut mp = Mp::connect(&emp, "mp0", 10).await.unwrap();
    for n in 1..100 {
        let most = std::iter::repeat_n("m".repeat(200), 5_000).collect();
        post(&mp.send, declaring(n, n as u32, Rule::Explicit(most)));
    }
    let status = refusal(&mut mp).await;
    assert_eq!(status.code(), Code::ResourceExhausted, "{status}");
    assert!(status.message().contains("67108864 bytes"), "{status}");

    let mut mp = Mp::connect(&emp, "mp0", 11).await.unwrap();
    mp.batch(1, &records(0..10), &[]);
    mp.durable(1).await;
    emp.stop().await;
}

/// What is written to files that somebody removed is lost: that is said, and no answer is complete.
#[tokio::test]
async fn a_store_that_is_removed_while_it_is_written_is_said() {
    let dir = dosmos_testseeds::scratch();
    let emp = Emp::start(dir.path(), 0, dir.path().join("s0")).await;
    let mut mp = Mp::connect(&emp, "mp0", 5).await.unwrap();
    mp.batch(1, &records(0..10), &[]);
    mp.durable(1).await;
    let mut client = emp.client().await;
    let status = client.get_status(wire::StatusRequest {}).await.unwrap();
    assert_eq!(status.into_inner().trouble, "");
    std::fs::remove_dir_all(dir.path().join("s0")).unwrap();
    mp.batch(2, &records(10..20), &[]);
    mp.durable(2).await;
    let status = client.get_status(wire::StatusRequest {}).await.unwrap();
    let trouble = status.into_inner().trouble;
    assert!(
        trouble.contains("was removed while it was written"),
        "{trouble}"
    );
    let catalog = client.get_catalog(wire::CatalogRequest::default()).await;
    let lacking = catalog.unwrap().into_inner().completeness.unwrap();
    assert_eq!(lacking.missing_stores, ["emp0"]);
    emp.stop().await;
}
