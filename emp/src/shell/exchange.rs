//! Hand-overs between event managers: one stream a pair and direction, sender to receiver.

use std::sync::Arc;
use std::time::Duration;

use dosmos_proto::wire::event_manager_client::EventManagerClient;
use dosmos_proto::wire::{self, exchange_reply, exchange_request};
use dosmos_proto::{AddressBook, EmpId, PROTOCOL, transport};
use dosmos_trace::store::Event;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Status, Streaming};

use super::state::{Replies, Shared, exchange_reply};

/// Contents sent before their acknowledgement comes.
const IN_FLIGHT: usize = 1024;
const PATIENCE: Duration = Duration::from_secs(2);

/// Hands over to event manager `to` whatever is due, for as long as this process runs.
pub(super) async fn give(shared: Arc<Shared>, book: AddressBook, to: EmpId) {
    let name = shared.topology.emp_name(to);
    let mut pause = Duration::from_millis(50);
    loop {
        wait_until_due(&shared, to).await;
        match connect_and_give(&shared, &book, to, &name).await {
            Ok(()) => pause = Duration::from_millis(50),
            Err(why) => {
                tracing::debug!("hand-over to {name}: {why}; trying again");
                pause = (pause * 2).min(PATIENCE);
            }
        }
        tokio::time::sleep(pause).await;
    }
}

async fn wait_until_due(shared: &Shared, to: EmpId) {
    loop {
        let due = shared.due.notified();
        if !shared.lock().outbox.after(to, 0, 1).is_empty() {
            return;
        }
        due.await;
    }
}

async fn connect_and_give(
    shared: &Shared,
    book: &AddressBook,
    to: EmpId,
    name: &str,
) -> Result<(), String> {
    let address = book.resolve(name).ok_or("its address is not known yet")?;
    let channel = transport::connect(&address, PATIENCE)
        .await
        .map_err(|e| e.to_string())?;
    let (send, requests) = mpsc::channel(IN_FLIGHT);
    let hello = exchange_request::Body::Hello(wire::ExchangeHello {
        event_manager: shared.topology.emp_name(shared.me),
        protocol: PROTOCOL,
    });
    let post = |body| wire::ExchangeRequest { body: Some(body) };
    send.send(post(hello)).await.map_err(|e| e.to_string())?;
    let mut client = EventManagerClient::new(channel);
    let replies = client.exchange(ReceiverStream::new(requests)).await;
    let mut replies = replies.map_err(|e| e.message().to_owned())?.into_inner();
    let mut sent = next_durable(&mut replies).await?;
    let mut acknowledged = sent;
    shared.lock().outbox.acknowledged(to, sent);
    loop {
        let due = shared.due.notified();
        let room = IN_FLIGHT.saturating_sub((sent - acknowledged) as usize);
        let contents = shared.lock().outbox.after(to, sent, room);
        for content in contents {
            sent = content.sequence;
            let body = exchange_request::Body::Content(content.into());
            send.send(post(body)).await.map_err(|e| e.to_string())?;
        }
        tokio::select! {
            () = due => {}
            reply = next_durable(&mut replies) => {
                acknowledged = reply?.max(acknowledged);
                shared.lock().outbox.acknowledged(to, acknowledged);
            }
        }
    }
}

async fn next_durable(replies: &mut Streaming<wire::ExchangeReply>) -> Result<u64, String> {
    let reply = replies
        .message()
        .await
        .map_err(|e| e.message().to_owned())?;
    match reply.and_then(|r| r.body) {
        Some(exchange_reply::Body::Durable(sequence)) => Ok(sequence),
        Some(exchange_reply::Body::Error(e)) => Err(e.message),
        None => Err("the connection ended".to_owned()),
    }
}

/// Takes what another event manager hands over until its stream ends.
pub(super) async fn take(
    shared: Arc<Shared>,
    mut requests: Streaming<wire::ExchangeRequest>,
    replies: Replies<wire::ExchangeReply>,
) {
    let ended = take_until_end(&shared, &mut requests, &replies).await;
    if let Err(status) = ended {
        tracing::warn!("exchange: {}", status.message());
        let _ = replies.send(Err(status));
    }
}

async fn take_until_end(
    shared: &Shared,
    requests: &mut Streaming<wire::ExchangeRequest>,
    replies: &Replies<wire::ExchangeReply>,
) -> Result<(), Status> {
    let first = requests.message().await?.and_then(|r| r.body);
    let Some(exchange_request::Body::Hello(hello)) = first else {
        return Err(Status::invalid_argument(
            "the first message must be a hello",
        ));
    };
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
        let last = state.metas.last_received(from);
        let _ = replies.send(Ok(exchange_reply(last)));
        state.givers.insert(from, replies.clone());
    }
    while let Ok(Some(request)) = requests.message().await {
        let Some(exchange_request::Body::Content(content)) = request.body else {
            return Err(Status::invalid_argument("only contents follow a hello"));
        };
        let event = Event::Received {
            from,
            content: content.into(),
        };
        shared.lock().pending.event(event);
        shared.work.notify_one();
    }
    Ok(())
}
