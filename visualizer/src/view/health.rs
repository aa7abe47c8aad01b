//! The health of the monitoring: event managers, their processes, and what watching costs.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::Style;
use ratatui::text::Line;
use ratatui::widgets::Paragraph;

use dosmos_proto::Nanos;

use super::message::message;
use super::table::{self, Column};
use super::theme::Theme;
use crate::state::State;
use crate::state::health::{Manager, Process, Row, recorded};
use dosmos_client::text;

/// Heading, table, detail.
pub(super) fn layout(area: Rect) -> [Rect; 3] {
    let rows = [
        Constraint::Length(1),
        Constraint::Min(3),
        Constraint::Length(2),
    ];
    Layout::vertical(rows).areas(area)
}

pub(super) fn render(frame: &mut Frame<'_>, area: Rect, state: &State, theme: Theme) {
    if state.health.is_empty() {
        let text = match state.filter() {
            Some(_) => "No process matches the filter.".to_owned(),
            None => finished(state),
        };
        return message(frame, area, &text);
    }
    let [top, list, below] = layout(area);
    frame.render_widget(Paragraph::new(heading(state, theme)), top);
    frame.render_widget(Paragraph::new(rows(state, theme, list)), list);
    frame.render_widget(Paragraph::new(detail(state, theme, below)), below);
}

/// A run without event managers: how it was started and how it ended.
fn finished(state: &State) -> String {
    let mut text =
        "No event manager is running: this is a finished run, read from its stores.\n\n".to_owned();
    for (what, is) in state.data.launch.lines() {
        let line = format!("{what}: {is}\n");
        text += &line;
    }
    text
}

/// What is recorded, and how much data this terminal receives.
fn heading(state: &State, theme: Theme) -> Line<'static> {
    let traffic = match state.data.traffic() {
        Some(rate) if rate > 0.0 => format!(" · this terminal: {}/s", text::bytes(rate as u64)),
        _ => String::new(),
    };
    let words = format!(" {}{traffic}", recorded(&state.data.status));
    Line::styled(text::fit(&words, usize::from(state.size.0)), theme.title())
}

fn rows(state: &State, theme: Theme, area: Rect) -> Vec<Line<'static>> {
    let width = usize::from(area.width);
    let name = width
        .saturating_sub(7 + 5 + 7 + 7 + 8 + 5 + 7 + 8 + 8 + 1)
        .clamp(10, 36);
    let columns = [
        Column::names("MANAGER, PROCESS", name),
        Column::figures("RECORDS", 7),
        Column::figures("NOW/s", 5),
        Column::figures("DROPPED", 7),
        Column::figures("LAG", 7),
        Column::figures("PENDING", 8),
        Column::figures("CPU", 5),
        Column::figures("MONITOR", 7),
        Column::figures("CLOCK", 8),
    ];
    let mut lines = vec![table::titles(&columns, theme.title())];
    let seen = usize::from(area.height).saturating_sub(1);
    for i in state.health.visible(seen) {
        let selected = i == state.health.position();
        let (marker, base) = table::selection(selected, theme);
        let cells = match &state.health[i] {
            Row::Manager(m) => manager(m, theme),
            Row::Process(p) => process(p, theme),
        };
        lines.push(table::row(&columns, cells, marker, base));
    }
    lines
}

fn lost(n: u64, theme: Theme) -> (String, Style) {
    let style = if n > 0 { theme.bad() } else { theme.faint() };
    (text::count(n), style)
}

fn share(of: Option<f64>) -> String {
    match of {
        None => "–".to_owned(),
        Some(p) if p > 0.0 && p < 0.0995 => format!("{:.1}%", 100.0 * p),
        Some(p) => format!("{:.0}%", 100.0 * p),
    }
}

fn manager(m: &Manager, theme: Theme) -> Vec<(String, Style)> {
    let name = if m.trouble.is_empty() {
        theme.good()
    } else {
        theme.bad()
    };
    vec![
        (m.name.clone(), name.patch(theme.title())),
        (text::count(m.records), Style::new()),
        (String::new(), Style::new()),
        lost(m.lost, theme),
        (text::time_or_dash(m.lag), Style::new()),
        (text::count(m.pending), Style::new()),
        (share(m.cpu), Style::new()),
        (String::new(), Style::new()),
        (String::new(), Style::new()),
    ]
}

fn process(p: &Process, theme: Theme) -> Vec<(String, Style)> {
    let note = match (p.connected, p.link) {
        (false, _) => " (lost)",
        (true, true) => " (link)",
        _ => "",
    };
    let name = if p.connected {
        Style::new()
    } else {
        theme.bad()
    };
    let costly = match p.costs {
        Some(c) if c.monitor >= 0.1 => theme.bad(),
        _ => theme.wait(),
    };
    vec![
        (format!("  {}{note}", p.name), name),
        (text::count(p.recorded), Style::new()),
        (text::rate(p.costs.map(|c| c.records)), Style::new()),
        lost(p.lost, theme),
        (text::time_or_dash(p.lag), Style::new()),
        (text::bytes(p.unsent), Style::new()),
        (share(p.costs.and_then(|c| c.cpu)), Style::new()),
        (share(p.costs.map(|c| c.monitor)), costly),
        (format!("±{}", text::time(p.clock_error)), theme.faint()),
    ]
}

/// More about the selected row.
fn detail(state: &State, theme: Theme, area: Rect) -> Vec<Line<'static>> {
    let width = usize::from(area.width).saturating_sub(1);
    let words = match state.health.selected() {
        None => Vec::new(),
        Some(Row::Manager(m)) => {
            let each = m.stored.checked_div(m.records);
            let each = each.map_or_else(String::new, |b| format!(", {b} bytes per record"));
            let mut lines = vec![format!(
                "{}: {} on disk in {}{each} · {} received but not on disk yet",
                m.name,
                text::plural(m.records, "record"),
                text::bytes(m.stored),
                text::count(m.pending),
            )];
            if !m.trouble.is_empty() {
                lines.push(m.trouble.clone());
            }
            lines
        }
        Some(Row::Process(p)) => vec![
            match p.cpu {
                Some(cpu) => format!(
                    "{}: {} of {} CPU time since its start was used for monitoring ({})",
                    p.name,
                    text::time(p.monitor),
                    text::time(cpu),
                    text::percent(p.monitor.0, cpu.0),
                ),
                None => format!(
                    "{}: {} of CPU time since its start was used for monitoring; it is within its application process, whose CPU time \
                     is not known apart",
                    p.name,
                    text::time(p.monitor),
                ),
            },
            format!(
                "clock offset {} ± {} · {} of records not acknowledged",
                signed(p.offset),
                text::time(p.clock_error),
                text::bytes(p.unsent),
            ),
        ],
    };
    let line = |l: &String| Line::styled(format!(" {}", text::fit(l, width)), theme.section());
    words.iter().map(line).collect()
}

fn signed(nanos: i64) -> String {
    let sign = if nanos < 0 { "−" } else { "" };
    format!("{sign}{}", text::time(Nanos(nanos.unsigned_abs())))
}
