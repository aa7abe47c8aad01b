//! The phases of the run in the overview: a table by number, the one that lost most marked, and below it the selected one.

use dosmos_proto::Nanos;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::Style;
use ratatui::text::Line;
use ratatui::widgets::Paragraph;

use super::table::{self, Column};
use super::theme::Theme;
use crate::state::{Phase, State};
use dosmos_analysis::Thresholds;
use dosmos_client::{NO_BREAKDOWN, text};

/// The rest of the overview, and the phases with their titles and the lines about the selected one.
pub(super) fn layout(state: &State, area: Rect) -> [Rect; 2] {
    let needed = u16::try_from(state.phases.rows().len()).unwrap_or(u16::MAX);
    let most = (area.height * 3 / 5).max(4);
    let height = needed.max(1).saturating_add(2).min(most);
    Layout::vertical([Constraint::Min(3), Constraint::Length(height)]).areas(area)
}

/// The table with its titles, and the line about the selected phase.
pub(super) fn parts(area: Rect) -> [Rect; 2] {
    Layout::vertical([Constraint::Min(2), Constraint::Length(1)]).areas(area)
}

pub(super) fn render(frame: &mut Frame<'_>, area: Rect, state: &State, theme: Theme) {
    let width = usize::from(area.width);
    let rows = state.phases.rows();
    let Some(selected) = rows.selected() else {
        let why = text::wrap(&none(state), width.saturating_sub(2)).into_iter();
        let why: Vec<Line> = why
            .map(|line| Line::styled(format!(" {line}"), theme.faint()))
            .collect();
        return frame.render_widget(Paragraph::new(why), area);
    };
    let [list, below] = parts(area);
    let columns = [
        Column::names("PHASE", 16),
        Column::figures("TIME", 8),
        Column::figures("EFFICIENCY", 10),
        Column::figures("BALANCE", 7),
        Column::figures("COMMUNICATION", 13),
        Column::names("LARGEST LOSS", width.saturating_sub(60).clamp(12, 40)),
    ];
    let mut lines = vec![table::titles(&columns, theme.title())];
    for at in rows.visible(usize::from(list.height).saturating_sub(1)) {
        let (marker, base) = table::selection(at == rows.position(), theme);
        lines.push(table::row(&columns, cells(&rows[at], theme), marker, base));
    }
    frame.render_widget(Paragraph::new(lines), list);
    let line = Line::styled(
        text::fit(&format!(" {}", about(state, selected)), width),
        theme.section(),
    );
    frame.render_widget(Paragraph::new(line), below);
}

/// Why there is no table.
fn none(state: &State) -> String {
    match (state.data.times.is_empty(), state.data.catalog.live) {
        (true, true) => "efficiency of phases: not measured yet".to_owned(),
        (true, false) => format!("{NO_BREAKDOWN}."),
        (false, _) => "There is only one phase: no process has passed a barrier and gone on. \
                       Its efficiency is that of the run, above."
            .to_owned(),
    }
}

fn cells(phase: &Phase, theme: Theme) -> [(String, Style); 6] {
    let efficiency = &phase.efficiency;
    let good = efficiency.parallel >= Thresholds::default().efficiency;
    let (name, style) = match phase.worst {
        true => (format!("{} worst", phase.name), theme.bad()),
        false => (phase.name.clone(), Style::new()),
    };
    let loss = efficiency.lost.first();
    let loss = loss.map(|l| format!("{} {}", l.to.name(), share(l.share)));
    [
        (name, style),
        (text::time(Nanos(efficiency.span_ns)), Style::new()),
        (
            share(efficiency.parallel),
            if good { theme.good() } else { theme.bad() },
        ),
        (share(efficiency.load_balance), Style::new()),
        (share(efficiency.communication), Style::new()),
        (loss.unwrap_or_else(|| "–".to_owned()), Style::new()),
    ]
}

fn share(fraction: f64) -> String {
    format!("{:.0}%", 100.0 * fraction)
}

/// When the selected phase was, and where its time went.
fn about(state: &State, phase: &Phase) -> String {
    let start = state.data.extent().from;
    let from = phase.range.from - start;
    format!(
        "phase {} at {:.3} s: {}",
        phase.name,
        from.as_secs_f64(),
        phase.efficiency.line()
    )
}
