//! Tables: columns of fixed width with a title, cells of one style each.

use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::theme::Theme;
use dosmos_client::text;

/// A column.
#[derive(Clone, Debug)]
pub(super) struct Column {
    pub(super) title: String,
    pub(super) width: usize,
    pub(super) right: bool,
}

impl Column {
    /// Of names: at the left.
    pub(super) fn names(title: &str, width: usize) -> Self {
        let title = title.to_owned();
        Self {
            title,
            width,
            right: false,
        }
    }

    /// Of figures: at the right.
    pub(super) fn figures(title: &str, width: usize) -> Self {
        let title = title.to_owned();
        Self {
            title,
            width,
            right: true,
        }
    }

    fn cell(&self, content: &str) -> String {
        if self.right {
            text::right(content, self.width)
        } else {
            text::left(&text::fit_name(content, self.width), self.width)
        }
    }
}

/// The columns seen on a terminal that is too narrow for all: the first one, then from the one after `first` others on as
/// many as fit.
pub(super) fn shown(columns: &[Column], first: usize, width: usize) -> Vec<usize> {
    let mut shown = vec![0];
    let mut taken = 1 + columns.first().map_or(0, |c| c.width);
    for (at, column) in columns.iter().enumerate().skip(1 + first) {
        taken += 1 + column.width;
        if taken > width {
            break;
        }
        shown.push(at);
    }
    shown
}

/// Signs at the ends of the titles for columns that are not seen.
pub(super) fn mark_hidden(line: &mut Line<'static>, left: bool, right: bool, theme: Theme) {
    if left && let Some(span) = line.spans.get_mut(2) {
        *span = Span::styled("‹", theme.section());
    }
    if right {
        line.spans.push(Span::styled("›", theme.section()));
    }
}

/// Marker and style of an entry, selected or not.
pub(super) fn selection(selected: bool, theme: Theme) -> (char, Style) {
    match selected {
        true => ('▶', theme.selected()),
        false => (' ', Style::new()),
    }
}

/// The titles.
pub(super) fn titles(columns: &[Column], style: Style) -> Line<'static> {
    let cells = columns.iter().map(|c| (c.title.clone(), style));
    row(columns, cells, ' ', style)
}

/// Adds `style` to the cell of `column`. Cells alternate with gaps, after the marker.
pub(super) fn patch(line: &mut Line<'static>, column: usize, style: Style) {
    if let Some(span) = line.spans.get_mut(1 + 2 * column) {
        span.style = span.style.patch(style);
    }
}

/// A row; `marker` stands before it. Cells that are not given are empty.
pub(super) fn row(
    columns: &[Column],
    cells: impl IntoIterator<Item = (String, Style)>,
    marker: char,
    base: Style,
) -> Line<'static> {
    let mut spans = vec![Span::raw(marker.to_string())];
    let none = std::iter::repeat((String::new(), Style::new()));
    let cells = cells.into_iter().chain(none);
    for (i, (column, (content, style))) in columns.iter().zip(cells).enumerate() {
        if i > 0 {
            spans.push(Span::raw(" "));
        }
        spans.push(Span::styled(column.cell(&content), style));
    }
    Line::from(spans).style(base)
}
