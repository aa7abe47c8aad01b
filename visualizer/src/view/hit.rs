//! What lies under a point of the screen, by the same layouts that draw it.

use std::ops::Range;

use dosmos_proto::Nanos;
use ratatui::layout::Rect;

use super::areas::body_of;
use super::{
    findings, groups, header, health, histogram, history, overview, path, phases, runs, title,
    variables,
};
use crate::state::window::Scale;
use crate::state::{HISTOGRAM_LABEL, Hit, Screen, State, lane_label};

/// What `x`, `y` hits; nothing where nothing is.
pub fn hit(state: &State, x: u16, y: u16) -> Option<Hit> {
    let area = Rect::new(0, 0, state.size.0, state.size.1);
    if state.runs.shown() {
        let [_, list, _] = runs::layout(state, area);
        return row(list, 1, |seen| state.runs.rows().visible(seen), y);
    }
    if y == header::TABS {
        return header::tab_at(area.width, state.navigation.screen(), x).map(Hit::Screen);
    }
    if y == 0 && title::badge_at(state, area.width, x) {
        return Some(Hit::Screen(Screen::Findings));
    }
    let body = body_of(state, area)?;
    if !body.contains((x, y).into()) {
        return None;
    }
    match state.navigation.screen() {
        Screen::Overview if state.phases.shown() => {
            let [_, below] = phases::layout(state, body);
            let [list, _] = phases::parts(below);
            row(list, 1, |seen| state.phases.rows().visible(seen), y)
        }
        Screen::Overview => {
            let [_, tree, ..] = overview::layout(state, body);
            row(tree, 1, |seen| state.tree.rows().visible(seen), y)
        }
        Screen::Variables => {
            let [list, _] = variables::layout(body);
            if y == list.y {
                return variables::column_at(state, list.width, x).map(Hit::Column);
            }
            row(list, 1, |seen| state.variables.visible(seen), y)
        }
        Screen::Histogram => {
            let [_, chart, ..] = histogram::layout(body);
            let scale = state.charts.histogram()?.scale;
            let at = instant(scale, x.checked_sub(chart.x + HISTOGRAM_LABEL)?)?;
            Some(Hit::Time(at, None))
        }
        Screen::VariableHistory | Screen::ProcessHistory => {
            let [_, lanes, ..] = history::layout(body);
            let scale = state.charts.history()?.scale;
            let lane = history::lane_at(state, lanes, y);
            match x.checked_sub(lanes.x + lane_label(lanes.width)) {
                Some(column) => Some(Hit::Time(instant(scale, column)?, lane)),
                None => lane.map(Hit::Row),
            }
        }
        Screen::Findings if state.path.shown() => path::row_at(state, body, y).map(Hit::Row),
        Screen::Findings => {
            let [_, list, _] = findings::layout(state, body);
            row(list, 1, |seen| state.analysis.findings().visible(seen), y)
        }
        Screen::Groups => {
            let [_, list, _] = groups::layout(body);
            let matrix = &state.analysis.part()?.analysis.groups;
            let (all, processes) = (matrix.aps.len(), state.analysis.processes());
            row(list, groups::TITLES, |seen| processes.visible(all, seen), y)
        }
        Screen::Health => {
            let [_, list, _] = health::layout(body);
            row(list, 1, |seen| state.health.visible(seen), y)
        }
    }
}

/// The entry at `y` of a list in `area`, below its titles; `visible` gives the entries seen from the number of rows.
fn row(area: Rect, titles: usize, visible: impl Fn(usize) -> Range<usize>, y: u16) -> Option<Hit> {
    let at = usize::from(y.checked_sub(area.y)?).checked_sub(titles)?;
    let seen = usize::from(area.height).saturating_sub(titles);
    let visible = visible(seen);
    let entry = visible.start + at;
    (at < seen && entry < visible.end).then_some(Hit::Row(entry))
}

/// The middle of a column.
fn instant(scale: Scale, column: u16) -> Option<Nanos> {
    let into = scale.per_column.0.checked_mul(u64::from(column))?;
    let middle = Nanos(into.saturating_add(scale.per_column.0 / 2));
    (column < scale.columns).then(|| scale.from + middle)
}
