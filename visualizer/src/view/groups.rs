//! Accesses of application processes (rows) to variables (columns), with the current and the proposed groups. Accesses
//! within a group are drawn like local ones, the others like inter-group ones: a good assignment has few of those.

use dosmos_analysis::groups::{GroupMatrix, MatrixAp, MatrixVariable};
use dosmos_trace::Origin;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

use super::findings;
use super::message::message;
use super::table;
use super::theme::Theme;
use crate::state::{Screen, State};
use dosmos_client::text;

/// Columns of names of processes, of their groups, and of a variable with its gap: what the names need, within limits.
#[derive(Clone, Copy)]
struct Widths {
    name: usize,
    group: usize,
    cell: usize,
}

impl Widths {
    fn of(matrix: &GroupMatrix, columns: &[usize], width: usize) -> Self {
        let longest = |names: &mut dyn Iterator<Item = &str>, least, most| {
            names.map(text::width).max().unwrap_or(0).clamp(least, most)
        };
        let name = longest(&mut matrix.aps.iter().map(|a| a.name.as_str()), 7, 24);
        // A sign before a group says that it is another one.
        let group = 1 + longest(&mut matrix.groups.iter().map(String::as_str), 5, 24);
        let mut names = columns.iter().map(|&v| matrix.variables[v].name.as_str());
        let cell = 1 + longest(&mut names, 8, 30);
        let room = width.saturating_sub(name + group + 3);
        let even = room.checked_div(columns.len()).unwrap_or(room);
        let cell = cell.min(even.max(12));
        Self { name, group, cell }
    }

    /// Columns before the first variable.
    fn before(self) -> usize {
        self.name + self.group + 3
    }
}

/// Heading, matrix, what the selected row says.
pub(super) fn layout(area: Rect) -> [Rect; 3] {
    let rows = [
        Constraint::Length(2),
        Constraint::Min(3),
        Constraint::Length(2),
    ];
    Layout::vertical(rows).areas(area)
}

/// Title rows above the first process: names of variables, and their groups.
pub(super) const TITLES: usize = 2;

pub(super) fn render(frame: &mut Frame<'_>, area: Rect, state: &State, theme: Theme) {
    let Some(analysed) = state.analysis.part() else {
        return message(frame, area, &findings::none_yet(state));
    };
    let matrix = &analysed.analysis.groups;
    if matrix.aps.is_empty() || matrix.variables.is_empty() {
        return message(frame, area, "No access to a variable in this time.");
    }
    let [top, body, below] = layout(area);
    let width = usize::from(area.width);
    frame.render_widget(Paragraph::new(heading(state, matrix, theme, width)), top);
    frame.render_widget(Paragraph::new(rows(state, matrix, theme, body)), body);
    frame.render_widget(Paragraph::new(detail(state, matrix, theme, width)), below);
}

fn heading(state: &State, matrix: &GroupMatrix, theme: Theme, width: usize) -> Vec<Line<'static>> {
    let shown = match (matrix.proposes_a_change(), state.analysis.proposed()) {
        (false, _) => "current groups; no better ones found".to_owned(),
        (true, false) => "CURRENT groups; Enter: proposed groups".to_owned(),
        (true, true) => "PROPOSED groups; Enter: current groups".to_owned(),
    };
    let (today, proposed) = (matrix.cost_today_ns, matrix.cost_proposed_ns);
    let time = |ns: f64| text::time(dosmos_proto::Nanos(ns.max(0.0) as u64));
    let saved = if matrix.proposes_a_change() && today > 0.0 {
        format!(
            "; with the proposed groups {} ({:.0}% less)",
            time(proposed),
            100.0 * (1.0 - proposed / today)
        )
    } else {
        String::new()
    };
    let costs = format!(" accesses cost {}{saved}", time(today));
    vec![
        Line::styled(text::fit(&format!(" {shown}"), width), theme.title()),
        Line::raw(text::fit(&costs, width)),
    ]
}

fn of_ap(ap: &MatrixAp, proposed: bool) -> usize {
    if proposed { ap.proposed } else { ap.today }
}

fn of_variable(variable: &MatrixVariable, proposed: bool) -> &[usize] {
    match proposed {
        true => &variable.proposed,
        false => &variable.today,
    }
}

fn group_name(matrix: &GroupMatrix, group: usize) -> String {
    matrix.groups.get(group).cloned().unwrap_or_default()
}

fn rows(state: &State, matrix: &GroupMatrix, theme: Theme, area: Rect) -> Vec<Line<'static>> {
    let width = usize::from(area.width);
    let passes = state.filters.passes(Screen::Groups);
    let mut columns: Vec<usize> = matrix
        .by_use()
        .into_iter()
        .filter(|&v| passes(&matrix.variables[v].name))
        .skip(state.analysis.column())
        .collect();
    let widths = Widths::of(matrix, &columns, width);
    columns.truncate(width.saturating_sub(widths.before()) / widths.cell);
    let proposed = state.analysis.proposed();
    let mut lines = titles(proposed, matrix, (&columns, widths), theme);
    let order = matrix.order(proposed);
    let seen = usize::from(area.height).saturating_sub(TITLES);
    for i in state.analysis.processes().visible(order.len(), seen) {
        let ap = order[i];
        let selected = i == state.analysis.processes().selected();
        lines.push(row(
            proposed,
            matrix,
            (&columns, widths),
            ap,
            selected,
            theme,
        ));
    }
    lines
}

fn titles(
    proposed: bool,
    matrix: &GroupMatrix,
    (columns, widths): (&[usize], Widths),
    theme: Theme,
) -> Vec<Line<'static>> {
    let head = format!(
        " {} {} ",
        text::left("PROCESS", widths.name),
        text::left("GROUP", widths.group)
    );
    let mut names = vec![Span::styled(head, theme.title())];
    let blank = " ".repeat(widths.before());
    let mut owners = vec![Span::raw(blank)];
    let cell = widths.cell;
    for &v in columns {
        let variable = &matrix.variables[v];
        let name = text::right(&text::fit_name(&variable.name, cell - 1), cell - 1);
        names.push(Span::styled(format!("{name} "), theme.title()));
        let groups = of_variable(variable, proposed);
        let moved = variable.today != variable.proposed;
        let its = match groups {
            [] => String::new(),
            [one] => last_part(&group_name(matrix, *one)),
            several => format!("{} groups", several.len()),
        };
        let mark = if moved && proposed { "→" } else { "" };
        let its = text::right(&format!("{mark}{its}"), cell - 1);
        let style = if moved { theme.wait() } else { theme.faint() };
        owners.push(Span::styled(format!("{its} "), style));
    }
    vec![Line::from(names), Line::from(owners)]
}

fn last_part(path: &str) -> String {
    let part = path.rsplit('/').next().unwrap_or_default();
    format!("/{part}")
}

fn row(
    proposed: bool,
    matrix: &GroupMatrix,
    (columns, widths): (&[usize], Widths),
    ap: usize,
    selected: bool,
    theme: Theme,
) -> Line<'static> {
    let its = &matrix.aps[ap];
    let (marker, base) = table::selection(selected, theme);
    let group = of_ap(its, proposed);
    let moved = its.today != its.proposed;
    let mark = if moved && proposed { "→" } else { "" };
    let place = format!("{mark}{}", group_name(matrix, group));
    let place_style = if moved { theme.wait() } else { theme.faint() };
    let mut spans = vec![
        Span::raw(marker.to_string()),
        Span::styled(
            text::left(&text::fit_name(&its.name, widths.name), widths.name),
            theme.title(),
        ),
        Span::raw(" "),
        Span::styled(
            text::left(&text::fit_name(&place, widths.group), widths.group),
            place_style,
        ),
        Span::raw(" "),
    ];
    for &v in columns {
        let n = matrix.accesses.get(ap).and_then(|row| row.get(v));
        let n = n.copied().unwrap_or(0);
        let owners = of_variable(&matrix.variables[v], proposed);
        spans.push(cell(n, owners.contains(&group), widths.cell, theme));
    }
    Line::from(spans).style(base)
}

fn cell(n: u64, near: bool, width: usize, theme: Theme) -> Span<'static> {
    if n == 0 {
        return Span::styled(format!("{} ", text::right("·", width - 1)), theme.faint());
    }
    let origin = if near { Origin::Local } else { Origin::Inter };
    let mark = if near { "" } else { "X" };
    let words = text::right(&format!("{mark}{}", text::count(n)), width - 1);
    Span::styled(format!("{words} "), theme.origin(origin))
}

/// The current and the proposed group of the selected process, and the legend.
fn detail(state: &State, matrix: &GroupMatrix, theme: Theme, width: usize) -> Vec<Line<'static>> {
    let order = matrix.order(state.analysis.proposed());
    let selected = order.get(state.analysis.processes().selected());
    let words = selected.map_or_else(String::new, |&ap| {
        let its = &matrix.aps[ap];
        let today = group_name(matrix, its.today);
        match its.today == its.proposed {
            true => format!(" {}: stays in {today}", its.name),
            false => {
                let proposed = group_name(matrix, its.proposed);
                format!(" {}: {today} → {proposed}", its.name)
            }
        }
    });
    let legend = Line::from(vec![
        Span::raw(" accesses: "),
        Span::styled("owner in the same group", theme.origin(Origin::Local)),
        Span::raw("  "),
        Span::styled(
            "X all owners in other groups",
            theme.origin(Origin::Inter).patch(Style::new()),
        ),
        Span::raw("   ← → others"),
    ]);
    vec![
        Line::styled(text::fit(&words, width), theme.section()),
        legend,
    ]
}
