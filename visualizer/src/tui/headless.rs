//! The terminal without a terminal: everything is drawn and encoded as for a real one, and thrown
//! away. For measurements.

use std::io::{self, Write};
use std::time::Duration;

use crossterm::event::{Event as Input, KeyCode, KeyEvent, KeyModifiers};
use dosmos_client::Run;
use futures::{Stream, StreamExt};
use ratatui::Terminal;
use ratatui::backend::{Backend, ClearType, CrosstermBackend, WindowSize};
use ratatui::buffer::Cell;
use ratatui::layout::{Position, Size};

use super::options::{Error, Options};
use super::run::drive;

/// The loop of [`super::run`] on a screen of `size` columns and rows that nobody sees.
///
/// # Errors
/// If the input fails.
pub async fn headless<S>(
    run: Run,
    size: (u16, u16),
    input: S,
    options: Options,
) -> Result<(), Error>
where
    S: Stream<Item = io::Result<Input>> + Unpin,
{
    let backend = Nowhere {
        inner: CrosstermBackend::new(Discard),
        size: Size::new(size.0, size.1),
    };
    drive(Terminal::new(backend)?, input, run, options).await
}

/// A user who presses some keys, then one again and again with a pause before each, for so long.
pub fn keys(
    first: impl IntoIterator<Item = KeyCode>,
    held: KeyCode,
    pause: Duration,
    length: Duration,
) -> impl Stream<Item = io::Result<Input>> + Unpin {
    let press = |code| Ok(Input::Key(KeyEvent::new(code, KeyModifiers::NONE)));
    let first: Vec<io::Result<Input>> = first.into_iter().map(press).collect();
    let end = tokio::time::Instant::now() + length;
    let held = futures::stream::unfold((), move |()| async move {
        tokio::time::sleep(pause).await;
        (tokio::time::Instant::now() < end).then(|| (press(held), ()))
    });
    futures::stream::iter(first).chain(held).boxed()
}

/// Takes all bytes, as a terminal that is never slow.
struct Discard;

impl Write for Discard {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(std::hint::black_box(bytes).len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

struct Nowhere {
    inner: CrosstermBackend<Discard>,
    size: Size,
}

impl Backend for Nowhere {
    type Error = io::Error;
    fn draw<'a, I: Iterator<Item = (u16, u16, &'a Cell)>>(&mut self, content: I) -> io::Result<()> {
        self.inner.draw(content)
    }
    fn hide_cursor(&mut self) -> io::Result<()> {
        self.inner.hide_cursor()
    }
    fn show_cursor(&mut self) -> io::Result<()> {
        self.inner.show_cursor()
    }
    fn get_cursor_position(&mut self) -> io::Result<Position> {
        Ok(Position::default())
    }
    fn set_cursor_position<P: Into<Position>>(&mut self, position: P) -> io::Result<()> {
        self.inner.set_cursor_position(position)
    }
    fn clear(&mut self) -> io::Result<()> {
        self.inner.clear()
    }
    fn clear_region(&mut self, clear: ClearType) -> io::Result<()> {
        self.inner.clear_region(clear)
    }
    fn size(&self) -> io::Result<Size> {
        Ok(self.size)
    }
    fn window_size(&mut self) -> io::Result<WindowSize> {
        Ok(WindowSize {
            columns_rows: self.size,
            pixels: Size::default(),
        })
    }
    fn flush(&mut self) -> io::Result<()> {
        Backend::flush(&mut self.inner)
    }
}
