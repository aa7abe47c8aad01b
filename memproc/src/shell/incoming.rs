//! What a connection brings, the large messages around it included, and what goes out on it.

use std::future::{pending, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use dosmos_node::reconnect::{LinkError, next};
use dosmos_proto::LargeMessages;
use dosmos_proto::direct::Direct;
use dosmos_proto::large::Carrier;
use prost::Message;
use tokio_stream::Stream;
use tonic::{Status, Streaming};

use super::outgoing::Taken;

/// The messages that go out on a connection, their large contents being in files where the other end takes that.
pub(super) struct Packed<M> {
    taken: Taken<M>,
    large: Arc<LargeMessages>,
}

impl<M> Packed<M> {
    pub(super) fn new(taken: Taken<M>, large: &Arc<LargeMessages>) -> Self {
        let large = Arc::clone(large);
        Self { taken, large }
    }
}

impl<M: Carrier> Stream for Packed<M> {
    type Item = Result<M, Status>;
    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let next = Pin::new(&mut self.taken).poll_next(cx);
        next.map(|m| m.map(|m| m.map(|m| self.large.pack(m))))
    }
}

/// The messages of one connection, in order: `M` come in. Where the connection is the call's own, those of type `Out` go out while it is
/// asked for what comes in.
pub(super) struct Incoming<M, Out> {
    stream: Source<M, Out>,
    large: Arc<LargeMessages>,
}

enum Source<M, Out> {
    /// A call that a server of the library serves.
    Library(Box<Streaming<M>>),
    Direct(Box<Direct<Packed<Out>, M>>),
    /// Of this process.
    Within(Pin<Box<dyn Stream<Item = M> + Send>>),
}

impl<M: Carrier + Message + Default + 'static, Out: Carrier + Message> Incoming<M, Out> {
    pub(super) fn of_library(stream: Streaming<M>, large: &Arc<LargeMessages>) -> Self {
        Self {
            stream: Source::Library(Box::new(stream)),
            large: Arc::clone(large),
        }
    }

    pub(super) fn direct(call: Direct<Packed<Out>, M>, large: &Arc<LargeMessages>) -> Self {
        Self {
            stream: Source::Direct(Box::new(call)),
            large: Arc::clone(large),
        }
    }

    pub(super) fn within(stream: Pin<Box<dyn Stream<Item = M> + Send>>) -> Self {
        Self {
            stream: Source::Within(stream),
            large: Arc::default(),
        }
    }

    /// How large messages go on this connection.
    pub(super) fn large(&self) -> &LargeMessages {
        &self.large
    }

    /// The next message.
    pub(super) async fn next(&mut self) -> Result<M, LinkError> {
        let message = match &mut self.stream {
            Source::Library(stream) => next(stream).await?,
            Source::Direct(call) => call.next().await.ok_or(LinkError::Closed)??,
            Source::Within(stream) => {
                return tokio_stream::StreamExt::next(stream)
                    .await
                    .ok_or(LinkError::Closed);
            }
        };
        let message = self.large.unpack(message);
        message.map_err(|malformed| LinkError::Impossible(Box::new(malformed)))
    }

    /// Keeps the connection while nobody asks for what comes in; until it ends.
    pub(super) async fn idle(&mut self) {
        match &mut self.stream {
            Source::Library(_) | Source::Within(_) => pending().await,
            Source::Direct(call) => poll_fn(|cx| call.poll_idle(cx)).await,
        }
    }

    /// Sends what is left to go out.
    pub(super) async fn finish(self) {
        if let Source::Direct(call) = self.stream {
            call.finish().await;
        }
    }
}
