//! The table of variables. On a narrow terminal the columns that do not fit are scrolled to; the lines of the selected
//! variable below the table have them all.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::Style;
use ratatui::text::Line;
use ratatui::widgets::Paragraph;

use dosmos_proto::Nanos;
use dosmos_trace::Origin;
use dosmos_trace::meta::{Access, Times};
use dosmos_trace::query::table::SortKey;

use super::message::message;
use super::table::{self, Column};
use super::theme::Theme;
use crate::state::variables::VariableRow;
use crate::state::{Screen, State, VARIABLE_COLUMNS};
use dosmos_client::text;

/// A column of the table.
struct Field {
    title: &'static str,
    width: usize,
    right: bool,
    /// Sorts by this column.
    key: Option<SortKey>,
    content: fn(&VariableRow, Nanos) -> String,
}

/// A figure; with a key, the table can be sorted by it.
const fn figure(
    title: &'static str,
    width: usize,
    key: Option<SortKey>,
    content: fn(&VariableRow, Nanos) -> String,
) -> Field {
    Field {
        title,
        width,
        right: true,
        key,
        content,
    }
}

const fn words(
    title: &'static str,
    width: usize,
    content: fn(&VariableRow, Nanos) -> String,
) -> Field {
    Field {
        title,
        width,
        right: false,
        key: None,
        content,
    }
}

/// The name comes before these and takes what they leave. What matters most comes first: the rest is scrolled to.
static FIELDS: [Field; VARIABLE_COLUMNS] = [
    figure("TIME", 7, Some(SortKey::Time), |r, _| {
        text::time(r.times.total())
    }),
    figure("SHARE", 6, None, |r, all| {
        text::percent(r.times.total().0, all.0)
    }),
    figure("READS", 6, Some(SortKey::Reads), |r, _| {
        text::count(r.reads)
    }),
    figure("CACHED", 6, Some(SortKey::ReadsCopies), |r, _| {
        text::count(r.reads_copies)
    }),
    figure("WRITES", 6, Some(SortKey::Writes), |r, _| {
        text::count(r.writes)
    }),
    figure("ACQ", 6, Some(SortKey::Acquires), |r, _| {
        text::count(r.acquires)
    }),
    figure("INTER", 6, Some(SortKey::Inter), |r, _| {
        text::percent(r.origins[2], r.accesses())
    }),
    figure("DELAY", 6, Some(SortKey::Delayed), |r, _| {
        text::count(r.delayed)
    }),
    figure("WAIT", 7, Some(SortKey::Wait), |r, _| {
        text::time_or_dash(r.wait)
    }),
    figure("HOLD", 7, Some(SortKey::Hold), |r, _| {
        text::time_or_dash(r.hold)
    }),
    figure("P99", 7, None, |r, _| {
        text::time_or_dash(r.times.all().quantile(0.99))
    }),
    figure("MAX", 7, None, |r, _| text::time(r.times.all().longest)),
    figure("OBJ", 5, Some(SortKey::Objects), |r, _| {
        text::count(r.objects)
    }),
    figure("COPIES", 6, Some(SortKey::Copies), |r, _| {
        text::count(r.copies)
    }),
    words("TYPE", 14, |r, _| r.layout.clone()),
    words("GROUP", 14, |r, _| r.group.clone()),
    words("OWNER", 12, |r, _| r.owners.clone()),
];

/// The name has at least this many columns.
const NAME: usize = 16;
/// Beyond this many, the other names get their part.
const NAME_ENOUGH: usize = 24;

/// Table, detail of the selected variable.
pub(super) fn layout(area: Rect) -> [Rect; 2] {
    let rows = [Constraint::Min(3), Constraint::Length(7)];
    Layout::vertical(rows).areas(area)
}

pub(super) fn render(frame: &mut Frame<'_>, area: Rect, state: &State, theme: Theme) {
    let table = state.variables.page();
    if table.matched == 0 {
        let text = match (state.filter(), table.known) {
            (Some(_), 1..) => "No variable matches the filter.",
            _ => "No variable has been declared yet.",
        };
        return message(frame, area, text);
    }
    let [top, bottom] = layout(area);
    frame.render_widget(Paragraph::new(rows_of(state, theme, top)), top);
    frame.render_widget(Paragraph::new(detail(state, theme, bottom)), bottom);
}

/// The key of the column whose title is at `x`.
pub(super) fn column_at(state: &State, width: u16, x: u16) -> Option<SortKey> {
    let (fields, name, more) = fitting(state, usize::from(width));
    let mut end = 1 + name;
    if usize::from(x) <= end {
        return Some(SortKey::Name);
    }
    let field = fields.iter().find(|field| {
        end += 1 + field.width + if field.right { 0 } else { more };
        usize::from(x) <= end
    });
    field?.key
}

/// The fields seen, the width left for the name, and what each field of words gets beyond its own width.
fn fitting(state: &State, width: usize) -> (&'static [Field], usize, usize) {
    let first = state.scrolled.of(Screen::Variables).min(FIELDS.len() - 1);
    let mut taken = 1 + NAME;
    let fits = FIELDS[first..].iter().take_while(|field| {
        taken += 1 + field.width;
        // The last column but one is left for the sign that there are more.
        taken < width
    });
    let fields = &FIELDS[first..first + fits.count()];
    let taken: usize = fields.iter().map(|f| f.width + 1).sum();
    let left = width.saturating_sub(taken + 2);
    let words = fields.iter().filter(|f| !f.right).count();
    let spare = left.saturating_sub(NAME_ENOUGH);
    let more = (spare / (words + 1)).min(30);
    (fields, (left - more * words).min(60), more)
}

fn rows_of(state: &State, theme: Theme, area: Rect) -> Vec<Line<'static>> {
    let (fields, name, more) = fitting(state, usize::from(area.width));
    let all = state.data.catalog.process_time();
    // Names ascend, figures descend; reversed, the other way round.
    let arrow = |key: SortKey| match (key == SortKey::Name) != state.variables.reverse() {
        true => "▴",
        false => "▾",
    };
    let title = |title: &str, key: Option<SortKey>| match key {
        Some(key) if key == state.variables.sort() => format!("{}{title}", arrow(key)),
        _ => title.to_owned(),
    };
    let mut columns = vec![Column::names(&title("VARIABLE", Some(SortKey::Name)), name)];
    for field in fields {
        let title = title(field.title, field.key);
        columns.push(if field.right {
            Column::figures(&title, field.width)
        } else {
            Column::names(&title, field.width + more)
        });
    }
    let mut titles = table::titles(&columns, theme.title());
    let first = state.scrolled.of(Screen::Variables);
    let hidden = first + fields.len() < FIELDS.len();
    table::mark_hidden(&mut titles, first > 0, hidden, theme);
    let mut lines = vec![titles];
    let seen = usize::from(area.height).saturating_sub(1);
    for i in state.variables.visible(seen) {
        let selected = i == state.variables.position();
        let (marker, base) = table::selection(selected, theme);
        let Some(row) = state.variables.at(i) else {
            lines.push(Line::styled(format!("{marker}…"), base));
            continue;
        };
        let style = |f: &Field| match f.key {
            Some(SortKey::Inter) if row.origins[2] > 0 => theme.origin(Origin::Inter),
            Some(SortKey::ReadsCopies) => theme.good(),
            _ => Style::new(),
        };
        let first = (row.name.clone(), theme.title());
        let cells = fields.iter().map(|f| ((f.content)(row, all), style(f)));
        let cells = std::iter::once(first).chain(cells);
        lines.push(table::row(&columns, cells, marker, base));
    }
    lines
}

/// Where the table stands, and everything about the selected variable.
fn detail(state: &State, theme: Theme, area: Rect) -> Vec<Line<'static>> {
    let table = state.variables.page();
    let counted = match table.matched == table.known {
        true => format!(
            "{} of {}",
            text::count(state.variables.position() as u64 + 1),
            text::plural(table.known, "variable")
        ),
        false => format!(
            "{} of {} matching, of {}",
            text::count(state.variables.position() as u64 + 1),
            text::count(table.matched),
            text::plural(table.known, "variable")
        ),
    };
    let width = usize::from(area.width).saturating_sub(1);
    let counted = Line::styled(format!(" {}", text::fit(&counted, width)), theme.faint());
    let Some(row) = state.variables.selected() else {
        return vec![counted];
    };
    let [local, intra, inter] = row.origins;
    let all = row.accesses();
    let lines = [
        format!(
            "{}: {} · release: {} copies",
            row.name, row.layout, row.policy
        ),
        format!(
            "group {} · {}, {} copies now · owners {}",
            row.group,
            text::plural(row.objects, "object"),
            text::count(row.copies),
            row.owners
        ),
        format!(
            "{} accesses: {} local, {} intra, {} inter · wait {} · hold {}",
            text::count(all),
            text::percent(local, all),
            text::percent(intra, all),
            text::percent(inter, all),
            text::time_or_dash(row.wait),
            text::time_or_dash(row.hold),
        ),
        times(row, width),
        last(state, &row.last_acquires, "acquired"),
        last(state, &row.last_writes, "written"),
    ];
    let line = |l: &String| Line::styled(format!(" {}", text::fit(l, width)), theme.section());
    let mut all = vec![counted];
    all.extend(lines.iter().map(line));
    all
}

/// How long the accesses took, the operation that took most first.
fn times(row: &VariableRow, width: usize) -> String {
    let mut operations = row.times.by_operation();
    operations.sort_by_key(|(_, t)| std::cmp::Reverse(t.total));
    let operations: Vec<_> = operations
        .into_iter()
        .filter(|(_, t)| t.number() > 0)
        .collect();
    if operations.is_empty() {
        return "no time measured".into();
    }
    // Where there is no room, the median goes before the longest, that before operations that took less.
    let told = |(name, t): &(&str, &Times), fewer: usize| {
        let figures = [
            format!("p50 {}", text::time_or_dash(t.quantile(0.5))),
            format!("max {}", text::time(t.longest)),
            format!("p99 {}", text::time_or_dash(t.quantile(0.99))),
        ];
        let total = text::time(t.total);
        format!("{name} {total} ({})", figures[fewer..].join(", "))
    };
    let line = |most: usize, fewer: usize| {
        let first = operations.iter().take(most);
        let mut parts: Vec<String> = first.map(|operation| told(operation, fewer)).collect();
        if most < operations.len() {
            parts.push("…".to_owned());
        }
        parts.join(" · ")
    };
    let all = operations.len();
    let shorter = (0..3).map(|fewer| (all, fewer));
    let shorter = shorter.chain((1..all).rev().map(|most| (most, 2)));
    let mut lines = shorter.map(|(most, fewer)| line(most, fewer));
    let fits = lines.find(|line| text::width(line) <= width);
    fits.unwrap_or_else(|| line(1, 2))
}

/// Who did it last, newest first, with times since the start of the run.
fn last(state: &State, accesses: &[Access], done: &str) -> String {
    let start = state.data.extent().from;
    let topology = &state.data.catalog.topology;
    let text = |a: &Access| {
        let since = (a.at - start).as_secs_f64();
        format!("{} at {since:.3} s", topology.ap_name(a.ap))
    };
    let texts: Vec<String> = accesses.iter().map(text).collect();
    match texts.is_empty() {
        true => format!("never {done}"),
        false => format!("last {done}: {}", texts.join(", ")),
    }
}
