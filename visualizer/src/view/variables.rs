//! The table of variables. On a narrow terminal the columns that matter least give way; the line of
//! the selected variable below the table has them all.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::Style;
use ratatui::text::Line;
use ratatui::widgets::Paragraph;

use dosmos_trace::Origin;
use dosmos_trace::meta::Access;
use dosmos_trace::query::table::SortKey;

use super::message::message;
use super::table::{self, Column};
use super::theme::Theme;
use crate::state::State;
use crate::state::variables::VariableRow;
use dosmos_client::text;

/// A column of the table.
struct Field {
    title: &'static str,
    width: usize,
    right: bool,
    /// Sorts by this column.
    key: Option<SortKey>,
    /// Columns give way from the highest number on; 0 never does.
    yields: u8,
    content: fn(&VariableRow) -> String,
}

const fn figure(
    title: &'static str,
    width: usize,
    key: SortKey,
    yields: u8,
    content: fn(&VariableRow) -> String,
) -> Field {
    Field {
        title,
        width,
        right: true,
        key: Some(key),
        yields,
        content,
    }
}

const fn words(
    title: &'static str,
    width: usize,
    yields: u8,
    content: fn(&VariableRow) -> String,
) -> Field {
    Field {
        title,
        width,
        right: false,
        key: None,
        yields,
        content,
    }
}

/// The name comes before these and takes what they leave.
static FIELDS: [Field; 13] = [
    words("TYPE", 14, 6, |r| r.layout.clone()),
    words("GROUP", 12, 7, |r| r.group.clone()),
    words("OWNER", 12, 8, |r| r.owners.clone()),
    figure("OBJ", 5, SortKey::Objects, 4, |r| text::count(r.objects)),
    figure("COPIES", 6, SortKey::Copies, 5, |r| text::count(r.copies)),
    figure("READS", 6, SortKey::ReadsMain, 0, |r| {
        text::count(r.reads_main)
    }),
    figure("CACHED", 6, SortKey::ReadsCopies, 0, |r| {
        text::count(r.reads_copies)
    }),
    figure("WRITES", 6, SortKey::Writes, 0, |r| text::count(r.writes)),
    figure("ACQ", 6, SortKey::Acquires, 0, |r| text::count(r.acquires)),
    figure("DELAY", 6, SortKey::Delayed, 1, |r| text::count(r.delayed)),
    figure("WAIT", 7, SortKey::Wait, 2, |r| text::time_or_dash(r.wait)),
    figure("HOLD", 7, SortKey::Hold, 3, |r| text::time_or_dash(r.hold)),
    figure("INTER", 6, SortKey::Inter, 0, |r| {
        text::percent(r.origins[2], r.accesses())
    }),
];

/// The name has at least this many columns.
const NAME: usize = 10;
/// Beyond this many, the other names get their part.
const NAME_ENOUGH: usize = 24;

/// Table, detail of the selected variable.
pub(super) fn layout(area: Rect) -> [Rect; 2] {
    let rows = [Constraint::Min(3), Constraint::Length(6)];
    Layout::vertical(rows).areas(area)
}

pub(super) fn render(frame: &mut Frame<'_>, area: Rect, state: &State, theme: Theme) {
    let table = state.variables.page();
    if table.matched == 0 {
        let text = match (&state.filter, table.known) {
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
pub(super) fn column_at(width: u16, x: u16) -> Option<SortKey> {
    let (fields, name, more) = fitting(usize::from(width));
    let mut end = 1 + name;
    if usize::from(x) <= end {
        return Some(SortKey::Name);
    }
    let field = fields.into_iter().find(|field| {
        end += 1 + field.width + if field.right { 0 } else { more };
        usize::from(x) <= end
    });
    field?.key
}

/// The fields that fit, the width left for the name, and what each field of words gets beyond its
/// own width.
fn fitting(width: usize) -> (Vec<&'static Field>, usize, usize) {
    let mut fields: Vec<&Field> = FIELDS.iter().collect();
    loop {
        let taken: usize = fields.iter().map(|f| f.width + 1).sum();
        let left = width.saturating_sub(taken + 1);
        let next = fields.iter().map(|f| f.yields).max().unwrap_or(0);
        if left >= NAME || next == 0 {
            let words = fields.iter().filter(|f| !f.right).count();
            let spare = left.saturating_sub(NAME_ENOUGH);
            let more = (spare / (words + 1)).min(30);
            return (fields, (left - more * words).min(60), more);
        }
        fields.retain(|f| f.yields != next);
    }
}

fn rows_of(state: &State, theme: Theme, area: Rect) -> Vec<Line<'static>> {
    let (fields, name, more) = fitting(usize::from(area.width));
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
    for field in &fields {
        let title = title(field.title, field.key);
        columns.push(if field.right {
            Column::figures(&title, field.width)
        } else {
            Column::names(&title, field.width + more)
        });
    }
    let mut lines = vec![table::titles(&columns, theme.title())];
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
        let cells = fields.iter().map(|f| ((f.content)(row), style(f)));
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
        last(state, &row.last_acquires, "acquired"),
        last(state, &row.last_writes, "written"),
    ];
    let line = |l: &String| Line::styled(format!(" {}", text::fit(l, width)), theme.section());
    let mut all = vec![counted];
    all.extend(lines.iter().map(line));
    all
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
