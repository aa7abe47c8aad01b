//! The help: every key and every command.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Clear, Paragraph};

use super::theme::Theme;
use crate::state::Page;
use crate::state::command::COMMANDS;
use crate::state::keys::BINDINGS;
use dosmos_client::text;

/// Draws the help over the middle of `area`: on its first page the keys, on its second the commands.
pub(super) fn render(frame: &mut Frame<'_>, area: Rect, page: Page, theme: Theme) {
    let entry = |name: &str, width: usize, does: &str| {
        Line::from(vec![
            Span::styled(text::left(name, width), theme.title()),
            Span::raw(format!(" {does}")),
        ])
    };
    let mut lines: Vec<Line<'_>> = match page {
        Page::Keys => BINDINGS.iter().map(|b| entry(b.keys, 21, b.does)).collect(),
        Page::Commands => COMMANDS
            .iter()
            .map(|c| entry(&format!(":{} {}", c.name, c.takes), 27, c.does))
            .collect(),
    };
    let more: &[&str] = match page {
        Page::Keys => &[
            "",
            "Origins: local = the process's own memory process; intra = another",
            "one of the group; inter = outside the group, through link processes.",
        ],
        Page::Commands => &[
            "",
            ":record [all|counters|off] [op=read,…] [var=grid*,…] [ap=ap0,…] [every=N]",
        ],
    };
    if area.height as usize >= lines.len() + more.len() + 2 {
        lines.extend(more.iter().map(|line| Line::raw(*line)));
    }
    let (title, next) = match page {
        Page::Keys => (" Keys ", " ? commands · Esc closes "),
        Page::Commands => (" Commands ", " ? or Esc closes "),
    };
    let inside = middle(area, 80, lines.len() as u16 + 2);
    let block = Block::bordered().title(title).title_bottom(next);
    frame.render_widget(Clear, inside);
    frame.render_widget(Paragraph::new(lines).block(block), inside);
}

fn middle(area: Rect, width: u16, height: u16) -> Rect {
    let (width, height) = (width.min(area.width), height.min(area.height));
    Rect {
        x: area.x + (area.width - width) / 2,
        y: area.y + (area.height - height) / 2,
        width,
        height,
    }
}
