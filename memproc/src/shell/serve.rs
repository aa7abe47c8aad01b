//! The gRPC service: sessions of application processes, and links that lower-numbered peers dial. Ours have a connection of their
//! own each ([`Calls`]); those of any other client are served by the library.

use std::sync::Arc;
use std::time::Duration;

use dosmos_node::reconnect::LinkError;
use dosmos_node::serving::Calls;
use dosmos_proto::direct::{APPLICATION, Call, PEER};
use dosmos_proto::guard::{self, Peer, Role};
use dosmos_proto::wire::memory_server::Memory;
use dosmos_proto::wire::{ApReply, ApRequest, PeerMessage, ap_reply};
use dosmos_proto::{ApId, LargeMessages, PhaseTimes, Refusal};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;
use tonic::{Request, Response, Status, Streaming};
use tracing::{debug, warn};

use super::incoming::{Incoming, Packed};
use super::outgoing::{Lines, Outgoing};
use super::peer::{GREETING, accept_peer, check_identity, check_protocol};
use super::shared::Shared;
use crate::core::messages::{Input, Request as CoreRequest};
use crate::wire;

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

    fn session(
        &self,
        requests: Incoming<ApRequest, ApReply>,
        unread: Lines,
        peer: Peer,
    ) -> Session {
        Session {
            shared: Arc::clone(&self.shared),
            requests,
            unread,
            peer,
        }
    }

    /// Serves an application process that is this process.
    pub(super) fn within(&self, visit: super::within::Visit) {
        let super::within::Visit {
            requests,
            outgoing,
            unread,
            peer,
        } = visit;
        if let Ok(stranger) = self.stranger() {
            let session = self.session(Incoming::within(requests), unread, peer);
            tokio::spawn(session.run(outgoing, stranger));
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

impl Calls for Service {
    async fn serve(&self, call: Call, peer: Peer) {
        let stranger = match self.stranger() {
            Ok(place) => place,
            Err(full) => return call.refuse(&full).await,
        };
        let large = Arc::new(LargeMessages::handing_on());
        match call.path() {
            APPLICATION => {
                let unread = Lines::default();
                let (outgoing, taken) = self.shared.line_to_application(&unread);
                let call = call.accept(Packed::new(taken, &large));
                let requests = Incoming::direct(call, &large);
                let session = self.session(requests, unread, peer);
                session.run(outgoing, stranger).await;
            }
            PEER => {
                let (outgoing, taken) = self.shared.line_to_peer();
                let call = call.accept(Packed::new(taken, &large));
                let incoming = Incoming::direct(call, &large);
                let shared = Arc::clone(&self.shared);
                accept_peer(shared, incoming, outgoing, stranger, peer).await;
            }
            other => {
                let why = format!("{} has no stream here", other.escape_debug());
                call.refuse(&Status::unimplemented(why)).await;
            }
        }
    }
}

#[tonic::async_trait]
impl Memory for Service {
    type ApplicationStream = Packed<ApReply>;
    async fn application(
        &self,
        request: Request<Streaming<ApRequest>>,
    ) -> Result<Response<Self::ApplicationStream>, Status> {
        let peer = guard::peer(request.extensions())?;
        let stranger = self.stranger()?;
        let unread = Lines::default();
        let (outgoing, taken) = self.shared.line_to_application(&unread);
        let large = Arc::new(LargeMessages::handing_on());
        let requests = Incoming::of_library(request.into_inner(), &large);
        let session = self.session(requests, unread, peer);
        tokio::spawn(session.run(outgoing, stranger));
        Ok(Response::new(Packed::new(taken, &large)))
    }

    type PeerStream = Packed<PeerMessage>;
    async fn peer(
        &self,
        request: Request<Streaming<PeerMessage>>,
    ) -> Result<Response<Self::PeerStream>, Status> {
        let peer = guard::peer(request.extensions())?;
        let stranger = self.stranger()?;
        let (outgoing, taken) = self.shared.line_to_peer();
        let shared = Arc::clone(&self.shared);
        let large = Arc::new(LargeMessages::handing_on());
        let incoming = Incoming::of_library(request.into_inner(), &large);
        tokio::spawn(accept_peer(shared, incoming, outgoing, stranger, peer));
        Ok(Response::new(Packed::new(taken, &large)))
    }
}

/// The session of one application process.
struct Session {
    shared: Arc<Shared>,
    requests: Incoming<ApRequest, ApReply>,
    /// Its replies are not taken as fast as they come.
    unread: Lines,
    /// What its connection has shown.
    peer: Peer,
}

impl Session {
    async fn run(mut self, outgoing: Outgoing<ApReply>, stranger: OwnedSemaphorePermit) {
        let Ok(Ok(first)) = timeout(GREETING, self.requests.next()).await else {
            return;
        };
        drop(stranger);
        let over = outgoing.over();
        // The link holds the sending end from here: when it goes, the stream ends.
        let Some((ap, session)) = self.greet(first, outgoing) else {
            return self.requests.finish().await;
        };
        let Self {
            shared,
            mut requests,
            unread,
            peer: _,
        } = self;
        debug!("{} is here", shared.topology.ap_name(ap));
        let why = loop {
            let request = tokio::select! {
                request = async {
                    pause(&shared, ap, &unread, &mut requests).await;
                    requests.next().await
                } => request,
                stuck = over.wait() => break LinkError::Impossible(Box::new(stuck)),
            };
            match request {
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
        requests.finish().await;
    }

    /// Which application process it is, and the number of its session, unless it is refused.
    fn greet(&self, first: ApRequest, outgoing: Outgoing<ApReply>) -> Option<(ApId, u64)> {
        let id = first.id;
        let known = wire::ap::hello(first).map_err(Refusal::from);
        let known = known.and_then(|(_, hello)| {
            check_protocol(hello.protocol, &hello.name)?;
            check_identity(&self.peer, Role::Application, &hello.name)?;
            Ok(hello)
        });
        match known {
            Ok(hello) => {
                let answer = |welcome| {
                    let mut answer = wire::ap::welcome(id, welcome, &self.shared.topology);
                    if let Some(ap_reply::Body::Welcome(welcome)) = &mut answer.body {
                        welcome.inbox = self.requests.large().answer(&hello.inbox);
                    }
                    answer
                };
                self.shared.attach_ap(&hello.name, id, outgoing, answer)
            }
            Err(refusal) => {
                // The first message always fits.
                let _ = outgoing.send(wire::ap::refused(id, refusal));
                None
            }
        }
    }
}

/// Waits while the application process does not take its replies, a peer takes less than it is sent, or there is no room
/// for records and the policy is to block. The application process is not silent meanwhile: it is not listened to.
async fn pause(
    shared: &Shared,
    ap: ApId,
    unread: &Lines,
    requests: &mut Incoming<ApRequest, ApReply>,
) {
    let must_wait = || {
        let mut state = shared.lock();
        let unread = unread.any();
        let ours = state.recorder.blocks() || shared.slow_peers.any();
        if ours {
            state.core.hear(shared.clock.now(), ap);
        }
        (unread || ours) && !state.closed
    };
    while must_wait() {
        // Room is announced; a backlog is not.
        tokio::select! {
            _ = timeout(PAUSE, shared.room.notified()) => {}
            // Its end is seen by who asks for its messages.
            () = requests.idle() => return,
        }
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
    if let Some(link) = state.aps.get_mut(&ap) {
        link.note_hurry(&request);
    }
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
                // If too much waits the next reply tells.
                let _ = link.outgoing.send(wire::ap::refused(id, malformed.into()));
            }
        }
    }
}
