//! An event manager of a benchmark: a process of its own with a real store, which ends with this one.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use dosmos_cli::config::Cluster;
use dosmos_proto::transport::Address;
use dosmos_proto::{AddressBook, Token, Topology};
use tempfile::TempDir;

use crate::run::one_group;
use crate::store::usage::peak_of;

const TIMEOUT: Duration = Duration::from_secs(60);

/// What a process has used since its start.
pub(crate) struct Used {
    pub(crate) processor: Duration,
    /// Most memory, in bytes.
    pub(crate) peak: u64,
}

/// The event manager; it ends with its standard input.
pub(crate) struct Manager(Child);

/// An event manager to which the memory processes of one group report, in a directory of its own.
pub(crate) struct OfOneGroup {
    pub(crate) manager: Manager,
    pub(crate) topology: Topology,
    pub(crate) address: Address,
    pub(crate) token: Token,
    pub(crate) dir: TempDir,
}

impl OfOneGroup {
    /// Starts one for that many memory processes.
    pub(crate) async fn start(processes: u32) -> anyhow::Result<Self> {
        let dir = tempfile::Builder::new().prefix("dosmos-bench").tempdir()?;
        let file = dir.path().join("cluster.toml");
        let text = one_group(processes as usize, true);
        std::fs::write(&file, &text)?;
        let cluster = Cluster::parse(&text).map_err(|e| anyhow::anyhow!(e.join("\n")))?;
        let book = AddressBook::new(Default::default(), Some(dir.path()));
        let token = book.require_token()?;
        let mut manager = Manager::start(&file, dir.path())?;
        Ok(Self {
            address: manager.address(&book).await?,
            topology: cluster.topology,
            manager,
            token,
            dir,
        })
    }
}

impl Manager {
    /// Starts event manager `emp0` of this cluster file.
    fn start(cluster: &Path, run_dir: &Path) -> anyhow::Result<Self> {
        let log = std::fs::File::create(run_dir.join("emp0.log"))?;
        let child = Command::new(std::env::current_exe()?)
            .args(["node", "--stdin-is-parent", "--name", "emp0", "--cluster"])
            .arg(cluster)
            .arg("--run-dir")
            .arg(run_dir)
            .stdin(Stdio::piped())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn();
        Ok(Self(child.context("cannot start the event manager")?))
    }

    /// Where it answers.
    async fn address(&mut self, book: &AddressBook) -> anyhow::Result<Address> {
        let until = Instant::now() + TIMEOUT;
        while Instant::now() < until {
            if let Some(status) = self.0.try_wait()? {
                bail!("the event manager ended: {status}");
            }
            if let Some(address) = book.resolve("emp0") {
                return Ok(address);
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        bail!("the event manager did not come up in {TIMEOUT:?}")
    }

    /// What it has used since its start.
    pub(crate) fn usage(&self) -> anyhow::Result<Used> {
        let proc = self.place();
        let stat = std::fs::read_to_string(proc.join("stat"))?;
        // Behind the name, which may contain anything; user and system time are fields 14 and 15, counted from 1.
        let behind = stat.rsplit_once(')').context("no name in stat")?.1;
        let fields: Vec<&str> = behind.split_whitespace().collect();
        let field = |i: usize| -> anyhow::Result<u64> {
            let text = fields.get(i).context("too few fields in stat")?;
            Ok(text.parse()?)
        };
        let ticks: u64 = field(11)? + field(12)?;
        let a_second = nix::unistd::sysconf(nix::unistd::SysconfVar::CLK_TCK)?
            .context("the system does not tell its ticks")?;
        Ok(Used {
            processor: Duration::from_secs_f64(ticks as f64 / a_second as f64),
            peak: peak_of(&proc)?,
        })
    }

    /// Where the system tells of it.
    pub(crate) fn place(&self) -> PathBuf {
        Path::new("/proc").join(self.0.id().to_string())
    }

    /// Ends it; what it was given is in its store then.
    pub(crate) fn stop(&mut self) -> anyhow::Result<()> {
        drop(self.0.stdin.take());
        let status = self.0.wait()?;
        ensure!(status.success(), "the event manager ended with {status}");
        Ok(())
    }
}

impl Drop for Manager {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}
