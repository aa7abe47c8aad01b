//! Sessions that a host carries instead of threads, a socket and a clock: how a simulation runs programs with this library
//! (feature `simulation`).
//!
//! A program connects by [`connect`], which hands out the session's [`Line`]. Whoever simulates takes requests from it, hands replies to it, and
//! says what time it is. A thread that waits for a reply waits in [`Host::wait`].

use std::sync::Arc;

use dosmos_proto::Nanos;
use dosmos_proto::wire::{ApReply, ApRequest};

use crate::client::Client;
use crate::haste::Outbound;
pub use crate::host::Host;
use crate::outbox::Requests;
use crate::session::End;
use crate::shared::Shared;
use crate::{Dsm, Result, Settings};

/// Joins a cluster by a session that `host` carries; `take` gets the other end of it first. Of the settings, the address and the token mean nothing.
///
/// # Errors
/// As [`Dsm::connect`].
pub fn connect(settings: &Settings, host: Arc<dyn Host>, take: impl FnOnce(Line)) -> Result<Dsm> {
    let (client, shared, requests) = Client::hosted(settings, host);
    take(Line { shared, requests });
    Dsm::hosted(settings, client)
}

/// The host's end of a session.
pub struct Line {
    shared: Arc<Shared>,
    requests: Requests,
}

impl Line {
    /// The next request to be sent, if there is one.
    #[allow(clippy::should_implement_trait)] // it may have more later
    pub fn next(&mut self) -> Option<ApRequest> {
        self.requests.try_next().map(Outbound::take)
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
