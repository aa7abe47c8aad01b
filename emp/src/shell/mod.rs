//! The process around the core: store, gRPC service, exchange with other event managers.

mod exchange;
mod ingest;
mod metrics;
mod service;
mod state;
mod writer;

use std::future::Future;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use dosmos_node::address::Published;
use dosmos_node::backoff::{Backoff, Pauses};
use dosmos_node::drain;
use dosmos_node::metrics::MetricsListener;
use dosmos_node::reconnect::keep_connected;
use dosmos_node::serving::{ServeError, Serving};
use dosmos_proto::transport::{self, Listener, Router};
use dosmos_proto::wire::event_manager_server::EventManagerServer;
use dosmos_proto::{AddressBook, EmpId, FILE_DESCRIPTOR_SET, MAX_MESSAGE_BYTES, Token};
use dosmos_trace::store::{Identity, StoreWriter};
use tokio::task::JoinSet;

use crate::config::{Beside, Config, Error, Summary};
use crate::core::Manager;
use state::Shared;

/// How long memory processes may take to end their streams when this process is to end.
const GRACE: Duration = Duration::from_secs(3);
/// How long its own connections may take to close at the end.
const CLOSE: Duration = Duration::from_millis(500);
/// Pauses between attempts to reach another event manager.
const PAUSES: Pauses = Pauses {
    first: Duration::from_millis(50),
    most: Duration::from_secs(2),
};

/// Runs an event manager until `shutdown`; then what was received is put on disk and the store closed.
///
/// Runs on any tokio runtime; a current-thread one is enough.
///
/// # Errors
/// If its store cannot be used or its sockets fail.
pub async fn run(
    config: Config,
    listener: Listener,
    book: AddressBook,
    shutdown: impl Future<Output = ()>,
) -> Result<Summary, Error> {
    let process = config.topology.event_managers().get(config.me.index());
    let name = process.ok_or(Error::Unknown(config.me))?.name.clone();
    let store_error = |source| Error::Store {
        name: name.clone(),
        source,
    };
    let writer_error = |source| Error::Writer {
        name: name.clone(),
        source,
    };
    let metrics = match &config.metrics {
        Some(address) => Some(MetricsListener::publish(&name, address, &book).await?),
        None => None,
    };
    let identity = Identity {
        run: config.run,
        event_manager: name.clone(),
        emp: config.me,
        topology: config.topology.clone(),
    };
    let (mut store, mut recovered) =
        StoreWriter::open(&config.store, &identity).map_err(store_error)?;
    store.retain(config.retention);
    let address = listener.address().to_string();
    store.answers_at(&address).map_err(store_error)?;
    store
        .commit(&Manager::expected_reports(&config.topology, config.me))
        .map_err(store_error)?;
    let mut manager = Manager::new(
        config.topology.clone(),
        config.me,
        config.selection.clone(),
        recovered.marks().values(),
    );
    if let Some(snapshot) = recovered.take_snapshot() {
        manager.resume(snapshot, store.view().catalog().variables);
    }
    manager.goes_on_after(store.view().corrections());
    let mut entries = 0u64;
    recovered.replay(|item| {
        entries += 1;
        manager.replay(item);
    });
    let shared = Arc::new(Shared::new(&config, store.view(), manager));
    tracing::info!("{name} answers at {address}; {entries} log entries read again");
    let token = book.require_token().map_err(|source| Error::Token {
        name: name.clone(),
        source,
    })?;
    let companion = match &config.companion {
        Some(companion) => {
            let beside = Beside {
                name: name.clone(),
                address: listener.address().clone(),
                view: shared.view.clone(),
                book: book.clone(),
                token: token.clone(),
            };
            let started = companion.start(beside);
            let failed = |source| Error::Companion {
                name: name.clone(),
                source,
            };
            Some(started.map_err(failed)?)
        }
        None => None,
    };
    let published = Published::new(&book, &name, listener.address())?;
    let writer = writer::start(shared.clone(), store).map_err(writer_error)?;
    let mut tasks = JoinSet::new();
    for other in 0..config.topology.event_managers().len() as u32 {
        if EmpId(other) != config.me {
            let link = exchange::ToEventManager::new(shared.clone(), book.clone(), EmpId(other));
            let seed = u64::from(config.me.0) << 32 | u64::from(other);
            tasks.spawn(keep_connected(link, Backoff::new(PAUSES, seed)));
        }
    }
    if let Some(listener) = metrics {
        let shared = shared.clone();
        let page = move || metrics::page(&shared);
        tasks.spawn(dosmos_node::metrics::serve(listener, page));
    }
    let listener = listener.secured(book.credentials().cloned());
    let served = serve(&shared, token, listener, shutdown).await;
    drop((published, companion));
    tasks.shutdown().await;
    shared.lock().closing = true;
    shared.work.notify_one();
    let joined = tokio::task::spawn_blocking(move || writer.join()).await;
    if !matches!(joined, Ok(Ok(()))) {
        return Err(writer_error(io::Error::other(
            "the thread that writes failed",
        )));
    }
    served.map_err(|source| Error::Serve { name, source })?;
    let usage = shared.view.usage();
    Ok(Summary {
        records: usage.records,
        bytes: usage.bytes,
    })
}

/// Serves until `shutdown`, then as long as memory processes and other event managers still have
/// something to report, within the grace period.
async fn serve(
    shared: &Arc<Shared>,
    token: Token,
    listener: Listener,
    shutdown: impl Future<Output = ()>,
) -> Result<(), ServeError> {
    let mut server = Serving::start(services(shared, token).await?, listener);
    tokio::select! {
        ended = server.failed() => return Err(ended),
        () = shutdown => {}
    }
    let connected = || !shared.lock().replies.is_empty();
    drain::until(GRACE, || !connected()).await;
    // What another event manager does not take now, it takes when this one runs again.
    let _ = shared.settle(GRACE / 3).await;
    shared.end();
    server.close(CLOSE).await;
    Ok(())
}

/// What a memory process may send before it is read: a few batches. There may be many memory processes, and while there is no room for
/// records, so much of each waits here.
const WINDOW_BYTES: u32 = 1 << 20;

async fn services(shared: &Arc<Shared>, token: Token) -> Result<Router, ServeError> {
    let reflection = tonic_reflection::server::Builder::configure()
        .register_encoded_file_descriptor_set(FILE_DESCRIPTOR_SET)
        .build_v1()
        .map_err(|e| ServeError::Service(Box::new(e)))?;
    let (health, health_service) = tonic_health::server::health_reporter();
    let service = EventManagerServer::new(service::Service::new(shared.clone()))
        .max_decoding_message_size(MAX_MESSAGE_BYTES)
        .max_encoding_message_size(MAX_MESSAGE_BYTES);
    health
        .set_serving::<EventManagerServer<service::Service>>()
        .await;
    Ok(transport::server(token)
        .initial_stream_window_size(WINDOW_BYTES)
        .initial_connection_window_size(2 * WINDOW_BYTES)
        .add_service(service)
        .add_service(reflection)
        .add_service(health_service))
}
