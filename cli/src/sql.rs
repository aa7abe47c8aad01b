//! `dosmos sql` and `dosmos archive`: carried out by the program with SQL, `dosmos-sql`, which is this program and a database
//! engine. This one, which is built in a fraction of the time, hands them over to it.

use std::io;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::sync::Arc;

use anyhow::bail;
use dosmos_emp::Companion;

use crate::args::{ArchiveArgs, SqlArgs};

/// The program with SQL.
const PROGRAM: &str = "dosmos-sql";

/// What the program with SQL adds.
pub trait Sql: Sync {
    /// Answers a query.
    ///
    /// # Errors
    /// If the run cannot be read, or the query makes no sense.
    fn query(&self, args: &SqlArgs) -> anyhow::Result<ExitCode>;

    /// Writes an archive.
    ///
    /// # Errors
    /// If the run cannot be read, or the archive not written.
    fn archive(&self, args: &ArchiveArgs) -> anyhow::Result<ExitCode>;

    /// What answers beside each event manager, in its process, if anything does.
    fn companion(&self) -> Option<Arc<dyn Companion>>;
}

/// Becomes the program with SQL, with the same command line.
///
/// # Errors
/// If there is none.
pub(crate) fn elsewhere() -> anyhow::Result<ExitCode> {
    let beside = std::env::current_exe().ok();
    let beside = beside.and_then(|me| Some(me.parent()?.join(PROGRAM)));
    let program = beside
        .filter(|p| p.exists())
        .unwrap_or_else(|| PathBuf::from(PROGRAM));
    let error = Command::new(&program)
        .args(std::env::args_os().skip(1))
        .exec();
    match error.kind() {
        io::ErrorKind::NotFound => bail!(
            "this dosmos is built without SQL, and {PROGRAM} is neither beside it nor in the PATH; \
             install it from the source: cargo install --path sql"
        ),
        _ => bail!("cannot run {}: {error}", program.display()),
    }
}
