//! Dialling the higher-numbered neighbours, again and again until they are there and whenever they
//! are lost.

use std::sync::Arc;
use std::time::Duration;

use dosmos_proto::wire::memory_client::MemoryClient;
use dosmos_proto::{MAX_MESSAGE_BYTES, MpId, transport};
use tokio::sync::mpsc::unbounded_channel;
use tokio::time::{sleep, timeout};
use tokio_stream::wrappers::UnboundedReceiverStream;
use tracing::{debug, warn};

use super::Shared;
use super::serve::{check_peer, hello, read_peer};
use crate::core::messages::Input;

const DIAL: Duration = Duration::from_secs(2);
const GREETING: Duration = Duration::from_secs(10);
const BACKOFF: (Duration, Duration) = (Duration::from_millis(10), Duration::from_millis(500));

/// Keeps the link to `peer` for as long as this process runs.
pub(super) async fn run(shared: Arc<Shared>, peer: MpId) {
    let name = shared.topology.mp_name(peer);
    let mut backoff = BACKOFF.0;
    let mut told = String::new();
    loop {
        match once(&shared, peer, &name).await {
            Ok(ended) => {
                warn!("the link to {name} ended: {ended}");
                backoff = BACKOFF.0;
                told.clear();
            }
            Err(why) if why != told => {
                debug!("{name}: {why}; trying again");
                shared.feed(Input::PeerTrouble(peer, why.clone()));
                told = why;
            }
            Err(_) => {}
        }
        sleep(backoff).await;
        backoff = (backoff * 2).min(BACKOFF.1);
    }
}

/// One link: why it did not come up, or why it ended.
async fn once(shared: &Shared, peer: MpId, name: &str) -> Result<String, String> {
    let Some(address) = shared.book.resolve(name) else {
        return Err("its address is not known yet".into());
    };
    let channel = transport::connect(&address, DIAL)
        .await
        .map_err(|e| e.to_string())?;
    let mut client = MemoryClient::new(channel)
        .max_decoding_message_size(MAX_MESSAGE_BYTES)
        .max_encoding_message_size(MAX_MESSAGE_BYTES);
    let (sender, queue) = unbounded_channel();
    // The receiver is at hand: the greeting cannot fail to be queued.
    let _ = sender.send(hello(shared, peer));
    let call = client.peer(UnboundedReceiverStream::new(queue));
    let mut messages = timeout(GREETING, call)
        .await
        .map_err(|_| "it does not answer".to_owned())?
        .map_err(|s| s.message().to_owned())?
        .into_inner();
    let first = timeout(GREETING, messages.message())
        .await
        .map_err(|_| "it does not greet".to_owned())?
        .map_err(|s| s.message().to_owned())?
        .ok_or("it closed the link at once")?;
    check_peer(shared, first, Some(peer)).map_err(|refusal| refusal.message)?;
    Ok(read_peer(shared, peer, sender, messages).await)
}
