//! Accesses over time by origin (DOSMOS-Trace, figures 8 and 9).

use dosmos_trace::Origin;
use dosmos_trace::query::OriginCounts;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

use super::message::message;
use super::theme::Theme;
use super::{axis, stacked};
use crate::state::window::Scale;
use crate::state::{HISTOGRAM_LABEL, State};
use dosmos_client::text;

/// Heading, bars, time axis, legend.
pub(super) fn layout(area: Rect) -> [Rect; 4] {
    let rows = [
        Constraint::Length(1),
        Constraint::Min(3),
        Constraint::Length(2),
        Constraint::Length(2),
    ];
    Layout::vertical(rows).areas(area)
}

pub(super) fn render(frame: &mut Frame<'_>, area: Rect, state: &State, theme: Theme) {
    let [top, chart, times, legend] = layout(area);
    let Some(charted) = state.charts.histogram() else {
        frame.render_widget(heading(state, None, theme), top);
        let text = match state.data.catalog.extent {
            None => "No access has been recorded yet.",
            Some(_) => "Loading …",
        };
        return message(frame, chart, text);
    };
    let (histogram, scale) = (&charted.answer, charted.scale);
    frame.render_widget(heading(state, Some(scale), theme), top);
    bars(frame, chart, &histogram.buckets, theme);
    let times = Rect {
        x: times.x + HISTOGRAM_LABEL,
        width: times.width.saturating_sub(HISTOGRAM_LABEL),
        ..times
    };
    axis::draw(frame.buffer_mut(), times, scale, theme.faint());
    let dragged = state.timeline.dragged();
    axis::dragged(frame.buffer_mut(), times, scale, dragged, theme);
    let left = area.x + HISTOGRAM_LABEL;
    let cursor = state.timeline.cursor();
    axis::cursor(frame.buffer_mut(), chart, left, (scale, cursor), theme);
    let mut sum = OriginCounts::default();
    for bucket in &histogram.buckets {
        sum.add(bucket);
    }
    let pointed = axis::column_of(scale, cursor);
    let pointed = pointed.and_then(|at| Some((at, histogram.buckets.get(at)?)));
    let pointed = pointed.map(|(_, bucket)| at_cursor(state, bucket));
    let lines = legend_lines(&sum, pointed, theme);
    frame.render_widget(Paragraph::new(lines), legend);
}

/// What the column under the cursor counts.
fn at_cursor(state: &State, bucket: &OriginCounts) -> String {
    let at = state.timeline.cursor().unwrap_or_default() - state.data.extent().from;
    format!(
        " at {:.4} s: {} accesses: {} local ({} cached reads), {} intra, {} inter",
        at.as_secs_f64(),
        text::count(bucket.total()),
        text::count(bucket.local),
        text::count(bucket.optimized),
        text::count(bucket.intra),
        text::count(bucket.inter),
    )
}

/// What is shown: which variable, which operations, which time.
fn heading(state: &State, scale: Option<Scale>, theme: Theme) -> Paragraph<'static> {
    let catalog = &state.data.catalog;
    let shown = state.target();
    let target = match (shown.variable, shown.object) {
        (None, _) => "All variables".to_owned(),
        (Some(v), Some(o)) => format!("{}[{o}]", catalog.name_of(v)),
        (Some(v), None) => catalog.name_of(v),
    };
    Paragraph::new(title_line(&target, state, scale, theme))
}

/// `target: operations · times · length of a column`; the target is cut if the line is too long.
pub(super) fn title_line(
    target: &str,
    state: &State,
    scale: Option<Scale>,
    theme: Theme,
) -> Line<'static> {
    let ops = state
        .charts
        .op()
        .map_or_else(|| "all accesses".to_owned(), |op| format!("{op}s only"));
    let end = state.data.extent().to;
    let times = scale.map(|s| {
        let column = axis::column(s);
        format!(" · {} · 1 column = {column}", axis::span(s, end))
    });
    let follows = match state.data.catalog.live && state.timeline.window().follows() {
        true => " · following",
        false => "",
    };
    let rest = format!(": {ops}{}{follows}", times.unwrap_or_default());
    let room = usize::from(state.size.0).saturating_sub(text::width(&rest) + 1);
    Line::from(vec![
        Span::styled(
            format!(" {}", text::fit(target, room.max(8))),
            theme.title(),
        ),
        Span::raw(rest),
    ])
}

fn bars(frame: &mut Frame<'_>, area: Rect, buckets: &[OriginCounts], theme: Theme) {
    let largest = buckets.iter().map(OriginCounts::total).max().unwrap_or(0);
    let most = round_up(largest);
    let buffer = frame.buffer_mut();
    let label_width = usize::from(HISTOGRAM_LABEL - 2);
    for row in 0..area.height {
        let label = match row {
            0 => text::count(most),
            r if r == area.height / 2
                && most.is_multiple_of(2)
                && area.height.is_multiple_of(2) =>
            {
                text::count(most / 2)
            }
            _ => String::new(),
        };
        let tick = if label.is_empty() { '│' } else { '┤' };
        let text = format!("{} {tick}", text::right(&label, label_width));
        buffer.set_string(area.x, area.y + row, text, theme.faint());
    }
    let left = area.x + HISTOGRAM_LABEL;
    for (x, bucket) in (left..area.right()).zip(buckets) {
        let bar = stacked::bar(bucket, most, area.height, theme);
        for (y, (c, style)) in (area.y..area.bottom()).rev().zip(bar) {
            if c != ' ' {
                buffer[(x, y)].set_char(c).set_style(style);
            }
        }
    }
}

/// The next of 1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20 …: the count a full bar stands for.
fn round_up(n: u64) -> u64 {
    const STEPS: [u64; 9] = [10, 12, 16, 20, 30, 40, 50, 60, 80];
    if n <= 6 {
        return n.max(1);
    }
    let mut power = 1u64;
    loop {
        for step in STEPS {
            let value = step.saturating_mul(power) / 10;
            if value >= n {
                return value;
            }
        }
        match power.checked_mul(10) {
            Some(next) => power = next,
            None => return u64::MAX,
        }
    }
}

fn legend_lines(sum: &OriginCounts, pointed: Option<String>, theme: Theme) -> Vec<Line<'static>> {
    let all = sum.total();
    let mut spans = vec![Span::raw(" ")];
    let named = [
        (Origin::Local, "local", sum.local),
        (Origin::Intra, "intra-group", sum.intra),
        (Origin::Inter, "inter-group", sum.inter),
    ];
    for (origin, name, n) in named {
        let sign = if theme.letters() {
            Theme::letter(origin)
        } else {
            '█'
        };
        spans.push(Span::styled(sign.to_string(), theme.origin(origin)));
        let share = text::percent(n, all);
        spans.push(Span::raw(format!(
            " {name} {} ({share})   ",
            text::count(n)
        )));
    }
    let totals = format!(
        " {} in total · {} of the local ones are cached reads",
        text::count(all),
        text::count(sum.optimized)
    );
    let last = match pointed {
        Some(pointed) => Line::styled(pointed, theme.section()),
        None => Line::styled(totals, theme.faint()),
    };
    vec![Line::from(spans), last]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scale_of_counts_is_round_and_large_enough() {
        for (n, round) in [
            (0, 1),
            (5, 5),
            (7, 8),
            (10, 10),
            (11, 12),
            (101, 120),
            (999, 1_000),
        ] {
            assert_eq!(round_up(n), round, "{n}");
        }
        assert!(round_up(u64::MAX) == u64::MAX);
    }
}
