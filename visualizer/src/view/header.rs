//! The header: the title, which view and the way there, what is missing.

use ratatui::text::{Line, Span};

use super::theme::Theme;
use super::{footer, title};
use crate::state::{Place, Screen, State};
use dosmos_client::text;

/// Lines that warnings may take.
const WARNING_LINES: usize = 3;

/// Title, tabs, and what is missing.
pub(super) fn lines(state: &State, theme: Theme, width: u16) -> Vec<Line<'static>> {
    let width = usize::from(width);
    let mut lines = vec![title::line(state, theme, width), tabs(state, theme, width)];
    lines.extend(trail(state, theme, width));
    if let Some(error) = &state.data.error {
        let error = format!("No response: {error}");
        lines.extend(footer::wrapped(&error, width, WARNING_LINES, theme.bad()));
    }
    let lacking = lacking(state);
    for warning in wrapped(&lacking, width.saturating_sub(1)) {
        let warning = text::left(&format!(" {warning}"), width);
        lines.push(Line::styled(warning, theme.warning()));
    }
    lines
}

/// The way here from where it began; none if a view was opened by its key.
fn trail(state: &State, theme: Theme, width: usize) -> Option<Line<'static>> {
    if !state.navigation.can_go_back() {
        return None;
    }
    let places = state.navigation.trail().chain([state.target()]);
    let mut names: Vec<String> = places.map(|place| place_name(state, place)).collect();
    let here = names.pop().unwrap_or_default();
    let before = names.join(" › ");
    let room = width.saturating_sub(text::width(&here) + 4);
    Some(Line::from(vec![
        Span::styled(format!(" {}", text::fit_end(&before, room)), theme.faint()),
        Span::styled(" › ", theme.faint()),
        Span::styled(text::fit(&here, width.saturating_sub(4)), theme.title()),
    ]))
}

/// A place in a few words.
fn place_name(state: &State, place: Place) -> String {
    let catalog = &state.data.catalog;
    let variable = || match (place.variable, place.object) {
        (None, _) => "all variables".to_owned(),
        (Some(v), None) => catalog.name_of(v),
        (Some(v), Some(o)) => format!("{}[{o}]", catalog.name_of(v)),
    };
    match (place.screen, place.process) {
        (Screen::Histogram, _) => format!("Histogram of {}", variable()),
        (Screen::VariableHistory, _) => format!("History of {}", variable()),
        (Screen::ProcessHistory, Some(ap)) => {
            format!("History of {}", catalog.topology.ap_name(ap))
        }
        (screen, _) => screen.name().to_owned(),
    }
}

/// The row of the tabs.
pub(super) const TABS: u16 = 1;

/// The tabs as they fit: with whole names, with short ones, or only the one shown with its name.
fn tab_names(width: usize, here: Screen) -> Vec<(Screen, String)> {
    let tab = |i: usize, name: &str| format!(" {} {name}", i + 1).trim_end().to_owned();
    let named = |name: fn(Screen) -> &'static str| -> Vec<(Screen, String)> {
        let all = Screen::ALL.into_iter().enumerate();
        all.map(|(i, s)| (s, tab(i, name(s)))).collect()
    };
    let fits = |tabs: &Vec<(Screen, String)>| {
        let taken: usize = tabs.iter().map(|(_, t)| text::width(t)).sum();
        taken <= width
    };
    let (whole, short) = (named(Screen::name), named(Screen::short));
    if fits(&whole) {
        return whole;
    }
    if fits(&short) {
        return short;
    }
    let all = Screen::ALL.into_iter().enumerate();
    all.map(|(i, s)| (s, tab(i, if s == here { s.short() } else { "" })))
        .collect()
}

fn tabs(state: &State, theme: Theme, width: usize) -> Line<'static> {
    let here = state.navigation.screen();
    let mut spans = Vec::new();
    for (screen, name) in tab_names(width, here) {
        let style = if screen == here {
            theme.active()
        } else {
            theme.faint()
        };
        spans.push(Span::styled(name, style));
    }
    Line::from(spans)
}

/// The tab at a column.
pub(super) fn tab_at(width: u16, here: Screen, x: u16) -> Option<Screen> {
    let mut end = 0;
    tab_names(usize::from(width), here)
        .into_iter()
        .find(|(_, name)| {
            end += text::width(name);
            usize::from(x) < end
        })
        .map(|(screen, _)| screen)
}

/// What is missing from what is shown, the worst first.
fn lacking(state: &State) -> Vec<String> {
    let c = state.completeness();
    let mut items = state.data.launch.troubles(state.data.catalog.live);
    if !c.missing.is_empty() {
        let verb = if c.missing.len() == 1 { "does" } else { "do" };
        items.push(format!("{} {verb} not respond", c.missing.join(", ")));
    }
    if c.dropped > 0 {
        let share = text::percent(c.dropped, c.recorded.max(c.dropped));
        items.push(format!(
            "{} dropped ({share})",
            text::plural(c.dropped, "record")
        ));
    }
    if c.sampling < 1.0 {
        let every = if c.sampling > 0.0 {
            1.0 / c.sampling
        } else {
            0.0
        };
        items.push(format!("1 in {every:.0} accesses recorded"));
    }
    if c.removed > 0 {
        let removed = text::plural(c.removed, "old record");
        items.push(format!("{removed} removed"));
    }
    if c.corrupt_chunks > 0 {
        items.push(format!(
            "{} unreadable",
            text::plural(c.corrupt_chunks, "chunk")
        ));
    }
    if c.damaged > 0 {
        let damaged = text::plural(c.damaged, "damaged record");
        items.push(format!("{damaged} unreadable"));
    }
    if c.unselected > 0 {
        let accesses = text::plural(c.unselected, "access");
        items.push(format!("{accesses} not selected"));
    }
    if !c.selections.is_empty() {
        items.push("a part is not recorded".to_owned());
    }
    if !c.missing_stores.is_empty() {
        items.push(format!("no store of {}", c.missing_stores.join(", ")));
    }
    if !c.silent.is_empty() {
        items.push(format!("no final report of {}", c.silent.join(", ")));
    }
    if !items.is_empty() {
        items[0] = format!("INCOMPLETE: {}", items[0]);
    }
    items.extend(c.notes);
    items
}

/// `items` with dots between them, on few lines, broken between items where possible.
fn wrapped(items: &[String], width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for item in items {
        match lines.last_mut() {
            Some(line) if text::width(line) + text::width(item) + 3 <= width => {
                line.push_str(" · ");
                line.push_str(item);
            }
            _ => lines.push(item.clone()),
        }
    }
    if lines.len() > WARNING_LINES {
        let rest = lines.split_off(WARNING_LINES - 1);
        lines.push(rest.join(" · "));
    }
    lines.iter().map(|line| text::fit(line, width)).collect()
}
