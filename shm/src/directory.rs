//! Directories in memory that go with their process.

use std::ffi::OsStr;
use std::fs::{DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Once;

/// Environment variable that keeps all contents in their messages, if it is `off`.
pub const ENV_LARGE: &str = "DOSMOS_LARGE_MESSAGES";

/// Where files are memory.
const MEMORY: &str = "/dev/shm";
/// How often a directory is made anew that somebody who sweeps removes before it is locked.
const ATTEMPTS: usize = 100;

/// A directory of this process, removed with all that is in it.
#[derive(Debug)]
pub(crate) struct Directory {
    path: PathBuf,
    /// Locked as long as this process lives: whoever can lock it may remove it.
    _lock: File,
}

impl Directory {
    /// A new one, with a name that nobody can guess; none if there is no file system in memory.
    pub(crate) fn create() -> Option<Self> {
        static SWEPT: Once = Once::new();
        let base = base()?;
        SWEPT.call_once(|| sweep_in(&base));
        Self::create_in(&base)
    }

    fn create_in(base: &Path) -> Option<Self> {
        let mut attempts = (0..ATTEMPTS).map(|_| Self::try_create_in(base));
        attempts.find_map(Result::transpose)?.ok()
    }

    /// One in `base`; none if somebody who sweeps found it before it was locked, and removed it.
    fn try_create_in(base: &Path) -> io::Result<Option<Self>> {
        let path = base.join(format!("{:016x}", getrandom::u64()?));
        DirBuilder::new().mode(0o700).create(&path)?;
        let lock = match File::open(&path) {
            Ok(lock) => lock,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let ours = lock.try_lock().is_ok() && path.is_dir();
        Ok(ours.then_some(Self { path, _lock: lock }))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn name(&self) -> &str {
        let name = self.path.file_name().and_then(OsStr::to_str);
        name.unwrap_or_default()
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        // If it cannot be removed, it is left to whoever sweeps next.
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

/// The path of another process's directory, if there is one of this name.
pub(crate) fn find(name: &str) -> Option<PathBuf> {
    let plain = name.len() == 16 && name.bytes().all(|b| b.is_ascii_hexdigit());
    let path = base().filter(|_| plain)?.join(name);
    path.is_dir().then_some(path)
}

/// The directory of all directories of this user; none if there is no file system in memory.
pub(crate) fn base() -> Option<PathBuf> {
    if std::env::var_os(ENV_LARGE).is_some_and(|v| v == "off") {
        return None;
    }
    let user = std::fs::metadata("/proc/self").ok()?.uid();
    let path = Path::new(MEMORY).join(format!("dosmos-{user}"));
    // It may exist.
    let _ = DirBuilder::new().mode(0o700).create(&path);
    let found = std::fs::symlink_metadata(&path).ok()?;
    let private = found.is_dir() && found.uid() == user && found.mode() & 0o077 == 0;
    private.then_some(path)
}

/// Removes what processes of this user that are gone have left.
pub fn sweep() {
    if let Some(base) = base() {
        sweep_in(&base);
    }
}

fn sweep_in(base: &Path) {
    let Ok(entries) = std::fs::read_dir(base) else {
        return;
    };
    for entry in entries.flatten() {
        let path = entry.path();
        // Locked until it is removed: who makes it just now shall not take it for his.
        if let Some(_lock) = abandoned(&path) {
            // Whoever else sweeps may be faster.
            let _ = std::fs::remove_dir_all(path);
        }
    }
}

/// Whether the process that made this directory has left it behind.
pub(crate) fn is_abandoned(path: &Path) -> bool {
    abandoned(path).is_some()
}

/// This directory, locked, if the process that made it has left it behind.
fn abandoned(path: &Path) -> Option<File> {
    let directory = File::open(path).ok()?;
    directory.try_lock().is_ok().then_some(directory)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    #[test]
    fn what_a_killed_process_left_is_swept_and_what_is_in_use_is_not() {
        // A place of its own, where no other test sweeps.
        let base = Directory::create().unwrap();
        let ours = Directory::create_in(base.path()).unwrap();
        // Another process is killed: its lock goes, its files stay.
        let abandoned = base.path().join("0123456789abcdef");
        std::fs::create_dir(&abandoned).unwrap();
        let lock = File::open(&abandoned).unwrap();
        lock.lock().unwrap();
        std::fs::write(abandoned.join("0"), "not read").unwrap();
        sweep_in(base.path());
        assert!(abandoned.exists(), "it is in use");
        drop(lock);
        sweep_in(base.path());
        assert!(!abandoned.exists());
        assert!(ours.path().exists());
        let path = ours.path().to_owned();
        drop(ours);
        assert!(!path.exists());
    }

    #[test]
    fn what_is_made_while_another_sweeps_stays() {
        let base = Directory::create().unwrap();
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let swept = scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    sweep_in(base.path());
                }
            });
            let made: Vec<_> = (0..1000)
                .filter_map(|_| Directory::create_in(base.path()))
                .collect();
            done.store(true, Ordering::Relaxed);
            assert_eq!(made.len(), 1000);
            swept.join().unwrap();
            assert!(made.iter().all(|made| made.path().is_dir()));
        });
    }

    #[test]
    fn only_a_name_of_a_directory_is_found() {
        let ours = Directory::create().unwrap();
        assert_eq!(find(ours.name()).as_deref(), Some(ours.path()));
        for name in ["0123456789abcdef", "../../../../etc", "/etc", ""] {
            assert_eq!(find(name), None, "{name}");
        }
    }
}
