//! The directory of a run: addresses, logs, stores. It belongs to one run, and whoever launches that run has it locked.
//! Only the user who made it can read what is in it.

use std::fs::{DirBuilder, File, Permissions};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, bail};
use dosmos_client::RUNS;
use nix::sys::stat::{Mode, umask};

use crate::lock;

/// Held by the launcher of the run for as long as it runs; says its process number.
const LOCK: &str = "lock";
/// What only the user may read, write and enter.
const PRIVATE_DIR: u32 = 0o700;

/// The directory of a run.
#[derive(Clone, Debug)]
pub struct RunDir {
    path: PathBuf,
    /// What new files of the user's program may not be; what dosmos writes is private.
    umask: Mode,
    /// Locked until the last clone is dropped, or this process ends in any way.
    _lock: Option<Arc<File>>,
}

impl RunDir {
    /// Makes `dir`, or `dosmos-run/NAME-TIME`, to which `dosmos-run/latest` then points. From then on, files that this
    /// process and its children make are private to the user.
    ///
    /// # Errors
    /// A directory that cannot be made, that another launcher uses, or that holds a run already.
    pub fn create(dir: Option<PathBuf>, name: &str) -> anyhow::Result<Self> {
        let latest = dir.is_none();
        Self::at(&dir.unwrap_or_else(|| unused(name)), latest)
    }

    /// Makes `dir` for a run that this process launches; with `latest`, `dosmos-run/latest` then points to it.
    ///
    /// # Errors
    /// As [`RunDir::create`].
    pub(crate) fn at(dir: &Path, latest: bool) -> anyhow::Result<Self> {
        let umask = umask(Mode::from_bits_truncate(!PRIVATE_DIR & 0o777));
        let dir = make(dir)?;
        let lock = lock::hold(
            &dir.join(LOCK),
            &format!("{} is in use", dir.display()),
            "choose another --run-dir, or wait until that run has ended",
        )?;
        refuse_a_run(&dir)?;
        make_parts(&dir)?;
        // Addresses of a run that did not come about lead nowhere.
        for old in std::fs::read_dir(dir.join("addr"))?.flatten() {
            let _ = std::fs::remove_file(old.path());
        }
        if latest {
            let latest = Path::new(RUNS).join("latest");
            let _ = std::fs::remove_file(&latest);
            if let Some(name) = dir.file_name() {
                // A convenience: runs work without it.
                let _ = std::os::unix::fs::symlink(name, latest);
            }
        }
        Ok(Self {
            path: dir,
            umask,
            _lock: Some(Arc::new(lock)),
        })
    }

    /// The directory of a run that another process launches, made if that one makes its own on another host.
    ///
    /// # Errors
    /// A directory that cannot be made, or that holds a run already: stores are made only when all ranks have come.
    pub(crate) fn join_new(dir: &Path) -> anyhow::Result<Self> {
        let joined = Self::join(dir)?;
        refuse_a_run(&joined.path)?;
        Ok(joined)
    }

    /// The directory of a run that others began or will begin: of one process, started by its name.
    ///
    /// # Errors
    /// A directory that cannot be made.
    pub(crate) fn join(dir: &Path) -> anyhow::Result<Self> {
        let umask = umask(Mode::from_bits_truncate(!PRIVATE_DIR & 0o777));
        let dir = make(dir)?;
        make_parts(&dir)?;
        Ok(Self {
            path: dir,
            umask,
            _lock: None,
        })
    }

    /// What the user's own files may not be.
    pub(super) fn umask(&self) -> Mode {
        self.umask
    }

    /// The path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The path, relative to the current directory if it lies below it.
    pub fn shown(&self) -> String {
        let here = std::env::current_dir().and_then(|d| d.canonicalize());
        let relative = here
            .ok()
            .and_then(|h| self.path.strip_prefix(h).ok().map(Path::to_owned));
        relative
            .unwrap_or_else(|| self.path.clone())
            .display()
            .to_string()
    }

    /// The path of the log of a process.
    pub fn log_path(&self, name: &str) -> PathBuf {
        self.path.join("log").join(format!("{name}.log"))
    }

    /// The log of a process, to append to.
    pub(crate) fn log<T: From<File>>(&self, name: &str) -> anyhow::Result<T> {
        let path = self.log_path(name);
        let file = File::options().create(true).append(true).open(&path);
        let file = file.with_context(|| format!("cannot write {}", path.display()))?;
        Ok(T::from(file))
    }

    /// The last lines of a process's log.
    pub fn tail(&self, name: &str) -> String {
        let text = std::fs::read_to_string(self.log_path(name)).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        let last = &lines[lines.len().saturating_sub(10)..];
        if last.is_empty() {
            return "  (it printed nothing)".to_owned();
        }
        last.iter()
            .map(|l| format!("  {l}"))
            .collect::<Vec<_>>()
            .join("\n")
    }

    /// What a process said at its end: its last line that begins as an error does, without that beginning, else its last;
    /// none if it printed nothing.
    pub fn last_words(&self, name: &str) -> Option<String> {
        let text = std::fs::read_to_string(self.log_path(name)).unwrap_or_default();
        // What a Rust program that panics prints behind its message.
        let is_hint = |l: &&str| l.starts_with("note: run with `RUST_BACKTRACE");
        let lines = text.lines().rev().map(str::trim);
        let mut lines = lines.filter(|l| !l.is_empty() && !is_hint(l));
        let last = lines.clone().next()?;
        // The last: what a Rust program prints whose `main` returns an error.
        let error = |l| {
            ["dosmos: ", "error: ", "Error: "]
                .iter()
                .find_map(|begin| str::strip_prefix(l, begin))
        };
        Some(lines.find_map(error).unwrap_or(last).to_owned())
    }
}

/// Makes a private directory, with those above it.
fn make(dir: &Path) -> anyhow::Result<PathBuf> {
    let mut builder = DirBuilder::new();
    let made = builder.recursive(true).mode(PRIVATE_DIR).create(dir);
    made.with_context(|| format!("cannot create {}", dir.display()))?;
    dir.canonicalize().context("the run directory was removed")
}

fn make_parts(dir: &Path) -> anyhow::Result<()> {
    for part in ["addr", "lock.d", "log", "store"] {
        let path = dir.join(part);
        let made = std::fs::create_dir_all(&path)
            .and_then(|()| std::fs::set_permissions(&path, Permissions::from_mode(PRIVATE_DIR)));
        made.with_context(|| format!("cannot create {}", path.display()))?;
    }
    Ok(())
}

/// A directory below [`RUNS`] that does not exist yet.
fn unused(name: &str) -> PathBuf {
    let now = chrono::Local::now().format("%Y%m%d-%H%M%S");
    let wanted = Path::new(RUNS).join(format!("{name}-{now}"));
    let mut free = wanted.clone();
    let mut n = 1;
    while free.exists() {
        n += 1;
        free = wanted.with_extension(n.to_string());
    }
    free
}

/// Whether an event manager has written a store here.
fn refuse_a_run(dir: &Path) -> anyhow::Result<()> {
    let stores = std::fs::read_dir(dir.join("store"));
    if stores.is_ok_and(|mut stores| stores.next().is_some()) {
        bail!(
            "{} holds an earlier run; choose another --run-dir, or remove it",
            dir.display()
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_launcher_uses_a_directory_at_a_time_and_only_for_one_run() {
        let place = tempfile::tempdir().unwrap();
        let dir = place.path().join("run");
        let create = || RunDir::create(Some(dir.clone()), "test");
        let first = create().unwrap();
        let refused = create().unwrap_err().to_string();
        let this = std::process::id().to_string();
        assert!(
            refused.contains("in use") && refused.contains(&this),
            "{refused}"
        );
        // A run that did not come about is no obstacle.
        drop(first);
        let second = create().unwrap();
        std::fs::create_dir(second.path().join("store/emp0")).unwrap();
        drop(second);
        for refused in [create(), RunDir::join_new(&dir)] {
            let refused = refused.unwrap_err().to_string();
            assert!(refused.contains("holds an earlier run"), "{refused}");
        }
        // A process of that run that comes later, or again.
        RunDir::join(&dir).unwrap();
    }

    #[test]
    fn the_last_words_of_a_process_are_its_error_or_its_last_line() {
        let place = tempfile::tempdir().unwrap();
        let run = RunDir::create(Some(place.path().join("run")), "test").unwrap();
        let says = |name: &str, text: &str| {
            std::fs::write(run.log_path(name), text).unwrap();
            run.last_words(name)
        };
        for (log, words) in [
            ("step 1\nError: x[0] is lost\n", Some("x[0] is lost")),
            ("dosmos: no such program\nbye\n", Some("no such program")),
            (
                "thread 'main' panicked at src/main.rs:4:5:\nno luck\nnote: run with `RUST_BACKTRACE=1` environment \
                 variable to display a backtrace\n",
                Some("no luck"),
            ),
            ("step 1\n\nstep 2\n\n", Some("step 2")),
            ("\n", None),
        ] {
            assert_eq!(says("ap0", log).as_deref(), words, "{log}");
        }
    }

    #[test]
    fn what_is_in_it_is_private() {
        let place = tempfile::tempdir().unwrap();
        let dir = place.path().join("deep/run");
        let run = RunDir::create(Some(dir.clone()), "test").unwrap();
        let log: File = run.log("mp0").unwrap();
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
        for path in ["", "addr", "log", "store"] {
            assert_eq!(mode(&dir.join(path)), 0o700, "{path}");
        }
        assert_eq!(log.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(mode(&dir.join(LOCK)), 0o600);
    }
}
