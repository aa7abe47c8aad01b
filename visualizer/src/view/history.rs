//! Histories (DOSMOS-Trace, figures 10 and 11): lanes of three rows. `x` read and `+` cached read above the
//! line, `*` write below it, blocks where many share a column (`density`); on the line, full bars for waiting for a lock, half bars for waiting for
//! a release, and the sections between, lightly.

use dosmos_trace::Origin;
use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

use super::density::Most;
use super::histogram::title_line;
use super::message::message;
use super::theme::Theme;
use super::{axis, density, event};
use crate::state::lanes::{Cell, Lane};
use crate::state::window::Scale;
use crate::state::{Screen, State, lane_label};
use dosmos_client::text;

/// Rows of a lane.
const LANE: u16 = 3;
/// A wait is shown where it takes at least this share of a column.
const SHOWN: f64 = 0.25;

/// From this height on, legend and event inspector have lines of their own.
const BOTH: u16 = 26;

/// Heading, lanes, time axis, detail, legend, event inspector: on a low terminal the last two share their lines.
pub(super) fn layout(area: Rect) -> [Rect; 6] {
    let inspector = if area.height >= BOTH { 2 } else { 0 };
    let rows = [
        Constraint::Length(1),
        Constraint::Min(LANE),
        Constraint::Length(2),
        Constraint::Length(1),
        Constraint::Length(2),
        Constraint::Length(inspector),
    ];
    Layout::vertical(rows).areas(area)
}

/// The lane at a row of the area of lanes.
pub(super) fn lane_at(state: &State, lanes: Rect, y: u16) -> Option<usize> {
    let seen = usize::from(lanes.height / LANE).max(1);
    let visible = state.charts.lanes().visible(seen);
    let at = visible.start + usize::from(y.checked_sub(lanes.y)? / LANE);
    (at < visible.end).then_some(at)
}

pub(super) fn render(frame: &mut Frame<'_>, area: Rect, state: &State, theme: Theme) {
    let [top, body, times, detail, legend, inspector] = layout(area);
    let scale = state.charts.history().map(|h| h.scale);
    let heading = title_line(&target(state), state, scale, theme);
    frame.render_widget(Paragraph::new(heading), top);
    let (lanes, cursor) = (state.charts.lanes(), state.timeline.cursor());
    let (Some(scale), false) = (scale, lanes.is_empty()) else {
        return message(frame, body, &why_empty(state));
    };
    let seen = usize::from(body.height / LANE).max(1);
    let visible = lanes.visible(seen);
    let below = lanes.len() - visible.end;
    let most = Most::of(lanes);
    for (i, at) in visible.clone().enumerate() {
        let area = Rect {
            y: body.y + LANE * i as u16,
            height: LANE.min(body.height),
            ..body
        };
        let selected = at == lanes.position();
        draw_lane(
            frame.buffer_mut(),
            area,
            &lanes[at],
            (selected, most),
            theme,
        );
    }
    let left = body.x + lane_label(body.width);
    axis::cursor(frame.buffer_mut(), body, left, (scale, cursor), theme);
    times_and_scroll(frame, times, scale, (visible.start, below), theme);
    let chart = Rect {
        x: left,
        width: times.width.saturating_sub(left - times.x),
        ..times
    };
    axis::dragged(
        frame.buffer_mut(),
        chart,
        scale,
        state.timeline.dragged(),
        theme,
    );
    frame.render_widget(Paragraph::new(detail_line(state, theme, detail)), detail);
    if cursor.is_none() || inspector.height > 0 {
        frame.render_widget(Paragraph::new(legend_lines(most, theme)), legend);
    }
    if cursor.is_some() {
        let area = if inspector.height > 0 {
            inspector
        } else {
            legend
        };
        let width = usize::from(area.width).saturating_sub(1);
        let line = |l: String| Line::raw(format!(" {}", text::fit(&l, width)));
        let lines: Vec<Line<'_>> = event::lines(state).into_iter().map(line).collect();
        frame.render_widget(Paragraph::new(lines), area);
    }
}

/// Whose history is shown.
fn target(state: &State) -> String {
    let catalog = &state.data.catalog;
    if state.navigation.screen() == Screen::ProcessHistory {
        return match state.target().process {
            None => "No process".into(),
            Some(ap) => match catalog.topology.group_of_ap(ap) {
                None => catalog.topology.ap_name(ap),
                Some(group) => format!(
                    "{} in {}",
                    catalog.topology.ap_name(ap),
                    catalog.topology.group_name(group)
                ),
            },
        };
    }
    let shown = state.target();
    match (shown.variable, shown.object) {
        (None, _) => "No variable".into(),
        (Some(v), Some(o)) => format!("{}[{o}]", catalog.name_of(v)),
        (Some(v), None) => catalog.name_of(v),
    }
}

fn why_empty(state: &State) -> String {
    let catalog = &state.data.catalog;
    let of_process = state.navigation.screen() == Screen::ProcessHistory;
    if catalog.extent.is_none() {
        "No access has been recorded yet.".into()
    } else if state.charts.history().is_some() {
        "No access in this time, or none matches the filter. Press 0 for the whole run.".into()
    } else if !of_process && state.target().variable.is_none() {
        "No variable has been declared yet.".into()
    } else if of_process && state.target().process.is_none() {
        "No application process is known yet.".into()
    } else {
        "Loading …".into()
    }
}

fn times_and_scroll(
    frame: &mut Frame<'_>,
    area: Rect,
    scale: Scale,
    (above, below): (usize, usize),
    theme: Theme,
) {
    let chart = Rect {
        x: area.x + lane_label(area.width),
        width: area.width.saturating_sub(lane_label(area.width)),
        ..area
    };
    axis::draw(frame.buffer_mut(), chart, scale, theme.faint());
    let hidden = [(above, "above", 0), (below, "below", 1)];
    for (n, word, row) in hidden {
        if n > 0 && row < area.height {
            let label = text::left(&format!(" {} {word}", text::count(n as u64)), 11);
            let buffer = frame.buffer_mut();
            buffer.set_string(area.x, area.y + row, label, theme.title());
        }
    }
}

fn draw_lane(
    buffer: &mut Buffer,
    area: Rect,
    lane: &Lane,
    (selected, most): (bool, Most),
    theme: Theme,
) {
    let middle = area.y + area.height / 2;
    let marker = if selected { '▶' } else { ' ' };
    let width = usize::from(lane_label(area.width)) - 2;
    let label = format!(
        "{marker}{} ",
        text::right(&text::fit_name(&lane.label, width), width)
    );
    let style = if selected {
        theme.title()
    } else {
        Style::new()
    };
    buffer.set_string(area.x, middle, label, style);
    let left = area.x + lane_label(area.width);
    for (x, cell) in (left..area.right()).zip(&lane.cells) {
        if let Some(read) = cell.read {
            let sign = if read.all_cached() { '+' } else { 'x' };
            let (sign, style) = density::mark(&read, sign, most.reads, theme);
            put(buffer, x, area.y, sign, style);
        }
        let (sign, style) = on_the_line(cell, theme);
        put(buffer, x, middle, sign, style);
        if let (Some(write), true) = (cell.write, area.height > 2) {
            let (sign, style) = density::mark(&write, '*', most.writes, theme);
            put(buffer, x, area.y + 2, sign, style);
        }
    }
}

fn put(buffer: &mut Buffer, x: u16, y: u16, sign: char, style: Style) {
    if let Some(cell) = buffer.cell_mut((x, y)) {
        cell.set_char(sign).set_style(style);
    }
}

/// Waiting before sections, sections before nothing.
fn on_the_line(cell: &Cell, theme: Theme) -> (char, Style) {
    if cell.acquiring >= SHOWN {
        ('█', theme.wait())
    } else if cell.releasing >= SHOWN {
        ('▄', theme.wait())
    } else if cell.at_barrier >= SHOWN {
        ('▒', theme.wait())
    } else {
        match (cell.granted, cell.released) {
            (0, 0) if cell.holding >= 0.5 => ('─', theme.section()),
            (0, 0) => ('·', theme.faint()),
            (1, 0) => ('[', theme.section()),
            (0, 1) => (']', theme.section()),
            _ => ('=', theme.section()),
        }
    }
}

/// The selected lane at the cursor; without a cursor, its sums over the time shown.
fn detail_line(state: &State, theme: Theme, area: Rect) -> Line<'static> {
    let Some(lane) = state.charts.lanes().selected() else {
        return Line::default();
    };
    let cell = state.timeline.cursor().and_then(|at| {
        let column = axis::column_of(state.charts.history()?.scale, Some(at))?;
        Some((at, lane.cells.get(column)?))
    });
    let words = match cell {
        Some((at, cell)) => {
            let at = at - state.data.extent().from;
            let here = at_cursor(cell).join(" · ");
            format!("at {:.4} s · {}: {here}", at.as_secs_f64(), lane.label)
        }
        None => format!("{}: {} (time shown)", lane.label, totals(lane).join(" · ")),
    };
    let words = text::fit(&words, usize::from(area.width).saturating_sub(1));
    Line::styled(format!(" {words}"), theme.section())
}

/// What a column of a lane shows, in words.
fn at_cursor(cell: &Cell) -> Vec<String> {
    let mut parts = Vec::new();
    if let Some(read) = cell.read {
        let origin = read.origin;
        let cached = text::count(read.cached);
        let reads = text::plural(read.count, "read");
        parts.push(format!("{reads} ({cached} cached) {origin}"));
    }
    if let Some(write) = cell.write {
        let writes = text::plural(write.count, "write");
        parts.push(format!("{writes} {}", write.origin));
    }
    for (n, one) in [(cell.granted, "grant"), (cell.released, "release")] {
        if n > 0 {
            parts.push(text::plural(u64::from(n), one));
        }
    }
    let shares = [
        (cell.acquiring, "lock wait"),
        (cell.holding, "holding"),
        (cell.releasing, "releasing"),
        (cell.at_barrier, "at barrier"),
    ];
    for (share, what) in shares {
        if share > 0.0 {
            parts.push(format!("{what} {:.0}%", 100.0 * share.min(1.0)));
        }
    }
    if parts.is_empty() {
        parts.push("nothing".to_owned());
    }
    parts
}

fn totals(lane: &Lane) -> Vec<String> {
    let t = lane.totals;
    let mut parts = vec![format!("waited {}", text::time(t.wait))];
    if t.barriers > 0 {
        parts.push(text::plural(t.barriers, "barrier"));
    } else {
        let reads = text::plural(t.reads, "read");
        parts.push(format!("{reads} ({} cached)", text::count(t.optimized)));
        parts.push(text::plural(t.writes, "write"));
        parts.push(text::plural(t.acquires, "acquire"));
    }
    parts
}

fn legend_lines(most: Most, theme: Theme) -> Vec<Line<'static>> {
    let marks = vec![
        Span::raw(" x read  "),
        Span::styled("+", theme.mark(Origin::Local)),
        Span::raw(" cached read  * write  "),
        Span::styled("█", theme.wait()),
        Span::raw(" waiting for lock  "),
        Span::styled("▄", theme.wait()),
        Span::raw(" release  "),
        Span::styled("▒", theme.wait()),
        Span::raw(" barrier"),
    ];
    let meanings = vec![
        Span::styled(" [──]", theme.section()),
        Span::raw(" holding  "),
        Span::styled("=", theme.section()),
        Span::raw(" short sections  "),
        Span::styled("local", theme.mark(Origin::Local)),
        Span::raw(" "),
        Span::styled("intra-group", theme.mark(Origin::Intra)),
        Span::raw(" "),
        Span::styled("inter-group", theme.mark(Origin::Inter)),
        Span::raw(format!("  {}", density::legend(most, theme))),
    ];
    vec![Line::from(marks), Line::from(meanings)]
}
