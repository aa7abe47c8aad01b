//! The header (what is shown, of when, what is lacking) and the footer (the keys that matter here).

use ratatui::text::{Line, Span};

use super::text;
use super::theme::Theme;
use crate::state::{Screen, State};

/// Lines that warnings may take.
const WARNING_LINES: usize = 3;

/// Title, tabs, and what is lacking.
pub(super) fn lines(state: &State, theme: Theme, width: u16) -> Vec<Line<'static>> {
    let width = usize::from(width);
    let mut lines = vec![title(state, theme, width), tabs(state, theme, width)];
    if let Some(error) = &state.data.error {
        let error = format!(" No answer: {error}");
        lines.push(Line::styled(text::left(&error, width), theme.bad()));
    }
    let lacking = lacking(state);
    for warning in wrapped(&lacking, width.saturating_sub(1)) {
        let warning = text::left(&format!(" {warning}"), width);
        lines.push(Line::styled(warning, theme.warning()));
    }
    lines
}

fn title(state: &State, theme: Theme, width: usize) -> Line<'static> {
    let data = &state.data;
    let mut facts = Vec::new();
    if data.answered {
        if let Some(extent) = data.catalog.extent {
            facts.push(text::time(extent.length()));
        }
        facts.push(text::plural(data.catalog.records, "record"));
        let whole = data.completeness().is_complete();
        facts.push(if whole { "complete" } else { "INCOMPLETE" }.to_owned());
    }
    let phase = match (&state.finished, data.catalog.live) {
        _ if !data.answered => "",
        (Some(_), _) => "run finished",
        (None, true) => "live",
        (None, false) => "post-mortem",
    };
    let facts = format!(" {} ", facts.join(" · "));
    let phase = if phase.is_empty() {
        String::new()
    } else {
        format!(" {phase} ")
    };
    let paused = if state.paused { " PAUSED " } else { "" };
    let taken = text::width(&facts) + text::width(&phase) + paused.len();
    let run = match data.catalog.topology.name.as_str() {
        "" => state.title.clone(),
        name if state.title.is_empty() => name.to_owned(),
        name => format!("{name} · {}", state.title),
    };
    let name = format!(" dosmos  {run}");
    let live = data.catalog.live && state.finished.is_none();
    Line::from(vec![
        Span::styled(
            text::left(&name, width.saturating_sub(taken)),
            theme.title(),
        ),
        Span::styled(paused, theme.active()),
        Span::styled(phase, if live { theme.good() } else { theme.faint() }),
        Span::raw(facts),
    ])
}

fn tabs(state: &State, theme: Theme, width: usize) -> Line<'static> {
    let mut spans = vec![Span::raw(" ")];
    let names: usize = Screen::ALL.iter().map(|s| s.name().len() + 4).sum();
    for (i, screen) in Screen::ALL.into_iter().enumerate() {
        let here = screen == state.place.screen;
        let name = if names < width {
            screen.name()
        } else {
            screen.name().split(' ').next().unwrap_or_default()
        };
        let style = if here { theme.active() } else { theme.faint() };
        spans.push(Span::styled(format!(" {} {name} ", i + 1), style));
    }
    Line::from(spans)
}

/// What a reader must know to judge what is shown, the worst first.
fn lacking(state: &State) -> Vec<String> {
    let c = state.data.completeness();
    let mut items = Vec::new();
    if !c.missing.is_empty() {
        let verb = if c.missing.len() == 1 { "does" } else { "do" };
        items.push(format!("{} {verb} not answer", c.missing.join(", ")));
    }
    if c.dropped > 0 {
        let share = text::percent(c.dropped, c.recorded.max(c.dropped));
        items.push(format!(
            "{} lost ({share})",
            text::plural(c.dropped, "record")
        ));
    }
    if c.sampling < 1.0 {
        let every = if c.sampling > 0.0 {
            1.0 / c.sampling
        } else {
            0.0
        };
        items.push(format!("1 access in {every:.0} recorded"));
    }
    if c.corrupt_chunks > 0 {
        items.push(format!(
            "{} unreadable",
            text::plural(c.corrupt_chunks, "chunk")
        ));
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

/// The keys that matter here; or that the run has ended.
pub(super) fn footer(state: &State, theme: Theme, width: u16) -> Line<'static> {
    let keys: &[(&str, &str)] = match state.place.screen {
        Screen::Overview => &[("↑↓", "select"), ("Enter", "closer")],
        Screen::Variables => &[("↑↓", "select"), ("Enter", "closer"), ("s", "sort")],
        Screen::Histogram => &[
            ("+-", "zoom"),
            ("←→", "move"),
            ("v", "variable"),
            ("o", "object"),
            ("rwa", "operation"),
        ],
        Screen::VariableHistory => &[
            ("+-", "zoom"),
            ("←→", "move"),
            ("v", "variable"),
            ("o", "object"),
            ("rwa", "op"),
            ("Enter", "closer"),
        ],
        Screen::ProcessHistory => &[
            ("+-", "zoom"),
            ("←→", "move"),
            ("v", "process"),
            ("rwa", "operation"),
            ("Enter", "closer"),
        ],
    };
    let mut spans = Vec::new();
    if let Some(message) = &state.finished {
        let message = format!(" {message} — q quits ");
        let message = text::fit(&message, usize::from(width));
        spans.push(Span::styled(message, theme.active()));
    }
    let mut always = vec![("p", "pause"), ("?", "help"), ("q", "quit")];
    if !state.back.is_empty() {
        always.insert(0, ("Esc", "back"));
    }
    let taken = |(key, does): &(&str, &str)| text::width(key) + text::width(does) + 3;
    let used: usize = spans.iter().map(Span::width).sum();
    let room = usize::from(width).saturating_sub(used + always.iter().map(taken).sum::<usize>());
    // What does not fit is in the help.
    let mut room_left = room;
    let fits = |hint: &&(&str, &str)| {
        let enough = taken(hint) <= room_left;
        room_left -= if enough { taken(hint) } else { room_left };
        enough
    };
    let hints: Vec<_> = keys.iter().filter(fits).copied().collect();
    for (key, does) in hints.into_iter().chain(always) {
        spans.push(Span::styled(format!(" {key}"), theme.title()));
        spans.push(Span::styled(format!(" {does} "), theme.faint()));
    }
    Line::from(spans)
}
