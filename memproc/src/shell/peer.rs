//! The link to another memory or link process, whoever dialled: greeting, and reading what it sends.

use std::sync::Arc;
use std::time::Duration;

use dosmos_node::reconnect::LinkError;
use dosmos_proto::guard::{Peer, Role};
use dosmos_proto::wire::{self as w, PeerMessage};
use dosmos_proto::{ErrorCode, MpId, PROTOCOL, Refusal};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::timeout;
use tracing::{debug, warn};

use super::incoming::Incoming;
use super::outgoing::Outgoing;
use super::shared::Shared;
use crate::core::messages::Input;
use crate::wire;

/// Who connects introduces itself within this time.
pub(super) const GREETING: Duration = Duration::from_secs(10);

/// Refuses a process of another version.
pub(super) fn check_protocol(theirs: u32, name: &str) -> Result<(), Refusal> {
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

/// Refuses a process whose certificate is not for this role and name.
pub(super) fn check_identity(peer: &Peer, role: Role, name: &str) -> Result<(), Refusal> {
    let denied = |denied: dosmos_proto::guard::Denied| {
        Refusal::new(ErrorCode::UnknownProcess, denied.to_string())
    };
    peer.is(role, name).map_err(denied)
}

/// A peer dialled: greet, and if it is who it should be, read what it sends.
pub(super) async fn accept_peer(
    shared: Arc<Shared>,
    mut messages: Incoming<PeerMessage, PeerMessage>,
    outgoing: Outgoing,
    stranger: OwnedSemaphorePermit,
    shown: Peer,
) {
    let Ok(Ok(first)) = timeout(GREETING, messages.next()).await else {
        return;
    };
    drop(stranger);
    let source = first.source;
    let known = check_peer(&shared, first, None).and_then(|(peer, inbox)| {
        check_identity(&shown, Role::Memory, &shared.topology.mp_name(peer))?;
        Ok((peer, inbox))
    });
    match known {
        Ok((peer, inbox)) => {
            let inbox = messages.large().answer(&inbox);
            // The first message always fits.
            let _ = outgoing.send(hello(&shared, peer, inbox));
            read_peer(&shared, peer, outgoing, &mut messages).await;
        }
        Err(refusal) => {
            warn!("refused a peer: {refusal}");
            let _ = outgoing.send(PeerMessage {
                source: shared.me.0,
                destination: source,
                body: Some(w::peer_message::Body::Error(refusal.into())),
                ..PeerMessage::default()
            });
            drop(outgoing);
        }
    }
    messages.finish().await;
}

/// Our own first message.
pub(super) fn hello(shared: &Shared, peer: MpId, inbox: String) -> PeerMessage {
    PeerMessage {
        source: shared.me.0,
        destination: peer.0,
        body: Some(w::peer_message::Body::Hello(w::PeerHello {
            name: shared.topology.mp_name(shared.me),
            protocol: PROTOCOL,
            topology: shared.topology.fingerprint(),
            inbox,
        })),
        ..PeerMessage::default()
    }
}

/// Checks a peer's first message: which neighbour it is, and where it takes large messages.
pub(super) fn check_peer(
    shared: &Shared,
    first: PeerMessage,
    expected: Option<MpId>,
) -> Result<(MpId, String), Refusal> {
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
        Some(peer) if expected.is_none_or(|e| e == peer) && shared.is_neighbour(peer) => {
            Ok((peer, hello.inbox))
        }
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
    outgoing: Outgoing,
    messages: &mut Incoming<PeerMessage, PeerMessage>,
) -> LinkError {
    let over = outgoing.over();
    let session = shared.attach_peer(peer, outgoing);
    debug!("{} is up", shared.topology.mp_name(peer));
    let why = loop {
        let message = tokio::select! {
            message = messages.next() => message,
            stuck = over.wait() => break LinkError::Impossible(Box::new(stuck)),
        };
        match message {
            Ok(message) => {
                if !feed_peer(shared, peer, session, message) {
                    break LinkError::Replaced;
                }
                shared.spinner.event();
            }
            Err(why) => break why,
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
                // If too much waits the next message tells.
                let _ = link.outgoing.send(refused);
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
