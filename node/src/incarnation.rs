//! The incarnation of a process: how often it was started, counted in the run directory.
//!
//! The count is durable before anything uses it, and a lock makes two starts at the same time count
//! apart. No wall clock is read: one that steps back changes nothing.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};

use dosmos_proto::Incarnation;

/// The number of this start could not be stored.
#[derive(Debug, thiserror::Error)]
#[error("cannot count the starts of {name} in {}: {source}", .path.display())]
pub struct IncarnationError {
    /// The process.
    pub name: String,
    /// The file.
    pub path: PathBuf,
    /// What the system said.
    pub source: io::Error,
}

/// Counts a start of `name` in `run_dir`, file `incarnation/NAME`.
///
/// # Errors
/// If the run directory cannot be written.
pub fn next(run_dir: &Path, name: &str) -> Result<Incarnation, IncarnationError> {
    let path = run_dir.join("incarnation").join(name);
    let failed = |source| IncarnationError {
        name: name.to_owned(),
        path: path.clone(),
        source,
    };
    let start = count(&path).map_err(failed)?;
    let nonce = getrandom::u32().map_err(|e| failed(io::Error::other(e)))?;
    Ok(Incarnation::new(start, nonce))
}

fn count(path: &Path) -> io::Result<u32> {
    let directory = path.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(directory)?;
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(path)?;
    file.lock()?;
    let mut text = String::new();
    file.read_to_string(&mut text)?;
    let before: u32 = match text.trim() {
        "" => 0,
        number => number.parse().map_err(io::Error::other)?,
    };
    let start = before
        .checked_add(1)
        .ok_or_else(|| io::Error::other("too many starts"))?;
    // Ten digits each time: a write that is torn by a loss of power leaves a number of that length.
    file.rewind()?;
    file.write_all(format!("{start:010}\n").as_bytes())?;
    file.sync_all()?;
    File::open(directory)?.sync_all()?;
    Ok(start)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_start_is_later_than_the_one_before_also_at_the_same_time() {
        let dir = tempfile::tempdir().unwrap();
        let of = |name: &str| next(dir.path(), name).unwrap();
        let (first, second) = (of("mp0"), of("mp0"));
        assert!(first < second);
        assert_eq!(of("lp.north").start(), 1);
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let dir = dir.path().to_owned();
                std::thread::spawn(move || next(&dir, "mp0").unwrap().start())
            })
            .collect();
        let mut starts: Vec<u32> = threads.into_iter().map(|t| t.join().unwrap()).collect();
        starts.sort_unstable();
        assert_eq!(starts, [3, 4, 5, 6]);
    }

    #[test]
    fn a_count_that_cannot_be_read_is_an_error_that_names_the_file() {
        let dir = tempfile::tempdir().unwrap();
        next(dir.path(), "mp0").unwrap();
        std::fs::write(dir.path().join("incarnation/mp0"), "many").unwrap();
        let error = next(dir.path(), "mp0").unwrap_err().to_string();
        assert!(error.contains("incarnation/mp0"), "{error}");
    }
}
