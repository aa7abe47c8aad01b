//! Sessions that a host carries instead of threads, a socket and a clock: how a simulation runs programs with this library
//! (feature `simulation`).
//!
//! A program connects by [`connect`]. Its host gets the session's [`Line`]: it takes requests from it, hands replies to it, and
//! says what time it is. A thread that waits for a reply waits in [`Host::wait`].

use std::sync::Arc;

use dosmos_proto::Nanos;
use dosmos_proto::wire::{ApReply, ApRequest};
use futures::channel::mpsc::UnboundedReceiver;

use crate::haste::Outbound;
use crate::session::End;
use crate::shared::Shared;
use crate::{Dsm, Result, Settings};

/// What carries a session.
pub trait Host: Send + Sync {
    /// The time, by the clock of this process.
    fn now(&self) -> Nanos;
    /// The session begins. Called once, before anything else.
    fn carry(&self, line: Line);
    /// Returns when the session may have changed.
    fn wait(&self);
}

/// Joins a cluster by a session that `host` carries. Of the settings, the address and the token mean nothing.
///
/// # Errors
/// As [`Dsm::connect`].
pub fn connect(settings: Settings, host: Arc<dyn Host>) -> Result<Dsm> {
    Dsm::hosted(settings, host)
}

/// The host's end of a session.
pub struct Line {
    shared: Arc<Shared>,
    requests: UnboundedReceiver<Outbound>,
}

impl Line {
    pub(crate) fn new(shared: Arc<Shared>, requests: UnboundedReceiver<Outbound>) -> Self {
        Self { shared, requests }
    }

    /// The next request to be sent, if there is one.
    pub fn next(&mut self) -> Option<ApRequest> {
        self.requests.try_recv().ok().map(Outbound::take)
    }

    /// A reply arrived; whether the session goes on.
    pub fn receive(&self, reply: ApReply) -> bool {
        self.shared.receive(reply)
    }

    /// Ends requests whose time is over, and reports what is due; when to look again, if ever.
    pub fn look(&self) -> Option<Nanos> {
        self.shared.look().flatten()
    }

    /// The connection is lost.
    pub fn lose(&self, why: &str) {
        self.shared.end(End::Lost(why.to_owned()));
    }
}
