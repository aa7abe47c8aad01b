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
use dosmos_proto::{LargeMessages, PhaseTimes, Refusal};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::timeout;
use tokio_stream::Stream;
use tonic::{Request, Response, Status, Streaming};
use tracing::{debug, warn};

use super::incoming::Incoming;
use super::peer::{GREETING, accept_peer, check_protocol};
use super::shared::Shared;
use crate::core::messages::{Input, Request as CoreRequest};
use crate::wire;

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

/// Messages to one connection, from its queue.
pub(super) struct Queue<T> {
    messages: UnboundedReceiver<T>,
    backlog: Arc<AtomicUsize>,
    large: Arc<LargeMessages>,
}

impl<T: Carrier> Stream for Queue<T> {
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
        next.map(|m| m.map(|m| Ok(self.large.pack(m))))
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
        let large = Arc::new(LargeMessages::default());
        let session = Session {
            shared: Arc::clone(&self.shared),
            requests: Incoming::new(request.into_inner(), &large),
            sender,
            backlog: Arc::clone(&backlog),
        };
        tokio::spawn(session.run());
        Ok(Response::new(Queue {
            messages,
            backlog,
            large,
        }))
    }

    type PeerStream = Queue<PeerMessage>;
    async fn peer(
        &self,
        request: Request<Streaming<PeerMessage>>,
    ) -> Result<Response<Self::PeerStream>, Status> {
        let (sender, messages) = unbounded_channel();
        let shared = Arc::clone(&self.shared);
        let large = Arc::new(LargeMessages::default());
        let incoming = Incoming::new(request.into_inner(), &large);
        tokio::spawn(accept_peer(shared, incoming, sender));
        Ok(Response::new(Queue {
            messages,
            backlog: Arc::default(),
            large,
        }))
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
    async fn run(mut self) {
        let Ok(Ok(first)) = timeout(GREETING, self.requests.next()).await else {
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
                let why = loop {
                    pause(&shared, &backlog).await;
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

    fn greet(&self, first: ApRequest) -> Result<(dosmos_proto::ApId, u64), Refusal> {
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
