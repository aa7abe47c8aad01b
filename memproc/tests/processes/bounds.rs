//! What others ask of a memory process has bounds: hostile requests, sent to real processes.

use std::collections::HashMap;
use std::time::Duration;

use bytes::Bytes;
use dosmos_memproc::{Config, Recording, Summary, run};
use dosmos_proto::transport::{self, Address, Channel, Listener};
use dosmos_proto::wire::ap_reply::Body as Out;
use dosmos_proto::wire::ap_request::Body as In;
use dosmos_proto::wire::memory_client::MemoryClient;
use dosmos_proto::wire::placement::{RoundRobin, Rule};
use dosmos_proto::wire::{self as w};
use dosmos_proto::{
    AddressBook, ElementType, ErrorCode, Layout, MAX_MESSAGE_BYTES, MpId, Nanos, PROTOCOL, Refusal,
    VariableSpec,
};
use http_body_util::StreamBody;
use hyper::body::Frame;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_stream::wrappers::UnboundedReceiverStream;
use tonic::body::Body;
use tonic::codegen::http::Request;
use tonic::{Code, Status, Streaming};
use tower::ServiceExt;

use crate::topology::topology;

const TIMEOUT: Duration = Duration::from_secs(30);

/// A memory process in this process, with application processes of its own.
struct Process {
    dir: tempfile::TempDir,
    address: Address,
    stop: oneshot::Sender<()>,
    task: JoinHandle<Summary>,
}

impl Process {
    async fn start() -> Self {
        let dir = dosmos_testseeds::scratch();
        let listener = Listener::bind(&Address::Unix(dir.path().join("mp0"))).await;
        let listener = listener.unwrap();
        let address = listener.address().clone();
        let topology = topology(&["/a"], 1, 2);
        let config = Config {
            topology: (*topology).clone(),
            me: MpId(0),
            recording: Recording::default(),
            overrides: Vec::new(),
            default_deadline: Nanos::ZERO,
            in_application: false,
            metrics: None,
        };
        let (stop, stopped) = oneshot::channel();
        let book = AddressBook::new(HashMap::new(), Some(dir.path()));
        // Made now, so that those who connect before the process runs have it.
        book.require_token().unwrap();
        let task = tokio::spawn(async move {
            let stopped = async {
                let _ = stopped.await;
            };
            run(config, listener, book, stopped).await.unwrap()
        });
        Self {
            dir,
            address,
            stop,
            task,
        }
    }

    async fn channel(&self) -> Channel {
        let book = AddressBook::new(HashMap::new(), Some(self.dir.path()));
        let token = book.token();
        let channel = transport::connect(&self.address, token.as_ref(), TIMEOUT).await;
        channel.unwrap()
    }

    async fn client(&self) -> MemoryClient<Channel> {
        MemoryClient::new(self.channel().await)
            .max_decoding_message_size(MAX_MESSAGE_BYTES)
            .max_encoding_message_size(MAX_MESSAGE_BYTES)
    }

    async fn session(&self, name: &str) -> Session {
        let mut session = silent(&mut self.client().await).await.unwrap();
        let name = name.to_owned();
        let protocol = PROTOCOL;
        let inbox = String::new();
        let hello = In::Hello(w::ApHello {
            name,
            protocol,
            inbox,
        });
        match session.call(hello).await.unwrap() {
            Out::Welcome(_) => session,
            other => panic!("{other:?}"),
        }
    }

    async fn stop(self) {
        let _ = self.stop.send(());
        timeout(TIMEOUT, self.task).await.unwrap().unwrap();
    }
}

/// An application process, raw.
struct Session {
    out: mpsc::UnboundedSender<w::ApRequest>,
    replies: Streaming<w::ApReply>,
}

/// A stream whose other side has said nothing yet.
async fn silent(client: &mut MemoryClient<Channel>) -> Result<Session, Status> {
    let (out, queue) = mpsc::unbounded_channel();
    let call = client.application(UnboundedReceiverStream::new(queue));
    let replies = call.await?.into_inner();
    Ok(Session { out, replies })
}

impl Session {
    /// The reply, or none if the session ended.
    async fn call(&mut self, body: In) -> Option<Out> {
        let request = w::ApRequest {
            id: 7,
            timeout_ms: Some(20_000),
            body: Some(body),
            ..w::ApRequest::default()
        };
        self.out.send(request).unwrap();
        let reply = timeout(TIMEOUT, self.replies.message()).await.unwrap();
        reply.unwrap().and_then(|r| r.body)
    }

    /// Declares a variable that these processes own.
    async fn declare(&mut self, name: &str, owners: Rule) -> Result<(), Refusal> {
        let layout = Layout::new(ElementType::U8, (1, 1), (1, 1)).unwrap();
        let mut spec = w::VariableSpec::from(VariableSpec::new("v", layout).unwrap());
        name.clone_into(&mut spec.name);
        spec.placement = Some(w::Placement { rule: Some(owners) });
        match self.call(In::Declare(spec)).await.unwrap() {
            Out::Variable(_) => Ok(()),
            Out::Error(e) => Err(e.into()),
            other => panic!("{other:?}"),
        }
    }
}

fn owners<N: AsRef<str>>(names: impl Iterator<Item = N>) -> Rule {
    Rule::Explicit(names.collect())
}

#[tokio::test]
async fn declarations_are_bounded() {
    let process = Process::start().await;
    let mut session = process.session("ap0").await;
    let mp0 = || owners(std::iter::once("mp0"));
    let hostile = [
        (
            "many",
            owners((0..200_000).map(|_| "a")),
            "more than 65536 owners; a shorter list repeats",
        ),
        (
            "long",
            owners((0..6_000).map(|_| "x".repeat(200))),
            "more than 1048576 bytes together; a shorter list repeats",
        ),
        (
            "one",
            owners(std::iter::once("x".repeat(1 << 20))),
            "a name has 1 to 200 bytes",
        ),
        (
            "path",
            Rule::RoundRobin(RoundRobin {
                group: Some("/a".repeat(1 << 20)),
            }),
            "at most 4096 bytes",
        ),
        (&"n".repeat(1 << 20), mp0(), "a name has 1 to 200 bytes"),
    ];
    for (name, owners, why) in hostile {
        let refusal = session.declare(name, owners).await.unwrap_err();
        assert_eq!(refusal.code, ErrorCode::Invalid);
        assert!(refusal.message.contains(why), "{}", refusal.message);
    }
    session.declare("x", mp0()).await.unwrap();

    // Each of them is small enough; all of them are not.
    let most = || owners((0..65_536).map(|_| "mp0"));
    let mut count = 0;
    let refusal = loop {
        count += 1;
        let name = format!("v{count}");
        if let Err(refusal) = session.declare(&name, most()).await {
            break refusal;
        }
    };
    assert_eq!(refusal.code, ErrorCode::Limit);
    let why = "more than 67108864; use arrays instead of many variables, and short lists of owners";
    assert!(refusal.message.contains(why), "{}", refusal.message);
    session.declare("x", mp0()).await.unwrap();
    process.stop().await;
}

/// Streams that do not introduce themselves are bounded, and ended when their time is over. Those of names that the cluster
/// file does not have, or that are taken, are no sessions.
#[tokio::test]
async fn sessions_and_streams_without_a_greeting_are_bounded() {
    let process = Process::start().await;
    let mut session = process.session("ap0").await;
    let mut client = process.client().await;
    for name in ["ap0", "nobody"].into_iter().cycle().take(600) {
        let mut other = silent(&mut client).await.unwrap();
        let hello = In::Hello(w::ApHello {
            name: name.to_owned(),
            protocol: PROTOCOL,
            ..Default::default()
        });
        match other.call(hello).await.unwrap() {
            Out::Error(_) => {}
            reply => panic!("{reply:?}"),
        }
        let end = timeout(TIMEOUT, other.replies.message()).await.unwrap();
        assert!(end.unwrap().is_none(), "the stream of a refused one ends");
    }

    let (mut open, mut refused) = (Vec::new(), 0);
    let mut clients = Vec::new();
    for _ in 0..6 {
        clients.push(process.client().await);
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
    session
        .declare("x", owners(std::iter::once("mp0")))
        .await
        .unwrap();
    for mut stream in open {
        let ended = timeout(TIMEOUT, stream.replies.message()).await;
        assert!(ended.expect("an end").unwrap().is_none());
    }
    let mut late = process.session("ap1").await;
    late.declare("x", owners(std::iter::once("mp0")))
        .await
        .unwrap();
    process.stop().await;
}

#[tokio::test]
async fn replies_that_are_not_read_hold_up_nobody_else_and_are_all_there_later() {
    // More than may wait before the process is not listened to (8,192).
    const REQUESTS: u64 = 20_000;
    let process = Process::start().await;
    let (mut lazy, mut other) = (process.session("ap0").await, process.session("ap1").await);
    lazy.declare("x", owners(["mp0"].iter())).await.unwrap();
    for id in 1..=REQUESTS {
        let request = w::ApRequest {
            id,
            body: Some(In::Open("x".into())),
            ..w::ApRequest::default()
        };
        lazy.out.send(request).unwrap();
    }
    let opened = other.call(In::Open("x".into())).await.unwrap();
    assert!(matches!(opened, Out::Variable(_)), "{opened:?}");
    for id in 1..=REQUESTS {
        let reply = timeout(TIMEOUT, lazy.replies.message()).await.unwrap();
        let reply = reply.unwrap().unwrap();
        assert_eq!(reply.id, id);
        assert!(matches!(reply.body, Some(Out::Variable(_))), "{reply:?}");
    }
    process.stop().await;
}

/// The address space of this process, in bytes.
fn address_space() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: u64 = statm.split(' ').next().unwrap().parse().unwrap();
    pages * 4096
}

/// Streams that announce messages of 80 MiB each and send a byte of them: memory is taken for what arrives only.
#[tokio::test]
async fn a_length_alone_takes_no_memory() {
    const STREAMS: usize = 200;
    let process = Process::start().await;
    let mut session = process.session("ap0").await;
    let before = address_space();
    let mut held = Vec::new();
    let channel = process.channel().await;
    for _ in 0..STREAMS {
        let (send, data) = mpsc::unbounded_channel::<Result<Frame<Bytes>, Status>>();
        let body = StreamBody::new(UnboundedReceiverStream::new(data));
        let request = Request::post("http://unix.invalid/dosmos.v1.Memory/Application")
            .header("content-type", "application/grpc")
            .header("te", "trailers")
            .body(Body::new(body))
            .unwrap();
        let mut announced = vec![0];
        announced.extend((MAX_MESSAGE_BYTES as u32).to_be_bytes());
        announced.push(1);
        send.send(Ok(Frame::data(announced.into()))).unwrap();
        let response = tokio::spawn(channel.clone().oneshot(request));
        held.push((send, response));
    }
    for (_, response) in &mut held {
        let response = timeout(TIMEOUT, response).await.unwrap().unwrap().unwrap();
        assert_eq!(response.status(), 200);
    }
    // What was sent has arrived when a later session is served.
    session
        .declare("x", owners(std::iter::once("mp0")))
        .await
        .unwrap();
    let grown = address_space().saturating_sub(before);
    let announced = (STREAMS * MAX_MESSAGE_BYTES) as u64;
    assert!(grown < announced / 4, "{grown} bytes");
    drop(held);
    process.stop().await;
}
