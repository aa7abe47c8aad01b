//! State drawn to a frame. Pure: the same state gives the same picture.
//!
//! Invariant: every terminal size is drawn without a panic; one too small to be of use says so; and
//! where the data are incomplete, every screen says so.

mod areas;
mod ascii;
mod axis;
mod density;
mod event;
mod findings;
mod footer;
mod groups;
mod header;
mod health;
mod help;
mod histogram;
mod history;
mod hit;
mod message;
mod overview;
mod path;
mod phases;
mod runs;
mod stacked;
mod table;
mod theme;
mod title;
mod variables;

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::widgets::{Clear, Paragraph, Wrap};

use crate::state::{Screen, State};
pub use areas::SMALLEST;
use areas::parts;
pub use hit::hit;
use message::message;
pub use theme::Theme;

/// Draws `state`.
pub fn render(frame: &mut Frame<'_>, state: &State, theme: Theme) {
    draw(frame, state, theme);
    if theme.ascii {
        ascii::replace(frame.buffer_mut());
    }
}

fn draw(frame: &mut Frame<'_>, state: &State, theme: Theme) {
    let area = frame.area();
    if area.width < SMALLEST.0 || area.height < SMALLEST.1 {
        return too_small(frame, area);
    }
    if state.runs.alone() {
        return runs::render(frame, area, state, theme);
    }
    let head = header::lines(state, theme, area.width);
    let foot = footer::lines(state, theme, area.width);
    let [top, body, bottom] = parts(head.len(), foot.len(), area);
    frame.render_widget(Paragraph::new(head), top);
    frame.render_widget(Paragraph::new(foot), bottom);
    match state.navigation.screen() {
        _ if !state.data.answered => waiting(frame, body, state),
        Screen::Overview => overview::render(frame, body, state, theme),
        Screen::Variables => variables::render(frame, body, state, theme),
        Screen::Histogram => histogram::render(frame, body, state, theme),
        Screen::VariableHistory | Screen::ProcessHistory => {
            history::render(frame, body, state, theme);
        }
        Screen::Findings if state.path.shown() => path::render(frame, body, state, theme),
        Screen::Findings => findings::render(frame, body, state, theme),
        Screen::Groups => groups::render(frame, body, state, theme),
        Screen::Health => health::render(frame, body, state, theme),
    }
    said(frame, body, state, theme);
    if state.runs.shown() {
        runs::render(frame, area, state, theme);
    }
    if let Some(help) = &state.help {
        help::render(frame, area, help, state, theme);
    }
}

/// What was just said, over the end of `body`.
fn said(frame: &mut Frame<'_>, body: Rect, state: &State, theme: Theme) {
    let lines = footer::said(state, theme, body.width);
    let height = (lines.len() as u16).min(body.height);
    let area = Rect {
        y: body.bottom() - height,
        height,
        ..body
    };
    frame.render_widget(Clear, area);
    frame.render_widget(Paragraph::new(lines), area);
}

fn too_small(frame: &mut Frame<'_>, area: Rect) {
    let text = format!(
        "This terminal has {}×{} characters; dosmos needs {}×{}. Make it larger, or press q.",
        area.width, area.height, SMALLEST.0, SMALLEST.1
    );
    frame.render_widget(Paragraph::new(text).wrap(Wrap { trim: true }), area);
}

/// Before the first answer. Why there is none stands in the header.
fn waiting(frame: &mut Frame<'_>, area: Rect, state: &State) {
    let text = match state.data.error {
        None => "Waiting for the event managers …",
        Some(_) => "No response yet; trying again.",
    };
    message(frame, area, text);
}
