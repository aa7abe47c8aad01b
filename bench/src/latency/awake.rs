//! Processors that do not sleep: waking a sleeping one takes longer than most operations.

use std::process::{Command, Stdio};

use anyhow::Context;

use super::child::Child;

/// A process on each processor that computes whenever nobody else wants to, until this is dropped.
pub(super) fn keep_awake() -> anyhow::Result<Vec<Child>> {
    let program = std::env::current_exe().context("where is this program?")?;
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    (0..processors)
        .map(|_| {
            let spinner = Command::new("chrt")
                .args(["--idle", "0"])
                .arg(&program)
                .args(["latency", "--keep-awake"])
                .stdin(Stdio::piped())
                .spawn()
                .context("cannot start chrt (of util-linux), which keeps processors awake")?;
            Ok(Child(spinner))
        })
        .collect()
}

/// Computes until standard input ends, as it does when who started this is gone.
pub(super) fn spin() {
    let reader = std::thread::spawn(|| std::io::copy(&mut std::io::stdin(), &mut std::io::sink()));
    while !reader.is_finished() {
        std::hint::spin_loop();
    }
}
