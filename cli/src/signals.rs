//! Who may ask this process to end: signals, and a parent process that holds its standard input.

use std::os::fd::AsFd;

use anyhow::Context;
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Ctrl-C, SIGTERM, the end of the terminal, and that of the parent process if it holds standard input.
#[derive(Debug)]
pub(crate) struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
    parent: Option<pipe::Receiver>,
}

impl Signals {
    pub(crate) fn new() -> std::io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
            parent: None,
        })
    }

    /// The same, and the end of standard input if a parent process holds its other end.
    ///
    /// # Errors
    /// Standard input that is not a pipe.
    pub(crate) fn and_parent(stdin_is_parent: bool) -> anyhow::Result<Self> {
        let mut signals = Self::new()?;
        if stdin_is_parent {
            let stdin = std::io::stdin().as_fd().try_clone_to_owned()?;
            let pipe = pipe::Receiver::from_owned_fd(stdin);
            signals.parent = Some(pipe.context("standard input is not a pipe")?);
        }
        Ok(signals)
    }

    /// Completes at the next signal.
    pub(crate) async fn first(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
            _ = self.hangup.recv() => {}
            () = gone(&mut self.parent) => {
                self.parent = None;
                tracing::warn!("the parent process is gone; ending");
            }
        }
    }
}

/// Completes when the other end of the pipe is closed.
async fn gone(parent: &mut Option<pipe::Receiver>) {
    let Some(pipe) = parent else {
        return std::future::pending().await;
    };
    let mut sink = [0; 64];
    while pipe.read(&mut sink).await.is_ok_and(|n| n > 0) {}
}

/// Completes when this process is to end: a signal, or the end of standard input if a parent holds it.
///
/// # Errors
/// Signals that cannot be watched; standard input that is not a pipe.
pub fn end_of(stdin_is_parent: bool) -> anyhow::Result<impl Future<Output = ()>> {
    let mut signals = Signals::and_parent(stdin_is_parent)?;
    Ok(async move { signals.first().await })
}
