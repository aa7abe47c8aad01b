//! Runs a program so that nothing of it is left behind: neither the program, nor what it starts.
//!
//! The launcher starts `dosmos supervise -- PROGRAM` in a process group of its own, with a pipe as standard input. The
//! supervisor starts the program in the same group and waits for the first of: the program ends, a signal asks to
//! end, standard input ends because the launcher is gone. It then ends the whole group, and those descendants that
//! have left it: as *child subreaper* the supervisor inherits every process whose parent has ended.
//!
//! It ends as the program did: with its exit code, or by the same signal.

use std::os::unix::process::ExitStatusExt;
use std::process::{ExitCode, ExitStatus, Stdio};
use std::time::Duration;

use anyhow::Context;
use nix::errno::Errno;
use nix::sys::prctl::set_child_subreaper;
use nix::sys::signal::{Signal, kill, killpg, raise};
use nix::sys::stat::{Mode, umask};
use nix::sys::wait::{WaitPidFlag, waitpid};
use nix::unistd::{Pid, getpgid, getpgrp, getpid};
use tokio::process::Command;
use tokio::time::{Instant, sleep};

use crate::args::SuperviseArgs;
use crate::signals::end_of;

/// How long descendants of the program may take to end before they are killed. Shorter than the launcher's grace.
const GRACE: Duration = Duration::from_secs(5);
const LOOK_AGAIN: Duration = Duration::from_millis(20);

pub(crate) async fn run(args: SuperviseArgs) -> anyhow::Result<ExitCode> {
    set_child_subreaper(true).context("cannot watch the processes that the program starts")?;
    let end = end_of(true)?;
    umask(Mode::from_bits_truncate(args.umask));
    let (program, rest) = args.program.split_first().context("no program to run")?;
    let mut child = Command::new(program)
        .args(rest)
        .stdin(Stdio::null())
        .spawn()
        .with_context(|| format!("cannot start {program}"))?;
    let ended = tokio::select! {
        status = child.wait() => Some(status?),
        () = end => None,
    };
    let ending = Instant::now();
    signal_all(Signal::SIGTERM);
    let status = match ended {
        Some(status) => Some(status),
        None => tokio::time::timeout(GRACE, child.wait())
            .await
            .ok()
            .transpose()?,
    };
    end_the_rest(ending).await;
    Ok(status.map_or(ExitCode::FAILURE, end_as))
}

/// Waits for all descendants; kills those that take too long.
async fn end_the_rest(since: Instant) {
    while !descendants().is_empty() {
        if since.elapsed() >= GRACE {
            signal_all(Signal::SIGKILL);
        }
        reap();
        sleep(LOOK_AGAIN).await;
    }
}

/// Sends `signal` to the group, this process excepted, and to the children that are not in it.
fn signal_all(signal: Signal) {
    let this = getpid();
    let to_group = signal == Signal::SIGTERM && getpgrp() == this;
    if to_group {
        // This process handles the signal, and is ending already. A group that is empty otherwise is no error.
        let _ = killpg(this, signal);
    }
    // Nobody gets it twice: a program may take the second for impatience.
    let has_it = |pid: &Pid| to_group && getpgid(Some(*pid)) == Ok(this);
    for pid in descendants().into_iter().filter(|pid| !has_it(pid)) {
        // It may have ended this moment.
        let _ = kill(pid, signal);
    }
}

/// Takes note of children that have ended, which the program left behind.
fn reap() {
    while let Ok(status) = waitpid(None, Some(WaitPidFlag::WNOHANG)) {
        if status.pid().is_none() {
            break;
        }
    }
}

/// All processes below this one that have not ended.
fn descendants() -> Vec<Pid> {
    let processes = processes();
    let mut found = vec![getpid()];
    let mut next = 0;
    while let Some(&parent) = found.get(next) {
        let children = processes.iter().filter(|p| p.parent == parent);
        found.extend(children.map(|p| p.pid));
        next += 1;
    }
    found.remove(0);
    let ended = |pid: &Pid| processes.iter().any(|p| p.pid == *pid && p.ended);
    found.retain(|pid| !ended(pid));
    found
}

struct Process {
    pid: Pid,
    parent: Pid,
    ended: bool,
}

fn processes() -> Vec<Process> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries
        .filter_map(|entry| {
            let pid: i32 = entry.file_name().to_str()?.parse().ok()?;
            let stat = std::fs::read_to_string(entry.path().join("stat")).ok()?;
            // The name in parentheses may hold anything.
            let (_, fields) = stat.rsplit_once(") ")?;
            let mut fields = fields.split(' ');
            let state = fields.next()?;
            Some(Process {
                pid: Pid::from_raw(pid),
                parent: Pid::from_raw(fields.next()?.parse().ok()?),
                ended: matches!(state, "Z" | "X"),
            })
        })
        .collect()
}

/// Ends this process by the signal that ended the program; where this process handles that signal, the exit code of
/// shells.
fn end_as(status: ExitStatus) -> ExitCode {
    let Some(signal) = status.signal() else {
        let code = status.code().and_then(|c| u8::try_from(c).ok());
        return code.map_or(ExitCode::FAILURE, ExitCode::from);
    };
    let handled = [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP];
    match Signal::try_from(signal) {
        Ok(signal) if !handled.contains(&signal) => {
            let raised: Result<(), Errno> = raise(signal);
            // A signal that does not end a process.
            let _ = raised;
        }
        _ => {}
    }
    ExitCode::from(u8::try_from(128 + signal).unwrap_or(u8::MAX))
}
