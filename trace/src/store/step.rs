//! What is done to a disk, for who replays it.

use std::path::PathBuf;

/// What was done to the disk.
#[derive(Clone, Debug)]
#[cfg_attr(not(any(test, feature = "simulation")), allow(dead_code))]
pub(super) enum Step {
    Create(PathBuf),
    Write(PathBuf, u64, Vec<u8>),
    Truncate(PathBuf, u64),
    Sync(PathBuf),
    Rename(PathBuf, PathBuf),
    Remove(PathBuf),
    SyncDir,
}
