//! What a connection brings, the large messages around it included.

use std::sync::Arc;

use dosmos_node::reconnect::{LinkError, next};
use dosmos_proto::LargeMessages;
use dosmos_proto::large::Carrier;
use tonic::Streaming;

/// The messages of one connection, in order.
pub(super) struct Incoming<M> {
    stream: Streaming<M>,
    large: Arc<LargeMessages>,
}

impl<M: Carrier + 'static> Incoming<M> {
    pub(super) fn new(stream: Streaming<M>, large: &Arc<LargeMessages>) -> Self {
        let large = Arc::clone(large);
        Self { stream, large }
    }

    /// How large messages go on this connection.
    pub(super) fn large(&self) -> &LargeMessages {
        &self.large
    }

    /// The next message.
    pub(super) async fn next(&mut self) -> Result<M, LinkError> {
        let message = next(&mut self.stream).await?;
        let message = self.large.unpack(message);
        message.map_err(|malformed| LinkError::Impossible(Box::new(malformed)))
    }
}
