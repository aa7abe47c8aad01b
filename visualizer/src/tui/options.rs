//! How to show a run, and why that can fail.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::time::Duration;

use crate::state::{Look, Palette};

/// What drawing a screen took.
#[derive(Clone, Copy, Debug)]
pub struct Drawn {
    /// From the state to the bytes written to the terminal.
    pub took: Duration,
    /// Bytes received from event managers so far.
    pub received: u64,
    /// Answers taken so far.
    pub answers: u64,
}

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
    #[error("{0} needs a terminal; `dosmos query` and `dosmos demo --headless` do not")]
    NoTerminal(String),
    /// The terminal failed.
    #[error("the terminal failed: {0}")]
    Terminal(#[from] io::Error),
    /// The thread that asks the source cannot be started.
    #[error("cannot start a thread to query the event managers: {0}")]
    Thread(io::Error),
    /// That thread ended on its own.
    #[error(
        "the thread that queries the event managers ended unexpectedly; this is a bug, see the messages above"
    )]
    Asking,
}
