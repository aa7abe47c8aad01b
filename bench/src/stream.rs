//! The stream on which a memory process tells its event manager of records, for load that is made up.

use std::time::Duration;

use anyhow::Context;
use dosmos_proto::transport::{self, Address};
use dosmos_proto::wire::event_manager_client::EventManagerClient;
use dosmos_proto::wire::ingest_request::Body;
use dosmos_proto::wire::{self, ingest_reply};
use dosmos_proto::{PROTOCOL, Token, Topology};
use tokio::sync::mpsc;
use tokio_stream::wrappers::UnboundedReceiverStream;

const TIMEOUT: Duration = Duration::from_secs(60);

pub(crate) struct Stream {
    say: mpsc::UnboundedSender<wire::IngestRequest>,
    replies: tonic::Streaming<wire::IngestReply>,
}

impl Stream {
    /// That of the memory process `name` of a cluster.
    pub(crate) async fn open(
        (address, token): (&Address, &Token),
        name: String,
        topology: Topology,
    ) -> anyhow::Result<Self> {
        let channel = transport::connect(address, Some(token), TIMEOUT)
            .await
            .map_err(|e| anyhow::anyhow!("{}", e.reason()))?;
        let (say, said) = mpsc::unbounded_channel();
        post(
            &say,
            Body::Hello(wire::IngestHello {
                memory_process: name,
                incarnation: 1,
                protocol: PROTOCOL,
                topology: Some(topology.into()),
            }),
        );
        let stream = UnboundedReceiverStream::new(said);
        let replies = EventManagerClient::new(channel).ingest(stream).await?;
        Ok(Self {
            say,
            replies: replies.into_inner(),
        })
    }

    pub(crate) fn send(&self, batch: wire::Batch) {
        post(&self.say, Body::Batch(batch));
    }

    /// What comes next.
    pub(crate) async fn reply(&mut self) -> anyhow::Result<Option<ingest_reply::Body>> {
        let reply = self.replies.message().await?;
        Ok(reply.context("the stream ended")?.body)
    }

    /// Says that `last` was the last batch; returns when the event manager has heard it.
    pub(crate) async fn end(mut self, last: u64) -> anyhow::Result<()> {
        post(&self.say, Body::Bye(wire::IngestBye { last }));
        drop(self.say);
        while self.replies.message().await?.is_some() {}
        Ok(())
    }
}

fn post(say: &mpsc::UnboundedSender<wire::IngestRequest>, body: Body) {
    // If nobody hears it, the replies have ended and say so.
    let _ = say.send(wire::IngestRequest { body: Some(body) });
}
