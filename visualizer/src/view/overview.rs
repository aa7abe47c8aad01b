//! The overview: groups and their processes with rates and origins; below, the event managers.

use dosmos_proto::{ApId, Component, Nanos, PhaseTimes};
use dosmos_trace::Origin;
use dosmos_trace::query::EmpStatus;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

use super::message::message;
use super::table::{self, Column};
use super::theme::Theme;
use super::{phases, stacked};
use crate::state::pace::Paced;
use crate::state::tree::{Count, Node, Row};
use crate::state::{Screen, State};
use dosmos_analysis::{Efficiency, Thresholds};
use dosmos_client::text;

/// Efficiency, tree, detail, event managers.
pub(super) fn layout(state: &State, area: Rect) -> [Rect; 4] {
    let details = detail(state, Theme::default(), area).len();
    let managers = managers(state, Theme::default(), area).len();
    parts(details, managers, area)
}

fn parts(details: usize, managers: usize, area: Rect) -> [Rect; 4] {
    let rows = [
        Constraint::Length(1),
        Constraint::Min(3),
        Constraint::Length(details as u16),
        Constraint::Length(managers as u16),
    ];
    Layout::vertical(rows).areas(area)
}

pub(super) fn render(frame: &mut Frame<'_>, area: Rect, state: &State, theme: Theme) {
    if state.tree.rows().is_empty() {
        return message(frame, area, "No processes are known yet.");
    }
    if state.phases.shown() {
        let [above, below] = phases::layout(state, area);
        let [top, tree, ..] = parts(0, 0, above);
        frame.render_widget(Paragraph::new(efficiency(state, theme)), top);
        frame.render_widget(Paragraph::new(tree_lines(state, theme, tree)), tree);
        return phases::render(frame, below, state, theme);
    }
    let managers = managers(state, theme, area);
    let details = detail(state, theme, area);
    let [top, tree, middle, bottom] = parts(details.len(), managers.len(), area);
    frame.render_widget(Paragraph::new(efficiency(state, theme)), top);
    frame.render_widget(Paragraph::new(tree_lines(state, theme, tree)), tree);
    frame.render_widget(Paragraph::new(details), middle);
    frame.render_widget(Paragraph::new(managers), bottom);
}

/// How much of the processes' time is computing, and where the rest goes.
fn efficiency(state: &State, theme: Theme) -> Line<'static> {
    let times = state.data.times.values();
    let Some(efficiency) = Efficiency::of(times.map(|t| &t.whole)) else {
        let why = match state.data.catalog.live {
            true => " efficiency: not measured yet",
            false => " efficiency unknown: recorded without times (recording was off, or imported)",
        };
        return Line::styled(why, theme.faint());
    };
    let good = efficiency.parallel >= Thresholds::default().efficiency;
    let style = if good { theme.good() } else { theme.bad() };
    Line::styled(format!(" {}", efficiency.line()), style)
}

/// A terminal with at least this many columns shows where the processes' time went; on others these columns are scrolled to.
const WITH_TIMES: usize = 120;
/// Columns of time by title. The rest of the time went into local accesses, declarations and waiting for a processor.
const TIMES: [(&str, &[Component]); 4] = [
    ("BUSY", &[Component::Busy]),
    ("FAULT", &[Component::Fault, Component::Cold]),
    ("LOCK", &[Component::Lock]),
    ("BARR", &[Component::Barrier]),
];

fn tree_lines(state: &State, theme: Theme, area: Rect) -> Vec<Line<'static>> {
    let width = usize::from(area.width);
    let times = width >= WITH_TIMES;
    // Accesses, rate, three shares, records dropped, where the time went, with gaps and marker.
    let figures = 8 + 7 + 3 * 5 + 7 + 7 + if times { TIMES.len() * 6 } else { 1 };
    let flexible = width.saturating_sub(figures + 1);
    let bar = (flexible * 2 / 5).clamp(4, 40);
    let name = flexible.saturating_sub(bar + 1);
    let rate = if state.data.catalog.live {
        "NOW/s"
    } else {
        "MEAN/s"
    };
    let mut columns = vec![
        Column::names("GROUP, PROCESS", name),
        Column::figures("ACCESSES", 8),
        Column::figures(rate, 7),
        Column::names("BY ORIGIN", bar),
        Column::figures("LOCAL", 5),
        Column::figures("INTRA", 5),
        Column::figures("INTER", 5),
        Column::figures("DROPPED", 7),
    ];
    let titled = TIMES.iter();
    columns.extend(titled.map(|(title, _)| Column::figures(title, 5)));
    let first = state.scrolled.of(Screen::Overview);
    let shown = table::shown(&columns, first, width);
    let seen: Vec<Column> = shown.iter().map(|at| columns[*at].clone()).collect();
    let mut titles = table::titles(&seen, theme.title());
    for (origin, column) in Origin::ALL.into_iter().zip(4..) {
        if let Some(at) = shown.iter().position(|at| *at == column) {
            table::patch(&mut titles, at, theme.origin(origin));
        }
    }
    let hidden = shown.last().is_some_and(|last| last + 1 < columns.len());
    table::mark_hidden(&mut titles, first > 0, hidden, theme);
    let mut lines = vec![titles];
    let room = usize::from(area.height).saturating_sub(1);
    let rows = state.tree.rows();
    for i in rows.visible(room) {
        // The keys are for the phases where they are shown.
        let selected = i == rows.position() && !state.phases.shown();
        lines.push(tree_line(state, &rows[i], (&seen, &shown), selected, theme));
    }
    lines
}

fn tree_line(
    state: &State,
    row: &Row,
    (columns, shown): (&[Column], &[usize]),
    selected: bool,
    theme: Theme,
) -> Line<'static> {
    let (marker, base) = table::selection(selected, theme);
    let indent = "  ".repeat(row.depth.min(8));
    let mark = match row.node {
        Node::Group(_) if row.folded => "▸ ",
        Node::Group(_) => "▾ ",
        _ => "",
    };
    let note = match (row.lost, row.link) {
        (true, _) => " (lost)",
        (false, true) => " (link)",
        _ => "",
    };
    let name = format!("{indent}{mark}{}{note}", row.label);
    let name_style = match row.node {
        _ if row.lost => theme.bad(),
        Node::Group(_) => theme.title(),
        Node::Mp(_) => Style::new(),
        Node::Ap(_) => theme.section(),
    };
    let figures = &row.figures;
    let process = !matches!(row.node, Node::Ap(_));
    let mut cells = vec![
        (name, name_style),
        (count(figures.accesses), Style::new()),
        (
            if row.link {
                String::new()
            } else {
                text::rate(figures.rate)
            },
            Style::new(),
        ),
    ];
    let bar_column = cells.len();
    cells.push((String::new(), Style::new()));
    for origin in Origin::ALL {
        let share = figures.origins.map(|o| {
            let all = o.iter().sum();
            text::percent(o[origin as usize - 1], all)
        });
        let unknown = if row.link { "" } else { "–" };
        let share = share.unwrap_or_else(|| unknown.to_owned());
        cells.push((share, theme.origin(origin)));
    }
    let lost = if process {
        count(figures.dropped)
    } else {
        String::new()
    };
    let lost_style = if figures.dropped.known().is_some_and(|n| n > 0) {
        theme.bad()
    } else {
        theme.faint()
    };
    cells.push((lost, lost_style));
    if let Node::Ap(ap) = row.node {
        let shares = TIMES.iter().map(|(_, parts)| time_share(state, ap, parts));
        cells.extend(shares.map(|share| (share, Style::new())));
    }
    cells.resize(8 + TIMES.len(), (String::new(), Style::new()));
    let seen = shown.iter().filter_map(|at| cells.get(*at).cloned());
    let mut line = table::row(columns, seen, marker, base);
    let bar_column = shown.iter().position(|at| *at == bar_column);
    if let (Some(origins), Some(bar_column)) = (figures.origins, bar_column) {
        put_bar(
            &mut line,
            bar_column,
            origins,
            columns[bar_column].width,
            theme,
        );
    }
    line
}

/// `–` if it is unknown.
fn count(n: Count) -> String {
    match n {
        Count::Unknown => "–".to_owned(),
        Count::AtLeast(n) => format!("≥{}", text::count(n)),
        Count::Exactly(n) => text::count(n),
    }
}

/// The share of its time that a process spent on some components; `–` if unknown.
fn time_share(state: &State, ap: ApId, parts: &[Component]) -> String {
    let Some(times) = state.data.times.get(&ap) else {
        return "–".to_owned();
    };
    share(&times.whole, parts)
}

fn share(times: &PhaseTimes, parts: &[Component]) -> String {
    let spent: u64 = parts.iter().map(|part| times.spent.time(*part).0).sum();
    text::percent(spent, times.wall.0)
}

/// Each component that took time, with its share.
fn shares(times: &PhaseTimes) -> String {
    let took = |c: &Component| times.spent.time(*c) > Nanos::ZERO;
    let parts = Component::ALL.into_iter().filter(took);
    let parts = parts.map(|c| format!("{} {}", c.name(), share(times, &[c])));
    parts.collect::<Vec<_>>().join(" ")
}

/// Replaces the empty cell of `column` by a bar. Cells alternate with gaps, after the marker.
fn put_bar(line: &mut Line<'static>, column: usize, origins: [u64; 3], width: usize, theme: Theme) {
    let at = 1 + 2 * column;
    let parts = stacked::shares(origins, width as u16, theme);
    let drawn: usize = parts.iter().map(|(t, _)| text::width(t)).sum();
    let mut spans: Vec<Span<'static>> = parts
        .into_iter()
        .map(|(part, style)| Span::styled(part, style))
        .collect();
    spans.push(Span::raw(" ".repeat(width.saturating_sub(drawn))));
    line.spans.splice(at..=at, spans);
}

/// Lines about the selected row.
const DETAIL: usize = 3;

/// More about the selected row; of an application process, where its time went, in all and in its longest
/// phase.
fn detail(state: &State, theme: Theme, area: Rect) -> Vec<Line<'static>> {
    let Some(row) = state.tree.rows().selected() else {
        return vec![Line::default(); DETAIL];
    };
    let mut lines = vec![about(state, row)];
    lines.extend(efficiency_of(state, row));
    lines.extend(pace(state, row));
    if let Node::Ap(ap) = row.node
        && let Some(times) = state.data.times.get(&ap)
    {
        lines.truncate(1);
        lines.push(format!("time: {}", shares(&times.whole)));
        if times.phases > 1 {
            lines.push(format!(
                "longest of {} phases, number {}, {}: {}",
                text::count(times.phases as u64),
                times.longest.phase,
                text::time(times.longest.wall),
                shares(&times.longest),
            ));
        }
    }
    // The same number of lines for every row and at any time, so that nothing jumps.
    lines.resize(DETAIL, String::new());
    let width = usize::from(area.width).saturating_sub(1);
    let line = |l: String| Line::styled(format!(" {}", text::fit(&l, width)), theme.section());
    lines.into_iter().map(line).collect()
}

/// The efficiency of the application processes of a group or a memory process.
fn efficiency_of(state: &State, row: &Row) -> Option<String> {
    let topology = &state.data.catalog.topology;
    let inside = |ap: ApId| match row.node {
        Node::Group(group) => {
            let its = topology.group_of_ap(ap);
            its.is_some_and(|its| topology.within(its, group))
        }
        Node::Mp(mp) => topology.ap(ap).is_some_and(|ap| ap.memory_process == mp),
        Node::Ap(_) => false,
    };
    let times = state.data.times.iter();
    let its = times.filter(|(ap, _)| inside(**ap));
    Efficiency::of(its.map(|(_, t)| &t.whole)).map(|e| e.line())
}

/// How the rate of the selected row went recently.
fn pace(state: &State, row: &Row) -> Option<String> {
    let topology = &state.data.catalog.topology;
    let rates = match row.node {
        Node::Group(group) => {
            let owners = topology.owners_in(Some(group)).map(Paced::Mp);
            state.data.paces.sum(owners)
        }
        Node::Mp(mp) => state.data.paces.sum([Paced::Mp(mp)]),
        Node::Ap(ap) => state.data.paces.sum([Paced::Ap(ap)]),
    };
    let most = rates.iter().copied().fold(0.0, f64::max);
    let line = stacked::sparkline(&rates);
    (rates.len() > 1 && most > 0.0).then(|| {
        format!(
            "accesses/s recently: {line} up to {}",
            text::rate(Some(most))
        )
    })
}

fn about(state: &State, row: &Row) -> String {
    let topology = &state.data.catalog.topology;
    match row.node {
        Node::Group(group) => {
            let mps = topology.owners_in(Some(group)).count() as u64;
            let aps = topology.aps_in(Some(group)).count() as u64;
            format!(
                "{}: {}, {} · Enter: fold or unfold",
                topology.group_name(group),
                mps_text(mps),
                aps_text(aps),
            )
        }
        Node::Mp(mp) => {
            let status = state.data.processes().find(|p| p.mp == mp);
            let details = status.map_or_else(
                || "status unknown: its event manager is not running".to_owned(),
                |s| process_details(s, row.link),
            );
            format!("{}: {details}", row.label)
        }
        Node::Ap(ap) => {
            if !state.data.knows_ap(ap) {
                return format!("{}: accesses unknown · Enter: history", row.label);
            }
            let its = state.data.by_ap.get(&ap).copied().unwrap_or_default();
            format!(
                "{}: {} reads, {} writes, {} acquires · Enter: history",
                row.label,
                text::count(its.counts.reads),
                text::count(its.counts.writes),
                text::count(its.counts.acquires),
            )
        }
    }
}

fn mps_text(n: u64) -> String {
    let es = if n == 1 { "" } else { "es" };
    format!("{} memory process{es}", text::count(n))
}

fn aps_text(n: u64) -> String {
    let es = if n == 1 { "" } else { "es" };
    format!("{} application process{es}", text::count(n))
}

fn process_details(s: &dosmos_trace::query::ProcessStatus, link: bool) -> String {
    let tail = format!(
        "unsent {} · CPU {} · clock ±{}",
        text::bytes(s.counters.buffered_bytes),
        text::time_or_dash(s.counters.cpu),
        text::time(s.clock_error),
    );
    if link {
        return format!(
            "forwarded {} · {tail}",
            text::plural(s.counters.forwarded, "message")
        );
    }
    format!(
        "{}, {} copies · {} remote requests · {tail}",
        text::plural(s.counters.objects, "object"),
        text::count(s.counters.copies),
        text::count(s.counters.served),
    )
}

/// The event managers, those with an error first, in at most a third of the screen.
fn managers(state: &State, theme: Theme, area: Rect) -> Vec<Line<'static>> {
    let width = usize::from(area.width);
    let managers = &state.data.status.event_managers;
    if managers.is_empty() {
        let stores = state.data.catalog.event_managers.join(", ");
        let line = format!(" Stores of: {stores} (no event manager is running)");
        return vec![Line::styled(text::fit(&line, width), theme.faint())];
    }
    let name = width
        .saturating_sub(8 + 8 + 9 + 7 + 9 + 9 + 8 + 7 + 1)
        .clamp(8, 30);
    let columns = [
        Column::names("EVENT MANAGER", name),
        Column::figures("RECORDS", 8),
        Column::figures("PENDING", 8),
        Column::figures("STORED", 9),
        Column::figures("CHUNKS", 7),
        Column::figures("SENT", 9),
        Column::figures("RECEIVED", 9),
        Column::figures("CPU", 8),
    ];
    let mut sorted: Vec<&EmpStatus> = managers.iter().collect();
    sorted.sort_by_key(|m| (m.trouble.is_empty(), &m.name));
    let room = usize::from(area.height / 3).max(2) - 1;
    let mut lines = vec![table::titles(&columns, theme.title())];
    for manager in sorted {
        lines.push(manager_line(manager, &columns, theme));
        if !manager.trouble.is_empty() {
            let trouble = format!("   {}: {}", manager.name, manager.trouble);
            lines.push(Line::styled(text::fit(&trouble, width), theme.bad()));
        }
    }
    if lines.len() > room + 1 {
        let hidden = lines.len() - room;
        lines.truncate(room);
        lines.push(Line::styled(
            format!(" … {hidden} more lines"),
            theme.faint(),
        ));
    }
    lines
}

fn manager_line(m: &EmpStatus, columns: &[Column], theme: Theme) -> Line<'static> {
    let name_style = if m.trouble.is_empty() {
        theme.good()
    } else {
        theme.bad()
    };
    let cells = [
        m.name.clone(),
        text::count(m.records),
        text::count(m.pending),
        text::bytes(m.stored_bytes),
        text::count(m.chunks),
        text::count(m.exchanged_out),
        text::count(m.exchanged_in),
        if m.cpu == Nanos::ZERO {
            "–".into()
        } else {
            text::time(m.cpu)
        },
    ];
    let styles = std::iter::once(name_style).chain(std::iter::repeat(Style::new()));
    table::row(columns, cells.into_iter().zip(styles), ' ', Style::new())
}
