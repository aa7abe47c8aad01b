//! The process around the core: gRPC in and out, timers, the recorder's tasks, start and graceful end.
//!
//! Core, recorder and the senders of all connections stand behind one mutex. A task that read a
//! message locks it once, lets the core work, hands the outputs to the senders, and unlocks; no lock
//! is held across an await.

mod dial;
mod metrics;
mod serve;
mod session;

use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use dosmos_metrics::MetricsListener;
use dosmos_proto::time::Clock;
use dosmos_proto::transport::Listener;
use dosmos_proto::wire::memory_server::MemoryServer;
use dosmos_proto::wire::{ApReply, PeerMessage};
use dosmos_proto::{AddressBook, ApId, MAX_MESSAGE_BYTES, MpId, Nanos, Topology, transport};
use nix::sys::resource::{UsageWho, getrusage};
use tokio::sync::Notify;
use tokio::sync::mpsc::UnboundedSender;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval, timeout};
use tracing::{info, warn};

use crate::core::input::{Body, Input, Output};
use crate::core::{Core, Settings, VariableOverride};
use crate::recorder::{Metrics, Recorder, Recording, link, thread_time};
use crate::wire;

/// What a memory or link process is told at its start.
#[derive(Clone, Debug)]
pub struct Config {
    /// All processes of the cluster.
    pub topology: Topology,
    /// Which of them this is.
    pub me: MpId,
    /// What is recorded.
    pub recording: Recording,
    /// What the configuration says of variables; the same in all processes.
    pub overrides: Vec<VariableOverride>,
    /// How long an operation may take if the application process does not say; zero means a minute.
    pub default_deadline: Nanos,
    /// Where to serve metrics for Prometheus (`host:port`), if at all; the address is published as `NAME.metrics`.
    pub metrics: Option<String>,
}

/// What a process did, at its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Its figures.
    pub metrics: Metrics,
    /// All records that were made and not dropped are durable.
    pub drained: bool,
}

/// Why a process could not run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The configuration is not one; says what.
    #[error("{0}")]
    Config(String),
    /// Its address could not be told to the others.
    #[error("cannot publish the address of {name}: {why}")]
    Publish {
        /// The process.
        name: String,
        /// What the system said.
        why: io::Error,
    },
    /// The server ended by itself.
    #[error("{name} cannot serve: {why}")]
    Serve {
        /// The process.
        name: String,
        /// What went wrong.
        why: String,
    },
}

const DEFAULT_DEADLINE: Nanos = Nanos::from_millis(60_000);
/// Deadlines are looked at this often.
const TICK: Duration = Duration::from_millis(20);
/// How long the end waits for the event manager to make the last records durable, and for
/// connections to close.
const DRAIN: Duration = Duration::from_secs(5);
/// The same if the event manager is not there.
const DRAIN_ABSENT: Duration = Duration::from_millis(300);
const FAREWELL: Duration = Duration::from_millis(300);
const CLOSE: Duration = Duration::from_millis(500);

/// What all tasks of the process share.
pub(crate) struct Shared {
    pub(crate) topology: Arc<Topology>,
    pub(crate) me: MpId,
    pub(crate) book: AddressBook,
    pub(crate) clock: Clock,
    pub(crate) incarnation: u64,
    state: Mutex<State>,
    /// A batch is full; one was packed; there may be room again; say goodbye to the event manager.
    pub(crate) full: Notify,
    pub(crate) packed: Notify,
    pub(crate) room: Notify,
    pub(crate) farewell: Notify,
    recording_up: AtomicBool,
}

/// What stands behind the mutex.
pub(crate) struct State {
    pub(crate) core: Core,
    pub(crate) recorder: Recorder,
    aps: HashMap<ApId, ApLink>,
    peers: HashMap<MpId, PeerLink>,
    next_session: u64,
    closed: bool,
    out: Vec<Output>,
}

struct ApLink {
    session: u64,
    sender: UnboundedSender<ApReply>,
    /// Replies not yet taken by the connection.
    backlog: Arc<AtomicUsize>,
}

struct PeerLink {
    session: u64,
    sender: UnboundedSender<PeerMessage>,
}

impl Shared {
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        // The core does not panic; if it did, what it holds is still the best there is.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells the core of something, and does what it wants done.
    pub(crate) fn feed(&self, input: Input) {
        let now = self.clock.now();
        let mut state = self.lock();
        self.feed_locked(&mut state, now, input);
    }

    pub(crate) fn feed_locked(&self, state: &mut State, now: Nanos, input: Input) {
        let mut out = std::mem::take(&mut state.out);
        state.core.handle(now, input, &mut out);
        self.dispatch(state, now, &mut out);
        state.out = out;
    }

    /// Hands outputs to where they go. `since` is when their cause arrived: what passed since is this
    /// process's service time.
    fn dispatch(&self, state: &mut State, since: Nanos, out: &mut Vec<Output>) {
        if out.is_empty() {
            return;
        }
        let cost = self.clock.now() - since;
        for output in out.drain(..) {
            match output {
                Output::Reply {
                    ap,
                    id,
                    reply,
                    remote,
                } => {
                    if let Some(link) = state.aps.get(&ap) {
                        link.backlog.fetch_add(1, Ordering::Relaxed);
                        // A receiver that is gone ends its session itself.
                        let mut reply = wire::ap::reply(id, reply);
                        reply.remote = remote;
                        let _ = link.sender.send(reply);
                    }
                }
                Output::Send { to, mut message } => {
                    if message.source == self.me && matches!(message.body, Body::Answer(_)) {
                        message.service += cost;
                    }
                    if let Some(link) = state.peers.get(&to) {
                        let _ = link.sender.send(wire::peer::to_wire(message));
                    }
                }
                Output::Trace(item) => {
                    let timed = state.recorder.meter().times_this_push();
                    let begun = timed.then(thread_time);
                    if state.recorder.push(item, cost) {
                        self.full.notify_one();
                    }
                    if let Some(begun) = begun {
                        state.recorder.meter().push(thread_time() - begun);
                    }
                }
            }
        }
    }

    pub(crate) fn emp_name(&self) -> String {
        let mp = self.topology.mp(self.me);
        mp.map_or_else(String::new, |m| self.topology.emp_name(m.event_manager))
    }

    pub(crate) fn set_recording_up(&self, up: bool) {
        self.recording_up.store(up, Ordering::Relaxed);
    }

    /// Figures of now.
    pub(crate) fn metrics(&self, state: &State) -> Metrics {
        let c = state.core.counters();
        let mut metrics = Metrics {
            requests: c.requests,
            served: c.served,
            forwarded: c.forwarded,
            cpu: cpu(),
            copies: c.copies,
            objects: c.objects,
            ..Metrics::default()
        };
        state.recorder.measure(&mut metrics);
        metrics
    }

    /// Packs what is set aside; with `heartbeat`, figures alone if there is nothing else. Whether
    /// something was packed.
    pub(crate) fn pack(&self, heartbeat: bool) -> bool {
        let mut packed = false;
        let mut state = self.lock();
        let metrics = self.metrics(&state);
        while let Some(raw) = state.recorder.take() {
            let begun = thread_time();
            state.recorder.pack(raw, metrics);
            state.recorder.meter().work(thread_time() - begun);
            packed = true;
        }
        let up = self.recording_up.load(Ordering::Relaxed);
        if !packed && heartbeat && up && state.recorder.idle() {
            state.recorder.pack(Default::default(), metrics);
            packed = true;
        }
        packed
    }

    pub(crate) fn next_batch(&self) -> Option<Bytes> {
        self.lock().recorder.outbox().next_to_send()
    }
}

/// Processor time of this process so far.
fn cpu() -> Nanos {
    let Ok(usage) = getrusage(UsageWho::RUSAGE_SELF) else {
        return Nanos::ZERO;
    };
    let ns = |t: nix::sys::time::TimeVal| {
        u64::try_from(t.tv_sec() * 1_000_000_000 + t.tv_usec() * 1000).unwrap_or(0)
    };
    Nanos(ns(usage.user_time()) + ns(usage.system_time()))
}

/// Runs a memory or link process until `shutdown` is ready: serves, dials its neighbours, records;
/// then answers who waits, has the last records made durable (bounded by a grace period) and ends.
///
/// To be run on a current-thread runtime.
///
/// # Errors
/// If the configuration makes no sense, the address cannot be published, or the server fails.
pub async fn run(
    config: Config,
    listener: Listener,
    book: AddressBook,
    shutdown: impl Future<Output = ()>,
) -> Result<Summary, Error> {
    let metrics = config.metrics.clone();
    let (shared, name) = start(config, book)?;
    let failed = |why: String| Error::Serve {
        name: name.clone(),
        why,
    };
    let metrics = match metrics {
        Some(address) => {
            let bound = MetricsListener::publish(&name, &address, &shared.book).await;
            Some(bound.map_err(failed)?)
        }
        None => None,
    };
    shared
        .book
        .publish(&name, listener.address())
        .map_err(|why| Error::Publish {
            name: name.clone(),
            why,
        })?;
    info!("{name} listens at {}", listener.address());

    let mut tasks = JoinSet::new();
    tasks.spawn(link::run(Arc::clone(&shared)));
    tasks.spawn(link::pack(Arc::clone(&shared)));
    tasks.spawn(tick(Arc::clone(&shared)));
    if let Some(listener) = metrics {
        let shared = Arc::clone(&shared);
        let page = move || metrics::page(&shared);
        tasks.spawn(dosmos_metrics::serve(listener, page));
    }
    let neighbours = shared.lock().core.neighbours();
    for peer in neighbours.into_iter().filter(|n| *n > shared.me) {
        tasks.spawn(dial::run(Arc::clone(&shared), peer));
    }

    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let service = MemoryServer::new(serve::Service::new(Arc::clone(&shared)))
        .max_decoding_message_size(MAX_MESSAGE_BYTES)
        .max_encoding_message_size(MAX_MESSAGE_BYTES);
    let mut server = tokio::spawn(
        transport::server()
            .add_service(service)
            .serve_with_incoming_shutdown(listener, async {
                // Dropped or used, either means stop.
                let _ = stopped.await;
            }),
    );
    tokio::select! {
        () = shutdown => {}
        ended = &mut server => {
            shared.book.withdraw(&name);
            MetricsListener::withdraw(&name, &shared.book);
            return Err(failed(match ended {
                Ok(Ok(())) => "its listener ended".to_owned(),
                Ok(Err(e)) => transport::innermost(&e),
                Err(e) => e.to_string(),
            }));
        }
    }
    shared.book.withdraw(&name);
    MetricsListener::withdraw(&name, &shared.book);
    let drained = finish(&shared).await;
    drop(stop);
    shared.lock().hang_up();
    if timeout(CLOSE, &mut server).await.is_err() {
        server.abort();
    }
    tasks.shutdown().await;
    let metrics = shared.metrics(&shared.lock());
    if !drained {
        warn!("{name} ends with records that no event manager has");
    }
    info!("{name} ends");
    Ok(Summary { metrics, drained })
}

fn start(config: Config, book: AddressBook) -> Result<(Arc<Shared>, String), Error> {
    let topology = Arc::new(
        config
            .topology
            .check()
            .map_err(|e| Error::Config(e.to_string()))?,
    );
    let name = match topology.mp(config.me) {
        Some(mp) => mp.name.clone(),
        None => {
            let why = format!("the topology has no {}", config.me);
            return Err(Error::Config(why));
        }
    };
    let clock = Clock::start();
    let core = Core::new(Settings {
        incarnation: clock.now().0,
        topology: Arc::clone(&topology),
        me: config.me,
        overrides: config.overrides,
        default_deadline: match config.default_deadline {
            Nanos::ZERO => DEFAULT_DEADLINE,
            given => given,
        },
    });
    let recorder = Recorder::new(Arc::clone(&topology), config.me, config.recording);
    let shared = Shared {
        topology,
        me: config.me,
        book,
        incarnation: clock.now().0,
        clock,
        state: Mutex::new(State {
            core,
            recorder,
            aps: HashMap::new(),
            peers: HashMap::new(),
            next_session: 1,
            closed: false,
            out: Vec::with_capacity(64),
        }),
        full: Notify::new(),
        packed: Notify::new(),
        room: Notify::new(),
        farewell: Notify::new(),
        recording_up: AtomicBool::new(false),
    };
    Ok((Arc::new(shared), name))
}

async fn tick(shared: Arc<Shared>) {
    let mut interval = interval(TICK);
    interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        interval.tick().await;
        shared.feed(Input::Tick);
    }
}

/// Ends the work: who waits is told, the last records become durable if they can.
async fn finish(shared: &Shared) -> bool {
    shared.feed(Input::Shutdown);
    shared.lock().recorder.set_aside();
    shared.pack(false);
    shared.packed.notify_one();
    let grace = if shared.recording_up.load(Ordering::Relaxed) {
        DRAIN
    } else {
        DRAIN_ABSENT
    };
    let durable = async {
        let mut look = interval(Duration::from_millis(5));
        while !shared.lock().recorder.is_drained() {
            look.tick().await;
        }
    };
    let drained = timeout(grace, durable).await.is_ok();
    shared.farewell.notify_one();
    let heard = async {
        let mut look = interval(Duration::from_millis(5));
        while shared.recording_up.load(Ordering::Relaxed) {
            look.tick().await;
        }
    };
    // Who does not hear it sees the stream end.
    let _ = timeout(FAREWELL, heard).await;
    drained
}
