//! The directory of a run: addresses, logs, stores.

use std::fs::File;
use std::path::{Path, PathBuf};

use anyhow::Context;

use dosmos_client::RUNS;

/// The directory of a run.
#[derive(Clone, Debug)]
pub struct RunDir(PathBuf);

impl RunDir {
    /// Makes `dir`, or `dosmos-run/NAME-TIME`, to which `dosmos-run/latest` then points.
    ///
    /// # Errors
    /// A directory that cannot be made, with its path.
    pub fn create(dir: Option<PathBuf>, name: &str) -> anyhow::Result<Self> {
        let chosen = dir.is_none();
        let dir = dir.unwrap_or_else(|| {
            let now = chrono::Local::now().format("%Y%m%d-%H%M%S");
            let wanted = Path::new(RUNS).join(format!("{name}-{now}"));
            let mut free = wanted.clone();
            let mut n = 1;
            while free.exists() {
                n += 1;
                free = wanted.with_extension(n.to_string());
            }
            free
        });
        for part in ["addr", "log", "store"] {
            let path = dir.join(part);
            std::fs::create_dir_all(&path)
                .with_context(|| format!("cannot make {}", path.display()))?;
        }
        let dir = dir.canonicalize().context("the run directory vanished")?;
        // Addresses of an earlier run in the same directory lead nowhere.
        for old in std::fs::read_dir(dir.join("addr"))?.flatten() {
            let _ = std::fs::remove_file(old.path());
        }
        if chosen {
            let latest = Path::new(RUNS).join("latest");
            let _ = std::fs::remove_file(&latest);
            if let Some(name) = dir.file_name() {
                // A convenience: runs work without it.
                let _ = std::os::unix::fs::symlink(name, latest);
            }
        }
        Ok(Self(dir))
    }

    /// The path.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The path, relative to the current directory if it lies below it.
    pub fn shown(&self) -> String {
        let here = std::env::current_dir().and_then(|d| d.canonicalize());
        let relative = here
            .ok()
            .and_then(|h| self.0.strip_prefix(h).ok().map(Path::to_owned));
        relative
            .unwrap_or_else(|| self.0.clone())
            .display()
            .to_string()
    }

    /// The path of the log of a process.
    pub fn log_path(&self, name: &str) -> PathBuf {
        self.0.join("log").join(format!("{name}.log"))
    }

    /// The log of a process, to append to.
    pub(super) fn log<T: From<File>>(&self, name: &str) -> anyhow::Result<T> {
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

    /// What a process said at its end: its last line that begins as an error does, else its last; none
    /// if it printed nothing.
    pub fn last_words(&self, name: &str) -> Option<String> {
        let text = std::fs::read_to_string(self.log_path(name)).unwrap_or_default();
        let mut lines = text.lines().rev().map(str::trim).filter(|l| !l.is_empty());
        let last = lines.clone().next()?;
        let is_error = |l: &&str| l.starts_with("dosmos: ") || l.starts_with("error: ");
        Some(lines.find(is_error).unwrap_or(last).to_owned())
    }
}
