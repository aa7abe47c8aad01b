//! The time axis below a chart: a line with ticks, and times since the start of the run.

use dosmos_proto::Nanos;
use dosmos_trace::query::TimeRange;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use super::theme::Theme;
use crate::state::window::Scale;
use dosmos_client::text;

/// Columns between two ticks.
const SPACINGS: [u64; 9] = [5, 10, 20, 25, 40, 50, 100, 200, 500];

/// A point in time, since the start of the run, exact to `step`.
pub(super) fn moment(since_start: Nanos, step: Nanos, largest: Nanos) -> String {
    let (unit, name) = match largest.0 {
        0..1_000_000 => (1_000, "µs"),
        1_000_000..1_000_000_000 => (1_000_000, "ms"),
        _ => (1_000_000_000u64, "s"),
    };
    let exact = |d: &u32| (u128::from(step.0) * 10u128.pow(*d)).is_multiple_of(u128::from(unit));
    let decimals = (0..9).find(exact).unwrap_or(9) as usize;
    let value = since_start.0 as f64 / unit as f64;
    format!("{value:.decimals$} {name}")
}

/// The length of a column: `300 µs`.
pub(super) fn column(scale: Scale) -> String {
    moment(scale.per_column, scale.per_column, scale.per_column)
}

/// The times a scale covers of a run that ends at `end`: `12.0–24.0 s`.
pub(super) fn span(scale: Scale, end: Nanos) -> String {
    let mut range = scale.range();
    let largest = range.to - scale.start;
    if range.contains(end) {
        // To the end of the column the run ends in.
        let columns = (end - range.from).0.div_ceil(scale.per_column.0.max(1));
        range.to = range.from + Nanos(columns.saturating_mul(scale.per_column.0));
    }
    let at = |t: Nanos| moment(t - scale.start, scale.per_column, largest);
    let from = at(range.from);
    let from = from.split(' ').next().unwrap_or_default();
    format!("{from}–{}", at(range.to))
}

/// Draws the axis on the two rows of `area`; column 0 of the scale is its left end.
pub(super) fn draw(buffer: &mut Buffer, area: Rect, scale: Scale, style: Style) {
    if area.height == 0 || area.width == 0 {
        return;
    }
    let columns = u64::from(scale.columns.min(area.width));
    let per = u128::from(scale.per_column.0.max(1));
    let largest = scale.range().to - scale.start;
    let first = u128::from((scale.from - scale.start).0) / per;
    let label = |column: u64, step: u64| {
        let since = (first + u128::from(column)) * per;
        let since = Nanos(u64::try_from(since).unwrap_or(u64::MAX));
        let step = Nanos(scale.per_column.0.saturating_mul(step));
        moment(since, step, largest)
    };
    let fits = |step: &u64| text::width(&label(columns, *step)) as u64 + 2 <= *step;
    let step = SPACINGS.into_iter().find(fits).unwrap_or(SPACINGS[8]);
    let line: String = (0..columns)
        .map(|column| {
            let tick = (first + u128::from(column)).is_multiple_of(u128::from(step));
            if tick { '┬' } else { '─' }
        })
        .collect();
    buffer.set_string(area.x, area.y, &line, style);
    if area.height < 2 {
        return;
    }
    for column in 0..columns {
        if !(first + u128::from(column)).is_multiple_of(u128::from(step)) {
            continue;
        }
        let text = label(column, step);
        if column + text::width(&text) as u64 <= columns {
            buffer.set_string(area.x + column as u16, area.y + 1, text, style);
        }
    }
}

/// The column an instant falls on, if it is shown.
pub(super) fn column_of(scale: Scale, at: Option<Nanos>) -> Option<usize> {
    let column = usize::try_from(scale.column(at?)).ok()?;
    (column < usize::from(scale.columns)).then_some(column)
}

/// Marks what the pointer is drawn over on the axis in `area`.
pub(super) fn dragged(
    buffer: &mut Buffer,
    area: Rect,
    scale: Scale,
    range: Option<TimeRange>,
    theme: Theme,
) {
    let Some(range) = range else { return };
    let last = i64::from(scale.columns.min(area.width)) - 1;
    let (from, to) = (scale.column(range.from).max(0), scale.column(range.to));
    for column in from..=to.min(last) {
        let x = area.x.saturating_add(column as u16);
        if let Some(cell) = buffer.cell_mut((x, area.y)) {
            cell.set_style(theme.active());
        }
    }
}

/// Marks the column of the time cursor in `area`; column 0 is at `left`.
pub(super) fn cursor(
    buffer: &mut Buffer,
    area: Rect,
    left: u16,
    (scale, at): (Scale, Option<Nanos>),
    theme: Theme,
) {
    let Some(column) = column_of(scale, at) else {
        return;
    };
    let x = left.saturating_add(column as u16);
    for y in area.y..area.bottom() {
        if let Some(cell) = buffer.cell_mut((x, y)).filter(|_| x < area.right()) {
            if cell.symbol() == " " {
                cell.set_char('│');
                cell.set_style(theme.title());
            } else {
                cell.set_style(theme.active());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_as_exact_as_their_steps() {
        let s = Nanos(1_000_000_000);
        assert_eq!(moment(Nanos(2_500_000_000), Nanos(500_000_000), s), "2.5 s");
        assert_eq!(moment(Nanos(2_000_000_000), s, s), "2 s");
        assert_eq!(
            moment(Nanos(2_250_000_000), Nanos(250_000_000), s),
            "2.25 s"
        );
        let ms = Nanos(1_000_000);
        assert_eq!(moment(Nanos(1_500_000), Nanos(20_000), ms), "1.50 ms");
    }
}
