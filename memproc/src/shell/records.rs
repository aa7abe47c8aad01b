//! The stream to the event manager: batches out, acknowledgements and selections in, clock probes.
//!
//! The event manager may be absent: then batches wait, within their bound, and this dials again.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use dosmos_node::reconnect::{Link, LinkError, dial, next, within};
use dosmos_proto::wire::{self, ingest_reply, ingest_request};
use dosmos_proto::{MAX_MESSAGE_BYTES, Nanos, PROTOCOL};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::time::{MissedTickBehavior, interval};
use tokio_stream::wrappers::UnboundedReceiverStream;
use tonic::client::Grpc;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::{IntoStreamingRequest, Streaming};
use tracing::{debug, info, warn};

use super::codec::Encoded;
use super::shared::Shared;
use crate::recorder::{Gap, request};

/// A batch leaves after this long, full or not.
const BATCH_AGE: Duration = Duration::from_millis(50);
/// Counters are sent this often if nothing else is.
const HEARTBEAT: Duration = Duration::from_secs(1);
const PROBE: Duration = Duration::from_secs(1);
/// Probes sent at the start of a connection, to have an estimate at once.
const FIRST_PROBES: u32 = 4;
const DIAL: Duration = Duration::from_secs(2);

/// How long a batch waits, in milliseconds, if it is not full: for measurements in which all takes longer than it does.
const ENV_BATCH_AGE: &str = "DOSMOS_BATCH_AGE";

fn batch_age() -> Duration {
    let Ok(text) = std::env::var(ENV_BATCH_AGE) else {
        return BATCH_AGE;
    };
    match text.parse() {
        Ok(milliseconds) if milliseconds > 0 => Duration::from_millis(milliseconds),
        _ => {
            warn!(
                "{ENV_BATCH_AGE}={text} is not a number of milliseconds; batches wait for {BATCH_AGE:?}"
            );
            BATCH_AGE
        }
    }
}

/// Packs batches: full ones at once, others when they are old enough.
pub(super) async fn pack(shared: Arc<Shared>) {
    let batch_age = batch_age();
    let mut age = interval(batch_age);
    age.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut ticks_idle = 0;
    loop {
        let timer = tokio::select! {
            _ = age.tick() => true,
            () = shared.full.notified() => false,
        };
        if timer {
            shared.lock().recorder.set_aside();
            ticks_idle += 1;
        }
        let heartbeat = batch_age * ticks_idle >= HEARTBEAT;
        if shared.pack(heartbeat) {
            ticks_idle = 0;
            shared.packed.notify_one();
        }
    }
}

/// The stream to the event manager, until this process says goodbye.
pub(super) struct ToEventManager {
    shared: Arc<Shared>,
    name: String,
}

impl ToEventManager {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        let name = shared.emp_name();
        Self { shared, name }
    }
}

/// An open stream.
pub(super) struct Connection {
    out: UnboundedSender<Bytes>,
    replies: Streaming<wire::IngestReply>,
}

impl ToEventManager {
    /// Tells the event manager to go on behind what it has lost.
    fn skip(&self, gap: Gap, out: &UnboundedSender<Bytes>) {
        warn!(
            "{} has lost {} records that it had acknowledged (its store is gone or an older copy); \
             they are counted as dropped",
            self.name, gap.records
        );
        let skip = wire::Skip {
            to: gap.to,
            records: gap.records,
        };
        // If the stream is gone the next reply says so.
        let _ = out.send(request(ingest_request::Body::Skip(skip)));
    }
}

impl Link for ToEventManager {
    type Connection = Connection;

    async fn connect(&mut self) -> Result<Connection, LinkError> {
        let shared = &*self.shared;
        let channel = dial(&shared.book, &self.name, DIAL).await?;
        let mut client = Grpc::new(channel)
            .max_decoding_message_size(MAX_MESSAGE_BYTES)
            .max_encoding_message_size(MAX_MESSAGE_BYTES);
        client.ready().await.map_err(impossible)?;
        let (out, queue) = unbounded_channel();
        // The stream is read as soon as the call is made, so the greeting may come first.
        let _ = out.send(hello(shared));
        let path = PathAndQuery::from_static("/dosmos.v1.EventManager/Ingest");
        let stream = UnboundedReceiverStream::new(queue).into_streaming_request();
        let call = client.streaming(stream, path, Encoded);
        let mut replies = within(DIAL, call).await?.into_inner();
        match within(DIAL, next(&mut replies)).await?.body {
            Some(ingest_reply::Body::Welcome(w)) => {
                let gap = shared.lock().recorder.welcome(w.durable);
                if let Some(gap) = gap.map_err(impossible)? {
                    self.skip(gap, &out);
                }
                Ok(Connection { out, replies })
            }
            Some(ingest_reply::Body::Error(e)) => Err(LinkError::Refused(e.into())),
            _ => Err(LinkError::Unexpected("a welcome")),
        }
    }

    async fn converse(&mut self, connection: Connection) -> Result<(), LinkError> {
        info!("records go to {}", self.name);
        self.shared.set_recording_up(true);
        let ended = converse(&self.shared, connection).await;
        self.shared.set_recording_up(false);
        ended
    }

    fn down(&mut self, why: &LinkError) {
        warn!("{} takes no records: {why}; they wait for it", self.name);
    }
}

fn impossible(why: impl std::error::Error + Send + Sync + 'static) -> LinkError {
    LinkError::Impossible(Box::new(why))
}

fn hello(shared: &Shared) -> Bytes {
    let topology = (*shared.topology).clone();
    request(ingest_request::Body::Hello(wire::IngestHello {
        memory_process: topology.mp_name(shared.me),
        incarnation: shared.incarnation.to_wire(),
        protocol: PROTOCOL,
        topology: Some(topology.into()),
    }))
}

/// Sends and receives until the connection ends.
async fn converse(shared: &Shared, mut c: Connection) -> Result<(), LinkError> {
    let mut probe = interval(PROBE);
    probe.set_missed_tick_behavior(MissedTickBehavior::Delay);
    probe.tick().await; // The first tick is at once.
    for _ in 0..FIRST_PROBES {
        send_probe(shared, &c.out);
    }
    // Batches follow once the event manager knows by what to correct their times, or does not say.
    let mut clock_known = false;
    loop {
        while clock_known && let Some(batch) = shared.next_batch() {
            if c.out.send(batch).is_err() {
                return Err(LinkError::Closed);
            }
        }
        tokio::select! {
            reply = next(&mut c.replies) => {
                let reply = reply?;
                let sample = matches!(reply.body, Some(ingest_reply::Body::Clock(_)));
                take(shared, reply)?;
                if sample && !clock_known {
                    send_probe(shared, &c.out);
                    clock_known = true;
                }
            }
            () = shared.packed.notified() => {}
            _ = probe.tick() => {
                send_probe(shared, &c.out);
                clock_known = true;
            }
            () = shared.farewell.notified() => {
                // A batch of counters may have been packed meanwhile.
                while let Some(batch) = shared.next_batch() {
                    let _ = c.out.send(batch);
                }
                let last = shared.lock().recorder.outbox().next_number() - 1;
                let bye = wire::IngestBye { last };
                let _ = c.out.send(request(ingest_request::Body::Bye(bye)));
                drop(c.out);
                // It answers the end of our side with the end of its own.
                while let Ok(Some(_)) = c.replies.message().await {}
                return Ok(());
            }
        }
    }
}

fn send_probe(shared: &Shared, out: &UnboundedSender<Bytes>) {
    let now = shared.clock.now();
    let estimate = shared.lock().recorder.clock().estimate(now);
    let probe = wire::ClockProbe {
        sent_ns: shared.clock.now().0,
        estimate: estimate.map(Into::into),
    };
    // If the stream is gone the next reply says so.
    let _ = out.send(request(ingest_request::Body::Clock(probe)));
}

fn take(shared: &Shared, reply: wire::IngestReply) -> Result<(), LinkError> {
    let mut state = shared.lock();
    match reply.body {
        Some(ingest_reply::Body::Durable(number)) => {
            let taken = state.recorder.outbox().acknowledged(number);
            drop(state);
            shared.room.notify_waiters();
            taken.map_err(impossible)
        }
        Some(ingest_reply::Body::Clock(s)) => {
            let back = shared.clock.now();
            let (sent, received) = (Nanos(s.sent_ns), Nanos(s.received_ns));
            let clock = state.recorder.clock();
            clock.with_clock(s.clock);
            clock.sample(sent, received, Nanos(s.replied_ns), back);
            Ok(())
        }
        Some(ingest_reply::Body::Selection(s)) => match s.try_into() {
            Ok(selection) => {
                debug!("recording {selection:?}");
                state.recorder.select(selection);
                Ok(())
            }
            Err(e) => Err(impossible(e)),
        },
        Some(ingest_reply::Body::Error(e)) => Err(LinkError::Refused(e.into())),
        Some(ingest_reply::Body::Welcome(_)) | None => Ok(()),
    }
}
