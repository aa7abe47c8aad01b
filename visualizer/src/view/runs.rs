//! The runs of a folder, over the middle of the screen.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::Style;
use ratatui::text::Line;
use ratatui::widgets::{Block, Clear, Paragraph};

use super::table::{self, Column};
use super::theme::Theme;
use crate::state::{Action, ListedRun, State};
use dosmos_client::text;

/// The widest the list gets.
const WIDTH: u16 = 120;
/// Lines that an error may take.
const ERROR: usize = 3;

/// The frame, the table with its titles, what is said below.
pub(super) fn layout(state: &State, area: Rect) -> [Rect; 3] {
    let width = area.width.min(WIDTH);
    let said = said(state, usize::from(width).saturating_sub(2)).len() as u16;
    let rows = u16::try_from(state.runs.rows().len()).unwrap_or(u16::MAX);
    // The borders, the titles.
    let height = rows.max(1).saturating_add(3 + said).min(area.height);
    let frame = Rect {
        x: area.x + (area.width - width) / 2,
        y: area.y + (area.height - height) / 2,
        width,
        height,
    };
    let inside = Block::bordered().inner(frame);
    let [list, below] =
        Layout::vertical([Constraint::Min(1), Constraint::Length(said)]).areas(inside);
    [frame, list, below]
}

pub(super) fn render(frame: &mut Frame<'_>, area: Rect, state: &State, theme: Theme) {
    let [outside, list, below] = layout(state, area);
    let folder = text::fit_end(state.runs.folder(), usize::from(outside.width) / 2);
    let title = match folder.as_str() {
        "" => " Runs ".to_owned(),
        folder => format!(" Runs in {folder} "),
    };
    let keys = |actions: &[Action]| state.keymap.short(actions);
    let away = if state.runs.alone() { "quit" } else { "close" };
    let hint = format!(
        " {} select · {} open · {} {away} ",
        keys(&[Action::Up, Action::Down]),
        keys(&[Action::Enter]),
        keys(&[Action::Back]),
    );
    let block = Block::bordered().title(title).title_bottom(hint);
    frame.render_widget(Clear, outside);
    frame.render_widget(block, outside);
    frame.render_widget(Paragraph::new(rows(state, theme, list)), list);
    let style = match state.runs.error() {
        Some(_) => theme.bad(),
        None => theme.section(),
    };
    let said = said(state, usize::from(below.width)).into_iter();
    let said: Vec<Line> = said.map(|line| Line::styled(line, style)).collect();
    frame.render_widget(Paragraph::new(said), below);
}

/// What is being waited for, what went wrong, otherwise the selected run in full.
fn said(state: &State, width: usize) -> Vec<String> {
    let runs = &state.runs;
    let words = match (runs.error(), runs.opening()) {
        (Some(why), _) => why.to_owned(),
        (None, Some(name)) => format!("opening {name} …"),
        (None, None) if runs.listing() => "reading the folder …".to_owned(),
        (None, None) if runs.rows().is_empty() => "There is no run in this folder.".to_owned(),
        (None, None) => {
            // One line, so that the list does not jump.
            let selected = runs.rows().selected();
            let line = selected.map(|run| format!(" {}: {}", run.name, run.end));
            return line.iter().map(|line| text::fit(line, width)).collect();
        }
    };
    let mut lines = text::wrap(&words, width.saturating_sub(1));
    if lines.len() > ERROR {
        let rest = lines.split_off(ERROR - 1).join(" ");
        lines.push(text::fit(&rest, width.saturating_sub(1)));
    }
    lines.into_iter().map(|line| format!(" {line}")).collect()
}

fn rows(state: &State, theme: Theme, area: Rect) -> Vec<Line<'static>> {
    let width = usize::from(area.width);
    let program = (width / 6).clamp(8, 20);
    let left = width.saturating_sub(1 + 20 + program + 3);
    let name = (left * 3 / 5).clamp(10, 40);
    let columns = [
        Column::names("RUN", name),
        Column::names("STARTED", 19),
        Column::names("PROGRAM", program),
        Column::names("END", left.saturating_sub(name)),
    ];
    let mut lines = vec![table::titles(&columns, theme.title())];
    let runs = state.runs.rows();
    for at in runs.visible(usize::from(area.height).saturating_sub(1)) {
        let (marker, base) = table::selection(at == runs.position(), theme);
        lines.push(table::row(&columns, cells(&runs[at], theme), marker, base));
    }
    lines
}

fn cells(run: &ListedRun, theme: Theme) -> [(String, Style); 4] {
    let name = match run.here {
        true => format!("{} (shown)", run.name),
        false => run.name.clone(),
    };
    let program = match run.program.as_str() {
        "" => "–",
        program => program,
    };
    [
        (name, theme.title()),
        (run.started.clone(), Style::new()),
        (program.to_owned(), Style::new()),
        (run.end.clone(), Style::new()),
    ]
}
