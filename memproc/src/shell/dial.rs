//! The links that this process dials: those to its higher-numbered neighbours.

use std::sync::Arc;
use std::time::Duration;

use dosmos_node::reconnect::{Link, LinkError, within};
use dosmos_proto::direct::PEER;
use dosmos_proto::wire::PeerMessage;
use dosmos_proto::{LargeMessages, MpId, transport};
use tracing::warn;

use super::incoming::{Incoming, Packed};
use super::outgoing::Outgoing;
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
    type Connection = (Outgoing, Incoming<PeerMessage, PeerMessage>);

    async fn connect(&mut self) -> Result<Self::Connection, LinkError> {
        let (book, name) = (&self.shared.book, &self.name);
        let address = book.resolve(name).ok_or(LinkError::AddressUnknown)?;
        let access = book.access().expecting(name);
        let watched = self.shared.watched.as_ref();
        let dialled = transport::dial(&address, access, DIAL, watched).await?;
        let (outgoing, taken) = self.shared.line_to_peer();
        let large = Arc::new(LargeMessages::handing_on());
        let inbox = large.offer(dialled.is_on_this_host());
        // The first message always fits.
        let _ = outgoing.send(hello(&self.shared, self.peer, inbox));
        let call = dialled.call(PEER, Packed::new(taken, &large));
        let mut messages = Incoming::direct(call, &large);
        let first = within(GREETING, messages.next()).await?;
        let greeted = check_peer(&self.shared, first, Some(self.peer));
        let (_, inbox) = greeted.map_err(LinkError::Refused)?;
        large.accept(&inbox);
        Ok((outgoing, messages))
    }

    async fn converse(
        &mut self,
        (outgoing, mut messages): Self::Connection,
    ) -> Result<(), LinkError> {
        // What waits is not sent any more: whoever takes nothing would keep the next attempt waiting.
        Err(read_peer(&self.shared, self.peer, outgoing, &mut messages).await)
    }

    fn down(&mut self, why: &LinkError) {
        warn!("no link to {}: {why}; trying again", self.name);
        let trouble = Input::PeerTrouble(self.peer, why.to_string());
        self.shared.feed(trouble);
    }
}
