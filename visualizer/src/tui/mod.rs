//! The terminal: takes it, runs the loop, gives it back.
//!
//! Guarantees: the terminal is restored at the end, on an error, on a panic, and on SIGINT, SIGTERM
//! and SIGHUP; the source is asked on a thread of its own, so a slow one never makes the keys slow.

mod analyst;
mod ask;
mod event;
mod figures;
mod headless;
mod news;
mod options;
mod poll;
mod run;
mod runs;
mod save;

use std::io::{self, IsTerminal};

use crossterm::clipboard::CopyToClipboard;
use crossterm::event::{DisableMouseCapture, EnableMouseCapture, EventStream};
use crossterm::execute;
use dosmos_client::Run;
use futures::FutureExt;
use futures::future::select_all;
use tokio::signal::unix::{SignalKind, signal};

pub use crossterm::event::KeyCode;
pub use figures::csv;
pub use headless::{headless, keys};
pub use news::TRAFFIC;
pub use options::{Copy, Drawn, Error, Event, FASTEST, Options};
pub use poll::answer_once;
pub use run::drive;
pub use save::svg;

/// Shows `run` in the terminal, or the runs of `options.runs` if there is none to choose one from, until the user quits, a signal ends it, or `options.cancel` fires.
///
/// A future for a tokio runtime with time and I/O, a current-thread one too: it never blocks longer
/// than it takes to write a screen. The source is asked on another thread with a runtime of its own.
///
/// # Errors
/// If there is no terminal, or it fails.
pub async fn run(run: impl Into<Option<Run>>, mut options: Options) -> Result<(), Error> {
    if !io::stdout().is_terminal() || !io::stdin().is_terminal() {
        return Err(Error::NoTerminal(options.started_by));
    }
    let signals = signals()?;
    let asked = options.cancel.take();
    let asked = asked.unwrap_or_else(|| Box::pin(std::future::pending()));
    let both = select_all([signals, asked]).map(|_| ());
    options.cancel = Some(Box::pin(both));
    options.copy.get_or_insert_with(|| Box::new(copy));
    // Restores the terminal on a panic as well.
    let terminal = ratatui::try_init()?;
    let restore = Restore {
        mouse: options.mouse,
    };
    if options.mouse {
        execute!(io::stdout(), EnableMouseCapture)?;
    }
    let result = drive(terminal, EventStream::new(), run, options).await;
    drop(restore);
    result
}

/// Has the terminal put `text` on its clipboard (OSC 52).
fn copy(text: &str) -> io::Result<()> {
    execute!(io::stdout(), CopyToClipboard::to_clipboard_from(text))
}

/// Restores the terminal however the loop ends, also when its future is dropped.
struct Restore {
    mouse: bool,
}

impl Drop for Restore {
    fn drop(&mut self) {
        if self.mouse {
            let _ = execute!(io::stdout(), DisableMouseCapture);
        }
        // A terminal that is gone needs no restoring.
        let _ = ratatui::try_restore();
    }
}

/// Fires at the first signal that asks the process to end.
fn signals() -> io::Result<Event<()>> {
    let kinds = [
        SignalKind::interrupt(),
        SignalKind::terminate(),
        SignalKind::hangup(),
    ];
    let mut all: Vec<Event<()>> = Vec::new();
    for kind in kinds {
        let mut signal = signal(kind)?;
        all.push(Box::pin(async move {
            signal.recv().await;
        }));
    }
    Ok(Box::pin(select_all(all).map(|_| ())))
}
