//! The footer: what is being typed, otherwise the keys that matter here. How the run ended stands above it if it is long; what
//! was just said lies over the end of the screen, whole.

use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::theme::Theme;
use crate::state::command::COMMANDS;
use crate::state::{Action, Asked, Prompt, Screen, State};
use dosmos_client::text;

/// Lines that a message may take.
const MESSAGE: usize = 4;
/// Lines that the end of the run may take.
const END: usize = 3;

/// How the run ended, if that is too long to stand beside the keys, and the last line.
pub(super) fn lines(state: &State, theme: Theme, width: u16) -> Vec<Line<'static>> {
    let mut lines = Vec::new();
    if let Some(end) = state.finished.as_ref().filter(|m| !is_short(m, width)) {
        lines.extend(wrapped(end, usize::from(width), END, theme.active()));
    }
    lines.push(line(state, theme, width));
    lines
}

/// Whether the keys still fit beside it.
fn is_short(message: &str, width: u16) -> bool {
    text::width(message) <= usize::from(width) / 3
}

/// What was just said.
pub(super) fn said(state: &State, theme: Theme, width: u16) -> Vec<Line<'static>> {
    let Some(message) = state.output.message() else {
        return Vec::new();
    };
    let style = if message.bad {
        theme.bad().patch(theme.active())
    } else {
        theme.active()
    };
    wrapped(&message.text, usize::from(width), MESSAGE, style)
}

/// `words` on at most `most` lines; the last one is cut if that is not enough.
pub(super) fn wrapped(words: &str, width: usize, most: usize, style: Style) -> Vec<Line<'static>> {
    let room = width.saturating_sub(2);
    let mut lines = text::wrap(words, room);
    if lines.len() > most {
        let rest = lines.split_off(most - 1).join(" ");
        lines.push(text::fit(&rest, room));
    }
    let line = |l: String| Line::styled(text::left(&format!(" {l}"), width), style);
    lines.into_iter().map(line).collect()
}

/// What is being typed; otherwise the keys that matter here.
fn line(state: &State, theme: Theme, width: u16) -> Line<'static> {
    let width = usize::from(width);
    if let Some(what) = state.leaving.asks() {
        let question = format!(" Quit? This ends {what}. y: quit · any other key: go on ");
        return Line::styled(text::fit(&question, width), theme.warning());
    }
    if let Some(prompt) = &state.prompt {
        return typed(prompt, theme, width);
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
                "  part of a name, * or ?, re:REGEX; !: names without it · Enter: keep"
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

/// The actions that matter in a view, by what they do.
fn hints(state: &State) -> &'static [(&'static [Action], &'static str)] {
    const SELECT: (&[Action], &str) = (&[Action::Up, Action::Down], "select");
    const DETAILS: (&[Action], &str) = (&[Action::Enter], "details");
    const ZOOM: (&[Action], &str) = (&[Action::ZoomIn, Action::ZoomOut], "zoom");
    const MOVE: (&[Action], &str) = (&[Action::Earlier, Action::Later], "move");
    const OBJECT: (&[Action], &str) = (&[Action::NextObject], "object");
    const EVENT: (&[Action], &str) = (&[Action::NextEvent], "event");
    const CURSOR: (&[Action], &str) = (&[Action::Cursor], "cursor");
    const OPERATION: (&[Action], &str) = (
        &[Action::Reads, Action::Writes, Action::Acquires],
        "operation",
    );
    match state.navigation.screen() {
        Screen::Overview => &[
            SELECT,
            DETAILS,
            (&[Action::Phases], "phases"),
            (&[Action::Show(Screen::Findings)], "findings"),
        ],
        Screen::Variables => &[
            SELECT,
            DETAILS,
            (&[Action::Sort], "sort"),
            (&[Action::Filter], "filter"),
        ],
        Screen::Histogram => &[
            ZOOM,
            MOVE,
            (&[Action::NextTarget], "variable"),
            OBJECT,
            OPERATION,
            CURSOR,
        ],
        Screen::VariableHistory => &[
            ZOOM,
            MOVE,
            EVENT,
            (&[Action::NextTarget], "variable"),
            OBJECT,
            DETAILS,
            CURSOR,
        ],
        Screen::ProcessHistory => &[
            ZOOM,
            MOVE,
            EVENT,
            (&[Action::NextTarget], "process"),
            OPERATION,
            DETAILS,
            CURSOR,
        ],
        Screen::Findings if state.path.shown() => &[SELECT, DETAILS, (&[Action::Path], "findings")],
        Screen::Findings => &[
            SELECT,
            (&[Action::Enter], "evidence"),
            (&[Action::Path], "path"),
            (&[Action::CopyPatch], "patch"),
        ],
        Screen::Groups => &[
            (&[Action::Enter], "current/proposed"),
            (&[Action::Earlier, Action::Later], "variables"),
            (&[Action::Show(Screen::Findings)], "findings"),
        ],
        Screen::Health => &[SELECT, (&[Action::Command], "record: what is recorded")],
    }
}

fn keys(state: &State, theme: Theme, width: usize) -> Line<'static> {
    let mut spans = Vec::new();
    let short = |m: &&String| is_short(m, u16::try_from(width).unwrap_or(u16::MAX));
    if let Some(message) = state.finished.as_ref().filter(short) {
        spans.push(Span::styled(
            format!(" {message} — q quits "),
            theme.active(),
        ));
    }
    if let Some(filter) = state.filter() {
        let filter = text::fit(&format!(" /{} ", filter.typed()), 24);
        spans.push(Span::styled(filter, theme.warning()));
    }
    let mut always: Vec<(&[Action], &str)> = vec![
        (&[Action::Pause], "pause"),
        (&[Action::Command], "command"),
        (&[Action::Help], "help"),
        (&[Action::Quit], "quit"),
    ];
    if state.navigation.can_go_back() || state.filter().is_some() {
        always.insert(0, (&[Action::Back], "back"));
    }
    let named = |(actions, does): &(&[Action], &'static str)| {
        let keys = state.keymap.short(actions);
        (!keys.is_empty()).then_some((keys, *does))
    };
    let taken = |(key, does): &(String, &str)| text::width(key) + text::width(does) + 3;
    let always: Vec<(String, &str)> = always.iter().filter_map(named).collect();
    let used: usize = spans.iter().map(Span::width).sum();
    let mut room = width.saturating_sub(used + always.iter().map(taken).sum::<usize>());
    // What does not fit is in the help.
    let fits = |hint: &(String, &str)| {
        let enough = taken(hint) <= room;
        room -= if enough { taken(hint) } else { room };
        enough
    };
    let hints = hints(state).iter().filter_map(named);
    let hints: Vec<_> = hints.filter(fits).collect();
    for (key, does) in hints.into_iter().chain(always) {
        spans.push(Span::styled(format!(" {key}"), theme.title()));
        spans.push(Span::styled(format!(" {does} "), theme.faint()));
    }
    Line::from(spans)
}
