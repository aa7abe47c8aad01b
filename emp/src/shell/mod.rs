//! The process around the core: store, gRPC service, exchange with other event managers.

mod exchange;
mod ingest;
mod metrics;
mod service;
mod state;
mod writer;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use dosmos_metrics::MetricsListener;
use dosmos_proto::transport::{self, Listener};
use dosmos_proto::wire::event_manager_server::EventManagerServer;
use dosmos_proto::{AddressBook, EmpId, FILE_DESCRIPTOR_SET, MAX_MESSAGE_BYTES};
use dosmos_trace::meta::MetaState;
use dosmos_trace::store::{Identity, StoreWriter};
use tokio::task::JoinSet;

use crate::core::{Ingest, Outbox};
use crate::{Config, Error, Summary};
use state::Shared;

/// How long memory processes may take to end their streams when this process is to end.
const GRACE: Duration = Duration::from_secs(3);
const LOOK_AGAIN: Duration = state::LOOK_AGAIN;

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
    let system_error = |why: String| Error::System {
        name: name.clone(),
        why,
    };
    let metrics = match &config.metrics {
        Some(address) => Some(
            MetricsListener::publish(&name, address, &book)
                .await
                .map_err(system_error)?,
        ),
        None => None,
    };
    let identity = Identity {
        event_manager: name.clone(),
        emp: config.me,
        topology: config.topology.clone(),
    };
    let (mut store, mut recovered) =
        StoreWriter::open(&config.store, &identity).map_err(store_error)?;
    store.retain(config.retention);
    let address = listener.address().to_string();
    store.answers_at(&address).map_err(store_error)?;
    let shared = Arc::new(Shared::new(
        &config,
        store.view(),
        Ingest::from_marks(recovered.marks().values()),
        MetaState::new(config.topology.clone(), config.me),
        Outbox::default(),
    ));
    if let Some(snapshot) = recovered.take_snapshot() {
        shared.resume(snapshot);
    }
    let mut entries = 0u64;
    recovered.replay(|item| {
        entries += 1;
        shared.lock().replay(item);
    });
    tracing::info!("{name} answers at {address}; {entries} log entries read again");
    let writer = writer::start(shared.clone(), store).map_err(|e| system_error(e.to_string()))?;
    let mut tasks = JoinSet::new();
    for other in 0..config.topology.event_managers().len() as u32 {
        if EmpId(other) != config.me {
            tasks.spawn(exchange::give(shared.clone(), book.clone(), EmpId(other)));
        }
    }
    if let Some(listener) = metrics {
        let shared = shared.clone();
        let page = move || metrics::page(&shared);
        tasks.spawn(dosmos_metrics::serve(listener, page));
    }
    let served = serve(&shared, listener, shutdown).await;
    MetricsListener::withdraw(&name, &book);
    shared.end();
    tasks.shutdown().await;
    shared.lock().closing = true;
    shared.work.notify_one();
    let joined = tokio::task::spawn_blocking(move || writer.join()).await;
    if !matches!(joined, Ok(Ok(()))) {
        return Err(system_error("the writer thread failed".into()));
    }
    served.map_err(system_error)?;
    let usage = shared.view.usage();
    Ok(Summary {
        records: usage.records,
        bytes: usage.bytes,
    })
}

async fn serve(
    shared: &Arc<Shared>,
    listener: Listener,
    shutdown: impl Future<Output = ()>,
) -> Result<(), String> {
    let reflection = tonic_reflection::server::Builder::configure()
        .register_encoded_file_descriptor_set(FILE_DESCRIPTOR_SET)
        .build_v1()
        .map_err(|e| e.to_string())?;
    let (health, health_service) = tonic_health::server::health_reporter();
    let service = EventManagerServer::new(service::Service(shared.clone()))
        .max_decoding_message_size(MAX_MESSAGE_BYTES)
        .max_encoding_message_size(MAX_MESSAGE_BYTES);
    health
        .set_serving::<EventManagerServer<service::Service>>()
        .await;
    let server = transport::server()
        .add_service(service)
        .add_service(reflection)
        .add_service(health_service)
        .serve_with_incoming(listener);
    tokio::pin!(server, shutdown);
    tokio::select! {
        ended = &mut server => return ended.map_err(|e| transport::innermost(&e)),
        () = &mut shutdown => {}
    }
    // Memory processes that are ending too may still have something to report, and other event
    // managers something to hand over: this one serves on while it sees to its own.
    let see_to_the_end = async {
        let quiet = async {
            while shared.lock().links.values().any(|l| l.replies.is_some()) {
                tokio::time::sleep(LOOK_AGAIN).await;
            }
        };
        let _ = tokio::time::timeout(GRACE, quiet).await;
        let _ = shared.settle(GRACE / 3).await;
    };
    tokio::select! {
        ended = &mut server => ended.map_err(|e| transport::innermost(&e)),
        () = see_to_the_end => Ok(()),
    }
}
