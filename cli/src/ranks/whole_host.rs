//! A rank that stands for its host: it starts the ranks of the host, and ends with them.

use std::fs::File;
use std::io::Read;
use std::os::fd::AsFd;
use std::process::{ExitCode, ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context, bail};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep};

use super::environment::{
    ENV_HOST, ENV_HOSTS, ENV_JOB, ENV_LOCAL_SIZE, ENV_RANK, ENV_SIZE, ENV_SWITCH, Place, place_with,
};
use crate::args::NodeArgs;
use crate::config::{Cluster, Protection};
use crate::process::exit_code;
use crate::signals::Signals;

/// How long the ranks may take to end after a signal before they are killed.
const GRACE: Duration = Duration::from_secs(28);
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// Starts the ranks of this host, and waits until they have ended. The exit status is that of the first that failed.
///
/// # Errors
/// What keeps them from being started.
pub(crate) async fn run(args: NodeArgs) -> anyhow::Result<ExitCode> {
    let protection = Protection::beside_the_file(args.insecure);
    let cluster = Cluster::read_with(&args.cluster, protection)?;
    let Some(launch) = &cluster.launch else {
        bail!(
            "--whole-host needs a [launch] section in {}: it says which processes a host has",
            args.cluster.display()
        );
    };
    let settings = match args.settings_on_stdin {
        true => read_settings()?,
        false => Vec::new(),
    };
    let Some(place) = place_with(&settings)? else {
        bail!("no launcher gave this host a rank: set {ENV_HOSTS}, or {ENV_RANK} and {ENV_SIZE}");
    };
    let count = launch.ranks_per_host(place.size as usize);
    let count = u32::try_from(count).context("too many processes per host")?;
    let mut signals = Signals::and_parent(args.stdin_is_parent || args.settings_on_stdin)?;
    let mut ranks = Vec::new();
    for local in 0..count {
        ranks.push(start(&args, &place, &settings, (local, count))?);
    }
    wait_for(&mut ranks, &mut signals).await
}

/// `VARIABLE=VALUE` lines up to an empty one.
fn read_settings() -> anyhow::Result<Vec<(String, String)>> {
    let mut stdin = File::from(std::io::stdin().as_fd().try_clone_to_owned()?);
    let mut settings = Vec::new();
    loop {
        // Byte by byte: what follows belongs to whoever waits for the end of standard input.
        let (mut line, mut byte) = (Vec::new(), [0]);
        while stdin.read(&mut byte)? == 1 && byte != [b'\n'] {
            line.push(byte[0]);
        }
        if line.is_empty() {
            return Ok(settings);
        }
        let line = String::from_utf8(line).context("settings on standard input are not text")?;
        let (key, value) = line.split_once('=').context("a setting has no =")?;
        if !key.starts_with("DOSMOS_") {
            bail!("{key} is not a setting of dosmos");
        }
        settings.push((key.to_owned(), value.to_owned()));
    }
}

/// Starts rank `local` of the `count` of this host.
fn start(
    args: &NodeArgs,
    place: &Place,
    settings: &[(String, String)],
    (local, count): (u32, u32),
) -> anyhow::Result<Child> {
    let program = std::env::current_exe().context("cannot find the path of this executable")?;
    let mut command = Command::new(program);
    command
        .args(["node", "--stdin-is-parent", "--cluster"])
        .arg(&args.cluster)
        .envs(settings.iter().cloned())
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
    command.args(args.insecure.then_some("--insecure"));
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
                *end = rank
                    .try_wait()
                    .context("cannot watch the ranks of this host")?;
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
