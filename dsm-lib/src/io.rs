//! The session's task: dial, keep the session's stream, watch the deadlines.

use std::sync::Arc;
use std::time::{Duration, Instant};

use dosmos_proto::transport::{self, Channel, innermost};
use dosmos_proto::watched::Watched;
use dosmos_proto::wire::memory_client::MemoryClient;
use dosmos_proto::wire::{ap_reply, ap_request};
use dosmos_proto::{LargeMessages, MAX_MESSAGE_BYTES};
use futures::StreamExt;
use futures::channel::mpsc::UnboundedReceiver;

use crate::Settings;
use crate::haste::Outbound;
use crate::session::End;
use crate::shared::Shared;

/// Carries the session until it is over.
pub(crate) async fn run(
    shared: &Shared,
    watched: &Arc<Watched>,
    settings: &Settings,
    requests: UnboundedReceiver<Outbound>,
) {
    let end = tokio::select! {
        end = converse(shared, watched, settings, requests) => end,
        () = shared.watch() => End::Closed,
    };
    shared.end(end);
}

async fn converse(
    shared: &Shared,
    watched: &Arc<Watched>,
    settings: &Settings,
    requests: UnboundedReceiver<Outbound>,
) -> End {
    let channel = match dial(watched, settings).await {
        Ok(channel) => channel,
        Err(why) => return not_connected(settings, why),
    };
    let mut client = MemoryClient::new(channel)
        .max_decoding_message_size(MAX_MESSAGE_BYTES)
        .max_encoding_message_size(MAX_MESSAGE_BYTES);
    let large = Arc::new(LargeMessages::default());
    let (sending, inbox) = (large.clone(), large.offer(&settings.address));
    let requests = requests.map(move |outbound| {
        let mut request = outbound.take();
        if let Some(ap_request::Body::Hello(hello)) = &mut request.body {
            hello.inbox.clone_from(&inbox);
        }
        sending.pack(request)
    });
    let mut replies = match client.application(requests).await {
        Ok(response) => response.into_inner(),
        Err(status) => {
            let why = format!("{} turned us away: {}", settings.address, explain(&status));
            return not_connected(settings, why);
        }
    };
    loop {
        match replies.message().await {
            Ok(Some(reply)) => {
                let reply = match large.unpack(reply) {
                    Ok(reply) => reply,
                    Err(e) => return End::Lost(format!("{}: {e}", settings.address)),
                };
                if let Some(ap_reply::Body::Welcome(welcome)) = &reply.body {
                    large.accept(&welcome.inbox);
                }
                if !shared.receive(reply) {
                    return End::Closed;
                }
            }
            Ok(None) => return End::Lost(format!("{} ended the session", settings.address)),
            Err(status) => {
                return End::Lost(format!("{}: {}", settings.address, explain(&status)));
            }
        }
    }
}

/// Dials until somebody answers or the time is over.
async fn dial(watched: &Arc<Watched>, settings: &Settings) -> Result<Channel, String> {
    let until = Instant::now() + settings.connect_timeout;
    let mut pause = Duration::from_millis(10);
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let (to, access) = (&settings.address, settings.access());
        match transport::connect_watched(to, access, left.max(pause), watched).await {
            Ok(channel) => return Ok(channel),
            Err(_) if Instant::now() + pause < until => {
                tokio::time::sleep(pause).await;
                pause = (2 * pause).min(Duration::from_millis(500));
            }
            Err(e) => return Err(e.to_string()),
        }
    }
}

fn not_connected(settings: &Settings, why: String) -> End {
    End::NotConnected {
        ap: settings.ap.clone(),
        why,
    }
}

fn explain(status: &tonic::Status) -> String {
    let cause = innermost(status);
    if status.message().is_empty() || cause.contains(status.message()) {
        cause
    } else {
        format!("{} ({cause})", status.message())
    }
}
