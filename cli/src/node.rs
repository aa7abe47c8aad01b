//! `dosmos node`: one process of a cluster, by its name in the cluster file or by the rank that a launcher gave it.

use std::path::{Path, PathBuf};
use std::process::{ExitCode, ExitStatus};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use dosmos_emp::Companion;
use dosmos_proto::transport::{Address, Listener};
use dosmos_proto::{AddressBook, ApId, MpId};
use dosmos_trace::run::RunId;
use nix::sys::stat::{Mode, umask};
use tokio::time::{sleep, timeout};

use crate::args::NodeArgs;
use crate::config::{Cluster, Protection};
use crate::launch::{Child, Joining, RunDir};
use crate::process::{
    Within, alone, event_manager, exit_code, memory_process, memory_process_name,
};
use crate::ranks::environment::{ENV_RANK, place};
pub use crate::signals::end_of;
use crate::{logs, ranks};

/// How long the memory process of a program may take to be there.
const START: Duration = Duration::from_secs(60);
const LOOK_AGAIN: Duration = Duration::from_millis(20);

pub(crate) async fn run(
    args: NodeArgs,
    companion: Option<Arc<dyn Companion>>,
) -> anyhow::Result<ExitCode> {
    if args.whole_host {
        return ranks::run_whole_host(args).await;
    }
    let protection = Protection::beside_the_file(args.insecure);
    let cluster = Cluster::read_with(&args.cluster, protection)?;
    if let Some(name) = args.name.clone() {
        return named(&args, &cluster, &name, companion).await;
    }
    let Some(place) = place()? else {
        bail!(
            "--name is missing: it is only optional under a launcher, which sets a rank ({ENV_RANK}, PMIX_RANK, SLURM_PROCID, …)"
        );
    };
    if cluster.launch.is_some() {
        return ranks::run(args, companion, &cluster, place).await;
    }
    let known = by_rank(&cluster).count();
    let name = by_rank(&cluster).nth(place.rank as usize);
    let Some(name) = name.map(str::to_owned) else {
        bail!(
            "this is rank {} of {}, but the cluster has only {known} processes",
            place.rank,
            place.launcher
        );
    };
    named(&args, &cluster, &name, companion).await
}

/// Event managers first, then memory and link processes, then application processes: the order of ranks. Memory processes that are
/// within application processes have none.
fn by_rank(cluster: &Cluster) -> impl Iterator<Item = &str> {
    let topology = &cluster.topology;
    let emps = topology.event_managers().iter().map(|p| p.name.as_str());
    let mps = topology.memory_processes().iter().zip((0..).map(MpId));
    let mps = mps.filter(|(_, mp)| cluster.around(*mp).is_none());
    let mps = mps.map(|(p, _)| p.name.as_str());
    let aps = topology.application_processes().iter();
    emps.chain(mps).chain(aps.map(|p| p.name.as_str()))
}

/// Runs the process of this name.
async fn named(
    args: &NodeArgs,
    cluster: &Cluster,
    name: &str,
    companion: Option<Arc<dyn Companion>>,
) -> anyhow::Result<ExitCode> {
    logs::to_stderr()?;
    let run_dir = args.run_dir.clone().unwrap_or_else(|| PathBuf::from("."));
    let topology = &cluster.topology;
    if let Some(me) = topology.find_ap(name) {
        let joined = RunDir::join(&run_dir)?;
        let _alone = alone(joined.path(), name)?;
        return program(args, cluster, (me, name), &joined).await;
    }
    umask(Mode::S_IRWXG | Mode::S_IRWXO);
    let locks = run_dir.join("lock.d");
    std::fs::create_dir_all(&locks)
        .with_context(|| format!("cannot create {}", locks.display()))?;
    let run_dir = run_dir
        .canonicalize()
        .with_context(|| run_dir.display().to_string())?;
    let _alone = alone(&run_dir, name)?;
    let credentials = cluster.credentials_of(name)?;
    let book = cluster.address_book(Some(&run_dir)).secured(credentials);
    let shutdown = end_of(args.stdin_is_parent)?;
    if let Some(me) = topology.find_emp(name) {
        let at = (listen(cluster, name, &run_dir, &book).await?, book);
        let run = RunId::of_directory(&run_dir).with_context(|| {
            format!("{} cannot hold the identity of the run", run_dir.display())
        })?;
        event_manager(cluster, me, run, &run_dir, at, companion, shutdown).await?;
    } else if let Some(me) = topology.find_mp(name) {
        if let Some(ap) = cluster.around(me) {
            bail!(
                "memory process {name} is within its application process: start {ap} in its place"
            );
        }
        let at = (listen(cluster, name, &run_dir, &book).await?, book);
        memory_process(cluster, me, at, shutdown).await?;
    } else {
        let known: Vec<&str> = by_rank(cluster).collect();
        bail!(
            "the cluster has no process {name}; its processes: {}",
            known.join(", ")
        );
    }
    Ok(ExitCode::SUCCESS)
}

async fn listen(
    cluster: &Cluster,
    name: &str,
    run_dir: &Path,
    book: &AddressBook,
) -> anyhow::Result<Listener> {
    let listener = Listener::bind(&cluster.bind_address(name, run_dir)).await?;
    let listener = listener.secured(book.credentials().cloned());
    cluster.check_exposure(name, &listener)?;
    Ok(listener)
}

/// Runs the user's program as application process `name`, once its memory process is there; or with that within.
async fn program(
    args: &NodeArgs,
    cluster: &Cluster,
    (me, name): (ApId, &str),
    run_dir: &RunDir,
) -> anyhow::Result<ExitCode> {
    let command = match args.app.is_empty() {
        true => &cluster.app,
        false => &args.app,
    };
    if command.is_empty() {
        bail!(
            "{name} is an application process: add the program that it runs, `-- PROGRAM ARG…`, or an [app] command to {}",
            args.cluster.display()
        );
    }
    let book = cluster.address_book(Some(run_dir.path()));
    let book = book.secured(cluster.credentials_of(name)?);
    let mut end = std::pin::pin!(end_of(args.stdin_is_parent)?);
    let within = Within::of(cluster, me, run_dir.path())?;
    let (address, within) = match within {
        Some(within) => {
            let (address, file) = within.write(cluster, run_dir.path())?;
            (address, Some(file))
        }
        None => tokio::select! {
            address = memory_process_of(cluster, name, &book) => (address?, None),
            () = &mut end => bail!("asked to end before the program began"),
        },
    };
    // It is there before the program reads it.
    book.require_token()?;
    let files = cluster.files_of(name)?;
    let joining = Joining {
        within,
        memory_process: &address,
        certificates: files.as_ref(),
        deadline: cluster.deadline,
    };
    book.is_back(name)?;
    let mut child = Child::app(name, command, &joining, run_dir, true, None)?;
    let ended = tokio::select! {
        status = wait(&mut child) => Some(status?),
        () = &mut end => None,
    };
    let status = match ended {
        Some(status) => status,
        None => {
            child.terminate();
            wait(&mut child).await?
        }
    };
    child.finish().await;
    if !cluster.in_application.is_empty() {
        // The others may never have heard of it, and wait for it until they know that it has ended.
        book.give_up(name)?;
    }
    Ok(exit_code(status))
}

async fn wait(child: &mut Child) -> anyhow::Result<ExitStatus> {
    loop {
        if let Some(status) = child.ended()? {
            return Ok(status);
        }
        sleep(LOOK_AGAIN).await;
    }
}

/// The address of the memory process of an application process, once it answers.
async fn memory_process_of(
    cluster: &Cluster,
    ap: &str,
    book: &AddressBook,
) -> anyhow::Result<Address> {
    let mp = memory_process_name(cluster, ap);
    let answers = async {
        loop {
            if let Some(address) = book.resolve(&mp)
                && dosmos_proto::transport::connect(&address, book.access(), START)
                    .await
                    .is_ok()
            {
                return address;
            }
            sleep(LOOK_AGAIN).await;
        }
    };
    timeout(START, answers).await.map_err(|_| {
        let place = book.run_dir().map_or_else(String::new, |dir| dir.display().to_string());
        anyhow::anyhow!(
            "{ap} waits for its memory process {mp}, which is not in {place} after {START:?}: is it started, with the same --run-dir?"
        )
    })
}
