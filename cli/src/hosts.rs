//! `dosmos up --hosts`: a cluster on many hosts, each reached by ssh.
//!
//! On each host one `dosmos node --whole-host` starts the processes of the host. What is secret, and what differs between
//! hosts, goes through its standard input, where no list of processes shows it; when that ends, the host ends.

use std::process::{ExitCode, Stdio};
use std::time::Duration;

use anyhow::{Context, bail};
use dosmos_client::RUNS;
use dosmos_proto::Token;
use dosmos_proto::token::ENV_TOKEN;
use futures::future::join_all;
use tokio::io::AsyncWriteExt;
use tokio::process::{Child, Command};
use tokio::time::timeout;

use crate::args::UpArgs;
use crate::config::Cluster;
use crate::output;
use crate::print::quoted;
use crate::ranks::environment::{ENV_HOST, ENV_HOSTS, ENV_JOB, ENV_RENDEZVOUS};
use crate::signals::Signals;

/// How long hosts may take to end before the connections to them are cut.
const GRACE: Duration = Duration::from_secs(40);
const LONG: Duration = Duration::from_secs(u64::MAX >> 4);

/// Starts the cluster on `names`, runs the program, and waits until all hosts have ended.
///
/// # Errors
/// A host that cannot be reached; a cluster file without a rule.
pub(crate) async fn run(
    args: &UpArgs,
    cluster: &Cluster,
    names: &[String],
    program: &[String],
) -> anyhow::Result<ExitCode> {
    let Some(launch) = &cluster.launch else {
        bail!(
            "--hosts needs a [launch] section in {}: it says which processes a host has",
            args.cluster.display()
        );
    };
    let mut signals = Signals::new()?;
    let mut settings = vec![
        (ENV_TOKEN, Token::generate()?.reveal().to_owned()),
        (ENV_HOSTS, names.join(",")),
        (
            ENV_JOB,
            chrono::Local::now().format("%Y%m%d-%H%M%S").to_string(),
        ),
    ];
    if let (Some(port), Some(first)) = (launch.port(), names.first()) {
        settings.push((ENV_RENDEZVOUS, format!("{first}:{port}")));
    }
    let line = remote_command(args, cluster, program)?;
    let (mut hosts, mut held) = (Vec::new(), Vec::new());
    for name in names {
        let mut settings = settings.clone();
        settings.push((ENV_HOST, name.clone()));
        let mut host = start(args, name, &line, &settings).await?;
        // Not left to the child: waiting for a child closes its standard input, which ends the host.
        held.push(host.stdin.take());
        hosts.push(host);
    }
    let mut limit = LONG;
    loop {
        let ended = tokio::select! {
            ended = timeout(limit, join_all(hosts.iter_mut().map(Child::wait))) => ended,
            () = signals.first() => {
                if limit == GRACE {
                    bail!("interrupted again: the connections to the hosts are cut");
                }
                output::note("interrupted: stopping the program and the cluster; interrupt again to cut the connections");
                limit = GRACE;
                held.clear();
                continue;
            }
        };
        let ended =
            ended.map_err(|_| anyhow::anyhow!("not all hosts have ended within {GRACE:?}"))?;
        let mut code = ExitCode::SUCCESS;
        for (name, status) in names.iter().zip(ended) {
            let status = status.with_context(|| format!("cannot watch ssh to {name}"))?;
            if !status.success() {
                output::note(&format!("{name}: {status}"));
                code = ExitCode::FAILURE;
            }
        }
        return match limit {
            GRACE => bail!("interrupted; what was recorded is in the run directory"),
            _ => Ok(code),
        };
    }
}

/// What a shell on each host runs.
fn remote_command(args: &UpArgs, cluster: &Cluster, program: &[String]) -> anyhow::Result<String> {
    let here = std::env::current_dir().context("the current directory is gone")?;
    let dosmos = match &args.remote_dosmos {
        Some(path) => path.clone(),
        None => std::env::current_exe().context("cannot find the path of this executable")?,
    };
    let run_dir = match &args.run_dir {
        Some(dir) => vec!["--run-dir".to_owned(), dir.display().to_string()],
        None => {
            let name = cluster.topology.name();
            output::note(&format!(
                "{name}: the run is {RUNS}/{name}-TIME on each host"
            ));
            Vec::new()
        }
    };
    let insecure = args.insecure.then(|| "--insecure".to_owned());
    let insecure: Vec<String> = insecure.into_iter().collect();
    let words = [
        vec![
            dosmos.display().to_string(),
            "node".to_owned(),
            "--whole-host".to_owned(),
            "--settings-on-stdin".to_owned(),
            "--cluster".to_owned(),
            args.cluster.display().to_string(),
        ],
        run_dir,
        insecure,
        vec!["--".to_owned()],
        program.to_vec(),
    ];
    let words: Vec<String> = words.concat().iter().map(|w| quoted(w)).collect();
    let here = quoted(&here.display().to_string());
    Ok(format!("cd {here} && exec {}", words.join(" ")))
}

async fn start(
    args: &UpArgs,
    host: &str,
    line: &str,
    settings: &[(&str, String)],
) -> anyhow::Result<Child> {
    let mut ssh = args.ssh.split_whitespace();
    let program = ssh.next().context("--ssh names no program")?;
    let mut command = Command::new(program);
    command
        .args(ssh)
        .args(["--", host, line])
        .stdin(Stdio::piped())
        .kill_on_drop(true)
        // Ctrl-C reaches us, and we end the hosts in order.
        .process_group(0);
    let started = command.spawn();
    let mut child = started.with_context(|| format!("cannot start {program} for {host}"))?;
    let lines: String = settings.iter().map(|(k, v)| format!("{k}={v}\n")).collect();
    if let Some(stdin) = &mut child.stdin {
        // A host that cannot be reached ends, and says so.
        let _ = stdin.write_all(format!("{lines}\n").as_bytes()).await;
    }
    Ok(child)
}
