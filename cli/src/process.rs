//! The processes of a cluster that are ours: event managers, memory and link processes.

use std::path::Path;

use dosmos_proto::transport::Listener;
use dosmos_proto::{AddressBook, EmpId, MpId};
use dosmos_trace::run::RunId;

use crate::config::Cluster;

/// Runs an event manager until `shutdown`.
///
/// # Errors
/// As [`dosmos_emp::run`].
pub(crate) async fn event_manager(
    cluster: &Cluster,
    me: EmpId,
    run: RunId,
    run_dir: &Path,
    (listener, book): (Listener, AddressBook),
    shutdown: impl Future<Output = ()>,
) -> anyhow::Result<()> {
    let name = cluster.topology.emp_name(me);
    let config = dosmos_emp::Config {
        run,
        topology: cluster.topology.clone(),
        me,
        store: cluster.store_of(&name, run_dir),
        metrics: cluster.metrics.address_of(&name).map(str::to_owned),
        retention: cluster.retention,
        selection: cluster.recording.selection.clone(),
    };
    let did = dosmos_emp::run(config, listener, book, shutdown).await?;
    tracing::info!(
        "{name} ends: {} records in {} bytes",
        did.records,
        did.bytes
    );
    Ok(())
}

/// Runs a memory or link process until `shutdown`.
///
/// # Errors
/// As [`dosmos_memproc::run`].
pub(crate) async fn memory_process(
    cluster: &Cluster,
    me: MpId,
    (listener, book): (Listener, AddressBook),
    shutdown: impl Future<Output = ()>,
) -> anyhow::Result<()> {
    let name = cluster.topology.mp_name(me);
    let config = dosmos_memproc::Config {
        topology: cluster.topology.clone(),
        me,
        recording: cluster.recording.clone(),
        overrides: cluster.overrides.clone(),
        default_deadline: cluster.deadline,
        metrics: cluster.metrics.address_of(&name).map(str::to_owned),
    };
    let did = dosmos_memproc::run(config, listener, book, shutdown).await?;
    tracing::info!("{name} ends: {did:?}");
    Ok(())
}
