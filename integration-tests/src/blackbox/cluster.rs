//! The processes of a run: started one by one, so that each can be killed, stopped and started again.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;

use super::places::{Disk, Networks};
use super::plan::{Fault, GROUPS, MEMBERS, Plan, Process};

/// What the program with replicas confirmed, in one file per process.
pub(super) const TALLY: &str = "tally";
/// How long anything may take that has to end.
pub(super) const DEADLINE: Duration = Duration::from_secs(90);
/// Who was started again just now ends of the signal itself.
const TOO_EARLY: Option<i32> = Some(Signal::SIGTERM as i32);
const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// A run that goes on.
pub(super) struct Cluster {
    dir: PathBuf,
    binary: PathBuf,
    plan: Plan,
    networks: Option<Networks>,
    disk: Option<Disk>,
    running: BTreeMap<String, Child>,
    /// Memory processes that were killed.
    pub(super) killed: Vec<String>,
    /// What did not end in time, or ended although nobody killed it.
    pub(super) broken: Vec<String>,
    /// Whether each application process ended well.
    pub(super) succeeded: Vec<bool>,
}

fn group_of(process: Process) -> usize {
    match process {
        Process::Application(i) | Process::Memory(i) => i % GROUPS,
        Process::Link(i) | Process::EventManager(i) => i,
    }
}

impl Cluster {
    /// Starts all processes in `dir`, application processes last.
    pub(super) fn start(dir: &Path, binary: &Path, plan: &Plan) -> io::Result<Self> {
        let networks = plan.network.then(Networks::new).transpose()?;
        let disk = plan.disk.then(|| Disk::mount(&dir.join("run/store")));
        let mut cluster = Self {
            dir: dir.to_owned(),
            binary: binary.to_owned(),
            plan: plan.clone(),
            networks,
            disk: disk.transpose()?,
            running: BTreeMap::new(),
            killed: Vec::new(),
            broken: Vec::new(),
            succeeded: Vec::new(),
        };
        std::fs::create_dir_all(dir.join("run/log"))?;
        std::fs::write(dir.join("cluster.toml"), cluster.file())?;
        let emps = (0..GROUPS).map(Process::EventManager);
        let mps = (0..MEMBERS).map(Process::Memory);
        let serving = emps.chain(mps).chain((0..GROUPS).map(Process::Link));
        for process in serving {
            if cluster.started_as(process) == process {
                cluster.spawn(process)?;
            }
        }
        let token = dir.join("run/token");
        wait(|| token.exists());
        for i in 0..MEMBERS {
            let process = Process::Memory(i);
            wait(|| plan.within || cluster.said(process).contains("listens at"));
            cluster.spawn(Process::Application(i))?;
        }
        Ok(cluster)
    }

    /// The process that this one is, or is within.
    fn started_as(&self, process: Process) -> Process {
        match process {
            Process::Memory(i) if self.plan.within => Process::Application(i),
            itself => itself,
        }
    }

    fn socket(&self, mp: usize) -> PathBuf {
        self.dir.join(format!("run/mp{mp}.sock"))
    }

    /// Where a process listens, if not at a socket in the run directory.
    fn address(&self, process: Process) -> Option<String> {
        let port = match process {
            Process::Application(_) => return None,
            Process::Memory(i) => 4_000 + i,
            Process::Link(i) => 4_100 + i,
            Process::EventManager(i) => 4_200 + i,
        };
        let host = Networks::ADDRESSES[group_of(process)];
        self.networks.is_some().then(|| format!("{host}:{port}"))
    }

    /// The cluster file.
    fn file(&self) -> String {
        let listen = |process| match self.address(process) {
            Some(address) => format!("listen = \"{address}\"\n"),
            None => String::new(),
        };
        let timeout = self.plan.timeout.as_millis();
        let mut text = format!(
            "name = \"blackbox\"\n[defaults]\ndeadline_ms = {timeout}\ninsecure = true\nmetrics = \"off\"\nin_application = {}\n",
            self.plan.within
        );
        for g in 0..GROUPS {
            text += &format!("[[group]]\nname = \"g{g}\"\n[[emp]]\nname = \"emp{g}\"\n");
            text += &listen(Process::EventManager(g));
            text += &format!("[[lp]]\nname = \"lp{g}\"\ngroup = \"g{g}\"\nemp = \"emp{g}\"\n");
            text += &listen(Process::Link(g));
        }
        for i in 0..MEMBERS {
            let g = i % GROUPS;
            text += &format!("[[mp]]\nname = \"mp{i}\"\ngroup = \"g{g}\"\nemp = \"emp{g}\"\n");
            text += &listen(Process::Memory(i));
            text += &format!("[[ap]]\nname = \"ap{i}\"\nmp = \"mp{i}\"\n");
        }
        text
    }

    /// What a process wrote to its log.
    fn said(&self, process: Process) -> String {
        std::fs::read_to_string(self.log(&process.to_string())).unwrap_or_default()
    }

    fn log(&self, name: &str) -> PathBuf {
        self.dir.join(format!("run/log/{name}.log"))
    }

    fn spawn(&mut self, process: Process) -> io::Result<()> {
        let name = process.to_string();
        let mut command = match &self.networks {
            Some(networks) => networks.command(group_of(process), &self.binary),
            None => Command::new(&self.binary),
        };
        match process {
            Process::Application(i) => {
                let address = self.address(Process::Memory(i));
                let socket = || format!("unix:{}", self.socket(i).display());
                let (seed, operations) =
                    (self.plan.seed.to_string(), self.plan.operations.to_string());
                let replicas = self.plan.replicas.unwrap_or_default().to_string();
                let random = ["random", "--seed", &seed, "--operations", &operations];
                let tally = [
                    "tally",
                    "--log",
                    TALLY,
                    "--pause",
                    "2000",
                    "--replicas",
                    &replicas,
                    "--sections",
                    &operations,
                ];
                let program = match self.plan.replicas {
                    Some(_) => &tally[..],
                    None => &random[..],
                };
                if self.plan.within {
                    let what = ["node", "--stdin-is-parent", "--cluster", "cluster.toml"];
                    command.args(what);
                    command.args(["--run-dir", "run", "--name", &name, "--"]);
                    command.arg(&self.binary);
                }
                command
                    .args(["app"].iter().chain(program))
                    .args(["--counts", "counts"])
                    .env("DOSMOS_AP", &name)
                    .env("DOSMOS_MP", address.unwrap_or_else(socket))
                    .env(
                        "DOSMOS_DEADLINE_MS",
                        self.plan.timeout.as_millis().to_string(),
                    )
                    .env(
                        "DOSMOS_TOKEN",
                        std::fs::read_to_string(self.dir.join("run/token"))?.trim(),
                    );
            }
            _ => {
                let what = ["node", "--stdin-is-parent", "--cluster", "cluster.toml"];
                command
                    .args(what)
                    .args(["--run-dir", "run", "--name", &name]);
            }
        }
        let log = File::options()
            .create(true)
            .append(true)
            .open(self.log(&name))?;
        let child = command
            .current_dir(&self.dir)
            .stdin(Stdio::piped())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()?;
        self.running.insert(name, child);
        Ok(())
    }

    fn signal(&self, process: Process, signal: Signal) {
        let process = self.started_as(process);
        let Some(child) = self.running.get(&process.to_string()) else {
            return;
        };
        // It may have ended.
        let _ = match process {
            Process::Application(_) if self.plan.within => {
                let program = || program_of(child.id());
                wait(|| program().is_some() || has_ended(child.id()));
                program().map_or(Ok(()), |program| killpg(program, signal))
            }
            _ => kill(Pid::from_raw(child.id() as i32), signal),
        };
    }

    /// Lets everything go wrong that is planned, one after the other.
    pub(super) fn suffer(&mut self) -> io::Result<()> {
        let (dir, counted) = (self.dir.clone(), self.plan.counted);
        let has_counted = |i| {
            let file = std::fs::read_to_string(dir.join(format!("{TALLY}.ap{i}")));
            file.unwrap_or_default().lines().count() >= counted
        };
        if counted > 0 && !wait(|| (0..MEMBERS).all(has_counted)) {
            self.broken
                .push(format!("not everybody counted {counted} times"));
        }
        for (after, fault) in self.plan.faults.clone() {
            std::thread::sleep(after);
            match fault {
                Fault::Stop(process, time) => {
                    self.signal(process, Signal::SIGSTOP);
                    std::thread::sleep(time);
                    self.signal(process, Signal::SIGCONT);
                }
                Fault::Kill(process, again) => {
                    self.kill(process)?;
                    if let Some(time) = again {
                        std::thread::sleep(time);
                        self.spawn(self.started_as(process))?;
                    }
                }
                Fault::Cut(time) | Fault::HalfCut(time) => {
                    let half = matches!(fault, Fault::HalfCut(_));
                    let networks = self.networks.iter();
                    let cut =
                        move |n: &Networks, cut| if half { n.cut_half(cut) } else { n.cut(cut) };
                    networks.clone().try_for_each(|n| cut(n, true))?;
                    std::thread::sleep(time);
                    networks.clone().try_for_each(|n| cut(n, false))?;
                }
                Fault::FullDisk(time) => {
                    self.disk.iter().try_for_each(|disk| disk.fill(true))?;
                    std::thread::sleep(time);
                    self.disk.iter().try_for_each(|disk| disk.fill(false))?;
                }
            }
        }
        Ok(())
    }

    fn kill(&mut self, process: Process) -> io::Result<()> {
        let process = self.started_as(process);
        let within = self.plan.within && matches!(process, Process::Application(_));
        if within {
            self.signal(process, Signal::SIGKILL);
        }
        let Some(mut child) = self.running.remove(&process.to_string()) else {
            return Ok(());
        };
        let ended = child.try_wait()?;
        if !within {
            child.kill()?;
        } else if !wait(|| matches!(child.try_wait(), Ok(Some(_)) | Err(_))) {
            let why = "did not end with its program, which was killed";
            self.broken.push(format!("the node of {process} {why}"));
            child.kill()?;
        }
        let status = child.wait()?;
        match process {
            Process::Memory(_) => self.killed.push(process.to_string()),
            // One that had ended before is not killed.
            Process::Application(_) if within => {
                self.succeeded.push(status.success());
                if !status.success() {
                    self.killed.push(process.to_string());
                }
            }
            Process::Application(_) => self.succeeded.push(ended.is_some_and(|s| s.success())),
            _ => {}
        }
        Ok(())
    }

    /// Waits until the application processes have ended, then ends all others: first those that report, then those that they
    /// report to.
    pub(super) fn end(&mut self) -> io::Result<()> {
        for kind in ["ap", "mp", "lp", "emp"] {
            let names = self.running.keys().filter(|n| n.starts_with(kind));
            let names: Vec<String> = names.cloned().collect();
            for name in &names {
                if kind != "ap" {
                    let child = &self.running[name];
                    let _ = kill(Pid::from_raw(child.id() as i32), Signal::SIGTERM);
                }
            }
            for name in names {
                let Some(mut child) = self.running.remove(&name) else {
                    continue;
                };
                let ended = wait(|| matches!(child.try_wait(), Ok(Some(_)) | Err(_)));
                if !ended {
                    self.broken
                        .push(format!("{name} did not end in {DEADLINE:?}"));
                    child.kill()?;
                }
                let status = child.wait()?;
                if kind == "ap" {
                    self.succeeded.push(status.success());
                } else if ended && !status.success() && status.signal() != TOO_EARLY {
                    self.broken.push(format!("{name} ended with {status}"));
                }
                let log = std::fs::read_to_string(self.log(&name))?;
                if let Some(line) = log.lines().find(|l| l.contains("panicked at")) {
                    self.broken.push(format!("{name}: {line}"));
                }
            }
        }
        Ok(())
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for child in self.running.values_mut() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// The process group of the program that `dosmos node` runs, if it has begun.
fn program_of(node: u32) -> Option<Pid> {
    let threads = std::fs::read_dir(format!("/proc/{node}/task")).ok()?;
    threads.flatten().find_map(|thread| {
        let children = std::fs::read_to_string(thread.path().join("children")).ok()?;
        let first = children.split_whitespace().next()?;
        first.parse().ok().map(Pid::from_raw)
    })
}

/// Whether a child that was not waited for has ended.
fn has_ended(process: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let state = stat.rsplit(") ").next();
    state.is_none_or(|state| state.starts_with('Z'))
}

/// Waits until `condition` holds; whether it came to that in time.
fn wait(mut condition: impl FnMut() -> bool) -> bool {
    let started = Instant::now();
    while !condition() {
        if started.elapsed() > DEADLINE {
            return false;
        }
        std::thread::sleep(LOOK_AGAIN);
    }
    true
}
