//! An event manager is killed, for real and at any instant, while records stream in; it is started
//! again, its memory process sends again what was not acknowledged, and at the end every record is there
//! once: in its store, in its meta-objects, and in order.

use std::collections::{HashMap, VecDeque};
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use dosmos_proto::transport::{self, Address, Listener};
use dosmos_proto::wire::event_manager_client::EventManagerClient;
use dosmos_proto::wire::{self, ingest_reply, ingest_request};
use dosmos_proto::{AddressBook, ObjectId, VarId};
use dosmos_testseeds::Random;
use dosmos_testseeds::child::{self, Victim};
use dosmos_trace::query::{Completeness, Filter, MetaQuery, TraceSource};
use dosmos_trace::record::{Op, Record, Side};
use dosmos_trace::store::StoreSource;
use tokio::sync::mpsc;
use tokio_stream::wrappers::UnboundedReceiverStream;

use crate::common;

/// Set in the process that is to be killed: the directory of its run.
const DIRECTORY: &str = "DOSMOS_TEST_KILLED_EMP";
/// How often it is killed, unless told otherwise: `DOSMOS_CASES=500 cargo test -p dosmos-emp killed`.
const KILLS: u32 = 50;
const DEADLINE: Duration = Duration::from_secs(60);
/// Longest life, in microseconds, after the memory process was welcomed.
const LIFE_US: u64 = 60_000;
/// Batches sent and not acknowledged at which the memory process waits.
const HELD: usize = 200;

fn record(i: u64) -> Record {
    Record {
        object: ObjectId::new(VarId(7), (i % 5) as u32),
        ..common::record(i, 0, Side::Requester, Op::Write)
    }
}

/// The event manager's process: until it is killed.
fn serve(dir: &Path) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let book = AddressBook::new(HashMap::new(), Some(dir));
        let listener = Listener::bind(&Address::Tcp("127.0.0.1:0".into()))
            .await
            .unwrap();
        let config = common::config(0, dir.join("store"));
        let never = std::future::pending();
        dosmos_emp::run(config, listener, book, never)
            .await
            .unwrap();
    });
}

fn victim(dir: &Path) -> Victim {
    Victim::start(child::again(DIRECTORY, dir).stdout(Stdio::null()))
}

/// What a memory process holds: batches that are not acknowledged.
#[derive(Default)]
struct Sender {
    held: VecDeque<(u64, Vec<Record>)>,
    batches: u64,
    records: u64,
}

impl Sender {
    /// The next batch: small mostly, sometimes more than a chunk.
    fn make(&mut self, random: &mut Random) {
        let size = match random.below(30) {
            0 => 9_000,
            n => n * n,
        };
        let records = (self.records..self.records + size).map(record).collect();
        self.records += size;
        self.batches += 1;
        self.held.push_back((self.batches, records));
    }

    fn acknowledged(&mut self, sequence: u64) {
        while self.held.pop_front_if(|(s, _)| *s <= sequence).is_some() {}
    }

    /// Streams until the event manager, `victim`, is gone; without one, until everything is acknowledged.
    async fn stream(&mut self, dir: &Path, random: &mut Random, victim: Option<Victim>) {
        let mut link = Link::connect(dir).await;
        self.acknowledged(link.welcome);
        let mut sent = self.held.front().map_or(self.batches, |(s, _)| s - 1);
        let to_the_end = victim.is_none();
        let kill = victim.map(|victim| {
            // Not to wait for anything: the instant of the kill is what is random here.
            let life = Duration::from_micros(random.below(LIFE_US));
            tokio::task::spawn_blocking(move || {
                std::thread::sleep(life);
                drop(victim);
            })
        });
        loop {
            if !to_the_end && self.held.len() < HELD {
                self.make(random);
            }
            let before = sent;
            for (sequence, records) in self.held.iter().filter(|(s, _)| *s > before) {
                link.batch(*sequence, records);
                sent = *sequence;
            }
            if to_the_end && self.held.is_empty() {
                return;
            }
            // With room left no acknowledgement is waited for.
            let limit = match to_the_end || self.held.len() >= HELD {
                true => DEADLINE,
                false => Duration::from_micros(100),
            };
            match tokio::time::timeout(limit, link.replies.message()).await {
                Err(_) => assert!(limit < DEADLINE, "no acknowledgement in {DEADLINE:?}"),
                Ok(Ok(Some(reply))) => {
                    if let Some(ingest_reply::Body::Durable(n)) = reply.body {
                        self.acknowledged(n);
                    }
                }
                Ok(_) => break,
            }
        }
        assert!(!to_the_end, "the connection ended");
        if let Some(kill) = kill {
            kill.await.unwrap();
        }
    }
}

struct Link {
    send: mpsc::UnboundedSender<wire::IngestRequest>,
    replies: tonic::Streaming<wire::IngestReply>,
    welcome: u64,
}

impl Link {
    /// As soon as the event manager answers.
    async fn connect(dir: &Path) -> Self {
        let started = Instant::now();
        loop {
            assert!(started.elapsed() < DEADLINE, "no welcome in {DEADLINE:?}");
            if let Some(link) = Self::try_connect(dir).await {
                return link;
            }
            tokio::task::yield_now().await;
        }
    }

    async fn try_connect(dir: &Path) -> Option<Self> {
        // Asked each time: a new process has a new address.
        let book = AddressBook::new(HashMap::new(), Some(dir));
        let channel =
            transport::connect(&book.resolve("emp0")?, book.token().as_ref(), DEADLINE).await;
        let (send, requests) = mpsc::unbounded_channel();
        let hello = common::hello("mp0", 1);
        let body = Some(ingest_request::Body::Hello(hello));
        send.send(wire::IngestRequest { body }).ok()?;
        let mut client = EventManagerClient::new(channel.ok()?);
        let replies = client.ingest(UnboundedReceiverStream::new(requests)).await;
        let mut replies = replies.ok()?.into_inner();
        match replies.message().await.ok()??.body? {
            ingest_reply::Body::Welcome(welcome) => Some(Self {
                send,
                replies,
                welcome: welcome.durable,
            }),
            other => panic!("{other:?}"),
        }
    }

    fn batch(&self, sequence: u64, records: &[Record]) {
        let batch = wire::Batch {
            sequence,
            records: Some(dosmos_trace::wire::encode(records)),
            sampling: 1.0,
            ..Default::default()
        };
        let body = Some(ingest_request::Body::Batch(batch));
        // A connection that is gone shows when its replies are read.
        let _ = self.send.send(wire::IngestRequest { body });
    }
}

#[test]
fn every_record_is_stored_once_however_often_the_event_manager_is_killed() {
    if let Some(dir) = std::env::var_os(DIRECTORY) {
        return serve(Path::new(&dir));
    }
    let kills = dosmos_testseeds::cases(KILLS);
    let mut random = Random::new(dosmos_testseeds::seed());
    let dir = tempfile::tempdir().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let mut sender = Sender::default();
    let records = runtime.block_on(async {
        for _ in 0..kills {
            let victim = victim(dir.path());
            sender.stream(dir.path(), &mut random, Some(victim)).await;
        }
        let last = victim(dir.path());
        sender.stream(dir.path(), &mut random, None).await;
        drop(last);
        let source = StoreSource::open(&dir.path().join("store")).unwrap();
        let found = source.records(&Filter::default(), 0).await.unwrap();
        let expected: Vec<Record> = (0..sender.records).map(record).collect();
        assert_eq!(found.len(), expected.len());
        assert!(found.records == expected);
        // Nothing is lost; and it is known that the memory process, which never said so, may not have reported everything.
        assert_eq!(found.completeness.silent, ["mp0"]);
        let rest = Completeness {
            silent: Vec::new(),
            ..found.completeness
        };
        assert!(rest.is_complete(), "{rest:?}");
        let metas = source.meta_objects(&MetaQuery::default()).await.unwrap();
        let counted: u64 = metas.primaries.iter().map(|p| p.counts.writes).sum();
        assert_eq!(counted, sender.records);
        sender.records
    });
    assert!(
        records > u64::from(kills) * 100,
        "hardly anything was sent: {records}"
    );
}
