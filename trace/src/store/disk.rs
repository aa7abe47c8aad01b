//! How the store writes files so that they survive a crash and a loss of power. Everything that durability rests on goes
//! through here, so that a test can replay it with whatever was not synced lost or torn (`tests/power_loss.rs`).

use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::error::StoreError;
#[cfg(any(test, feature = "simulation"))]
use super::simulated;
pub(super) use super::step::Step;

/// A file of a store, open for writing at any place.
#[derive(Debug)]
pub(super) struct DiskFile {
    file: File,
    path: PathBuf,
}

impl DiskFile {
    /// Opens a file, or makes it; a file that is made survives a loss of power.
    pub(super) fn open(dir: &Path, name: &str) -> Result<Self, StoreError> {
        let path = dir.join(name);
        let new = !path.exists();
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).mode(0o600);
        let file = options.open(&path);
        let file = file.map_err(|e| StoreError::io(path.clone(), e))?;
        if new {
            record(|| Step::Create(path.clone()));
            sync_dir(dir)?;
        }
        Ok(Self { file, path })
    }

    pub(super) fn len(&self) -> Result<u64, StoreError> {
        let found = self.file.metadata().map_err(|e| self.failed(e))?;
        Ok(found.len())
    }

    pub(super) fn write_at(&self, at: u64, bytes: &[u8]) -> Result<(), StoreError> {
        room().map_err(|e| self.failed(e))?;
        record(|| Step::Write(self.path.clone(), at, bytes.to_vec()));
        let written = self.file.write_all_at(bytes, at);
        written.map_err(|e| self.failed(e))
    }

    pub(super) fn truncate(&self, length: u64) -> Result<(), StoreError> {
        record(|| Step::Truncate(self.path.clone(), length));
        self.file.set_len(length).map_err(|e| self.failed(e))
    }

    /// On return what was written survives a loss of power.
    pub(super) fn sync(&self) -> Result<(), StoreError> {
        if waits() {
            self.file.sync_data().map_err(|e| self.failed(e))?;
        }
        record(|| Step::Sync(self.path.clone()));
        Ok(())
    }

    fn failed(&self, error: io::Error) -> StoreError {
        StoreError::io(self.path.clone(), error)
    }
}

/// Makes a directory that nobody else can look into, and those above it.
pub(super) fn create_dir(dir: &Path) -> Result<(), StoreError> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(dir);
    made.map_err(|e| StoreError::io(dir.to_owned(), e))
}

/// Writes the file `name` of `dir`, whole or not at all; on return it survives a loss of power.
pub(super) fn replace(dir: &Path, name: &str, bytes: &[u8]) -> Result<(), StoreError> {
    let new = format!(".{name}.new");
    let file = DiskFile::open(dir, &new)?;
    file.truncate(0)?;
    file.write_at(0, bytes)?;
    file.sync()?;
    let path = dir.join(name);
    std::fs::rename(&file.path, &path).map_err(|e| file.failed(e))?;
    record(|| Step::Rename(file.path.clone(), path));
    sync_dir(dir)
}

/// Removes a file.
pub(super) fn remove(path: &Path) -> Result<(), StoreError> {
    record(|| Step::Remove(path.to_owned()));
    std::fs::remove_file(path).map_err(|e| StoreError::io(path.to_owned(), e))
}

fn sync_dir(dir: &Path) -> Result<(), StoreError> {
    if waits() {
        let synced = File::open(dir).and_then(|dir| dir.sync_all());
        synced.map_err(|e| StoreError::io(dir.to_owned(), e))?;
    }
    record(|| Step::SyncDir);
    Ok(())
}

#[cfg(test)]
thread_local! {
    /// What this thread has done since a test began to record it.
    pub(super) static STEPS: std::cell::RefCell<Option<Vec<Step>>> =
        const { std::cell::RefCell::new(None) };
}

#[cfg(any(test, feature = "simulation"))]
fn record(step: impl FnOnce() -> Step) {
    #[cfg(test)]
    if STEPS.with_borrow(Option::is_some) {
        let step = step();
        return STEPS.with_borrow_mut(|steps| steps.iter_mut().for_each(|s| s.push(step.clone())));
    }
    if simulated::is_current() {
        simulated::done(&step());
    }
}

/// Whether there is room, as far as that is simulated.
#[cfg(any(test, feature = "simulation"))]
fn room() -> io::Result<()> {
    simulated::room()
}

/// Whether the disk is to be waited for.
#[cfg(any(test, feature = "simulation"))]
fn waits() -> bool {
    !simulated::is_current()
}

/// Whether the storage engine is there.
#[cfg(any(test, feature = "simulation"))]
pub(super) fn has_engine() -> bool {
    !simulated::is_current()
}

#[cfg(not(any(test, feature = "simulation")))]
fn record(_: impl FnOnce() -> Step) {}

#[cfg(not(any(test, feature = "simulation")))]
fn room() -> io::Result<()> {
    Ok(())
}

#[cfg(not(any(test, feature = "simulation")))]
fn waits() -> bool {
    true
}

/// Whether the storage engine is there.
#[cfg(not(any(test, feature = "simulation")))]
pub(super) fn has_engine() -> bool {
    true
}
