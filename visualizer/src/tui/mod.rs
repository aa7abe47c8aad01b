//! The terminal: takes it, runs the loop, gives it back.
//!
//! Guarantees: the terminal is restored at the end, on an error, on a panic, and on SIGINT, SIGTERM
//! and SIGHUP; the source is asked on a thread of its own, so a slow one never makes the keys slow.

mod ask;
mod headless;
mod poll;
mod run;
mod save;

use std::future::Future;
use std::io::{self, IsTerminal};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use crossterm::event::{DisableMouseCapture, EnableMouseCapture, EventStream};
use crossterm::execute;
use dosmos_trace::query::TraceSource;
use futures::FutureExt;
use futures::future::select_all;
use tokio::signal::unix::{SignalKind, signal};

pub use crossterm::event::KeyCode;
pub use headless::{headless, keys};
pub use poll::{TRAFFIC, answer_once};
pub use run::{Drawn, drive};
pub use save::{csv, svg};

use crate::state::{Look, Palette};

/// Shortest time between two rounds of asking (at most ten per second: docs/design/monitoring.md#fusion).
pub const FASTEST: Duration = Duration::from_millis(100);

/// Something that happens once.
pub type Event<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// How to show it.
pub struct Options {
    /// Time between two rounds of asking; [`FASTEST`] at least.
    pub refresh: Duration,
    /// Colours and characters.
    pub look: Look,
    /// Clicks and the wheel are for this program; the terminal's own selecting then needs Shift.
    pub mouse: bool,
    /// What is shown, in the header; may be empty.
    pub title: String,
    /// The command that started this, for the messages of errors: `dosmos top`.
    pub started_by: String,
    /// What was run has ended, and how (`run finished`): the terminal says so and stays.
    pub finished: Option<Event<String>>,
    /// The terminal is to be left.
    pub cancel: Option<Event<()>>,
    /// Told of every screen drawn.
    pub drawn: Option<Box<dyn FnMut(Drawn) + Send>>,
}

impl Default for Options {
    /// Four rounds per second; no colours if the environment has a non-empty `NO_COLOR`
    /// (<https://no-color.org>).
    fn default() -> Self {
        let no_color = std::env::var_os("NO_COLOR").is_some_and(|v| !v.is_empty());
        Self {
            refresh: Duration::from_millis(250),
            look: Look {
                palette: match no_color {
                    true => Palette::Mono,
                    false => Palette::Classic,
                },
                ascii: false,
            },
            mouse: true,
            title: String::new(),
            started_by: "dosmos top".into(),
            finished: None,
            cancel: None,
            drawn: None,
        }
    }
}

/// Why there is not a terminal.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Standard input or output is not a terminal.
    #[error("{0} needs a terminal; `dosmos query` and `--headless` do without")]
    NoTerminal(String),
    /// The terminal failed.
    #[error("the terminal: {0}")]
    Terminal(#[from] io::Error),
    /// The thread that asks the source cannot be started.
    #[error("cannot start a thread to ask the event managers: {0}")]
    Thread(io::Error),
    /// That thread ended on its own.
    #[error("asking the event managers ended unexpectedly (a defect; the messages above say more)")]
    Asking,
}

/// Shows `source` in the terminal until the user quits, a signal ends it, or `options.cancel` fires.
///
/// A future for a tokio runtime with time and I/O, a current-thread one too: it never blocks longer
/// than it takes to write a screen. The source is asked on another thread with a runtime of its own.
///
/// # Errors
/// If there is no terminal, or it fails.
pub async fn run(source: Arc<dyn TraceSource>, mut options: Options) -> Result<(), Error> {
    if !io::stdout().is_terminal() || !io::stdin().is_terminal() {
        return Err(Error::NoTerminal(options.started_by));
    }
    let signals = signals()?;
    let asked = options.cancel.take();
    let asked = asked.unwrap_or_else(|| Box::pin(std::future::pending()));
    let both = select_all([signals, asked]).map(|_| ());
    options.cancel = Some(Box::pin(both));
    // Restores the terminal on a panic as well.
    let terminal = ratatui::try_init()?;
    let restore = Restore {
        mouse: options.mouse,
    };
    if options.mouse {
        execute!(io::stdout(), EnableMouseCapture)?;
    }
    let result = drive(terminal, EventStream::new(), source, options).await;
    drop(restore);
    result
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
