//! What a stretch of work cost: time, processor time of all threads, peak of memory. On Linux.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Context;
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::sys::resource::{UsageWho, getrusage};
use nix::unistd::Pid;

/// Sums up what work costs, stretch by stretch.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Meter {
    pub(crate) elapsed: Duration,
    pub(crate) cpu: Duration,
}

impl Meter {
    pub(crate) fn measure<T>(&mut self, work: impl FnOnce() -> T) -> T {
        let (begin, cpu) = (Instant::now(), cpu_time());
        let result = work();
        self.elapsed += begin.elapsed();
        self.cpu += cpu_time().saturating_sub(cpu);
        result
    }
}

/// Processor time of all threads since the start.
pub(crate) fn cpu_time() -> Duration {
    used(UsageWho::RUSAGE_SELF)
}

/// Processor time of this thread since its start.
pub(crate) fn thread_time() -> Duration {
    used(UsageWho::RUSAGE_THREAD)
}

fn used(by: UsageWho) -> Duration {
    let Ok(usage) = getrusage(by) else {
        return Duration::ZERO;
    };
    let micros = |t: nix::sys::time::TimeVal| t.tv_sec() as u64 * 1_000_000 + t.tv_usec() as u64;
    Duration::from_micros(micros(usage.user_time()) + micros(usage.system_time()))
}

/// Keeps this process, and threads it starts from now on, to one processor it may use.
pub(crate) fn one_processor() -> anyhow::Result<()> {
    let this = Pid::from_raw(0);
    let allowed = sched_getaffinity(this).context("which processors may this process use?")?;
    let mut only = CpuSet::new();
    let last = (0..CpuSet::count()).rfind(|&c| allowed.is_set(c).unwrap_or(false));
    only.set(last.context("there is no processor this process may use")?)?;
    sched_setaffinity(this, &only).context("cannot keep to one processor")
}

/// Forgets the peak so far.
pub(crate) fn reset_peak() -> anyhow::Result<()> {
    std::fs::write("/proc/self/clear_refs", "5").context("cannot reset the peak of memory")
}

/// The most memory that was resident since the peak was forgotten, in bytes.
pub(crate) fn peak() -> anyhow::Result<u64> {
    peak_of(Path::new("/proc/self"))
}

/// The same of the process that this directory of the system is about.
pub(crate) fn peak_of(process: &Path) -> anyhow::Result<u64> {
    memory_of(process, "VmHWM:")
}

/// Memory of the process that this directory of the system is about that is resident now, in bytes.
pub(crate) fn resident_of(process: &Path) -> anyhow::Result<u64> {
    memory_of(process, "VmRSS:")
}

fn memory_of(process: &Path, what: &str) -> anyhow::Result<u64> {
    let status = std::fs::read_to_string(process.join("status"))?;
    let line = status.lines().find_map(|l| l.strip_prefix(what));
    let kib = line.and_then(|l| l.trim().strip_suffix(" kB"));
    let kib: u64 = kib
        .context("the system does not tell how much memory is in use")?
        .trim()
        .parse()?;
    Ok(kib << 10)
}

/// Bytes that the files under `path` take on disk.
pub(crate) fn disk_bytes(path: &Path) -> anyhow::Result<u64> {
    use std::os::unix::fs::MetadataExt;
    let meta = std::fs::symlink_metadata(path)?;
    if !meta.is_dir() {
        return Ok(meta.blocks() * 512);
    }
    std::fs::read_dir(path)?
        .map(|entry| disk_bytes(&entry?.path()))
        .sum()
}
