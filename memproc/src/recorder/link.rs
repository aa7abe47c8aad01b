//! The stream to the event manager: batches out, acknowledgements and selections in, clock probes.
//!
//! The event manager may be absent: then batches wait, within their bound, and this dials again.

use std::time::Duration;

use bytes::Bytes;
use dosmos_proto::transport::{self, innermost};
use dosmos_proto::wire::{self, ingest_reply, ingest_request};
use dosmos_proto::{MAX_MESSAGE_BYTES, Nanos, PROTOCOL, Refusal};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};
use tokio_stream::wrappers::UnboundedReceiverStream;
use tonic::client::Grpc;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::{IntoStreamingRequest, Status, Streaming};
use tracing::{debug, info, warn};

use super::codec::Encoded;
use super::request;
use crate::shell::Shared;

/// A batch leaves after this long, full or not.
const BATCH_AGE: Duration = Duration::from_millis(50);
/// Counters are sent this often if nothing else is.
const HEARTBEAT: Duration = Duration::from_secs(1);
const PROBE: Duration = Duration::from_secs(1);
/// Probes sent at the start of a connection, to have an estimate at once.
const FIRST_PROBES: u32 = 4;
const DIAL: Duration = Duration::from_secs(2);
const BACKOFF: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(1));

/// Packs batches: full ones at once, others when they are old enough.
pub(crate) async fn pack(shared: std::sync::Arc<Shared>) {
    let mut age = interval(BATCH_AGE);
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
        let heartbeat = BATCH_AGE * ticks_idle >= HEARTBEAT;
        if shared.pack(heartbeat) {
            ticks_idle = 0;
            shared.packed.notify_one();
        }
    }
}

/// Keeps a connection to the event manager until this process says goodbye.
pub(crate) async fn run(shared: std::sync::Arc<Shared>) {
    let emp = shared.emp_name();
    let mut backoff = BACKOFF.0;
    let mut told = String::new();
    loop {
        let ended = match connect(&shared, &emp).await {
            Ok(connection) => {
                backoff = BACKOFF.0;
                info!("records go to {emp}");
                let ended = converse(&shared, connection).await;
                shared.set_recording_up(false);
                match ended {
                    Ended::Farewell => return,
                    Ended::Broken(why) => why,
                }
            }
            Err(why) => why,
        };
        if ended != told {
            warn!("{emp} takes no records: {ended}; they wait for it");
            told = ended;
        }
        sleep(backoff).await;
        backoff = (backoff * 2).min(BACKOFF.1);
    }
}

struct Connection {
    out: UnboundedSender<Bytes>,
    replies: Streaming<wire::IngestReply>,
}

async fn connect(shared: &Shared, emp: &str) -> Result<Connection, String> {
    let Some(address) = shared.book.resolve(emp) else {
        return Err("its address is not known yet".into());
    };
    let channel = transport::connect(&address, DIAL)
        .await
        .map_err(|e| e.to_string())?;
    let mut client = Grpc::new(channel)
        .max_decoding_message_size(MAX_MESSAGE_BYTES)
        .max_encoding_message_size(MAX_MESSAGE_BYTES);
    client.ready().await.map_err(|e| innermost(&e))?;
    let (out, queue) = unbounded_channel();
    // The stream is read as soon as the call is made, so the greeting may come first.
    let _ = out.send(hello(shared));
    let path = PathAndQuery::from_static("/dosmos.v1.EventManager/Ingest");
    let stream = UnboundedReceiverStream::new(queue).into_streaming_request();
    let call = client.streaming(stream, path, Encoded);
    let mut replies = timeout(DIAL, call)
        .await
        .map_err(|_| "it does not answer".to_owned())?
        .map_err(|s| said(&s))?
        .into_inner();
    let first = timeout(DIAL, replies.message())
        .await
        .map_err(|_| "it does not greet".to_owned())?
        .map_err(|s| said(&s))?
        .and_then(|r| r.body);
    match first {
        Some(ingest_reply::Body::Welcome(w)) => {
            let welcomed = shared.lock().recorder.outbox().welcome(w.durable);
            welcomed.map_err(|e| e.to_string())?;
            shared.set_recording_up(true);
            Ok(Connection { out, replies })
        }
        Some(ingest_reply::Body::Error(e)) => Err(Refusal::from(e).message),
        _ => Err("it greets with something else".into()),
    }
}

fn said(status: &Status) -> String {
    match status.message() {
        "" => status.code().description().to_owned(),
        text => text.to_owned(),
    }
}

fn hello(shared: &Shared) -> Bytes {
    let topology = (*shared.topology).clone();
    request(ingest_request::Body::Hello(wire::IngestHello {
        memory_process: topology.mp_name(shared.me),
        incarnation: shared.incarnation,
        protocol: PROTOCOL,
        topology: Some(topology.into()),
    }))
}

enum Ended {
    /// We said goodbye and it was heard.
    Farewell,
    Broken(String),
}

/// Sends and receives until the connection ends.
async fn converse(shared: &Shared, mut c: Connection) -> Ended {
    let mut probe = interval(PROBE);
    probe.set_missed_tick_behavior(MissedTickBehavior::Delay);
    for _ in 0..FIRST_PROBES {
        send_probe(shared, &c.out);
    }
    loop {
        while let Some(batch) = shared.next_batch() {
            if c.out.send(batch).is_err() {
                return Ended::Broken("the stream was closed".into());
            }
        }
        tokio::select! {
            reply = c.replies.message() => match reply {
                Ok(Some(reply)) => {
                    if let Err(why) = take(shared, reply) {
                        return Ended::Broken(why);
                    }
                }
                Ok(None) => return Ended::Broken("it closed the stream".into()),
                Err(status) => return Ended::Broken(said(&status)),
            },
            () = shared.packed.notified() => {}
            _ = probe.tick() => send_probe(shared, &c.out),
            () = shared.farewell.notified() => {
                let _ = c.out.send(request(ingest_request::Body::Bye(wire::IngestBye {})));
                drop(c.out);
                // It answers the end of our side with the end of its own.
                while let Ok(Some(_)) = c.replies.message().await {}
                return Ended::Farewell;
            }
        }
    }
}

fn send_probe(shared: &Shared, out: &UnboundedSender<Bytes>) {
    let (offset_ns, error) = shared.lock().recorder.clock().estimate();
    let sent_ns = shared.clock.now().0;
    let probe = wire::ClockProbe {
        sent_ns,
        offset_ns,
        error_ns: error.0,
    };
    // If the stream is gone the next reply says so.
    let _ = out.send(request(ingest_request::Body::Clock(probe)));
}

fn take(shared: &Shared, reply: wire::IngestReply) -> Result<(), String> {
    let mut state = shared.lock();
    match reply.body {
        Some(ingest_reply::Body::Durable(number)) => {
            let taken = state.recorder.outbox().acknowledged(number);
            drop(state);
            shared.room.notify_waiters();
            taken.map_err(|e| e.to_string())
        }
        Some(ingest_reply::Body::Clock(s)) => {
            let back = shared.clock.now();
            let (sent, received) = (Nanos(s.sent_ns), Nanos(s.received_ns));
            let clock = state.recorder.clock();
            clock.sample(sent, received, Nanos(s.replied_ns), back);
            Ok(())
        }
        Some(ingest_reply::Body::Selection(s)) => match s.try_into() {
            Ok(selection) => {
                debug!("recording {selection:?}");
                state.recorder.select(selection);
                Ok(())
            }
            Err(e) => Err(format!("it asked for an impossible selection: {e}")),
        },
        Some(ingest_reply::Body::Error(e)) => Err(Refusal::from(e).message),
        Some(ingest_reply::Body::Welcome(_)) | None => Ok(()),
    }
}
