//! The processes of a cluster that are ours: event managers, memory and link processes.

use std::path::{Path, PathBuf};
use std::process::{ExitCode, ExitStatus};
use std::sync::Arc;

use anyhow::Context;
use dosmos_emp::Companion;
use dosmos_proto::access::Files;
use dosmos_proto::transport::{Address, Listener};
use dosmos_proto::{AddressBook, ApId, EmpId, MpId};
use dosmos_trace::run::RunId;

use crate::config::Cluster;
use crate::lock;

/// Runs an event manager, and what answers beside it if anything does, until `shutdown`.
///
/// # Errors
/// As [`dosmos_emp::run`].
pub(crate) async fn event_manager(
    cluster: &Cluster,
    me: EmpId,
    run: RunId,
    run_dir: &Path,
    (listener, book): (Listener, AddressBook),
    companion: Option<Arc<dyn Companion>>,
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
        companion,
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
    let config = config_of(cluster, me);
    let mut listener = listener.secured(book.credentials().cloned());
    if is_open_to_same_host(cluster, listener.address()) {
        let opened = listener.open_to_same_host();
        opened.unwrap_or_else(|e| tracing::warn!("{name} is reached by TCP on this host too: {e}"));
    }
    let did = dosmos_memproc::run(config, listener, book, shutdown).await?;
    tracing::info!("{name} ends: {did:?}");
    Ok(())
}

fn config_of(cluster: &Cluster, me: MpId) -> dosmos_memproc::Config {
    let name = cluster.topology.mp_name(me);
    dosmos_memproc::Config {
        topology: cluster.topology.clone(),
        me,
        recording: cluster.recording.clone(),
        overrides: cluster.overrides.clone(),
        default_deadline: cluster.deadline,
        in_application: !cluster.in_application.is_empty(),
        metrics: cluster.metrics.address_of(&name).map(str::to_owned),
    }
}

/// Who wrote a loopback address wants TCP; where a launcher decides, addresses are our choice.
fn is_open_to_same_host(cluster: &Cluster, address: &Address) -> bool {
    cluster.launch.is_some() || !address.is_local()
}

/// A memory process that is to be within its application process, and where it is then.
pub(crate) struct Within {
    pub(crate) me: MpId,
    pub(crate) listen: Address,
    /// What is known of others beforehand, by name.
    pub(crate) addresses: Vec<(String, Address)>,
    pub(crate) certificates: Option<Files>,
}

impl Within {
    /// The one of application process `ap` as the cluster file says, if it is to be within.
    ///
    /// # Errors
    /// If its certificates cannot be named.
    pub(crate) fn of(cluster: &Cluster, ap: ApId, run_dir: &Path) -> anyhow::Result<Option<Self>> {
        let Some(me) = cluster.within(ap) else {
            return Ok(None);
        };
        let name = cluster.topology.mp_name(me);
        Ok(Some(Self {
            me,
            listen: cluster.bind_address(&name, run_dir),
            addresses: cluster.known_addresses().collect(),
            certificates: cluster.files_of(&name)?,
        }))
    }

    /// Writes the file that tells the program to be it, and says where the two are.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub(crate) fn write(
        self,
        cluster: &Cluster,
        run_dir: &Path,
    ) -> anyhow::Result<(Address, PathBuf)> {
        let name = cluster.topology.mp_name(self.me);
        let file = run_dir.join(format!("{name}.within.json"));
        let start = dosmos_memproc::Start {
            config: config_of(cluster, self.me),
            open_to_same_host: is_open_to_same_host(cluster, &self.listen),
            listen: self.listen,
            addresses: self.addresses,
            run_dir: run_dir.to_owned(),
            certificates: self.certificates,
        };
        let written = start.write(&file);
        written.with_context(|| format!("cannot write {}", file.display()))?;
        Ok((start.listen, file))
    }
}

/// What this process ends with after a program that it ran.
pub(crate) fn exit_code(status: ExitStatus) -> ExitCode {
    use std::os::unix::process::ExitStatusExt;
    let code = status.code().or(status.signal().map(|s| 128 + s));
    let code = code.and_then(|c| u8::try_from(c).ok());
    code.map_or(ExitCode::FAILURE, ExitCode::from)
}

/// The name of the memory process of an application process.
pub(crate) fn memory_process_name(cluster: &Cluster, ap: &str) -> String {
    let mut aps = cluster.topology.application_processes().iter();
    let mp = aps.find(|p| p.name == ap).map(|p| p.memory_process);
    mp.map_or_else(String::new, |mp| cluster.topology.mp_name(mp))
}

/// The lock that a process of this name holds while it runs.
pub(crate) fn alone(run_dir: &Path, name: &str) -> anyhow::Result<std::fs::File> {
    lock::hold(
        &run_dir.join("lock.d").join(name),
        &format!("{name} is already running"),
        "stop it first, or use another --run-dir",
    )
}
