//! A memory process within an application process: the session between the two goes through no socket, and others see to its sockets
//! while the program computes.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use dosmos_proto::guard::Peer;
use dosmos_proto::watched::Watched;
use dosmos_proto::wire::{ApReply, ApRequest};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio_stream::Stream;

use super::outgoing::{Lines, Order, Outgoing, REPLIES, Taken, line};

/// What a session sends.
pub(super) type Requests = Pin<Box<dyn Stream<Item = ApRequest> + Send>>;

/// Where the application process begins its session.
#[derive(Debug)]
pub struct Entrance(UnboundedSender<Visit>);

/// What a memory process within an application process is told beside its configuration.
#[derive(Debug)]
pub struct Within {
    pub(super) visits: UnboundedReceiver<Visit>,
    pub(super) watched: Arc<Watched>,
}

/// A session that begins.
pub(super) struct Visit {
    pub(super) requests: Requests,
    pub(super) outgoing: Outgoing<ApReply>,
    pub(super) unread: Lines,
    pub(super) peer: Peer,
}

impl std::fmt::Debug for Visit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Visit")
    }
}

/// The application process's side and the memory process's. The connections of this one are among those that are `watched`.
pub fn within(watched: Arc<Watched>) -> (Entrance, Within) {
    let (sender, visits) = unbounded_channel();
    (Entrance(sender), Within { visits, watched })
}

impl Entrance {
    /// Begins a session that sends `requests`.
    pub fn enter(&self, requests: impl Stream<Item = ApRequest> + Send + 'static) -> Replies {
        let unread = Lines::default();
        let (outgoing, taken) = line(REPLIES, &unread, Order::Any);
        let visit = Visit {
            requests: Box::pin(requests),
            outgoing,
            unread,
            peer: Peer::Uncertified,
        };
        // If the memory process has ended, so have the replies.
        let _ = self.0.send(visit);
        Replies(taken)
    }
}

/// What a session receives.
#[derive(Debug)]
pub struct Replies(Taken<ApReply>);

impl Stream for Replies {
    type Item = ApReply;
    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<ApReply>> {
        let next = Pin::new(&mut self.0).poll_next(cx);
        next.map(|next| next.and_then(Result::ok))
    }
}
