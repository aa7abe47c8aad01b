//! Who may use a store's directory now: one writer, or any number of readers.
//!
//! The lock is the system's, on the file `lock`; it ends with the process that holds it, however that
//! ends.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::ErrorKind;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use super::error::StoreError;

const FILE: &str = "lock";

/// A lock on a store's directory, as long as it lives.
#[derive(Debug)]
pub(super) struct DirLock(File);

impl DirLock {
    /// The writer's lock; none if somebody has another.
    pub(super) fn exclusive(dir: &Path) -> Result<Option<Self>, StoreError> {
        let path = dir.join(FILE);
        let file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .mode(0o600)
            .open(&path);
        let file = file.map_err(|e| StoreError::io(path.clone(), e))?;
        held(&path, file.try_lock()).map(|got| got.then_some(Self(file)))
    }

    /// A reader's lock; none if a writer has one. A directory without a lock file (a copy, or on a
    /// medium that cannot be written) has no writer: there is nothing to hold then.
    pub(super) fn shared(dir: &Path) -> Result<Option<Option<Self>>, StoreError> {
        let path = dir.join(FILE);
        match File::open(&path) {
            Ok(file) => {
                held(&path, file.try_lock_shared()).map(|got| got.then_some(Some(Self(file))))
            }
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(Some(None)),
            Err(e) => Err(StoreError::io(path, e)),
        }
    }
}

impl Drop for DirLock {
    /// Closing the file is not enough: a process that another thread has just started may have it open too, until it executes
    /// its program, and the lock with it.
    fn drop(&mut self) {
        // What cannot be given up now ends with the file.
        let _ = self.0.unlock();
    }
}

fn held(path: &Path, outcome: Result<(), TryLockError>) -> Result<bool, StoreError> {
    match outcome {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(e)) => Err(StoreError::io(path.to_owned(), e)),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_lock_that_is_given_up_is_free_though_a_process_that_is_being_started_has_the_file_open() {
        let dir = dosmos_testseeds::scratch();
        let writer = DirLock::exclusive(dir.path()).unwrap().unwrap();
        // As after fork(2): another descriptor of the same open file.
        let inherited = writer.0.try_clone().unwrap();
        assert!(DirLock::shared(dir.path()).unwrap().is_none());
        drop(writer);
        assert!(DirLock::shared(dir.path()).unwrap().is_some());
        drop(inherited);
    }
}
