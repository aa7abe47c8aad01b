//! The header (what is shown, which time, what is missing) and the footer (the keys that matter here).

use ratatui::text::{Line, Span};

use super::theme::Theme;
use crate::state::command::COMMANDS;
use crate::state::{Asked, Prompt, Screen, State};
use dosmos_client::text;

/// Lines that warnings may take.
const WARNING_LINES: usize = 3;

/// Title, tabs, and what is missing.
pub(super) fn lines(state: &State, theme: Theme, width: u16) -> Vec<Line<'static>> {
    let width = usize::from(width);
    let mut lines = vec![title(state, theme, width), tabs(state, theme, width)];
    if let Some(error) = &state.data.error {
        let error = format!(" No response: {error}");
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
        let troubles = data.launch.troubles(data.catalog.live);
        let whole = troubles.is_empty() && state.completeness().is_complete();
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
    let paused = held_back(state);
    let taken = text::width(&facts) + text::width(&phase) + text::width(&paused);
    let run = match data.catalog.topology.name() {
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

/// Says so if what is shown is not the present.
fn held_back(state: &State) -> String {
    let live = state.data.catalog.live && state.finished.is_none();
    if state.paused {
        return " PAUSED ".to_owned();
    }
    let in_time = !matches!(
        state.navigation.screen(),
        Screen::Overview | Screen::Variables | Screen::Health
    );
    if !live || !in_time || state.timeline.window().follows() {
        return String::new();
    }
    let extent = state.data.extent();
    let behind = extent.to - state.timeline.window().resolve(extent).to;
    format!(" REWOUND {:.1} s ", behind.as_secs_f64())
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

/// What is being typed; else what was just said; else the keys that matter here.
pub(super) fn footer(state: &State, theme: Theme, width: u16) -> Line<'static> {
    let width = usize::from(width);
    if let Some(prompt) = &state.prompt {
        return typed(prompt, theme, width);
    }
    if let Some(message) = state.output.message() {
        let style = if message.bad {
            theme.bad()
        } else {
            theme.active()
        };
        let words = text::fit(&format!(" {} ", message.text), width);
        return Line::styled(words, style);
    }
    keys(state, theme, width)
}

/// The line being typed, with the ways to go on or what is wrong with it.
fn typed(prompt: &Prompt, theme: Theme, width: usize) -> Line<'static> {
    let sign = match prompt.asked() {
        Asked::Filter => '/',
        Asked::Command => ':',
    };
    let mut spans = vec![
        Span::styled(format!("{sign}{}", prompt.text()), theme.title()),
        Span::styled(" ", theme.active()),
    ];
    let used: usize = spans.iter().map(Span::width).sum();
    let room = width.saturating_sub(used + 2);
    if let Some(wrong) = prompt.wrong() {
        spans.push(Span::styled(
            format!("  {}", text::fit(wrong, room)),
            theme.bad(),
        ));
    } else if let Some((all, at)) = prompt.completions() {
        let mut left = room;
        let around = at.saturating_sub(3)..all.len();
        for i in around {
            let word = all[i].trim_end();
            let word = word.rsplit([' ', ',']).next().unwrap_or_default();
            let word = format!(" {word}");
            if text::width(&word) > left {
                break;
            }
            left -= text::width(&word);
            let style = if i == at {
                theme.section()
            } else {
                theme.faint()
            };
            spans.push(Span::styled(word, style));
        }
    } else {
        let hint = match prompt.asked() {
            Asked::Filter => {
                "  regular expression; ! in front: names that do not match · Enter: keep"
            }
            Asked::Command => hint(prompt.text()),
        };
        spans.push(Span::styled(text::fit(hint, room), theme.faint()));
    }
    Line::from(spans)
}

/// What a command takes, as soon as its name is known.
fn hint(typed: &str) -> &'static str {
    let name = typed.split_whitespace().next().unwrap_or_default();
    let entry = COMMANDS.iter().find(|e| e.name == name);
    entry.map_or("  Tab: complete", |e| e.takes)
}

fn keys(state: &State, theme: Theme, width: usize) -> Line<'static> {
    let keys: &[(&str, &str)] = match state.navigation.screen() {
        Screen::Overview => &[("↑↓", "select"), ("Enter", "details")],
        Screen::Variables => &[
            ("↑↓", "select"),
            ("Enter", "details"),
            ("s", "sort"),
            ("/", "filter"),
        ],
        Screen::Histogram => &[
            ("+-", "zoom"),
            ("←→", "move"),
            ("v", "variable"),
            ("o", "object"),
            ("rwa", "operation"),
            ("c", "cursor"),
        ],
        Screen::VariableHistory => &[
            ("+-", "zoom"),
            ("←→", "move"),
            ("v", "variable"),
            ("o", "object"),
            ("rwa", "op"),
            ("Enter", "details"),
            ("c", "cursor"),
        ],
        Screen::ProcessHistory => &[
            ("+-", "zoom"),
            ("←→", "move"),
            ("v", "process"),
            ("rwa", "operation"),
            ("Enter", "details"),
            ("c", "cursor"),
        ],
        Screen::Findings => &[("↑↓", "select"), ("Enter", "history"), ("7", "groups")],
        Screen::Groups => &[
            ("Enter", "current/proposed"),
            ("←→", "variables"),
            ("6", "findings"),
        ],
        Screen::Health => &[("↑↓", "select"), (":record", "what is recorded")],
    };
    let mut spans = Vec::new();
    if let Some(message) = &state.finished {
        let message = format!(" {message} — q quits ");
        let message = text::fit(&message, width);
        spans.push(Span::styled(message, theme.active()));
    }
    if let Some(filter) = &state.filter {
        let filter = text::fit(&format!(" /{} ", filter.typed()), 24);
        spans.push(Span::styled(filter, theme.warning()));
    }
    let mut always = vec![
        ("p", "pause"),
        (":", "command"),
        ("?", "help"),
        ("q", "quit"),
    ];
    if state.navigation.can_go_back() || state.filter.is_some() {
        always.insert(0, ("Esc", "back"));
    }
    let taken = |(key, does): &(&str, &str)| text::width(key) + text::width(does) + 3;
    let used: usize = spans.iter().map(Span::width).sum();
    let room = width.saturating_sub(used + always.iter().map(taken).sum::<usize>());
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
