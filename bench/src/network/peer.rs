//! Both ends of the measurement: a process that sends every message back, and one that waits for it.
//!
//! They speak the protocol between memory processes, over the same transport, from the same kind of
//! runtime; nothing is done with a message but to send it back.

use std::process::Stdio;
use std::time::Instant;

use anyhow::{Context, bail};
use dosmos_proto::token::ENV_TOKEN;
use dosmos_proto::transport::{self, Address, Listener};
use dosmos_proto::wire::memory_client::MemoryClient;
use dosmos_proto::wire::memory_server::{Memory, MemoryServer};
use dosmos_proto::wire::{ApReply, ApRequest, PeerMessage, PeerReadDone, peer_message::Body};
use dosmos_proto::{MAX_MESSAGE_BYTES, Nanos, Token};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeVal;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio_stream::StreamExt;
use tokio_stream::wrappers::UnboundedReceiverStream;
use tonic::{Request, Response, Status, Streaming};

/// Processor time of this process so far: all of it, and what the system took of it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cpu {
    pub(super) all: Nanos,
    pub(super) system: Nanos,
}

impl Cpu {
    fn now() -> Self {
        let nanos = |t: TimeVal| {
            let ns = t.tv_sec() * 1_000_000_000 + t.tv_usec() * 1000;
            Nanos(u64::try_from(ns).unwrap_or(0))
        };
        getrusage(UsageWho::RUSAGE_SELF).map_or(Self::default(), |usage| Self {
            all: nanos(usage.user_time()) + nanos(usage.system_time()),
            system: nanos(usage.system_time()),
        })
    }

    fn since(self, before: Self) -> Self {
        Self {
            all: self.all - before.all,
            system: self.system - before.system,
        }
    }
}

/// The other end.
struct Echo;

type Replies<T> = std::pin::Pin<Box<dyn tokio_stream::Stream<Item = Result<T, Status>> + Send>>;

#[tonic::async_trait]
impl Memory for Echo {
    type ApplicationStream = Replies<ApReply>;
    async fn application(
        &self,
        _: Request<Streaming<ApRequest>>,
    ) -> Result<Response<Self::ApplicationStream>, Status> {
        Err(Status::unimplemented("no memory process: it answers peers"))
    }

    type PeerStream = Replies<PeerMessage>;
    async fn peer(
        &self,
        request: Request<Streaming<PeerMessage>>,
    ) -> Result<Response<Self::PeerStream>, Status> {
        let (sender, queue) = unbounded_channel();
        tokio::spawn(echo(request.into_inner(), sender));
        let replies = UnboundedReceiverStream::new(queue).map(Ok);
        Ok(Response::new(Box::pin(replies)))
    }
}

async fn echo(mut messages: Streaming<PeerMessage>, sender: UnboundedSender<PeerMessage>) {
    while let Ok(Some(mut message)) = messages.message().await {
        // Asking for the processor time costs a system call: only when it is wanted.
        if message.call == 0 {
            let cpu = Cpu::now();
            message.service_ns = cpu.all.0;
            message.wait_ns = cpu.system.0;
        }
        if sender.send(message).is_err() {
            break;
        }
    }
}

/// Answers every message until standard input ends.
pub(super) async fn answer(address: &str) -> anyhow::Result<()> {
    let address: Address = address.parse().map_err(anyhow::Error::msg)?;
    let listener = Listener::bind(&address).await?;
    dosmos_cli::output::text(&format!("{}\n", listener.address()));
    let service = MemoryServer::new(Echo)
        .max_decoding_message_size(MAX_MESSAGE_BYTES)
        .max_encoding_message_size(MAX_MESSAGE_BYTES);
    let parent_ends = dosmos_cli::node::end_of(true)?;
    let token = Token::from_env()?.context("there is no token")?;
    let server = transport::server(token).add_service(service);
    tokio::select! {
        ended = server.serve_with_incoming(listener) => ended.context("the echo server failed"),
        () = parent_ends => Ok(()),
    }
}

/// A link to the other end, which is a process that ends with this.
pub(crate) struct Link {
    _process: tokio::process::Child,
    sender: UnboundedSender<PeerMessage>,
    replies: Streaming<PeerMessage>,
}

/// What some messages there and back cost.
#[derive(Clone, Debug)]
pub(crate) struct Measured {
    /// Median time there and back.
    pub(super) round_trip: Nanos,
    /// The times there and back, in order of their length.
    pub(crate) times: Vec<Nanos>,
    /// Processor time of both processes for all of them.
    pub(super) cpu: Cpu,
}

impl Link {
    /// To another process that listens at `address`, `through` something before it, if that is given.
    pub(crate) async fn open(address: &Address, through: Option<&Address>) -> anyhow::Result<Self> {
        let program = std::env::current_exe().context("where is this program?")?;
        let token = Token::generate()?;
        let mut process = tokio::process::Command::new(program)
            .args(["network", "--answer", &address.to_string()])
            .env(ENV_TOKEN, token.reveal())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .context("cannot start the other end")?;
        let said = process.stdout.take().context("it has no output")?;
        let mut line = String::new();
        BufReader::new(said).read_line(&mut line).await?;
        let address: Address = line
            .trim()
            .parse()
            .with_context(|| format!("the other end said {line:?}"))?;
        let address = through.unwrap_or(&address);
        let channel =
            transport::connect(address, Some(&token), std::time::Duration::from_secs(5)).await?;
        let mut client = MemoryClient::new(channel)
            .max_decoding_message_size(MAX_MESSAGE_BYTES)
            .max_encoding_message_size(MAX_MESSAGE_BYTES);
        let (sender, queue): (_, UnboundedReceiver<PeerMessage>) = unbounded_channel();
        let replies = client.peer(UnboundedReceiverStream::new(queue)).await?;
        Ok(Self {
            _process: process,
            sender,
            replies: replies.into_inner(),
        })
    }

    async fn exchange(&mut self, message: PeerMessage) -> anyhow::Result<PeerMessage> {
        if self.sender.send(message).is_err() {
            bail!("the link ended");
        }
        self.replies.message().await?.context("the link ended")
    }

    async fn cpu(&mut self) -> anyhow::Result<Cpu> {
        let there = self.exchange(PeerMessage::default()).await?;
        let here = Cpu::now();
        Ok(Cpu {
            all: Nanos(there.service_ns) + here.all,
            system: Nanos(there.wait_ns) + here.system,
        })
    }

    /// Sends `messages` messages of `bytes` bytes there and back, one after another.
    pub(crate) async fn measure(
        &mut self,
        bytes: usize,
        messages: u32,
    ) -> anyhow::Result<Measured> {
        let message = PeerMessage {
            call: 1,
            body: Some(Body::ReadDone(PeerReadDone {
                data: vec![0x5a; bytes].into(),
                ..PeerReadDone::default()
            })),
            ..PeerMessage::default()
        };
        let mut times = Vec::with_capacity(messages as usize);
        let before = self.cpu().await?;
        for _ in 0..messages {
            let begun = Instant::now();
            self.exchange(message.clone()).await?;
            times.push(Nanos::from(begun.elapsed()));
        }
        let cpu = self.cpu().await?.since(before);
        times.sort_unstable();
        Ok(Measured {
            round_trip: times[times.len() / 2],
            times,
            cpu,
        })
    }
}
