//! The title: whose run is shown, how many findings there are, whether it goes on, how much of it is there.

use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::theme::Theme;
use crate::state::{Screen, State};
use dosmos_analysis::Level;
use dosmos_client::text;

/// Columns that the name of the run gets at least, whatever else there is to say.
const LEAST: usize = 16;
/// Columns up to which the name of its program is not cut.
const PROGRAM: usize = 32;
/// Position of the number of findings among the parts.
const BADGE: usize = 2;

/// What gives way to the name of the run where there is no room for everything; each includes those before.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Without {
    Nothing,
    /// The words of the number of findings.
    Words,
    /// The number of records: views 6 and 8 have it.
    Records,
    /// The length of the run: charts have it.
    Length,
    /// `run` of `run finished`.
    Run,
    /// The number of findings of lower levels.
    LowerLevels,
    /// The name of this program.
    Product,
}

impl Without {
    const ALL: [Self; 7] = [
        Self::Nothing,
        Self::Words,
        Self::Records,
        Self::Length,
        Self::Run,
        Self::LowerLevels,
        Self::Product,
    ];
}

/// The title on this many columns.
pub(super) fn line(state: &State, theme: Theme, width: usize) -> Line<'static> {
    let (program, run) = names(state);
    let least = LEAST.max(text::width(&program).min(PROGRAM) + 2);
    let mut spans = Vec::new();
    for without in Without::ALL {
        let parts = parts(state, theme, without);
        let taken: usize = parts.iter().map(|(words, _)| text::width(words)).sum();
        let room = width.saturating_sub(taken);
        let product = match without {
            Without::Product => " ",
            _ => " dosmos  ",
        };
        let whole = text::width(&run);
        let wanted = match without {
            Without::Nothing => whole,
            _ => whole.min(least),
        };
        let name = text::left(&format!("{product}{run}"), room);
        let name = Span::styled(name, theme.title());
        let parts = parts.into_iter();
        spans = parts
            .map(|(words, style)| Span::styled(words, style))
            .collect();
        spans.insert(0, name);
        if text::width(product) + wanted <= room {
            break;
        }
    }
    Line::from(spans)
}

/// What the program of the run is called, and that with what was opened.
fn names(state: &State) -> (String, String) {
    let program = state.data.catalog.topology.name();
    let run = match program {
        "" => state.title.clone(),
        _ if state.title.is_empty() => program.to_owned(),
        _ => format!("{program} · {}", state.title),
    };
    (program.to_owned(), run)
}

/// What stands beside the name: what is held back, findings, whether the run goes on, facts.
fn parts(state: &State, theme: Theme, without: Without) -> [(String, Style); 4] {
    let live = state.data.catalog.live && state.finished.is_none();
    let phase = match (&state.finished, state.data.catalog.live) {
        _ if !state.data.answered => "",
        (Some(_), _) if without >= Without::Run => " finished ",
        (Some(_), _) => " run finished ",
        (None, true) => " live ",
        (None, false) => " post-mortem ",
    };
    [
        (held_back(state), theme.active()),
        badge(state, theme, without),
        (
            phase.to_owned(),
            if live { theme.good() } else { theme.faint() },
        ),
        (facts(state, without), Style::new()),
    ]
}

/// Length, records, and whether that is all.
fn facts(state: &State, without: Without) -> String {
    let data = &state.data;
    let mut facts = Vec::new();
    if data.answered {
        let extent = data.catalog.extent.filter(|_| without < Without::Length);
        facts.extend(extent.map(|extent| text::time(extent.length())));
        if without < Without::Records {
            facts.push(text::plural(data.catalog.records, "record"));
        }
        let troubles = data.launch.troubles(data.catalog.live);
        let whole = troubles.is_empty() && state.completeness().is_complete();
        facts.push(if whole { "complete" } else { "INCOMPLETE" }.to_owned());
    }
    format!(" {} ", facts.join(" · "))
}

/// The number of findings by level, the worst first, and its style; nothing as long as nothing was searched.
fn badge(state: &State, theme: Theme, without: Without) -> (String, Style) {
    let Some(levels) = state.analysis.levels() else {
        return (String::new(), Style::new());
    };
    let there = levels.iter().filter(|(_, n)| *n > 0);
    let style = match there.clone().next() {
        Some((Level::High, _)) => theme.bad().patch(theme.active()),
        Some((Level::Medium, _)) => theme.warning(),
        _ => Style::new(),
    };
    let most = match without {
        w if w >= Without::LowerLevels => 1,
        _ => levels.len(),
    };
    let counted = there.take(most).map(|(l, n)| format!("{n} {}", l.name()));
    let counted = counted.collect::<Vec<_>>().join(", ");
    let all: usize = levels.iter().map(|(_, n)| n).sum();
    let words = match (all, without) {
        (0, Without::Nothing) => " no findings ".to_owned(),
        (0, _) => " 6: none ".to_owned(),
        (_, Without::Nothing) => {
            format!(" {}: {counted} ", text::plural(all as u64, "finding"))
        }
        _ => format!(" 6: {counted} "),
    };
    (words, style)
}

/// Whether the number of findings is at a column of the title.
pub(super) fn badge_at(state: &State, width: u16, x: u16) -> bool {
    let title = line(state, Theme::from(state.look), usize::from(width));
    let mut spans = title.spans.iter();
    let from: usize = spans.by_ref().take(BADGE).map(Span::width).sum();
    let to = from + spans.next().map_or(0, Span::width);
    (from..to).contains(&usize::from(x))
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
