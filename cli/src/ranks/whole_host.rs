//! A rank that stands for its host: it starts the ranks of the host, and ends with them.

use std::process::{ExitCode, ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context, bail};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep};

use super::environment::{
    ENV_HOST, ENV_HOSTS, ENV_JOB, ENV_LOCAL_SIZE, ENV_RANK, ENV_SIZE, ENV_SWITCH, Place, place,
};
use crate::args::NodeArgs;
use crate::config::Cluster;
use crate::node::exit_code;
use crate::signals::Signals;

/// How long the ranks may take to end after a signal before they are killed.
const GRACE: Duration = Duration::from_secs(28);
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// Starts the ranks of this host, and waits until they have ended. The exit status is that of the first that failed.
///
/// # Errors
/// What keeps them from being started.
pub(crate) async fn run(args: NodeArgs) -> anyhow::Result<ExitCode> {
    let cluster = Cluster::read(&args.cluster)?;
    let Some(launch) = &cluster.launch else {
        bail!(
            "--whole-host needs a [launch] section in {}: it says which processes a host has",
            args.cluster.display()
        );
    };
    let Some(place) = place()? else {
        bail!("no launcher gave this host a rank: set {ENV_HOSTS}, or {ENV_RANK} and {ENV_SIZE}");
    };
    let count = launch.ranks_per_host(place.size as usize);
    let count = u32::try_from(count).context("too many processes per host")?;
    let mut signals = Signals::and_parent(args.stdin_is_parent)?;
    let mut ranks = Vec::new();
    for local in 0..count {
        ranks.push(start(&args, &place, local, count)?);
    }
    wait_for(&mut ranks, &mut signals).await
}

fn start(args: &NodeArgs, place: &Place, local: u32, count: u32) -> anyhow::Result<Child> {
    let program = std::env::current_exe().context("cannot find the path of this executable")?;
    let mut command = Command::new(program);
    command
        .args(["node", "--stdin-is-parent", "--cluster"])
        .arg(&args.cluster)
        .env(ENV_RANK, (place.rank * count + local).to_string())
        .env(ENV_SIZE, (place.size * count).to_string())
        .env(ENV_LOCAL_SIZE, count.to_string())
        .env(ENV_HOST, &place.host)
        .env(ENV_HOSTS, place.hosts.join(","))
        .env(ENV_JOB, place.job.as_deref().unwrap_or_default())
        .env(ENV_SWITCH, place.switch.as_deref().unwrap_or_default())
        .stdin(Stdio::piped())
        .kill_on_drop(true)
        // Ctrl-C reaches this process, which hands it on.
        .process_group(0);
    if let Some(dir) = &args.run_dir {
        command.arg("--run-dir").arg(dir);
    }
    command.arg("--").args(&args.app);
    command.spawn().context("cannot start a rank of this host")
}

async fn wait_for(ranks: &mut [Child], signals: &mut Signals) -> anyhow::Result<ExitCode> {
    let mut asked: Option<Instant> = None;
    let mut ends: Vec<Option<ExitStatus>> = vec![None; ranks.len()];
    loop {
        for (rank, end) in ranks.iter_mut().zip(&mut ends) {
            if end.is_none() {
                *end = rank.try_wait().context("cannot watch the ranks of this host")?;
            }
        }
        if ends.iter().all(Option::is_some) {
            let mut ends = ends.iter().flatten();
            let failed = ends.find(|s| !s.success());
            return Ok(failed.map_or(ExitCode::SUCCESS, |s| exit_code(*s)));
        }
        tokio::select! {
            () = sleep(LOOK_AGAIN) => {}
            () = signals.first() => {
                asked.get_or_insert_with(Instant::now);
                for rank in ranks.iter() {
                    terminate(rank);
                }
            }
        }
        if asked.is_some_and(|t| t.elapsed() > GRACE) {
            bail!("asked to end: the ranks that did not end within {GRACE:?} were killed");
        }
    }
}

fn terminate(rank: &Child) {
    if let Some(id) = rank.id() {
        // It may have ended this moment.
        let _ = kill(Pid::from_raw(id as i32), Signal::SIGTERM);
    }
}
