//! `dosmos up`: a cluster file's processes on this machine, a program on them, and a clean end.

use std::process::ExitCode;

use anyhow::bail;

use crate::args::UpArgs;
use crate::config::{Cluster, Protection};
use crate::launch::{RunDir, Running};
use crate::signals::Signals;
use crate::{hosts, output, print};

pub(crate) async fn run(args: UpArgs) -> anyhow::Result<ExitCode> {
    let cluster = Cluster::read_with(&args.cluster, Protection::beside_the_file(args.insecure))?;
    let command = match args.app.is_empty() {
        true => cluster.app.clone(),
        false => args.app.clone(),
    };
    if command.is_empty() {
        bail!(
            "no program to run: add `-- PROGRAM ARG…`, or an [app] command to {}",
            args.cluster.display()
        );
    }
    if let Some(what) = args.print {
        output::text(&print::print(what, &cluster, &command, &args)?);
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(hosts) = &args.hosts {
        let Some(names) = hosts.names() else {
            bail!("--hosts needs the names of the hosts, a,b,c; a number is for --print alone");
        };
        return hosts::run(&args, &cluster, names, &command).await;
    }
    let file = args.cluster.canonicalize()?;
    let run_dir = RunDir::create(args.run_dir, cluster.topology.name())?;
    let shown = run_dir.shown();
    output::note(&format!("{}: logs in {shown}/log", cluster.topology.name()));
    let mut signals = Signals::new()?;
    let mut running = tokio::select! {
        started = Running::start(cluster, &file, run_dir) => started?,
        () = signals.first() => bail!("interrupted"),
    };
    let ran = tokio::select! {
        ran = running.run_app(&command, true) => Some(ran),
        () = signals.first() => None,
    };
    let mut interrupts_left = if ran.is_some() { 1 } else { 0 };
    if ran.is_none() {
        output::note(
            "interrupted: stopping the program and the cluster; interrupt again to kill them",
        );
    }
    survive_interrupts(&mut signals, &mut interrupts_left, running.stop_memory()).await?;
    if args.keep_emps && interrupts_left > 0 {
        output::note(&keep_message(&shown));
        signals.first().await;
        interrupts_left = 0;
    }
    survive_interrupts(&mut signals, &mut interrupts_left, running.stop()).await?;
    match ran {
        None => bail!("interrupted; inspect what was recorded: dosmos top --run-dir {shown}"),
        Some(Err(e)) => Err(e),
        Some(Ok(outcome)) => {
            for failure in &outcome.failures {
                output::error(failure);
            }
            output::note(&format!("inspect the run: dosmos top --run-dir {shown}"));
            Ok(if outcome.failures.is_empty() {
                ExitCode::SUCCESS
            } else {
                ExitCode::FAILURE
            })
        }
    }
}

/// Waits for `work` through as many more interrupts as are left. One more is an error: the children are killed as
/// their handles are dropped.
async fn survive_interrupts(
    signals: &mut Signals,
    interrupts_left: &mut u32,
    work: impl Future<Output = ()>,
) -> anyhow::Result<()> {
    let mut work = std::pin::pin!(work);
    loop {
        tokio::select! {
            () = &mut work => return Ok(()),
            () = signals.first() => {}
        }
        if *interrupts_left == 0 {
            bail!(
                "interrupted again: the remaining processes were killed, and their last records are lost"
            );
        }
        *interrupts_left -= 1;
        output::note("the program has ended, the cluster is stopping; interrupt again to kill it");
    }
}

fn keep_message(shown: &str) -> String {
    format!("the event managers run until Ctrl-C; query them: dosmos top --run-dir {shown}")
}
