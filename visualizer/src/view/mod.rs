//! State drawn to a frame. Pure: the same state gives the same picture.
//!
//! Invariant: every terminal size is drawn without a panic; one too small to be of use says so; and
//! where the data are incomplete, every screen says so.

mod axis;
mod header;
mod help;
mod histogram;
mod history;
mod overview;
mod stacked;
mod table;
pub mod text;
mod theme;
mod variables;

use ratatui::Frame;
use ratatui::layout::{Alignment, Constraint, Layout, Rect};
use ratatui::text::{Line, Text};
use ratatui::widgets::{Paragraph, Wrap};

use crate::state::{Screen, State};
pub use theme::Theme;

/// The smallest terminal that shows anything of use.
pub const SMALLEST: (u16, u16) = (60, 16);

/// Draws `state`.
pub fn render(frame: &mut Frame<'_>, state: &State, theme: Theme) {
    let area = frame.area();
    if area.width < SMALLEST.0 || area.height < SMALLEST.1 {
        return too_small(frame, area);
    }
    let head = header::lines(state, theme, area.width);
    let rows = [
        Constraint::Length(head.len() as u16),
        Constraint::Min(0),
        Constraint::Length(1),
    ];
    let [top, body, bottom] = Layout::vertical(rows).areas(area);
    frame.render_widget(Paragraph::new(head), top);
    frame.render_widget(
        Paragraph::new(header::footer(state, theme, area.width)),
        bottom,
    );
    match state.place.screen {
        _ if !state.data.answered => waiting(frame, body, state),
        Screen::Overview => overview::render(frame, body, state, theme),
        Screen::Variables => variables::render(frame, body, state, theme),
        Screen::Histogram => histogram::render(frame, body, state, theme),
        Screen::VariableHistory | Screen::ProcessHistory => {
            history::render(frame, body, state, theme);
        }
    }
    if state.help {
        help::render(frame, area, theme);
    }
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
        None => "Asking the event managers …",
        Some(_) => "No answer yet; asking again.",
    };
    message(frame, area, text);
}

/// A message in the middle of `area`, in place of what cannot be shown.
fn message(frame: &mut Frame<'_>, area: Rect, text: &str) {
    let lines: Vec<Line<'_>> = text.lines().map(Line::from).collect();
    let height = (lines.len() as u16).min(area.height);
    let middle = Rect {
        y: area.y + (area.height - height) / 2,
        height,
        ..area
    };
    let text = Text::from(lines);
    frame.render_widget(Paragraph::new(text).alignment(Alignment::Center), middle);
}
