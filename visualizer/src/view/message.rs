//! Messages in place of what cannot be shown.

use ratatui::Frame;
use ratatui::layout::{Alignment, Rect};
use ratatui::text::{Line, Text};
use ratatui::widgets::Paragraph;

/// A message in the middle of `area`, in place of what cannot be shown.
pub(super) fn message(frame: &mut Frame<'_>, area: Rect, text: &str) {
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
