//! The process around the core: gRPC in and out, timers, the stream of records, start and graceful end.
//!
//! ```text
//! serve ──┐                        ┌── records ── codec
//! dial ───┼── peer ── session ── shared
//! metrics ┘                        (core, recorder, senders, behind one mutex)
//! ```

mod codec;
mod dial;
mod incoming;
mod metrics;
mod outgoing;
mod peer;
mod records;
mod serve;
mod session;
mod shared;
mod within;

use std::sync::Arc;
use std::time::Duration;

use dosmos_node::address::Published;
use dosmos_node::backoff::{Backoff, Pauses};
use dosmos_node::drain::{self, Drained, Work};
use dosmos_node::incarnation;
use dosmos_node::metrics::MetricsListener;
use dosmos_node::processor::process_time;
use dosmos_node::reconnect::keep_connected;
use dosmos_node::serving::Serving;
use dosmos_proto::access::Credentials;
use dosmos_proto::transport::Listener;
use dosmos_proto::watched::Watched;
use dosmos_proto::wire::memory_server::MemoryServer;
use dosmos_proto::{AddressBook, ApId, MAX_MESSAGE_BYTES, Nanos, transport};
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval, sleep};
use tracing::{info, warn};

use crate::config::{Config, Error, Start, Summary};
use crate::core::messages::Input;
use crate::core::{Core, Settings};
use crate::recorder::Recorder;
use shared::Shared;
pub use within::{Entrance, Replies, Within, within};

const DEFAULT_DEADLINE: Nanos = Nanos::from_millis(60_000);
/// One within an application process looks this often whether all application processes have left.
const LOOK_WHO_LEFT: Duration = Duration::from_millis(5);
/// Deadlines are looked at this often.
const TICK: Duration = Duration::from_millis(20);
/// The end waits for the event manager to make the last records durable, until it has made none durable for this long. One
/// that is away may be on its way back, so it is waited for as long.
const STALL: Duration = Duration::from_secs(8);
/// While it waits and there is progress, it says so this often: whoever started it can tell that it does not hang.
const SAY_SO: Duration = Duration::from_secs(2);
/// The same if no event manager was ever there: one that starts with this process is about to be.
const DRAIN_NEVER_THERE: Duration = Duration::from_secs(1);
const FAREWELL: Duration = Duration::from_millis(300);
const CLOSE: Duration = Duration::from_millis(500);
/// Pauses between attempts to reach a neighbour, and the event manager.
const PEER_PAUSES: Pauses = Pauses {
    first: Duration::from_millis(10),
    most: Duration::from_millis(500),
};
const RECORD_PAUSES: Pauses = Pauses {
    first: Duration::from_millis(50),
    most: Duration::from_secs(1),
};

/// Runs a memory or link process until `shutdown` is ready: publishes its address, serves, dials its
/// neighbours, records; then answers who waits, has the last records made durable (bounded by a grace
/// period) and ends.
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
    run_as(config, listener, book, None, shutdown).await
}

/// Runs a memory process within an application process until all application processes of the cluster have left, since what it owns is
/// theirs, too; or until `shutdown` is ready. To be run on the runtime of the session, which begins at the [`Entrance`].
///
/// # Errors
/// As [`run`]; if it cannot listen, or its certificates cannot be used.
pub async fn run_within(
    start: Start,
    within: Within,
    shutdown: impl Future<Output = ()>,
) -> Result<Summary, Error> {
    let name = start.config.topology.mp_name(start.config.me);
    let failed = |source: std::io::Error| Error::Begin {
        name: name.clone(),
        source,
    };
    let credentials = start.certificates.map(Credentials::read).transpose();
    let credentials = credentials.map_err(|e| failed(std::io::Error::other(e)))?;
    let addresses = start.addresses.into_iter().collect();
    let book = AddressBook::new(addresses, Some(&start.run_dir)).secured(credentials.clone());
    let listener = Listener::bind(&start.listen).await.map_err(failed)?;
    let mut listener = listener.secured(credentials);
    if start.open_to_same_host {
        let opened = listener.open_to_same_host();
        opened.unwrap_or_else(|e| warn!("{name} is reached by TCP on this host too: {e}"));
    }
    run_as(start.config, listener, book, Some(within), shutdown).await
}

async fn run_as(
    config: Config,
    listener: Listener,
    book: AddressBook,
    within: Option<Within>,
    shutdown: impl Future<Output = ()>,
) -> Result<Summary, Error> {
    let (visits, watched) = within.map(|w| (w.visits, w.watched)).unzip();
    let metrics = config.metrics.clone();
    let (shared, name) = start(config, book, watched.clone())?;
    let metrics = match metrics {
        Some(address) => Some(MetricsListener::publish(&name, &address, &shared.book).await?),
        None => None,
    };
    let token = shared.book.require_token();
    let token = token.map_err(|source| Error::Token {
        name: name.clone(),
        source,
    })?;
    let published = Published::new(&shared.book, &name, listener.address())?;
    info!("{name} listens at {}", published.address());

    let mut tasks = JoinSet::new();
    let backoff = |pauses, peer: u64| Backoff::new(pauses, shared.incarnation.to_wire() ^ peer);
    let records = records::ToEventManager::new(Arc::clone(&shared));
    tasks.spawn(keep_connected(records, backoff(RECORD_PAUSES, u64::MAX)));
    tasks.spawn(records::pack(Arc::clone(&shared)));
    tasks.spawn(tick(Arc::clone(&shared)));
    let is_within = visits.is_some();
    if !is_within {
        let spinning = Arc::clone(&shared);
        tasks.spawn(async move { spinning.spinner.run().await });
    }
    if let Some(listener) = metrics {
        let shared = Arc::clone(&shared);
        let page = move || metrics::page(&shared);
        tasks.spawn(dosmos_node::metrics::serve(listener, page));
    }
    let neighbours = shared.lock().core.neighbours();
    for peer in neighbours.into_iter().filter(|n| *n > shared.me) {
        let link = dial::ToPeer::new(Arc::clone(&shared), peer);
        tasks.spawn(keep_connected(link, backoff(PEER_PAUSES, peer.0.into())));
    }

    let service = Arc::new(serve::Service::new(Arc::clone(&shared)));
    if let Some(mut visits) = visits {
        let service = Arc::clone(&service);
        tasks.spawn(async move {
            while let Some(visit) = visits.recv().await {
                service.within(visit);
            }
        });
    }
    let library = MemoryServer::from_arc(Arc::clone(&service))
        .max_decoding_message_size(MAX_MESSAGE_BYTES)
        .max_encoding_message_size(MAX_MESSAGE_BYTES);
    let listener = listener.secured(shared.book.credentials().cloned());
    let guard = transport::guard(token.clone());
    let library = transport::server(token).add_service(library);
    let mut server = Serving::start_with(library, listener, guard, service, watched);
    let _ = shared.started.set(process_time());
    tokio::select! {
        () = shutdown => {}
        () = all_have_left(&shared), if is_within => {}
        source = server.failed() => return Err(Error::Serve { name, source }),
    }
    drop(published);
    let drained = finish(&shared).await;
    shared.lock().hang_up();
    server.close(CLOSE).await;
    tasks.shutdown().await;
    let counters = shared.counters(&shared.lock());
    if let Err(why) = &drained {
        warn!("{name} ends with records that no event manager has: {why}");
    }
    info!("{name} ends");
    let drained = drained.is_ok();
    Ok(Summary { counters, drained })
}

/// Waits until no application process of the cluster is left: its own first, of which it hears itself. Of those that nothing is heard
/// of, whoever started them says when they have ended.
async fn all_have_left(shared: &Shared) {
    let is_own = |ap: &ApId| {
        shared
            .topology
            .ap(*ap)
            .is_some_and(|ap| ap.memory_process == shared.me)
    };
    loop {
        let here = shared.lock().core.still_here();
        let ended = |ap: &ApId| shared.book.is_given_up(&shared.topology.ap_name(*ap));
        if !here.iter().any(is_own) && here.iter().all(ended) {
            return;
        }
        sleep(LOOK_WHO_LEFT).await;
    }
}

fn start(
    config: Config,
    book: AddressBook,
    watched: Option<Arc<Watched>>,
) -> Result<(Arc<Shared>, String), Error> {
    let topology = Arc::new(config.topology);
    let me = config.me;
    let name = topology.mp(me).ok_or(Error::Unknown(me))?.name.clone();
    let Some(run_dir) = book.run_dir() else {
        return Err(Error::NoRunDirectory { name });
    };
    let incarnation = incarnation::next(run_dir, &name)?;
    let core = Core::new(Settings {
        incarnation,
        topology: Arc::clone(&topology),
        me,
        overrides: config.overrides,
        default_timeout: match config.default_deadline {
            Nanos::ZERO => DEFAULT_DEADLINE,
            given => given,
        },
        in_application: config.in_application,
    });
    let recorder = Recorder::new(Arc::clone(&topology), me, config.recording);
    let shared = Shared::new(core, recorder, (topology, me), book, incarnation, watched);
    Ok((Arc::new(shared), name))
}

async fn tick(shared: Arc<Shared>) {
    let mut interval = interval(TICK);
    interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        interval.tick().await;
        shared.feed(Input::Tick);
        shared.give_up_silent_peers();
    }
}

/// Ends the work: who waits is told, the last records become durable if they can; else why not.
async fn finish(shared: &Shared) -> Result<(), String> {
    shared.feed(Input::Shutdown);
    shared.lock().recorder.set_aside();
    // After a short run the event manager may not have been reached yet, and would never hear that this process ended well.
    let emp = shared.emp_name();
    let known = || shared.was_recording_up() || shared.book.is_given_up(&emp);
    drain::until(DRAIN_NEVER_THERE, known).await;
    let was_there = shared.was_recording_up();
    if !shared.pack(false) && was_there {
        // How much was left out is known only now.
        shared.pack_counters();
    }
    shared.packed.notify_one();
    let stall = if was_there { STALL } else { Duration::ZERO };
    let drained = match drain(shared, &emp, stall).await {
        Drained::All => Ok(()),
        Drained::Hopeless => Err(format!("{emp} has ended and is not started again")),
        Drained::Stalled if was_there => Err(format!("{emp} stored none of them for {STALL:?}")),
        Drained::Stalled => Err(format!("{emp} was never reached")),
    };
    shared.farewell.notify_one();
    // An event manager that does not hear it sees the stream end.
    drain::until(FAREWELL, || !shared.is_recording_up()).await;
    drained
}

/// Waits for the last records to become durable.
async fn drain(shared: &Shared, emp: &str, stall: Duration) -> Drained {
    let mut said = (tokio::time::Instant::now(), None);
    drain::while_progress(stall, || {
        let (drained, waiting) = {
            let state = shared.lock();
            (state.recorder.is_drained(), state.recorder.unacknowledged())
        };
        if drained {
            return Work::Done;
        }
        if !shared.is_recording_up() && shared.book.is_given_up(emp) {
            return Work::Hopeless;
        }
        if said.0.elapsed() >= SAY_SO && said.1 != Some(waiting) {
            warn!("waiting for {emp} to store {waiting} batches of records");
            said = (tokio::time::Instant::now(), Some(waiting));
        }
        Work::Left(waiting)
    })
    .await
}
