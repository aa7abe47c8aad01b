//! Lock files, for what only one process may do at a time. The system releases a lock when its holder ends, also when it is
//! killed.

use std::fs::{File, TryLockError};
use std::io::{ErrorKind, Read, Write};
use std::path::Path;

use anyhow::{Context, bail};

/// Locks the file `path`, which is created if it does not exist, until the result is dropped.
///
/// # Errors
/// If another process holds the lock: says that `what` is in use, by which process, and the `cure`.
pub(crate) fn hold(path: &Path, what: &str, cure: &str) -> anyhow::Result<File> {
    let cannot = || format!("cannot lock {}", path.display());
    let mut options = File::options();
    let opened = options.create(true).read(true).write(true).truncate(false);
    let mut file = opened.open(path).with_context(cannot)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let mut holder = String::new();
            // Only a hint.
            let _ = file.read_to_string(&mut holder);
            bail!("{what} (process {}); {cure}", holder.trim());
        }
        // A file system without locks: nothing can be done.
        Err(TryLockError::Error(e)) if e.kind() == ErrorKind::Unsupported => {}
        Err(TryLockError::Error(e)) => return Err(e).with_context(cannot),
    }
    file.set_len(0).with_context(cannot)?;
    writeln!(file, "{}", std::process::id()).with_context(cannot)?;
    Ok(file)
}
