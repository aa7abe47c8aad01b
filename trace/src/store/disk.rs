//! How the store writes files so that they survive a crash and a loss of power.

use std::fs::File;
use std::path::Path;

use super::error::StoreError;

/// Writes the file `name` of `dir`, whole or not at all; on return it survives a loss of power.
pub(super) fn replace(dir: &Path, name: &str, bytes: &[u8]) -> Result<(), StoreError> {
    let temporary = dir.join(format!(".{name}.new"));
    std::fs::write(&temporary, bytes)
        .and_then(|()| File::open(&temporary)?.sync_all())
        .and_then(|()| std::fs::rename(&temporary, dir.join(name)))
        .and_then(|()| File::open(dir)?.sync_all())
        .map_err(|e| StoreError::io(temporary, e))
}
