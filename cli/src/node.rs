//! One process of a cluster: memory process, link process or event manager, by its name.

use std::os::fd::AsFd;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, bail};
use dosmos_emp::Companion;
use dosmos_proto::transport::Listener;
use dosmos_proto::{AddressBook, EmpId, MpId};
use dosmos_trace::run::RunId;
use nix::sys::stat::{Mode, umask};
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;
use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::args::NodeArgs;
use crate::config::Cluster;
use crate::lock;

/// What a launcher calls the position of a process.
const RANKS: [&str; 4] = [
    "SLURM_PROCID",
    "OMPI_COMM_WORLD_RANK",
    "PMIX_RANK",
    "PMI_RANK",
];

pub(crate) async fn run(
    args: NodeArgs,
    companion: Option<Arc<dyn Companion>>,
) -> anyhow::Result<()> {
    log_to_stderr()?;
    let cluster = Cluster::read(&args.cluster)?;
    let name = match args.name {
        Some(name) => name,
        None => name_by_rank(&cluster)?,
    };
    umask(Mode::S_IRWXG | Mode::S_IRWXO);
    let run_dir = &args.run_dir;
    let locks = run_dir.join("lock.d");
    std::fs::create_dir_all(&locks)
        .with_context(|| format!("cannot create {}", locks.display()))?;
    let run_dir = run_dir
        .canonicalize()
        .with_context(|| run_dir.display().to_string())?;
    let _alone = lock::hold(
        &locks.join(&name),
        &format!("{name} is already running"),
        "stop it first, or use another --run-dir",
    )?;
    let book = cluster.address_book(Some(&run_dir));
    let shutdown = end_of(args.stdin_is_parent)?;
    serve(&cluster, &name, &run_dir, &book, companion, shutdown).await
}

/// Logs to standard error: `info`, or what `RUST_LOG` asks for, such as `warn,dosmos_memproc=debug`.
fn log_to_stderr() -> anyhow::Result<()> {
    let filter = match std::env::var("RUST_LOG") {
        Ok(levels) => levels.parse::<Targets>().with_context(|| {
            format!(
                "RUST_LOG={levels}: a level, or levels of modules as in warn,dosmos_memproc=debug"
            )
        })?,
        Err(_) => Targets::new().with_default(LevelFilter::INFO),
    };
    let to_stderr = tracing_subscriber::fmt::layer()
        .with_writer(std::io::stderr)
        .with_ansi(false);
    tracing_subscriber::registry()
        .with(filter)
        .with(to_stderr)
        .init();
    Ok(())
}

async fn serve(
    cluster: &Cluster,
    name: &str,
    run_dir: &Path,
    book: &AddressBook,
    companion: Option<Arc<dyn Companion>>,
    shutdown: impl Future<Output = ()>,
) -> anyhow::Result<()> {
    let topology = &cluster.topology;
    if let Some(me) = topology.find_emp(name) {
        return event_manager(cluster, me, run_dir, book, companion, shutdown).await;
    }
    if let Some(me) = topology.find_mp(name) {
        return memory_process(cluster, me, run_dir, book, shutdown).await;
    }
    if topology.find_ap(name).is_some() {
        bail!("{name} is an application process: `dosmos up` starts your program as it");
    }
    let known: Vec<&str> = runnable(cluster).collect();
    bail!(
        "the cluster has no process {name}; its processes: {}",
        known.join(", ")
    );
}

/// Event managers first, then memory and link processes: the order of ranks.
fn runnable(cluster: &Cluster) -> impl Iterator<Item = &str> {
    let emps = cluster
        .topology
        .event_managers()
        .iter()
        .map(|p| p.name.as_str());
    emps.chain(
        cluster
            .topology
            .memory_processes()
            .iter()
            .map(|p| p.name.as_str()),
    )
}

fn name_by_rank(cluster: &Cluster) -> anyhow::Result<String> {
    let found = RANKS.iter().find_map(|v| Some((v, std::env::var(v).ok()?)));
    let Some((variable, rank)) = found else {
        bail!("--name is missing (it is only optional under srun or mpirun)");
    };
    let rank: usize = rank
        .parse()
        .with_context(|| format!("{variable} is not a number: {rank:?}"))?;
    let name = runnable(cluster).nth(rank).with_context(|| {
        format!(
            "{variable} is {rank}, but the cluster has only {} event managers, memory and link processes",
            runnable(cluster).count()
        )
    })?;
    tracing::info!("{variable} is {rank}: this is {name}");
    Ok(name.to_owned())
}

async fn event_manager(
    cluster: &Cluster,
    me: EmpId,
    run_dir: &Path,
    book: &AddressBook,
    companion: Option<Arc<dyn Companion>>,
    shutdown: impl Future<Output = ()>,
) -> anyhow::Result<()> {
    let name = cluster.topology.emp_name(me);
    let listener = Listener::bind(&cluster.bind_address(&name, run_dir)).await?;
    let config = dosmos_emp::Config {
        run: RunId::of_directory(run_dir).with_context(|| {
            format!("{} cannot hold the identity of the run", run_dir.display())
        })?,
        topology: cluster.topology.clone(),
        me,
        store: cluster.store_of(&name, run_dir),
        metrics: cluster.metrics.address_of(&name).map(str::to_owned),
        retention: cluster.retention,
        selection: cluster.recording.selection.clone(),
        companion,
    };
    let did = dosmos_emp::run(config, listener, book.clone(), shutdown).await?;
    tracing::info!(
        "{name} ends: {} records in {} bytes",
        did.records,
        did.bytes
    );
    Ok(())
}

async fn memory_process(
    cluster: &Cluster,
    me: MpId,
    run_dir: &Path,
    book: &AddressBook,
    shutdown: impl Future<Output = ()>,
) -> anyhow::Result<()> {
    let name = cluster.topology.mp_name(me);
    let listener = Listener::bind(&cluster.bind_address(&name, run_dir)).await?;
    let config = dosmos_memproc::Config {
        topology: cluster.topology.clone(),
        me,
        recording: cluster.recording.clone(),
        overrides: cluster.overrides.clone(),
        default_deadline: cluster.deadline,
        metrics: cluster.metrics.address_of(&name).map(str::to_owned),
    };
    let did = dosmos_memproc::run(config, listener, book.clone(), shutdown).await?;
    tracing::info!("{name} ends: {did:?}");
    Ok(())
}

/// Completes when this process is to end: a signal, or the end of standard input if a parent holds it.
///
/// # Errors
/// Signals that cannot be watched; standard input that is not a pipe.
pub fn end_of(stdin_is_parent: bool) -> anyhow::Result<impl Future<Output = ()>> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut hangup = signal(SignalKind::hangup())?;
    let mut parent = match stdin_is_parent {
        true => {
            let stdin = std::io::stdin().as_fd().try_clone_to_owned()?;
            Some(pipe::Receiver::from_owned_fd(stdin).context("standard input is not a pipe")?)
        }
        false => None,
    };
    Ok(async move {
        let parent_gone = async {
            if parent.is_some() {
                let mut sink = [0; 64];
                while let Some(pipe) = &mut parent
                    && pipe.read(&mut sink).await.is_ok_and(|n| n > 0)
                {}
            } else {
                std::future::pending::<()>().await;
            }
        };
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
            _ = hangup.recv() => {}
            () = parent_gone => tracing::warn!("the parent process is gone; ending"),
        }
    })
}
