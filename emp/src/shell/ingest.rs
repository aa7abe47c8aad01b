//! The stream of one memory process.

use std::sync::Arc;

use dosmos_node::correction::Corrector;
use dosmos_proto::guard::{self, Peer, Role};
use dosmos_proto::names::check_name;
use dosmos_proto::wire::ingest_request::Body;
use dosmos_proto::{
    Incarnation, MAX_DECLARED_BYTES, MpId, PROTOCOL, PhaseTimes, Topology, Variable, wire,
};
use dosmos_trace::selection::Selection;
use dosmos_trace::store::Event;
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio::time::timeout;
use tonic::{Status, Streaming};

use super::state::{GREETING, Replies, Shared};
use crate::core::{Full, PositionedEvent, Verdict};

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
            if let Some(link) = state.links.get_mut(&mp) {
                // A new connection of the same process may have taken its place already.
                link.replies.take_if(|r| r.same_channel(&replies));
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
    may.map_err(guard::denied)?;
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
    let before = state.ingest.incarnation(mp);
    let durable = state
        .ingest
        .hello(mp, incarnation)
        .map_err(|e| Status::already_exists(format!("{}: {e}", hello.memory_process)))?;
    let link = state.links.entry(mp).or_default();
    link.replies = Some(replies.clone());
    if before != Some(incarnation) {
        // Another start has another clock.
        link.clock = Corrector::default();
    }
    let welcome = wire::ingest_reply::Body::Welcome(wire::IngestWelcome { durable });
    let _ = replies.send(Ok(wire::IngestReply {
        body: Some(welcome),
    }));
    if let Some(told) = state.selection_reply() {
        let _ = replies.send(Ok(told));
    }
    state.note_selection(mp);
    drop(state);
    report(shared, mp, incarnation, false);
    Ok((mp, incarnation))
}

/// Puts into the log that a start of a memory process reports here, or has `ended` with all it made in
/// the log: a reader of the store knows who did not report to the end.
fn report(shared: &Shared, mp: MpId, incarnation: Incarnation, ended: bool) {
    let report = Event::Report {
        mp,
        incarnation: incarnation.to_wire(),
        ended,
    };
    shared.lock().pending.event(report);
    shared.work.notify_one();
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
                if let Some(estimate) = probe.estimate
                    && let Some(link) = shared.lock().links.get_mut(&mp)
                {
                    link.clock.learn(estimate.into());
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
                let gone = shared.lock().ingest.skip(mp, incarnation, skip.to);
                let (name, records) = (shared.topology.mp_name(mp), skip.records);
                tracing::warn!(
                    "{gone} batches of {name}, {records} records, were acknowledged and are not in this store: \
                     they count as dropped"
                );
            }
            Some(Body::Bye(bye)) => {
                let ended = {
                    let mut state = shared.lock();
                    let ended = state.ingest.has_all(mp, incarnation, bye.last);
                    // A reader of the store compares what was made with what is there.
                    if ended && let Some(link) = state.links.get(&mp) {
                        let (counted, time) = (link.counted(), link.serving());
                        let incarnation = incarnation.to_wire();
                        state.pending.event(Event::Processor {
                            mp,
                            incarnation,
                            time,
                        });
                        if let Some(counters) = counted {
                            state.pending.event(Event::Counters {
                                mp,
                                incarnation,
                                counters,
                            });
                        }
                    }
                    ended
                };
                report(shared, mp, incarnation, ended);
                return Ok(());
            }
            Some(Body::Hello(_)) => return Err(Status::invalid_argument("a second hello")),
            None => return Err(Status::invalid_argument("an empty message")),
        }
    }
}

/// The refusal of declarations that do not fit any more.
fn full(shared: &Shared, mp: MpId, full: Full) -> Status {
    Status::resource_exhausted(format!("{}: {full}", shared.topology.mp_name(mp)))
}

/// Takes a batch: what is malformed in it is refused before anything of it counts.
fn take(
    shared: &Shared,
    mp: MpId,
    incarnation: Incarnation,
    batch: wire::Batch,
) -> Result<(), Status> {
    let mut records = dosmos_trace::wire::decode(batch.records.unwrap_or_default())?;
    let mut events: Vec<PositionedEvent> = Vec::new();
    let mut declared = Vec::new();
    let mut bytes = 0;
    for variable in batch.variables {
        let variable = Variable::try_from(variable)?;
        bytes += variable.footprint();
        if bytes > MAX_DECLARED_BYTES {
            return Err(full(shared, mp, Full));
        }
        declared.push(variable);
    }
    for barrier in batch.barriers {
        check_name("barrier name", &barrier.name)?;
        events.push((0, Event::Barrier(barrier.into())));
    }
    for hand_over in &batch.hand_overs {
        let (at, hand_over) = dosmos_trace::wire::hand_over_from_wire(hand_over, mp);
        if hand_over.primary_emp.index() >= shared.topology.event_managers().len() {
            return Err(Status::invalid_argument("a hand-over to no event manager"));
        }
        events.push((at, Event::HandOver(hand_over)));
    }
    let selection = batch.selection.map(Selection::try_from).transpose()?;
    if let Some(selection) = selection {
        let incarnation = incarnation.to_wire();
        events.push((
            0,
            Event::Selection {
                mp,
                incarnation,
                selection,
            },
        ));
    }
    let mut guard = shared.lock();
    let state = &mut *guard;
    let fits = state.dictionary.check(&declared);
    fits.map_err(|e| full(shared, mp, e))?;
    match state.ingest.batch(mp, incarnation, batch.sequence) {
        Verdict::Duplicate => return Ok(()),
        Verdict::Gap { due } => {
            return Err(Status::out_of_range(format!(
                "batch {} arrived, {due} is due; connect again",
                batch.sequence
            )));
        }
        Verdict::Superseded(refused) => {
            let name = shared.topology.mp_name(mp);
            return Err(Status::already_exists(format!("{name}: {refused}")));
        }
        Verdict::New => {}
    }
    let mark = state.ingest.mark(mp, batch.sequence);
    for variable in declared {
        state.dictionary.add(&variable);
        events.push((0, Event::Variable(variable)));
    }
    events.sort_by_key(|e| e.0);
    let link = state.links.entry(mp).or_default();
    // The only correction there is: batches hold times of the sender's clock.
    let mut times: Vec<PhaseTimes> = batch.times.into_iter().map(Into::into).collect();
    if let Some(correction) = link.clock.correct(&mut records, &mut times) {
        let incarnation = mark.incarnation;
        let clock = Event::Clock {
            mp,
            incarnation,
            correction,
        };
        events.insert(0, (0, clock));
    }
    let all = records.len() as u32;
    events.extend(times.into_iter().map(|piece| (all, Event::Times(piece))));
    let last = records.iter().map(dosmos_trace::Record::end).max();
    if let Some(last) = last {
        link.arrived(shared.clock.now(), last);
    }
    if let Some(counters) = link.batch(
        batch.counters.map(Into::into),
        batch.sampling,
        last.unwrap_or_default(),
    ) {
        events.push((
            records.len() as u32,
            Event::Counters {
                mp,
                incarnation: mark.incarnation,
                counters,
            },
        ));
    }
    state.pending.batch(mark, &records, events);
    drop(guard);
    shared.work.notify_one();
    Ok(())
}
