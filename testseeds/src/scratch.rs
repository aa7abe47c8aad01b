//! Temporary directories of tests.

use std::path::Path;

use tempfile::TempDir;

/// Where files are memory, if there is such a place.
const MEMORY: &str = "/dev/shm";

/// A temporary directory in memory where there is one, else on disk: stores sync what they write, and a test that does not
/// ask what a disk keeps has no reason to wait for it.
///
/// # Panics
///
/// If no temporary directory can be made.
pub fn scratch() -> TempDir {
    let memory = Path::new(MEMORY);
    if memory.is_dir()
        && let Ok(directory) = tempfile::tempdir_in(memory)
    {
        return directory;
    }
    match tempfile::tempdir() {
        Ok(directory) => directory,
        Err(e) => panic!("no temporary directory: {e}"),
    }
}
