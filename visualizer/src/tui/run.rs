//! The loop: keys, answers, and the end of the run come in; the screen is drawn when something
//! changed.

use std::fmt;
use std::future::pending;
use std::io;
use std::sync::Arc;

use crossterm::event::Event as Input;
use dosmos_trace::query::TraceSource;
use futures::{Stream, StreamExt};
use ratatui::Terminal;
use ratatui::backend::Backend;

use super::poll::Poller;
use super::{Error, Event, Options};
use crate::state::{State, keys};
use crate::view::{self, Theme};

/// The loop of [`super::run`] with any terminal and any input. It ends when the user quits, when the
/// input ends, or when `options.cancel` fires.
///
/// # Errors
/// If the terminal or its input fails.
pub async fn drive<B, S>(
    mut terminal: Terminal<B>,
    mut input: S,
    source: Arc<dyn TraceSource>,
    options: Options,
) -> Result<(), Error>
where
    B: Backend,
    B::Error: fmt::Display,
    S: Stream<Item = io::Result<Input>> + Unpin,
{
    let theme = Theme {
        colour: !options.no_color,
    };
    let size = terminal.size().map_err(failed)?;
    let mut state = State::new(options.title, (size.width, size.height));
    let mut poller = Poller::start(source, state.request(), options.refresh)?;
    let mut finished = options.finished.unwrap_or_else(never);
    let mut running = true;
    let mut cancel = options.cancel.unwrap_or_else(never);
    while !state.quit {
        poller.want(state.request());
        terminal
            .draw(|frame| view::render(frame, &state, theme))
            .map_err(failed)?;
        tokio::select! {
            event = input.next() => match event {
                Some(event) => take_input(&mut state, &event?),
                None => break,
            },
            update = poller.next() => state.apply(update.ok_or(Error::Asking)?),
            message = &mut finished, if running => {
                running = false;
                state.finish(message);
            }
            () = &mut cancel => break,
        }
    }
    Ok(())
}

fn never<T: Send + 'static>() -> Event<T> {
    Box::pin(pending())
}

fn failed(error: impl fmt::Display) -> Error {
    Error::Terminal(io::Error::other(error.to_string()))
}

fn take_input(state: &mut State, event: &Input) {
    match event {
        Input::Key(key) => {
            if let Some(action) = keys::action(*key) {
                state.handle(action);
            }
        }
        Input::Resize(width, height) => state.resize((*width, *height)),
        _ => {}
    }
}
