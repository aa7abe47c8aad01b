//! A test that runs a part of itself in a process of its own: to be killed, or limited in what it may use.
//!
//! The process runs the same test of the same test binary again, with an environment variable set that tells it so.

use std::ffi::OsStr;
use std::process::{Child, ChildStdout, Command};

/// The calling test, to be run once more, with `variable` set to `value`.
///
/// # Panics
///
/// If it is not called by a test, on the test's own thread.
pub fn again(variable: &str, value: impl AsRef<OsStr>) -> Command {
    // The harness names the thread after the test.
    let thread = std::thread::current();
    let test = thread.name().filter(|name| *name != "main");
    let test = test.unwrap_or_else(|| panic!("called by a test, not on the test's own thread"));
    let binary = std::env::current_exe().unwrap_or_else(|e| panic!("the test's binary: {e}"));
    let mut command = Command::new(binary);
    command
        .args([test, "--exact", "--nocapture"])
        .env(variable, value);
    command
}

/// Runs it to its end.
///
/// # Panics
///
/// If it fails; with what it printed.
pub fn succeeds(command: &mut Command) {
    let child = command.output();
    let child = child.unwrap_or_else(|e| panic!("{command:?}: {e}"));
    assert!(
        child.status.success(),
        "{}\n{}\n{}",
        child.status,
        String::from_utf8_lossy(&child.stdout),
        String::from_utf8_lossy(&child.stderr)
    );
}

/// A process that is killed (SIGKILL) at the latest when the test is done with it.
#[derive(Debug)]
pub struct Victim(Child);

impl Victim {
    /// Starts it.
    ///
    /// # Panics
    ///
    /// If it cannot be started.
    pub fn start(command: &mut Command) -> Self {
        let child = command.spawn();
        Self(child.unwrap_or_else(|e| panic!("{command:?}: {e}")))
    }

    /// What it prints, if that goes to a pipe: once.
    pub fn output(&mut self) -> Option<ChildStdout> {
        self.0.stdout.take()
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        // It cannot have ended before, and if it has the test has failed anyway.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
