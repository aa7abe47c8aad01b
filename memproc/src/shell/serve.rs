//! The gRPC service: sessions of application processes, and links that lower-numbered peers dial.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use dosmos_node::reconnect::LinkError;
use dosmos_proto::large::Carrier;
use dosmos_proto::wire::memory_server::Memory;
use dosmos_proto::wire::{ApReply, ApRequest, PeerMessage, ap_reply};
use dosmos_proto::{ApId, LargeMessages, PhaseTimes, Refusal};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;
use tokio_stream::Stream;
use tonic::{Request, Response, Status, Streaming};
use tracing::{debug, warn};

use super::incoming::Incoming;
use super::outgoing::{BOUNDS, Taken, line};
use super::peer::{GREETING, accept_peer, check_protocol};
use super::shared::Shared;
use crate::core::messages::{Input, Request as CoreRequest};
use crate::wire;

/// Replies waiting for a slow application process before no more of its requests are read.
const MAX_BACKLOG: usize = 8192;
/// How often a paused session looks whether it may go on.
const PAUSE: Duration = Duration::from_millis(5);

/// Streams whose other side has not introduced itself; more are refused. Each has its time for that. Those that have are
/// no more than the cluster file names: a second one of a name is refused, or takes the place of the first.
const MOST_STRANGERS: usize = 256;

/// The service.
pub(super) struct Service {
    shared: Arc<Shared>,
    strangers: Arc<Semaphore>,
}

impl Service {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self {
            shared,
            strangers: Arc::new(Semaphore::new(MOST_STRANGERS)),
        }
    }

    /// A place for a stream whose other side has not introduced itself.
    fn stranger(&self) -> Result<OwnedSemaphorePermit, Status> {
        let full = |_| {
            Status::resource_exhausted(format!(
                "{MOST_STRANGERS} streams are open whose other side has not introduced itself; try again when they have"
            ))
        };
        let place = Arc::clone(&self.strangers).try_acquire_owned();
        place.map_err(full)
    }
}

/// Replies to one application process, from their queue.
pub(super) struct Queue {
    messages: UnboundedReceiver<ApReply>,
    backlog: Arc<AtomicUsize>,
}

/// The messages of a connection, their large contents being in files where the other end takes that.
pub(super) struct Packed<S> {
    stream: S,
    large: Arc<LargeMessages>,
}

impl<M: Carrier, S: Stream<Item = Result<M, Status>> + Unpin> Stream for Packed<S> {
    type Item = Result<M, Status>;
    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let next = Pin::new(&mut self.stream).poll_next(cx);
        next.map(|m| m.map(|m| m.map(|m| self.large.pack(m))))
    }
}

impl Stream for Queue {
    type Item = Result<ApReply, Status>;
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
    type ApplicationStream = Packed<Queue>;
    async fn application(
        &self,
        request: Request<Streaming<ApRequest>>,
    ) -> Result<Response<Self::ApplicationStream>, Status> {
        let stranger = self.stranger()?;
        let (sender, messages) = unbounded_channel();
        let backlog = Arc::new(AtomicUsize::new(0));
        let large = Arc::new(LargeMessages::default());
        let session = Session {
            shared: Arc::clone(&self.shared),
            requests: Incoming::new(request.into_inner(), &large),
            sender,
            backlog: Arc::clone(&backlog),
        };
        tokio::spawn(session.run(stranger));
        let stream = Queue { messages, backlog };
        Ok(Response::new(Packed { stream, large }))
    }

    type PeerStream = Packed<Taken>;
    async fn peer(
        &self,
        request: Request<Streaming<PeerMessage>>,
    ) -> Result<Response<Self::PeerStream>, Status> {
        let stranger = self.stranger()?;
        let (outgoing, taken) = line(BOUNDS, &self.shared.slow_peers);
        let shared = Arc::clone(&self.shared);
        let large = Arc::new(LargeMessages::default());
        let incoming = Incoming::new(request.into_inner(), &large);
        tokio::spawn(accept_peer(shared, incoming, outgoing, stranger));
        let stream = taken;
        Ok(Response::new(Packed { stream, large }))
    }
}

/// The session of one application process.
struct Session {
    shared: Arc<Shared>,
    requests: Incoming<ApRequest>,
    sender: UnboundedSender<ApReply>,
    backlog: Arc<AtomicUsize>,
}

impl Session {
    async fn run(mut self, stranger: OwnedSemaphorePermit) {
        let Ok(Ok(first)) = timeout(GREETING, self.requests.next()).await else {
            return;
        };
        drop(stranger);
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
                let why = loop {
                    pause(&shared, ap, &backlog).await;
                    match requests.next().await {
                        Ok(request) => {
                            feed(&shared, ap, request);
                            shared.spinner.event();
                        }
                        Err(why) => break why,
                    }
                };
                if let LinkError::Impossible(_) = why {
                    warn!("{}: {why}", shared.topology.ap_name(ap));
                }
                debug!("{} is gone: {why}", shared.topology.ap_name(ap));
                shared.detach_ap(ap, session);
            }
        }
    }

    fn greet(&self, first: ApRequest) -> Result<(ApId, u64), Refusal> {
        let (id, hello) = wire::ap::hello(first)?;
        check_protocol(hello.protocol, &hello.name)?;
        let sender = self.sender.clone();
        let backlog = Arc::clone(&self.backlog);
        let (welcome, session) = self.shared.attach_ap(&hello.name, sender, backlog)?;
        let ap = welcome.ap;
        let mut welcome = wire::ap::welcome(id, welcome, &self.shared.topology);
        if let Some(ap_reply::Body::Welcome(welcome)) = &mut welcome.body {
            welcome.inbox = self.requests.large().answer(&hello.inbox);
        }
        let _ = self.sender.send(welcome);
        Ok((ap, session))
    }
}

/// Waits while the application process does not take its replies, a peer takes less than it is sent, or there is no room
/// for records and the policy is to block. The application process is not silent meanwhile: it is not listened to.
async fn pause(shared: &Shared, ap: ApId, backlog: &AtomicUsize) {
    let must_wait = || {
        let mut state = shared.lock();
        let unread = backlog.load(Ordering::Relaxed) >= MAX_BACKLOG;
        let ours = state.recorder.blocks() || shared.slow_peers.any();
        if ours {
            state.core.hear(shared.clock.now(), ap);
        }
        (unread || ours) && !state.closed
    };
    while must_wait() {
        // Room is announced; a backlog is not.
        let _ = timeout(PAUSE, shared.room.notified()).await;
    }
}

fn feed(shared: &Shared, ap: ApId, request: ApRequest) {
    let now = shared.clock.now();
    let id = request.id;
    let mut request = request;
    let times = std::mem::take(&mut request.times);
    let local = wire::ap::local(std::mem::take(&mut request.local));
    let returns = wire::ap::returns(std::mem::take(&mut request.returns));
    let mut state = shared.lock();
    for piece in times {
        let piece = PhaseTimes { ap, ..piece.into() };
        state.recorder.times(piece);
    }
    let beside = [
        (!local.is_empty()).then_some(CoreRequest::Report(local)),
        (!returns.is_empty()).then_some(CoreRequest::Return(returns)),
    ];
    for request in beside.into_iter().flatten() {
        let input = Input::Request {
            ap,
            id,
            timeout: None,
            request,
        };
        shared.feed_locked(&mut state, now, input);
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
