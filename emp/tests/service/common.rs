//! An event manager in this process, and a memory process that reports to it.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use dosmos_emp::{Config, Error, Summary};
use dosmos_proto::access::Credentials;
use dosmos_proto::topology::{ApplicationProcess, EventManager, Group, GroupPath, MemoryProcess};
use dosmos_proto::transport::{self, Address, Channel, Listener};
use dosmos_proto::wire::event_manager_client::EventManagerClient;
use dosmos_proto::wire::{self, ingest_reply, ingest_request};
use dosmos_proto::{
    AddressBook, ApId, EmpId, GroupId, MpId, Nanos, ObjectId, PROTOCOL, Token, Topology,
    TopologyBuilder, VarId,
};
use dosmos_trace::meta::HandOver;
use dosmos_trace::query::{Filter, MetaObjects, MetaQuery};
use dosmos_trace::record::{Flags, Op, Origin, Record, Side};
use dosmos_trace::store::Retention;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio_stream::wrappers::UnboundedReceiverStream;
use tonic::{Status, Streaming};

pub(crate) const DEADLINE: Duration = Duration::from_secs(20);
pub(crate) const X: ObjectId = ObjectId {
    var: VarId(7),
    index: 0,
};

pub(crate) fn topology() -> Topology {
    let mp = |i: u32| MemoryProcess {
        name: format!("mp{i}"),
        group: GroupId(0),
        event_manager: EmpId(i),
        link: false,
    };
    let ap = |i: u32| ApplicationProcess {
        name: format!("ap{i}"),
        memory_process: MpId(i),
    };
    let emp = |i: u32| EventManager {
        name: format!("emp{i}"),
    };
    TopologyBuilder {
        name: "test".into(),
        groups: vec![Group {
            path: GroupPath::top("a"),
            parent: None,
        }],
        memory_processes: vec![mp(0), mp(1)],
        application_processes: vec![ap(0), ap(1)],
        event_managers: vec![emp(0), emp(1)],
    }
    .build()
    .unwrap()
}

/// Event manager `me`, with this store.
pub(crate) fn config(me: u32, store: PathBuf) -> Config {
    Config {
        run: dosmos_trace::run::RunId::from_bits(1),
        topology: topology(),
        me: EmpId(me),
        store,
        metrics: None,
        retention: Retention::default(),
        selection: Default::default(),
        companion: None,
    }
}

/// An event manager in this process.
pub(crate) struct Emp {
    pub(crate) address: Address,
    pub(crate) token: Token,
    pub(crate) stop: oneshot::Sender<()>,
    pub(crate) task: JoinHandle<Result<Summary, Error>>,
}

impl Emp {
    pub(crate) async fn start(dir: &Path, me: u32, store: PathBuf) -> Self {
        Self::start_as(dir, config(me, store), None).await
    }

    /// One that shows these certificates.
    pub(crate) async fn start_as(
        dir: &Path,
        config: Config,
        credentials: Option<Credentials>,
    ) -> Self {
        let book = AddressBook::new(HashMap::new(), Some(dir)).secured(credentials);
        let listener = Listener::bind(&Address::Tcp("127.0.0.1:0".into()))
            .await
            .unwrap();
        let address = listener.address().clone();
        let token = book.require_token().unwrap();
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(dosmos_emp::run(config, listener, book, async {
            let _ = stopped.await;
        }));
        Self {
            address,
            token,
            stop,
            task,
        }
    }

    pub(crate) async fn client(&self) -> EventManagerClient<Channel> {
        let started = Instant::now();
        loop {
            match transport::connect(&self.address, Some(&self.token), DEADLINE).await {
                Ok(channel) => return EventManagerClient::new(channel),
                Err(e) => assert!(started.elapsed() < DEADLINE, "{e}"),
            }
            tokio::task::yield_now().await;
        }
    }

    pub(crate) async fn stop(self) -> Summary {
        self.stop.send(()).unwrap();
        self.task.await.unwrap().unwrap()
    }
}

/// A memory process's stream.
pub(crate) struct Mp {
    pub(crate) send: mpsc::UnboundedSender<wire::IngestRequest>,
    pub(crate) replies: Streaming<wire::IngestReply>,
    pub(crate) welcome: u64,
}

impl Mp {
    pub(crate) async fn connect(emp: &Emp, name: &str, incarnation: u64) -> Result<Self, Status> {
        let (send, requests) = mpsc::unbounded_channel();
        let hello = hello(name, incarnation);
        post(&send, ingest_request::Body::Hello(hello));
        let mut client = emp.client().await;
        let replies = client
            .ingest(UnboundedReceiverStream::new(requests))
            .await?;
        let mut replies = replies.into_inner();
        match replies.message().await?.and_then(|r| r.body) {
            Some(ingest_reply::Body::Welcome(w)) => Ok(Self {
                send,
                replies,
                welcome: w.durable,
            }),
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn batch(&self, sequence: u64, records: &[Record], hand_overs: &[HandOver]) {
        let at = records.len() as u32;
        let wired = |h| dosmos_trace::wire::hand_over_to_wire(h, at);
        let batch = wire::Batch {
            sequence,
            records: Some(dosmos_trace::wire::encode(records)),
            hand_overs: hand_overs.iter().map(wired).collect(),
            sampling: 1.0,
            counters: Some(wire::ProcessCounters {
                dropped: 2,
                ..Default::default()
            }),
            ..Default::default()
        };
        post(&self.send, ingest_request::Body::Batch(batch));
    }

    pub(crate) async fn durable(&mut self, up_to: u64) {
        let wait = async {
            loop {
                let reply = self.replies.message().await.unwrap().unwrap();
                if let Some(ingest_reply::Body::Durable(n)) = reply.body
                    && n >= up_to
                {
                    return;
                }
            }
        };
        tokio::time::timeout(DEADLINE, wait)
            .await
            .expect("an acknowledgement");
    }
}

/// How a memory process begins.
pub(crate) fn hello(memory_process: &str, incarnation: u64) -> wire::IngestHello {
    wire::IngestHello {
        memory_process: memory_process.into(),
        incarnation,
        protocol: PROTOCOL,
        topology: Some(topology().into()),
    }
}

pub(crate) fn post(send: &mpsc::UnboundedSender<wire::IngestRequest>, body: ingest_request::Body) {
    send.send(wire::IngestRequest { body: Some(body) }).unwrap();
}

pub(crate) fn record(i: u64, mp: u32, side: Side, op: Op) -> Record {
    Record {
        start: Nanos(1_000_000 + i),
        duration: Nanos(10),
        wait: Nanos(0),
        service: Nanos(1),
        op,
        side,
        origin: if mp == 0 {
            Origin::Local
        } else {
            Origin::Intra
        },
        flags: Flags::default(),
        object: X,
        ap: ApId(mp),
        mp: MpId(mp),
        peer: MpId(0),
        count: 1,
        bytes: 8,
        version: i,
        range: (0, 1),
    }
}

pub(crate) fn records(numbers: std::ops::Range<u64>) -> Vec<Record> {
    numbers
        .map(|i| record(i, 0, Side::Requester, Op::Write))
        .collect()
}

pub(crate) async fn stored(emp: &Emp) -> Vec<Record> {
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
        all.extend(dosmos_trace::wire::decode(&part.records.unwrap_or_default()).unwrap());
        lacking = part.completeness.or(lacking);
    }
    assert!(lacking.is_some(), "records say what they lack");
    all
}

pub(crate) async fn metas(emp: &Emp) -> MetaObjects {
    let request = wire::MetaRequest::from(MetaQuery::default());
    emp.client()
        .await
        .get_meta_objects(request)
        .await
        .unwrap()
        .into_inner()
        .into()
}
