//! Processes that are started to measure with or beside.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{ChildStdout, Command, Stdio};

use anyhow::Context;

/// A program that ends with this, also if this process is killed: `dosmos supervise` sees to that.
pub(super) struct Child(std::process::Child);

impl Child {
    pub(super) fn start(command: &[&str]) -> anyhow::Result<Self> {
        let child = Command::new(this_program()?)
            .args(["supervise", "--umask", "077", "--"])
            .args(command)
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn();
        let what = || format!("cannot start {}", command.join(" "));
        Ok(Self(child.with_context(what)?))
    }

    /// What it prints.
    pub(super) fn output(&mut self) -> Option<ChildStdout> {
        self.0.stdout.take()
    }

    pub(super) fn has_ended(&mut self) -> io::Result<bool> {
        Ok(self.0.try_wait()?.is_some())
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // The end of its standard input is what ends it.
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

/// The path of this program, which is the other end too.
pub(super) fn this_program() -> anyhow::Result<String> {
    let program = std::env::current_exe().context("where is this program?")?;
    Ok(program.display().to_string())
}
