//! The session's task: dial, keep the session's stream, watch the deadlines.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use dosmos_proto::LargeMessages;
use dosmos_proto::direct::{APPLICATION, Direct};
use dosmos_proto::transport::{self, Dialled, innermost};
use dosmos_proto::watched::Watched;
use dosmos_proto::wire::{ApReply, ApRequest, ap_reply, ap_request};
use futures::{Stream, StreamExt};
use tonic::{Code, Status};

use crate::Settings;
use crate::haste::Outbound;
use crate::outbox;
use crate::session::End;
use crate::shared::Shared;
use crate::within::Enter;

/// Carries the session until it is over.
pub(crate) async fn run(
    shared: &Shared,
    watched: &Arc<Watched>,
    settings: &Settings,
    requests: outbox::Requests,
    enter: Option<Enter>,
) {
    let end = tokio::select! {
        end = async {
            match enter {
                Some(enter) => within(shared, settings, enter, requests).await,
                None => converse(shared, watched, settings, requests).await,
            }
        } => end,
        () = shared.watch() => End::Closed,
    };
    shared.end(end);
}

/// The session with the memory process that this process is itself.
async fn within(
    shared: &Shared,
    settings: &Settings,
    enter: Enter,
    requests: outbox::Requests,
) -> End {
    let (mut replies, failed) = enter.begin(Box::pin(requests.map(Outbound::take)));
    while let Some(reply) = replies.next().await {
        if !shared.receive(reply) {
            return End::Closed;
        }
    }
    match failed.get() {
        Some(why) => End::Lost(format!("it is within this process, and {why}")),
        None => End::Lost(format!("{} ended the session", settings.address)),
    }
}

async fn converse(
    shared: &Shared,
    watched: &Arc<Watched>,
    settings: &Settings,
    mut requests: outbox::Requests,
) -> End {
    let large = Arc::new(LargeMessages::default());
    // The greeting, after which nothing is sent before it is answered.
    let Some(greeting) = requests.next().await else {
        return End::Closed;
    };
    let greeting = greeting.take();
    let until = Instant::now() + settings.connect_timeout;
    let mut pause = PAUSE;
    let mut replies: Direct<_, ApReply> = loop {
        let dialled = match dial(watched, settings, until).await {
            Ok(dialled) => dialled,
            Err(why) => return not_connected(settings, why),
        };
        let outgoing = Requests {
            first: Some(greeting.clone()),
            requests: &mut requests,
            inbox: large.offer(dialled.is_on_this_host()),
            large: large.clone(),
        };
        let mut replies = dialled.call(APPLICATION, outgoing);
        match replies.opened().await {
            Ok(()) => break replies,
            // Something in between may take connections before there is anybody behind it.
            Err(status)
                if status.code() == Code::Unavailable
                    && !replies.has_ended()
                    && Instant::now() + pause < until =>
            {
                tokio::time::sleep(pause).await;
                pause = longer(pause);
            }
            Err(status) => {
                let why = format!("{} turned us away: {}", settings.address, explain(&status));
                return not_connected(settings, why);
            }
        }
    };
    loop {
        match replies.next().await {
            Some(Ok(reply)) => {
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
            None => return End::Lost(format!("{} ended the session", settings.address)),
            Some(Err(status)) => {
                return End::Lost(format!("{}: {}", settings.address, explain(&status)));
            }
        }
    }
}

/// What goes out.
struct Requests<'a> {
    first: Option<ApRequest>,
    requests: &'a mut outbox::Requests,
    /// Where this end takes large contents, to be said with the greeting.
    inbox: String,
    large: Arc<LargeMessages>,
}

impl Stream for Requests<'_> {
    type Item = Result<ApRequest, Status>;
    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let next = match self.first.take() {
            Some(first) => Poll::Ready(Some(first)),
            None => {
                let next = self.requests.poll_next_unpin(cx);
                next.map(|next| next.map(Outbound::take))
            }
        };
        next.map(|next| {
            let mut request = next?;
            if let Some(ap_request::Body::Hello(hello)) = &mut request.body {
                hello.inbox.clone_from(&self.inbox);
            }
            Some(Ok(self.large.pack(request)))
        })
    }
}

/// Before the next attempt to connect, at first.
const PAUSE: Duration = Duration::from_millis(10);

/// The pause after the next attempt.
fn longer(pause: Duration) -> Duration {
    (2 * pause).min(Duration::from_millis(500))
}

/// Dials until somebody answers or the time is over.
async fn dial(
    watched: &Arc<Watched>,
    settings: &Settings,
    until: Instant,
) -> Result<Dialled, String> {
    let mut pause = PAUSE;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let (to, access) = (&settings.address, settings.access());
        match transport::dial(to, access, left.max(pause), Some(watched)).await {
            Ok(dialled) => return Ok(dialled),
            Err(_) if Instant::now() + pause < until => {
                tokio::time::sleep(pause).await;
                pause = longer(pause);
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

fn explain(status: &Status) -> String {
    let cause = innermost(status);
    if status.message().is_empty() || cause.contains(status.message()) {
        cause
    } else {
        format!("{} ({cause})", status.message())
    }
}
