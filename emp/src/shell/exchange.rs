//! Hand-overs between event managers: one stream a pair and direction, sender to receiver.

use std::sync::Arc;
use std::time::Duration;

use dosmos_node::reconnect::{Link, LinkError, dial, next, within};
use dosmos_proto::guard::{self, Peer, Role};
use dosmos_proto::wire::event_manager_client::EventManagerClient;
use dosmos_proto::wire::{self, exchange_reply, exchange_request};
use dosmos_proto::{AddressBook, EmpId, PROTOCOL};
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio::time::timeout;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Status, Streaming};

use super::state::{GREETING, Replies, Shared, exchange_reply};

/// Contents sent before their acknowledgement comes.
const IN_FLIGHT: usize = 1024;
const DIAL: Duration = Duration::from_secs(2);

/// The stream to another event manager, for as long as this process runs and something is due to it.
pub(super) struct ToEventManager {
    shared: Arc<Shared>,
    book: AddressBook,
    to: EmpId,
    name: String,
}

impl ToEventManager {
    pub(super) fn new(shared: Arc<Shared>, book: AddressBook, to: EmpId) -> Self {
        let name = shared.topology.emp_name(to);
        Self {
            shared,
            book,
            to,
            name,
        }
    }

    async fn wait_until_due(&self) {
        loop {
            let due = self.shared.due.notified();
            if !self
                .shared
                .lock()
                .manager
                .outbox()
                .after(self.to, 0, 1)
                .is_empty()
            {
                return;
            }
            due.await;
        }
    }
}

/// An open stream.
pub(super) struct Connection {
    send: mpsc::Sender<wire::ExchangeRequest>,
    replies: Streaming<wire::ExchangeReply>,
    /// Number of the last content that the receiver has on disk.
    durable: u64,
}

fn post(body: exchange_request::Body) -> wire::ExchangeRequest {
    wire::ExchangeRequest { body: Some(body) }
}

impl Link for ToEventManager {
    type Connection = Connection;

    async fn connect(&mut self) -> Result<Connection, LinkError> {
        self.wait_until_due().await;
        let channel = dial(&self.book, &self.name, DIAL).await?;
        let (send, requests) = mpsc::channel(IN_FLIGHT);
        let hello = exchange_request::Body::Hello(wire::ExchangeHello {
            event_manager: self.shared.topology.emp_name(self.shared.me),
            protocol: PROTOCOL,
        });
        let queued = send.send(post(hello)).await;
        queued.map_err(|_| LinkError::Closed)?;
        let mut client = EventManagerClient::new(channel);
        let call = client.exchange(ReceiverStream::new(requests));
        let mut replies = within(DIAL, call).await?.into_inner();
        let durable = within(DIAL, next_durable(&mut replies)).await?;
        Ok(Connection {
            send,
            replies,
            durable,
        })
    }

    async fn converse(&mut self, mut connection: Connection) -> Result<(), LinkError> {
        let shared = &*self.shared;
        let mut acknowledged = connection.durable;
        let mut sent = acknowledged;
        shared.lock().manager.handed_over(self.to, acknowledged);
        loop {
            let due = shared.due.notified();
            let room = IN_FLIGHT.saturating_sub((sent - acknowledged) as usize);
            let contents = shared.lock().manager.outbox().after(self.to, sent, room);
            for content in contents {
                sent = content.sequence;
                let content = post(exchange_request::Body::Content(content.into()));
                let queued = connection.send.send(content).await;
                queued.map_err(|_| LinkError::Closed)?;
            }
            tokio::select! {
                () = due => {}
                durable = next_durable(&mut connection.replies) => {
                    acknowledged = durable?.max(acknowledged);
                    shared.lock().manager.handed_over(self.to, acknowledged);
                }
            }
        }
    }

    fn down(&mut self, why: &LinkError) {
        tracing::debug!("hand-over to {}: {why}; trying again", self.name);
    }
}

async fn next_durable(replies: &mut Streaming<wire::ExchangeReply>) -> Result<u64, LinkError> {
    match next(replies).await?.body {
        Some(exchange_reply::Body::Durable(sequence)) => Ok(sequence),
        Some(exchange_reply::Body::Error(e)) => Err(LinkError::Refused(e.into())),
        None => Err(LinkError::Unexpected("an acknowledgement")),
    }
}

/// Takes what another event manager hands over until its stream ends.
pub(super) async fn take(
    shared: Arc<Shared>,
    mut requests: Streaming<wire::ExchangeRequest>,
    replies: Replies<wire::ExchangeReply>,
    stranger: OwnedSemaphorePermit,
    caller: Peer,
) {
    let ended = take_until_end(&shared, &mut requests, &replies, stranger, &caller).await;
    if let Err(status) = ended {
        tracing::warn!("exchange: {}", status.message());
        let _ = replies.send(Err(status));
    }
}

async fn take_until_end(
    shared: &Shared,
    requests: &mut Streaming<wire::ExchangeRequest>,
    replies: &Replies<wire::ExchangeReply>,
    stranger: OwnedSemaphorePermit,
    caller: &Peer,
) -> Result<(), Status> {
    let first = timeout(GREETING, requests.message()).await;
    let first = first.map_err(|_| Status::deadline_exceeded("no hello came"))?;
    let first = first?.and_then(|r| r.body);
    let Some(exchange_request::Body::Hello(hello)) = first else {
        return Err(Status::invalid_argument(
            "the first message must be a hello",
        ));
    };
    let may = caller.is(Role::EventManager, &hello.event_manager);
    may.map_err(|e| guard::denied(&e))?;
    if hello.protocol != PROTOCOL {
        return Err(Status::failed_precondition(format!(
            "{} speaks protocol {}, this event manager {PROTOCOL}",
            hello.event_manager, hello.protocol
        )));
    }
    let from = shared
        .topology
        .find_emp(&hello.event_manager)
        .ok_or_else(|| {
            Status::not_found(format!("no event manager {} here", hello.event_manager))
        })?;
    {
        let mut state = shared.lock();
        let last = state.manager.metas().last_received(from);
        let _ = replies.send(Ok(exchange_reply(last)));
        state.senders.insert(from, replies.clone());
    }
    drop(stranger);
    while let Ok(Some(request)) = requests.message().await {
        let Some(exchange_request::Body::Content(content)) = request.body else {
            return Err(Status::invalid_argument("only contents follow a hello"));
        };
        shared.lock().manager.content(from, content.into());
        shared.work.notify_one();
    }
    Ok(())
}
