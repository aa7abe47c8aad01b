//! The links that this process dials: those to its higher-numbered neighbours.

use std::sync::Arc;
use std::time::Duration;

use dosmos_node::reconnect::{Link, LinkError, dial, within};
use dosmos_proto::wire::PeerMessage;
use dosmos_proto::wire::memory_client::MemoryClient;
use dosmos_proto::{LargeMessages, MAX_MESSAGE_BYTES, MpId};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio_stream::StreamExt;
use tokio_stream::wrappers::UnboundedReceiverStream;
use tracing::warn;

use super::incoming::Incoming;
use super::peer::{GREETING, check_peer, hello, read_peer};
use super::shared::Shared;
use crate::core::messages::Input;

const DIAL: Duration = Duration::from_secs(2);

/// The link to one neighbour.
pub(super) struct ToPeer {
    shared: Arc<Shared>,
    peer: MpId,
    name: String,
}

impl ToPeer {
    pub(super) fn new(shared: Arc<Shared>, peer: MpId) -> Self {
        let name = shared.topology.mp_name(peer);
        Self { shared, peer, name }
    }
}

impl Link for ToPeer {
    type Connection = (UnboundedSender<PeerMessage>, Incoming<PeerMessage>);

    async fn connect(&mut self) -> Result<Self::Connection, LinkError> {
        let channel = dial(&self.shared.book, &self.name, DIAL).await?;
        let address = self.shared.book.resolve(&self.name);
        let mut client = MemoryClient::new(channel)
            .max_decoding_message_size(MAX_MESSAGE_BYTES)
            .max_encoding_message_size(MAX_MESSAGE_BYTES);
        let (sender, queue) = unbounded_channel();
        let large = Arc::new(LargeMessages::default());
        // The receiver is at hand: the greeting cannot fail to be queued.
        let inbox = address.map_or_else(String::new, |address| large.offer(&address));
        let _ = sender.send(hello(&self.shared, self.peer, inbox));
        let packing = Arc::clone(&large);
        let queue = UnboundedReceiverStream::new(queue).map(move |m| packing.pack(m));
        let answer = within(GREETING, client.peer(queue)).await?;
        let mut messages = Incoming::new(answer.into_inner(), &large);
        let first = within(GREETING, messages.next()).await?;
        let greeted = check_peer(&self.shared, first, Some(self.peer));
        let (_, inbox) = greeted.map_err(LinkError::Refused)?;
        large.accept(&inbox);
        Ok((sender, messages))
    }

    async fn converse(&mut self, (sender, messages): Self::Connection) -> Result<(), LinkError> {
        Err(read_peer(&self.shared, self.peer, sender, messages).await)
    }

    fn down(&mut self, why: &LinkError) {
        warn!("no link to {}: {why}; trying again", self.name);
        let trouble = Input::PeerTrouble(self.peer, why.to_string());
        self.shared.feed(trouble);
    }
}
