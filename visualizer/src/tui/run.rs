//! The loop: keys, answers, and the end of the run come in; the screen is drawn when something
//! changed.

use std::fmt;
use std::future::pending;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use crossterm::event::{Event as Input, MouseButton, MouseEvent, MouseEventKind};
use dosmos_client::Run;
use futures::{Stream, StreamExt};
use ratatui::Terminal;
use ratatui::backend::Backend;
use tokio::sync::oneshot;

use super::news::News;
use super::options::{Copy, Drawn, Error, Event, Options};
use super::poll::Poller;
use super::runs::{Done, Jobs, Opened};
use super::{figures, save};
use crate::state::{Effect, State};
use crate::view::{self, Theme};

/// The run that is shown, and the thread that asks it.
struct Shown {
    run: Run,
    poller: Poller,
    /// Of a run that was opened here.
    _alive: Option<oneshot::Sender<()>>,
}

impl Shown {
    fn start(run: Run, state: &State, refresh: Duration) -> Result<Self, Error> {
        let poller = Poller::start(run.clone(), state.request(), refresh)?;
        Ok(Self {
            run,
            poller,
            _alive: None,
        })
    }
}

/// What the run reports next; nothing as long as there is none.
async fn news(shown: &mut Option<Shown>) -> Option<News> {
    match shown {
        Some(shown) => shown.poller.next().await,
        None => pending().await,
    }
}

/// The loop of [`super::run`] with any terminal and any input. It ends when the user quits, when the
/// input ends, or when `options.cancel` fires.
///
/// # Errors
/// If the terminal or its input fails.
pub async fn drive<B, S>(
    mut terminal: Terminal<B>,
    mut input: S,
    run: impl Into<Option<Run>>,
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
    let run = run.into();
    let shown = run.map(|run| Shown::start(run, &state, options.refresh));
    let mut shown = shown.transpose()?;
    if shown.is_none() {
        state.choose_run(true);
    }
    let mut jobs = Jobs::default();
    carry_out(
        &mut state,
        shown.as_ref(),
        &mut jobs,
        &options.runs,
        &mut None,
    );
    let mut finished = options.finished.unwrap_or_else(never);
    let mut running = true;
    let mut cancel = options.cancel.unwrap_or_else(never);
    let mut drawn = options.drawn;
    let mut copy = options.copy;
    let mut answers = 0;
    while !state.leaving.is_done() {
        if let Some(shown) = &shown {
            shown.poller.want(state.request());
        }
        let begun = Instant::now();
        let theme = Theme::from(state.look);
        terminal
            .draw(|frame| view::render(frame, &state, theme))
            .map_err(failed)?;
        if let Some(drawn) = &mut drawn {
            let received = shown.as_ref().map(|s| s.run.source().received_bytes());
            drawn(Drawn {
                took: begun.elapsed(),
                received: received.unwrap_or(0),
                answers,
            });
        }
        tokio::select! {
            event = input.next() => match event {
                Some(event) => take_input(&mut state, &event?),
                None => break,
            },
            news = news(&mut shown) => match news.ok_or(Error::Asking)? {
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
            done = jobs.next() => match done {
                Done::Listed(folder, runs) => state.runs.take(folder, runs),
                Done::Opened(Ok(opened)) if state.runs.opening().is_some() => {
                    let Opened { run, title, alive } = opened;
                    state = elsewhere(state, title);
                    let other = Shown::start(run, &state, options.refresh)?;
                    shown = Some(Shown { _alive: Some(alive), ..other });
                    // That was how the run before ends.
                    (running, answers) = (false, 0);
                }
                // Given up meanwhile.
                Done::Opened(Ok(_)) => {}
                Done::Opened(Err(why)) => state.runs.fail(why),
            },
            () = &mut cancel => break,
        }
        carry_out(
            &mut state,
            shown.as_ref(),
            &mut jobs,
            &options.runs,
            &mut copy,
        );
    }
    Ok(())
}

/// The first screen of another run: the settings stay.
fn elsewhere(state: State, title: String) -> State {
    let mut other = State::new(title, state.size);
    other.look = state.look;
    other.palettes = state.palettes;
    other.keymap = state.keymap;
    other
}

/// Does what the state asks for.
fn carry_out(
    state: &mut State,
    shown: Option<&Shown>,
    jobs: &mut Jobs,
    folder: &Path,
    copy: &mut Option<Copy>,
) {
    for effect in state.output.take_effects() {
        match effect {
            Effect::Record(selection) => {
                if let Some(shown) = shown {
                    shown.poller.order(selection);
                }
            }
            Effect::Save(file) => write(state, &file),
            Effect::Copy(text) => {
                if let Some(copy) = copy
                    && let Err(e) = copy(&text)
                {
                    state.output.complain(format!("cannot copy: {e}"));
                }
            }
            Effect::ListRuns => {
                let run = shown.and_then(|shown| shown.run.directory());
                let its = run.as_deref().and_then(Path::parent);
                jobs.list(its.unwrap_or(folder).to_owned(), run);
            }
            Effect::OpenRun(path) => jobs.open(path),
        }
    }
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
