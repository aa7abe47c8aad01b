//! The loop: keys, answers, and the end of the run come in; the screen is drawn when something
//! changed.

use std::fmt;
use std::future::pending;
use std::io;
use std::path::Path;
use std::time::Instant;

use crossterm::event::{Event as Input, MouseButton, MouseEvent, MouseEventKind};
use dosmos_client::Run;
use futures::{Stream, StreamExt};
use ratatui::Terminal;
use ratatui::backend::Backend;

use super::news::News;
use super::options::{Drawn, Error, Event, Options};
use super::poll::Poller;
use super::{figures, save};
use crate::state::{Effect, State};
use crate::view::{self, Theme};

/// The loop of [`super::run`] with any terminal and any input. It ends when the user quits, when the
/// input ends, or when `options.cancel` fires.
///
/// # Errors
/// If the terminal or its input fails.
pub async fn drive<B, S>(
    mut terminal: Terminal<B>,
    mut input: S,
    run: Run,
    options: Options,
) -> Result<(), Error>
where
    B: Backend,
    B::Error: fmt::Display,
    S: Stream<Item = io::Result<Input>> + Unpin,
{
    let size = terminal.size().map_err(failed)?;
    let mut state = State::new(options.title, (size.width, size.height));
    state.look = options.look;
    state.keymap = options.keymap;
    state.palettes = options.palettes;
    state.leaving.ends(options.ask_before);
    let mut poller = Poller::start(run.clone(), state.request(), options.refresh)?;
    let mut finished = options.finished.unwrap_or_else(never);
    let mut running = true;
    let mut cancel = options.cancel.unwrap_or_else(never);
    let mut drawn = options.drawn;
    let mut copy = options.copy;
    let mut answers = 0;
    while !state.leaving.is_done() {
        poller.want(state.request());
        let begun = Instant::now();
        let theme = Theme::from(state.look);
        terminal
            .draw(|frame| view::render(frame, &state, theme))
            .map_err(failed)?;
        if let Some(drawn) = &mut drawn {
            let received = run.source().received_bytes();
            drawn(Drawn {
                took: begun.elapsed(),
                received,
                answers,
            });
        }
        tokio::select! {
            event = input.next() => match event {
                Some(event) => take_input(&mut state, &event?),
                None => break,
            },
            news = poller.next() => match news.ok_or(Error::Asking)? {
                News::Update(update) => {
                    answers += 1;
                    state.apply(*update);
                }
                News::Found(found) => state.take_found(found),
                News::Told(told) => tell(&mut state, told),
            },
            message = &mut finished, if running => {
                running = false;
                state.finish(message);
            }
            () = &mut cancel => break,
        }
        for effect in state.output.take_effects() {
            match effect {
                Effect::Record(selection) => poller.order(selection),
                Effect::Save(file) => write(&mut state, &file),
                Effect::Copy(text) => {
                    if let Some(copy) = &mut copy
                        && let Err(e) = copy(&text)
                    {
                        state.output.complain(format!("cannot copy: {e}"));
                    }
                }
            }
        }
    }
    Ok(())
}

/// Says what became of an order to record something else.
fn tell(state: &mut State, told: Result<u32, String>) {
    match told {
        Ok(1) => state.output.say("1 process records the new selection"),
        Ok(n) => state
            .output
            .say(format!("{n} processes record the new selection")),
        Err(why) => state.output.complain(why),
    }
}

/// Saves what is shown.
fn write(state: &mut State, file: &Path) {
    let is_svg = file.extension().is_some_and(|end| end == "svg");
    let content = if is_svg {
        save::svg(state)
    } else {
        figures::csv(state)
    };
    match std::fs::write(file, content) {
        Ok(()) => state.output.say(format!("saved {}", file.display())),
        Err(e) => state
            .output
            .complain(format!("cannot write {}: {e}", file.display())),
    }
}

fn never<T: Send + 'static>() -> Event<T> {
    Box::pin(pending())
}

fn failed(error: impl fmt::Display) -> Error {
    Error::Terminal(io::Error::other(error.to_string()))
}

fn take_input(state: &mut State, event: &Input) {
    match event {
        Input::Key(key) => state.key(*key),
        Input::Mouse(mouse) => take_mouse(state, *mouse),
        Input::Resize(width, height) => state.size = (*width, *height),
        _ => {}
    }
}

fn take_mouse(state: &mut State, mouse: MouseEvent) {
    let hit = || view::hit(state, mouse.column, mouse.row);
    match mouse.kind {
        MouseEventKind::Down(MouseButton::Left) => {
            if let Some(hit) = hit() {
                state.click(hit);
            }
        }
        MouseEventKind::Drag(MouseButton::Left) => {
            if let Some(hit) = hit() {
                state.drag(hit);
            }
        }
        MouseEventKind::Up(MouseButton::Left) => state.release(),
        MouseEventKind::ScrollUp => {
            let hit = hit();
            state.wheel(true, hit);
        }
        MouseEventKind::ScrollDown => {
            let hit = hit();
            state.wheel(false, hit);
        }
        _ => {}
    }
}
