//! The help, over the middle of the screen.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Clear, Paragraph};

use super::theme::Theme;
use crate::state::{Help, HelpLine, State};
use dosmos_client::text;

/// Columns of names.
const NAME: usize = 22;

pub(super) fn render(frame: &mut Frame<'_>, area: Rect, help: &Help, state: &State, theme: Theme) {
    let all = help.lines(state.navigation.screen(), &state.keymap, state.size);
    let (width, rows) = Help::room((area.width, area.height));
    let first = help.first(all.len(), (area.width, area.height));
    let seen = all.iter().skip(first).take(usize::from(rows));
    let lines: Vec<Line<'_>> = seen.map(|line| entry(line, theme)).collect();
    let last = first + lines.len();
    let title = format!(" Help: lines {}–{last} of {} ", first + 1, all.len());
    let below = match help.search() {
        (words, true) => format!(" search: {words}▏"),
        ("", false) => Help::keys(&state.keymap),
        (words, false) => format!(" with {words:?} ·{}", Help::keys(&state.keymap)),
    };
    let inside = middle(area, width + 4, lines.len() as u16 + 2);
    let block = Block::bordered().title(title).title_bottom(below);
    let block = block.padding(ratatui::widgets::Padding::horizontal(1));
    frame.render_widget(Clear, inside);
    frame.render_widget(Paragraph::new(lines).block(block), inside);
}

fn entry(line: &HelpLine, theme: Theme) -> Line<'static> {
    match line {
        HelpLine::Title(title) => Line::styled(title.clone(), theme.section().patch(theme.title())),
        HelpLine::Entry(name, does) => Line::from(vec![
            Span::styled(format!("{name}{}", pad(name)), theme.title()),
            Span::raw(format!(" {does}")),
        ]),
    }
}

fn pad(name: &str) -> String {
    " ".repeat(NAME.saturating_sub(text::width(name)))
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
