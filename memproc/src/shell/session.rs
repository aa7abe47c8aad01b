//! Which connection is whose: attaching and detaching application processes and peers.
//!
//! Each connection has a number; the end of one that was replaced meanwhile changes nothing.

use dosmos_proto::wire::ApReply;
use dosmos_proto::{ApId, MpId};

use super::outgoing::Outgoing;
use super::shared::{ApLink, PeerLink, Shared, State};
use crate::core::Welcome;
use crate::core::messages::Input;
use crate::wire::ap;

impl State {
    fn session(&mut self) -> u64 {
        self.next_session += 1;
        self.next_session - 1
    }

    /// Closes all connections.
    pub(super) fn hang_up(&mut self) {
        self.closed = true;
        self.aps.clear();
        self.peers.clear();
    }
}

impl Shared {
    /// An application process introduced itself in message `id`; which it is, and its session number, unless it is refused.
    /// It is told first, by `answer` or by the refusal.
    pub(super) fn attach_ap(
        &self,
        name: &str,
        id: u64,
        outgoing: Outgoing<ApReply>,
        answer: impl FnOnce(Welcome) -> ApReply,
    ) -> Option<(ApId, u64)> {
        let now = self.clock.now();
        let mut state = self.lock();
        let mut out = std::mem::take(&mut state.out);
        let welcomed = state.core.connect(now, name, &mut out);
        self.dispatch(&mut state, now, &mut out);
        state.out = out;
        match welcomed {
            Ok(welcome) => {
                let ap = welcome.ap;
                // The first message always fits.
                let _ = outgoing.send(answer(welcome));
                let session = state.session();
                state.aps.insert(ap, ApLink::new(session, outgoing));
                Some((ap, session))
            }
            Err(refusal) => {
                let _ = outgoing.send(ap::refused(id, refusal));
                None
            }
        }
    }

    /// A session of an application process ended.
    pub(super) fn detach_ap(&self, ap: ApId, session: u64) {
        let now = self.clock.now();
        let mut state = self.lock();
        if state.aps.get(&ap).is_some_and(|l| l.session == session) {
            state.aps.remove(&ap);
            self.feed_locked(&mut state, now, Input::ApGone(ap));
        }
    }

    /// The link to a peer is up, in place of one that may still look alive.
    pub(super) fn attach_peer(&self, peer: MpId, outgoing: Outgoing) -> u64 {
        let now = self.clock.now();
        let mut state = self.lock();
        if state.peers.remove(&peer).is_some() {
            self.feed_locked(&mut state, now, Input::PeerDown(peer));
        }
        let session = state.session();
        state.peers.insert(peer, PeerLink { session, outgoing });
        self.feed_locked(&mut state, now, Input::PeerUp(peer));
        session
    }

    /// The link to a peer ended.
    pub(super) fn detach_peer(&self, peer: MpId, session: u64) {
        let now = self.clock.now();
        let mut state = self.lock();
        if state.peers.get(&peer).is_some_and(|l| l.session == session) {
            state.peers.remove(&peer);
            self.feed_locked(&mut state, now, Input::PeerDown(peer));
        }
    }

    /// Whether this session is the peer's current one.
    pub(super) fn is_current(state: &State, peer: MpId, session: u64) -> bool {
        state.peers.get(&peer).is_some_and(|l| l.session == session)
    }
}
