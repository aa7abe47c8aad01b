//! The gRPC service: sessions of application processes, and links that lower-numbered peers dial.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use dosmos_proto::wire::memory_server::Memory;
use dosmos_proto::wire::{self as w, ApReply, ApRequest, PeerMessage};
use dosmos_proto::{ErrorCode, MpId, PROTOCOL, PhaseTimes, Refusal};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::timeout;
use tokio_stream::Stream;
use tonic::{Request, Response, Status, Streaming};
use tracing::{debug, warn};

use super::Shared;
use crate::core::messages::{Input, Request as CoreRequest};
use crate::wire;

/// Who connects introduces itself within this time.
const GREETING: Duration = Duration::from_secs(10);
/// Replies waiting for a slow application process before no more of its requests are read.
const MAX_BACKLOG: usize = 8192;
/// How often a paused session looks whether it may go on.
const PAUSE: Duration = Duration::from_millis(5);

/// The service.
pub(super) struct Service {
    shared: Arc<Shared>,
}

impl Service {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self { shared }
    }
}

/// Messages of one connection, from its queue.
pub(super) struct Queue<T> {
    messages: UnboundedReceiver<T>,
    backlog: Arc<AtomicUsize>,
}

impl<T> Stream for Queue<T> {
    type Item = Result<T, Status>;
    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let next = self.messages.poll_recv(cx);
        if let Poll::Ready(Some(_)) = next {
            let taken = |n: usize| Some(n.saturating_sub(1));
            // The closure always gives a value.
            let _ = self
                .backlog
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, taken);
        }
        next.map(|m| m.map(Ok))
    }
}

#[tonic::async_trait]
impl Memory for Service {
    type ApplicationStream = Queue<ApReply>;
    async fn application(
        &self,
        request: Request<Streaming<ApRequest>>,
    ) -> Result<Response<Self::ApplicationStream>, Status> {
        let (sender, messages) = unbounded_channel();
        let backlog = Arc::new(AtomicUsize::new(0));
        let session = Session {
            shared: Arc::clone(&self.shared),
            requests: request.into_inner(),
            sender,
            backlog: Arc::clone(&backlog),
        };
        tokio::spawn(session.run());
        Ok(Response::new(Queue { messages, backlog }))
    }

    type PeerStream = Queue<PeerMessage>;
    async fn peer(
        &self,
        request: Request<Streaming<PeerMessage>>,
    ) -> Result<Response<Self::PeerStream>, Status> {
        let (sender, messages) = unbounded_channel();
        let shared = Arc::clone(&self.shared);
        tokio::spawn(accept_peer(shared, request.into_inner(), sender));
        Ok(Response::new(Queue {
            messages,
            backlog: Arc::default(),
        }))
    }
}

/// The session of one application process.
struct Session {
    shared: Arc<Shared>,
    requests: Streaming<ApRequest>,
    sender: UnboundedSender<ApReply>,
    backlog: Arc<AtomicUsize>,
}

impl Session {
    async fn run(mut self) {
        let Ok(Ok(Some(first))) = timeout(GREETING, self.requests.message()).await else {
            return;
        };
        let id = first.id;
        match self.greet(first) {
            // If the receiver is gone the session ends by itself.
            Err(refusal) => drop(self.sender.send(wire::ap::refused(id, refusal))),
            Ok((ap, session)) => {
                // The link holds the only sender from here: when it goes, the stream ends.
                let Self {
                    shared,
                    mut requests,
                    backlog,
                    sender,
                } = self;
                drop(sender);
                debug!("{} is here", shared.topology.ap_name(ap));
                loop {
                    pause(&shared, &backlog).await;
                    match requests.message().await {
                        Ok(Some(request)) => feed(&shared, ap, request),
                        Ok(None) | Err(_) => break,
                    }
                }
                debug!("{} is gone", shared.topology.ap_name(ap));
                shared.detach_ap(ap, session);
            }
        }
    }

    fn greet(&self, first: ApRequest) -> Result<(dosmos_proto::ApId, u64), Refusal> {
        let (id, hello) = wire::ap::hello(first)?;
        check_protocol(hello.protocol, &hello.name)?;
        let sender = self.sender.clone();
        let backlog = Arc::clone(&self.backlog);
        let (welcome, session) = self.shared.attach_ap(&hello.name, sender, backlog)?;
        let ap = welcome.ap;
        let _ = self
            .sender
            .send(wire::ap::welcome(id, welcome, &self.shared.topology));
        Ok((ap, session))
    }
}

fn check_protocol(theirs: u32, name: &str) -> Result<(), Refusal> {
    if theirs == PROTOCOL {
        return Ok(());
    }
    Err(Refusal::new(
        ErrorCode::Invalid,
        format!(
            "{name} speaks protocol {theirs}, this process {PROTOCOL}; run the same version everywhere"
        ),
    ))
}

/// Waits while the application process does not take its replies, or there is no room for records
/// and the policy is to block.
async fn pause(shared: &Shared, backlog: &AtomicUsize) {
    let must_wait = || {
        let state = shared.lock();
        let waits = backlog.load(Ordering::Relaxed) >= MAX_BACKLOG || state.recorder.blocks();
        waits && !state.closed
    };
    while must_wait() {
        // Room is announced; a backlog is not.
        let _ = timeout(PAUSE, shared.room.notified()).await;
    }
}

fn feed(shared: &Shared, ap: dosmos_proto::ApId, request: ApRequest) {
    let now = shared.clock.now();
    let id = request.id;
    let mut request = request;
    let times = std::mem::take(&mut request.times);
    let mut state = shared.lock();
    for piece in times {
        let piece = PhaseTimes { ap, ..piece.into() };
        state.recorder.times(piece);
    }
    match wire::ap::request(request) {
        Ok((timeout, request)) => {
            let bye = request == CoreRequest::Bye;
            let input = Input::Request {
                ap,
                id,
                timeout,
                request,
            };
            shared.feed_locked(&mut state, now, input);
            if bye {
                // The farewell is queued; the stream ends behind it.
                state.aps.remove(&ap);
            }
        }
        Err(malformed) => {
            if let Some(link) = state.aps.get(&ap) {
                link.backlog.fetch_add(1, Ordering::Relaxed);
                let _ = link.sender.send(wire::ap::refused(id, malformed.into()));
            }
        }
    }
}

/// A peer dialled: greet, and if it is who it should be, read what it sends.
async fn accept_peer(
    shared: Arc<Shared>,
    mut messages: Streaming<PeerMessage>,
    sender: UnboundedSender<PeerMessage>,
) {
    let Ok(Ok(Some(first))) = timeout(GREETING, messages.message()).await else {
        return;
    };
    let source = first.source;
    match check_peer(&shared, first, None) {
        Ok(peer) => {
            let _ = sender.send(hello(&shared, peer));
            read_peer(&shared, peer, sender, messages).await;
        }
        Err(refusal) => {
            warn!("refused a peer: {refusal}");
            let _ = sender.send(PeerMessage {
                source: shared.me.0,
                destination: source,
                body: Some(w::peer_message::Body::Error(refusal.into())),
                ..PeerMessage::default()
            });
        }
    }
}

/// Our own first message.
pub(super) fn hello(shared: &Shared, peer: MpId) -> PeerMessage {
    PeerMessage {
        source: shared.me.0,
        destination: peer.0,
        body: Some(w::peer_message::Body::Hello(w::PeerHello {
            name: shared.topology.mp_name(shared.me),
            protocol: PROTOCOL,
            topology: shared.topology.fingerprint(),
        })),
        ..PeerMessage::default()
    }
}

/// Checks a peer's first message: which neighbour it is.
pub(super) fn check_peer(
    shared: &Shared,
    first: PeerMessage,
    expected: Option<MpId>,
) -> Result<MpId, Refusal> {
    use w::peer_message::Body;
    let hello = match first.body {
        Some(Body::Hello(hello)) => hello,
        Some(Body::Error(e)) => return Err(e.into()),
        _ => {
            return Err(Refusal::new(
                ErrorCode::Invalid,
                "the first message of a peer must be `hello`",
            ));
        }
    };
    check_protocol(hello.protocol, &hello.name)?;
    let me = shared.topology.mp_name(shared.me);
    let known = shared.topology.find_mp(&hello.name);
    if hello.topology != shared.topology.fingerprint() {
        return Err(Refusal::new(
            ErrorCode::Invalid,
            format!(
                "{} and {me} were started with different cluster files; use one for all",
                hello.name
            ),
        ));
    }
    match known {
        Some(peer) if expected.is_none_or(|e| e == peer) && shared.is_neighbour(peer) => Ok(peer),
        _ => Err(Refusal::new(
            ErrorCode::UnknownProcess,
            format!("{} has no link to {me} in the cluster file", hello.name),
        )),
    }
}

/// Reads a peer's messages until its link ends.
pub(super) async fn read_peer(
    shared: &Shared,
    peer: MpId,
    sender: UnboundedSender<PeerMessage>,
    mut messages: Streaming<PeerMessage>,
) -> String {
    let session = shared.attach_peer(peer, sender);
    debug!("{} is up", shared.topology.mp_name(peer));
    let why = loop {
        match messages.message().await {
            Ok(Some(message)) => {
                if !feed_peer(shared, peer, session, message) {
                    break "it dialled again".to_owned();
                }
            }
            Ok(None) => break "it closed the link".to_owned(),
            Err(status) => break status.message().to_owned(),
        }
    };
    debug!("{} is down: {why}", shared.topology.mp_name(peer));
    shared.detach_peer(peer, session);
    why
}

/// Whether the link is still the peer's current one.
fn feed_peer(shared: &Shared, peer: MpId, session: u64, message: PeerMessage) -> bool {
    let now = shared.clock.now();
    let (source, call) = (message.source, message.call);
    let mut state = shared.lock();
    if !Shared::is_current(&state, peer, session) {
        return false;
    }
    match wire::peer::message(message) {
        Ok(message) => {
            let from = peer;
            shared.feed_locked(&mut state, now, Input::Message { from, message });
        }
        Err(malformed) => {
            warn!("{}: {malformed}", shared.topology.mp_name(peer));
            if let Some(link) = state.peers.get(&peer)
                && let Some(refused) = wire::peer::refused(shared.me, source, call, malformed)
            {
                let _ = link.sender.send(refused);
            }
        }
    }
    true
}

impl Shared {
    fn is_neighbour(&self, peer: MpId) -> bool {
        self.lock().core.neighbours().contains(&peer)
    }
}
