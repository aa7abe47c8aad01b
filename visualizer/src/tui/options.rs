//! How to show a run, and why that can fail.

use std::future::Future;
use std::io;
use std::path::PathBuf;
use std::pin::Pin;
use std::time::Duration;

use dosmos_client::RUNS;

use crate::state::settings::{Settings, plain_locale};
use crate::state::{Keymap, Look, Palette, Palettes};

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

/// Puts a text on a clipboard.
pub type Copy = Box<dyn FnMut(&str) -> io::Result<()> + Send>;

/// How to show it.
pub struct Options {
    /// Time between two rounds of asking; [`FASTEST`] at least.
    pub refresh: Duration,
    /// Colours and characters.
    pub look: Look,
    /// Clicks and the wheel are for this program; the terminal's own selecting then needs Shift.
    pub mouse: bool,
    /// The folder whose runs are listed where the run shown is not in one.
    pub runs: PathBuf,
    /// What is shown, in the header; may be empty.
    pub title: String,
    /// The command that started this, for the messages of errors: `dosmos top`.
    pub started_by: String,
    /// What was run has ended, and how (`run finished`): the terminal says so and stays.
    pub finished: Option<Event<String>>,
    /// The terminal is to be left.
    pub cancel: Option<Event<()>>,
    /// All palettes by name.
    pub palettes: Palettes,
    /// What quitting would end, if that is to be asked about: `the program`.
    pub ask_before: Option<String>,
    /// Which key does what.
    pub keymap: Keymap,
    /// Puts a text on the clipboard; the terminal has it done by itself.
    pub copy: Option<Copy>,
    /// Told of every screen drawn.
    pub drawn: Option<Box<dyn FnMut(Drawn) + Send>>,
}

impl Default for Options {
    /// Four rounds per second; no colours if the environment has a non-empty `NO_COLOR`
    /// (<https://no-color.org>); only ASCII if the locale knows no more.
    fn default() -> Self {
        let no_color = std::env::var_os("NO_COLOR").is_some_and(|v| !v.is_empty());
        Self {
            refresh: Duration::from_millis(250),
            look: Look {
                palette: match no_color {
                    true => Palette::Mono,
                    false => Palette::Classic,
                },
                ascii: plain_locale(|name| std::env::var(name).ok()),
            },
            palettes: Palettes::default(),
            ask_before: None,
            keymap: Keymap::default(),
            copy: None,
            mouse: true,
            runs: RUNS.into(),
            title: String::new(),
            started_by: "dosmos top".into(),
            finished: None,
            cancel: None,
            drawn: None,
        }
    }
}

impl Options {
    /// With these settings; what the environment says of colours and characters goes first.
    #[must_use]
    pub fn with(mut self, settings: Settings) -> Self {
        if self.look.palette == Palette::default() {
            self.look.palette = settings.palette.unwrap_or_default();
        }
        self.look.ascii = settings.ascii.unwrap_or(self.look.ascii);
        self.mouse = settings.mouse.unwrap_or(self.mouse);
        self.keymap = settings.keymap;
        self.palettes = settings.palettes;
        self
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
