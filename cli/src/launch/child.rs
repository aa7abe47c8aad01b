//! One child process: its standard input is a pipe whose end tells it that we are gone, its output goes to
//! its log.

use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};

use anyhow::{Context, bail};
use dosmos_proto::access::Files;
use dosmos_proto::large;
use dosmos_proto::token::{ENV_TOKEN, ENV_TOKEN_FILE};
use dosmos_proto::transport::Address;
use dosmos_proto::{Nanos, Token};
use dsm_lib::ENV_WITHIN;
use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWriteExt, BufReader};
use tokio::process::Command;
use tokio::task::JoinHandle;

use super::run_dir::RunDir;
use crate::output;

/// The cluster file that processes are started with, and what the command line said beside it.
#[derive(Clone, Debug)]
pub(super) struct ClusterFile {
    pub(super) path: PathBuf,
    /// Other machines may reach them without encryption.
    pub(super) insecure: bool,
}

/// How a program finds its memory process.
pub(crate) struct Joining<'a> {
    pub(crate) memory_process: &'a Address,
    pub(crate) certificates: Option<&'a Files>,
    /// The file of the memory process that it is to be itself.
    pub(crate) within: Option<PathBuf>,
    /// How long an operation may take.
    pub(crate) deadline: Nanos,
}

/// Variables of a process's environment, and their values.
pub(super) type Environment = Option<(&'static str, &'static str)>;

#[derive(Debug)]
pub(crate) struct Child {
    pub(super) name: String,
    process: tokio::process::Child,
    /// Copies of what it prints.
    output: Vec<JoinHandle<()>>,
}

impl Child {
    /// Starts memory, link or event manager process `name` of a cluster.
    pub(super) fn node(
        name: &str,
        cluster: &ClusterFile,
        run_dir: &RunDir,
        environment: Environment,
    ) -> anyhow::Result<Self> {
        let program = std::env::current_exe().context("cannot find the path of this executable")?;
        let mut command = Command::new(program);
        command
            .args(["node", "--stdin-is-parent", "--name", name])
            .args(cluster.insecure.then_some("--insecure"))
            .arg("--cluster")
            .arg(&cluster.path)
            .arg("--run-dir")
            .arg(run_dir.path())
            .envs(environment)
            .stdin(Stdio::piped())
            .stdout(run_dir.log::<Stdio>(name)?)
            .stderr(run_dir.log::<Stdio>(name)?);
        Self::spawn(name, command)
    }

    /// Starts the program of application process `name`.
    pub(crate) fn app(
        name: &str,
        line: &[String],
        joining: &Joining<'_>,
        run_dir: &RunDir,
        echo: bool,
        environment: Environment,
    ) -> anyhow::Result<Self> {
        let program = line.first().context("no program to run")?;
        if !is_program(program) {
            bail!("cannot start {program} for {name}: no such program");
        }
        let this = std::env::current_exe().context("cannot find the path of this executable")?;
        let umask = format!("{:o}", run_dir.umask().bits());
        let mut command = Command::new(this);
        command
            .args(["supervise", "--umask", &umask, "--"])
            .args(line)
            .env("DOSMOS_MP", joining.memory_process.to_string())
            .env("DOSMOS_AP", name)
            .env_remove(ENV_TOKEN)
            .env(ENV_TOKEN_FILE, Token::path(run_dir.path()))
            .envs(joining.certificates.iter().flat_map(|files| files.as_env()))
            .env(
                "DOSMOS_DEADLINE_MS",
                (joining.deadline.0 / 1_000_000).to_string(),
            )
            .env_remove(ENV_WITHIN)
            .envs(joining.within.iter().map(|file| (ENV_WITHIN, file)))
            .envs(environment)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = Self::spawn(name, command)?;
        let (out, err) = (child.process.stdout.take(), child.process.stderr.take());
        let log = || run_dir.log::<tokio::fs::File>(name);
        if let Some(out) = out {
            child.copy(out, log()?, echo.then_some(output::text as fn(&str)));
        }
        if let Some(err) = err {
            let print: fn(&str) = |line| output::note(line.trim_end());
            child.copy(err, log()?, echo.then_some(print));
        }
        Ok(child)
    }

    fn spawn(name: &str, mut command: Command) -> anyhow::Result<Self> {
        // A group of its own: Ctrl-C reaches us, and we end the children in order.
        let process = command.process_group(0).spawn();
        let program = command
            .as_std()
            .get_program()
            .to_string_lossy()
            .into_owned();
        Ok(Self {
            name: name.to_owned(),
            process: process.with_context(|| format!("cannot start {program} for {name}"))?,
            output: Vec::new(),
        })
    }

    fn copy(
        &mut self,
        from: impl AsyncRead + Unpin + Send + 'static,
        mut log: tokio::fs::File,
        print: Option<fn(&str)>,
    ) {
        let name = self.name.clone();
        self.output.push(tokio::spawn(async move {
            let mut lines = BufReader::new(from).lines();
            while let Ok(Some(line)) = lines.next_line().await {
                // A full disk must not stop the program.
                let _ = log.write_all(format!("{line}\n").as_bytes()).await;
                if let Some(print) = print {
                    print(&format!("[{name}] {line}\n"));
                }
            }
            let _ = log.flush().await;
        }));
    }

    /// Its number, unless it has ended.
    pub(super) fn id(&self) -> Option<u32> {
        self.process.id()
    }

    /// How it ended, if it has.
    pub(crate) fn ended(&mut self) -> anyhow::Result<Option<ExitStatus>> {
        let status = self.process.try_wait();
        status.with_context(|| format!("cannot watch {}", self.name))
    }

    /// Asks it to end.
    pub(crate) fn terminate(&self) {
        if let Some(id) = self.process.id() {
            // It may have ended this moment.
            let _ = kill(Pid::from_raw(id as i32), Signal::SIGTERM);
        }
    }

    /// Waits until it has ended and all it printed is in its log. What it left in shared memory, if it was killed, goes.
    pub(crate) async fn finish(&mut self) {
        let _ = self.process.wait().await;
        for copy in self.output.drain(..) {
            let _ = copy.await;
        }
        large::sweep();
    }
}

/// Whether there is such a program, by its path or in the directories of `PATH`.
fn is_program(name: &str) -> bool {
    if name.contains('/') {
        return Path::new(name).exists();
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|dir| dir.join(name).is_file())
}

impl Drop for Child {
    /// Kills what still runs of it, with its process group.
    fn drop(&mut self) {
        // A number that was not waited for is not given to another process.
        if let Some(id) = self.process.id() {
            let _ = killpg(Pid::from_raw(id as i32), Signal::SIGKILL);
            let _ = self.process.start_kill();
        }
    }
}
