//! Places for processes: networks that can be cut, and a disk that can be full. Both need the rights to make them, and are gone
//! with their handle, the networks also with the process that made them.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::mount::{MntFlags, MsFlags, mount, umount2};

/// How long a new network may take to be there.
const DEADLINE: Duration = Duration::from_secs(20);
/// Room on a small disk, in bytes.
const DISK: u64 = 64 << 20;

fn failed(what: impl Into<String>) -> io::Error {
    io::Error::other(what.into())
}

/// A network namespace: as long as this handle.
#[derive(Debug)]
struct Namespace(Child);

impl Namespace {
    fn new() -> io::Result<Self> {
        // It ends with its standard input, so with this process.
        let holder = Command::new("unshare")
            .args(["--net", "cat"])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let mut namespace = Self(holder);
        let own = std::fs::read_link("/proc/self/ns/net")?;
        let started = Instant::now();
        loop {
            if namespace.0.try_wait()?.is_some() || started.elapsed() > DEADLINE {
                return Err(failed("network namespaces are not allowed here"));
            }
            if std::fs::read_link(namespace.file()).is_ok_and(|theirs| theirs != own) {
                return Ok(namespace);
            }
            std::thread::yield_now();
        }
    }

    fn file(&self) -> String {
        format!("/proc/{}/ns/net", self.0.id())
    }

    /// A command in it.
    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new("nsenter");
        command.arg(format!("--net={}", self.file())).arg(program);
        command
    }

    fn ip(&self, line: &str) -> io::Result<()> {
        let mut command = self.command(Path::new("ip"));
        let output = command.args(line.split(' ')).output()?;
        match output.status.success() {
            true => Ok(()),
            false => Err(failed(format!(
                "ip {line}: {}",
                String::from_utf8_lossy(&output.stderr).trim()
            ))),
        }
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Two networks with a wire between them.
#[derive(Debug)]
pub(super) struct Networks {
    sides: [Namespace; 2],
}

impl Networks {
    /// Addresses of the two sides.
    pub(super) const ADDRESSES: [&str; 2] = ["10.77.0.1", "10.77.0.2"];

    /// Makes them.
    ///
    /// # Errors
    /// If that is not allowed here.
    pub(super) fn new() -> io::Result<Self> {
        let sides = [Namespace::new()?, Namespace::new()?];
        let other = sides[1].0.id();
        sides[0].ip(&format!(
            "link add wire type veth peer name wire netns {other}"
        ))?;
        for (side, address) in sides.iter().zip(Self::ADDRESSES) {
            side.ip(&format!("addr add {address}/24 dev wire"))?;
            side.ip("link set lo up")?;
            side.ip("link set wire up")?;
        }
        Ok(Self { sides })
    }

    /// A command on one side.
    pub(super) fn command(&self, side: usize, program: &Path) -> Command {
        self.sides[side].command(program)
    }

    /// Cuts the wire, or mends it.
    ///
    /// # Errors
    /// If the system refuses.
    pub(super) fn cut(&self, cut: bool) -> io::Result<()> {
        let state = if cut { "down" } else { "up" };
        self.sides[0].ip(&format!("link set wire {state}"))
    }

    /// Drops what the first side sends to the second, or no more.
    ///
    /// # Errors
    /// If the system refuses.
    pub(super) fn cut_half(&self, cut: bool) -> io::Result<()> {
        let what = if cut { "add" } else { "del" };
        self.sides[0].ip(&format!("route {what} blackhole {}/32", Self::ADDRESSES[1]))
    }
}

/// A small file system in memory, of which all room can be taken.
#[derive(Debug)]
pub(super) struct Disk {
    path: PathBuf,
}

impl Disk {
    /// Mounts it on the directory `path`.
    ///
    /// # Errors
    /// If that is not allowed here.
    pub(super) fn mount(path: &Path) -> io::Result<Self> {
        std::fs::create_dir_all(path)?;
        let size = format!("size={DISK}");
        let kind = Some("tmpfs");
        mount(kind, path, kind, MsFlags::empty(), Some(size.as_str()))?;
        Ok(Self {
            path: path.to_owned(),
        })
    }

    /// Takes all the room, or gives it back.
    ///
    /// # Errors
    /// If the room cannot be given back.
    pub(super) fn fill(&self, full: bool) -> io::Result<()> {
        let file = self.path.join("filler");
        if !full {
            return std::fs::remove_file(file);
        }
        // It ends with the error that is wanted.
        let _ = std::fs::write(file, vec![0; DISK as usize]);
        Ok(())
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = umount2(&self.path, MntFlags::MNT_DETACH);
    }
}

/// Whether networks and disks can be made here; why not, if not.
pub fn allowed() -> (io::Result<()>, io::Result<()>) {
    let disk = tempfile::tempdir().and_then(|dir| Disk::mount(dir.path()).map(drop));
    (Networks::new().map(drop), disk)
}
