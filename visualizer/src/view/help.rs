//! The help: every key, and what the marks mean.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Clear, Paragraph};

use super::text;
use super::theme::Theme;
use crate::state::keys::BINDINGS;

/// Draws the help over the middle of `area`.
pub(super) fn render(frame: &mut Frame<'_>, area: Rect, theme: Theme) {
    let mut lines: Vec<Line<'_>> = BINDINGS
        .iter()
        .map(|b| {
            Line::from(vec![
                Span::styled(text::left(b.keys, 21), theme.title()),
                Span::raw(format!(" {}", b.does)),
            ])
        })
        .collect();
    if area.height >= lines.len() as u16 + 6 {
        lines.push(Line::raw(""));
        lines.push(Line::raw(
            "Origins: local = the process's own memory process; intra = another",
        ));
        lines.push(Line::raw(
            "one of the group; inter = outside the group, through link processes.",
        ));
    }
    let width = 76.min(area.width);
    let height = (lines.len() as u16 + 2).min(area.height);
    let inside = Rect {
        x: area.x + (area.width - width) / 2,
        y: area.y + (area.height - height) / 2,
        width,
        height,
    };
    let block = Block::bordered()
        .title(" Keys ")
        .title_bottom(" ? or Esc closes ");
    frame.render_widget(Clear, inside);
    frame.render_widget(Paragraph::new(lines).block(block), inside);
}
