//! The stream of one memory process.

use std::sync::Arc;

use dosmos_proto::guard::{self, Peer, Role};
use dosmos_proto::wire::ingest_request::Body;
use dosmos_proto::{Incarnation, MpId, PROTOCOL, Topology, wire};
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio::time::timeout;
use tonic::{Status, Streaming};

use super::state::{GREETING, Replies, Shared};
use crate::core::BatchError;

/// Reads the stream of a memory process until it ends.
pub(super) async fn serve(
    shared: Arc<Shared>,
    mut requests: Streaming<wire::IngestRequest>,
    replies: Replies<wire::IngestReply>,
    stranger: OwnedSemaphorePermit,
    caller: Peer,
) {
    let greeted = hello(&shared, &mut requests, &replies, &caller).await;
    drop(stranger);
    let ended = match greeted {
        Ok((mp, incarnation)) => {
            let ended = read(&shared, mp, incarnation, &mut requests, &replies).await;
            let mut state = shared.lock();
            // A new connection of the same process may have taken its place already.
            let its = state.replies.get(&mp);
            if its.is_some_and(|r| r.same_channel(&replies)) {
                state.replies.remove(&mp);
            }
            ended
        }
        Err(e) => Err(e),
    };
    if let Err(status) = ended {
        tracing::warn!("ingest: {}", status.message());
        let _ = replies.send(Err(status));
    }
}

async fn hello(
    shared: &Shared,
    requests: &mut Streaming<wire::IngestRequest>,
    replies: &Replies<wire::IngestReply>,
    caller: &Peer,
) -> Result<(MpId, Incarnation), Status> {
    let first = timeout(GREETING, requests.message()).await;
    let first = first.map_err(|_| Status::deadline_exceeded("no hello came"))?;
    let Some(Body::Hello(hello)) = first?.and_then(|r| r.body) else {
        return Err(Status::invalid_argument(
            "the first message must be a hello",
        ));
    };
    let may = caller.is(Role::Memory, &hello.memory_process);
    may.map_err(|e| guard::denied(&e))?;
    if hello.protocol != PROTOCOL {
        return Err(Status::failed_precondition(format!(
            "{} speaks protocol {}, this event manager {PROTOCOL}; run the same version everywhere",
            hello.memory_process, hello.protocol
        )));
    }
    let theirs = Topology::try_from(hello.topology.unwrap_or_default())?;
    if theirs != shared.topology {
        return Err(Status::failed_precondition(format!(
            "{} has another cluster file than this event manager",
            hello.memory_process
        )));
    }
    let mp = shared
        .topology
        .find_mp(&hello.memory_process)
        .filter(|&mp| {
            let process = shared.topology.mp(mp);
            process.is_some_and(|p| p.event_manager == shared.me)
        });
    let mp = mp.ok_or_else(|| {
        Status::not_found(format!(
            "{} does not report to {} in the cluster file",
            hello.memory_process,
            shared.topology.emp_name(shared.me)
        ))
    })?;
    let incarnation = Incarnation::from_wire(hello.incarnation);
    let mut state = shared.lock();
    let durable = state
        .manager
        .hello(mp, incarnation)
        .map_err(|e| Status::already_exists(format!("{}: {e}", hello.memory_process)))?;
    state.replies.insert(mp, replies.clone());
    let welcome = wire::ingest_reply::Body::Welcome(wire::IngestWelcome { durable });
    let _ = replies.send(Ok(wire::IngestReply {
        body: Some(welcome),
    }));
    if let Some(told) = state.selection_reply() {
        let _ = replies.send(Ok(told));
    }
    drop(state);
    shared.work.notify_one();
    Ok((mp, incarnation))
}

async fn read(
    shared: &Shared,
    mp: MpId,
    incarnation: Incarnation,
    requests: &mut Streaming<wire::IngestRequest>,
    replies: &mpsc::UnboundedSender<Result<wire::IngestReply, Status>>,
) -> Result<(), Status> {
    loop {
        shared.wait_for_room().await;
        let Ok(Some(request)) = requests.message().await else {
            // A connection that breaks is nothing special: the memory process dials again.
            return Ok(());
        };
        match request.body {
            Some(Body::Batch(batch)) => take(shared, mp, incarnation, batch)?,
            Some(Body::Clock(probe)) => {
                let received_ns = shared.clock.now().0;
                if let Some(estimate) = probe.estimate {
                    shared.lock().manager.learn_clock(mp, estimate.into());
                }
                let sample = wire::ClockSample {
                    sent_ns: probe.sent_ns,
                    received_ns,
                    replied_ns: shared.clock.now().0,
                    clock: shared.clock.set_at().0,
                };
                let _ = replies.send(Ok(wire::IngestReply {
                    body: Some(wire::ingest_reply::Body::Clock(sample)),
                }));
            }
            Some(Body::Skip(skip)) => {
                let gone = shared.lock().manager.skip(mp, incarnation, skip.to);
                let (name, records) = (shared.topology.mp_name(mp), skip.records);
                tracing::warn!(
                    "{gone} batches of {name}, {records} records, were acknowledged and are not in this store: \
                     they count as dropped"
                );
            }
            Some(Body::Bye(bye)) => {
                shared.lock().manager.bye(mp, incarnation, bye.last);
                shared.work.notify_one();
                return Ok(());
            }
            Some(Body::Hello(_)) => return Err(Status::invalid_argument("a second hello")),
            None => return Err(Status::invalid_argument("an empty message")),
        }
    }
}

/// Takes a batch.
fn take(
    shared: &Shared,
    mp: MpId,
    incarnation: Incarnation,
    batch: wire::Batch,
) -> Result<(), Status> {
    let now = shared.clock.now();
    let taken = shared.lock().manager.batch(mp, incarnation, batch, now);
    let name = || shared.topology.mp_name(mp);
    taken.map_err(|e| match e {
        BatchError::Malformed(e) => e.into(),
        BatchError::Full(e) => Status::resource_exhausted(format!("{}: {e}", name())),
        BatchError::Superseded(e) => Status::already_exists(format!("{}: {e}", name())),
        BatchError::Gap { .. } => Status::out_of_range(e.to_string()),
    })?;
    shared.work.notify_one();
    Ok(())
}
