//! The runs of a folder, as far as their directories tell without reading their records.

use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use dosmos_analysis::Efficiency;
use dosmos_proto::Nanos;

use crate::member::is_over;
use crate::open::store_dirs;
use crate::{Error, Launch, Run, Target};

/// A run directory.
#[derive(Clone, Debug)]
pub struct RunEntry {
    /// The directory.
    pub path: PathBuf,
    /// Its name.
    pub name: String,
    /// How the run was started and how it ended.
    pub launch: Launch,
    /// Whether somebody still runs it.
    pub running: bool,
    /// When it was started, since the Unix epoch; when its directory was changed last if nobody wrote it.
    pub started: Nanos,
    /// Its length; none while it runs, or if nobody saw its end.
    pub length: Option<Nanos>,
}

/// What the stores of a run tell.
#[derive(Clone, Debug, Default)]
pub struct RunFigures {
    /// How much of the processes' time was computing; none if they did not say.
    pub efficiency: Option<f64>,
    /// Why its records are not those of a whole run.
    pub lacking: Vec<String>,
}

impl RunEntry {
    /// Reads the directory of a run; none if there is no run in it.
    fn of(path: &Path) -> Option<Self> {
        // `latest` is a second name of a run.
        let metadata = path.symlink_metadata().ok()?;
        if !metadata.is_dir() {
            return None;
        }
        let stores = store_dirs(path).ok()?;
        let launch = Launch::beside(&stores);
        let changed = metadata.modified().unwrap_or(UNIX_EPOCH);
        let written = launch.metadata();
        let started = written.map_or_else(|| since_epoch(changed), |m| m.started);
        let length = written.and_then(|m| Some(m.ended? - m.started));
        Some(Self {
            path: path.to_owned(),
            name: path.file_name()?.to_string_lossy().into_owned(),
            running: is_running(path),
            started,
            length,
            launch,
        })
    }

    /// All its files, in bytes. Looks at each of them.
    pub fn bytes(&self) -> u64 {
        size(&self.path)
    }

    /// What its stores tell.
    ///
    /// # Errors
    /// If they cannot be read.
    pub async fn figures(&self) -> Result<RunFigures, Error> {
        let run = Run::open(&Target::run(&self.path)).await?;
        let (_, mut lacking) = run.launch_and_troubles().await?;
        let outline = run.source().outline(false).await?;
        lacking.extend(outline.completeness.reasons());
        let times = run.source().breakdown().await?;
        let efficiency = Efficiency::of(&times.phases).map(|e| e.parallel);
        Ok(RunFigures {
            efficiency,
            lacking,
        })
    }

    /// Removes the directory.
    ///
    /// # Errors
    /// If somebody runs it, or a file cannot be removed.
    pub fn remove(&self) -> Result<(), Error> {
        if is_running(&self.path) {
            return Err(Error::Running(self.path.clone()));
        }
        std::fs::remove_dir_all(&self.path).map_err(|e| Error::file(&self.path, e))
    }
}

/// The runs in `folder`, the latest first.
///
/// # Errors
/// If the folder cannot be read.
pub fn runs(folder: &Path) -> Result<Vec<RunEntry>, Error> {
    let entries = std::fs::read_dir(folder).map_err(|e| Error::file(folder, e))?;
    let paths = entries.flatten().map(|e| e.path());
    let mut runs: Vec<RunEntry> = paths.filter_map(|p| RunEntry::of(&p)).collect();
    runs.sort_by(|a, b| (b.started, &b.name).cmp(&(a.started, &a.name)));
    Ok(runs)
}

fn is_running(run: &Path) -> bool {
    let stores = store_dirs(run).unwrap_or_default();
    let names = stores.iter().filter_map(|s| s.file_name());
    names
        .into_iter()
        .any(|n| !is_over(run, &n.to_string_lossy()))
}

fn since_epoch(time: SystemTime) -> Nanos {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    Nanos(u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
}

/// The bytes of all files below `path`; links are not followed.
fn size(path: &Path) -> u64 {
    let Ok(entries) = std::fs::read_dir(path) else {
        return 0;
    };
    let sizes = entries.flatten().map(|entry| match entry.metadata() {
        Ok(m) if m.is_dir() => size(&entry.path()),
        Ok(m) if m.is_file() => m.len(),
        _ => 0,
    });
    sizes.sum()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // tests may
mod tests {
    use std::fs;

    use super::*;

    fn run(folder: &Path, name: &str) -> PathBuf {
        let run = folder.join(name);
        fs::create_dir_all(run.join("store/emp0")).unwrap();
        fs::write(run.join("store/emp0/log.000"), [0; 100]).unwrap();
        run
    }

    #[test]
    fn a_run_is_listed_once_under_its_own_name() {
        let folder = dosmos_testseeds::scratch();
        let only = run(folder.path(), "only");
        std::os::unix::fs::symlink("only", folder.path().join("latest")).unwrap();
        fs::create_dir_all(folder.path().join("notes")).unwrap();
        fs::write(folder.path().join("file"), "").unwrap();
        let listed = runs(folder.path()).unwrap();
        let names: Vec<&str> = listed.iter().map(|r| r.name.as_str()).collect();
        assert_eq!(names, ["only"]);
        assert_eq!((listed[0].bytes(), listed[0].length), (100, None));
        assert!(!listed[0].running && listed[0].started > Nanos::ZERO);
        assert!(runs(&only.join("nothing")).is_err());
    }

    #[test]
    fn a_run_that_somebody_runs_is_not_removed() {
        let folder = dosmos_testseeds::scratch();
        let path = run(folder.path(), "live");
        let lock = fs::File::create(path.join("lock")).unwrap();
        lock.lock().unwrap();
        let live = runs(folder.path()).unwrap().remove(0);
        assert!(live.running);
        let refused = live.remove().unwrap_err().to_string();
        assert!(refused.contains("still runs"), "{refused}");
        drop(lock);
        live.remove().unwrap();
        assert!(!path.exists());
    }
}
