//! The findings: a table sorted by the time lost, and below it the selected one with its advice, its
//! change of the cluster file, and its evidence.

use dosmos_analysis::{Finding, GainFrom, Level};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::Style;
use ratatui::text::Line;
use ratatui::widgets::Paragraph;

use super::message::message;
use super::table::{self, Column};
use super::theme::Theme;
use crate::state::State;
use crate::state::analysis::time_lost;
use dosmos_client::{Part, text};

/// Heading, with what is said of all of the run; table; detail: the table takes no more than it needs.
pub(super) fn layout(state: &State, area: Rect) -> [Rect; 3] {
    let said = state
        .analysis
        .part()
        .map_or(0, |part| of_the_run(part, area).len());
    let said = u16::try_from(said).unwrap_or(u16::MAX);
    let needed = u16::try_from(state.analysis.findings().len()).unwrap_or(u16::MAX);
    let most = (area.height / 2).saturating_sub(1).clamp(3, 20);
    let table = needed.saturating_add(1).clamp(3, most);
    let rows = [
        Constraint::Length(said.saturating_add(1)),
        Constraint::Length(table),
        Constraint::Min(3),
    ];
    Layout::vertical(rows).areas(area)
}

/// What is true of the whole run, and no finding: that its processes lack processors.
fn of_the_run(part: &Part, area: Rect) -> Vec<String> {
    let width = usize::from(area.width).saturating_sub(2);
    let lack = part.analysis.oversubscribed.as_ref();
    lack.map_or(Vec::new(), |lack| text::wrap(&lack.sentence(), width))
}

pub(super) fn render(frame: &mut Frame<'_>, area: Rect, state: &State, theme: Theme) {
    let Some(analysed) = state.analysis.part() else {
        return message(frame, area, &none_yet(state));
    };
    let [top, list, below] = layout(state, area);
    let said = of_the_run(analysed, area).into_iter();
    let said = said.map(|line| Line::styled(format!(" {line}"), theme.wait()));
    let head: Vec<Line<'_>> = [heading(state, analysed, theme)]
        .into_iter()
        .chain(said)
        .collect();
    frame.render_widget(Paragraph::new(head), top);
    if state.analysis.findings().is_empty() {
        let text = match analysed.analysis.findings.len() {
            0 => {
                "Nothing found that costs time in this part of the run.\nTo choose another part, zoom or move a chart (views 3 to 5) with + - ← →."
            }
            _ => "No finding matches the filter.",
        };
        return message(frame, list, text);
    }
    frame.render_widget(Paragraph::new(rows(state, analysed, theme, list)), list);
    frame.render_widget(Paragraph::new(detail(state, theme, below)), below);
}

/// Why there are no findings to show yet.
pub(super) fn none_yet(state: &State) -> String {
    match (state.data.catalog.extent, state.analysis.error()) {
        (None, _) => "No access has been recorded yet.".to_owned(),
        (Some(_), None) => "Reading the records …".to_owned(),
        (Some(_), Some(why)) => format!("The records cannot be read: {why}"),
    }
}

/// What was analysed: number of findings, time range, number of records.
pub(super) fn heading(state: &State, analysed: &Part, theme: Theme) -> Line<'static> {
    let shown = state.analysis.findings().len() as u64;
    let start = state.data.extent().from;
    let at = |t: dosmos_proto::Nanos| format!("{:.1}", (t - start).as_secs_f64());
    let (from, to) = (at(analysed.range.from), at(analysed.range.to));
    let cut = match analysed.cut {
        true => format!(" (last {})", text::time(analysed.range.length())),
        false => String::new(),
    };
    let complete = match analysed.analysis.complete {
        c if c >= 1.0 => String::new(),
        c => format!(" · based on {:.0}% of the accesses", 100.0 * c),
    };
    let search = &analysed.analysis.races;
    let races = match (search.looked, search.undecided.is_empty()) {
        (true, true) => "",
        (true, false) => " · data races not all decided",
        (false, _) => " · data races not looked for",
    };
    let words = format!(
        " {} by time lost · {from}–{to} s{cut} · {}{complete}{races}",
        text::plural(shown, "finding"),
        text::plural(analysed.records, "record"),
    );
    Line::styled(text::fit(&words, usize::from(state.size.0)), theme.title())
}

fn rows(state: &State, analysed: &Part, theme: Theme, area: Rect) -> Vec<Line<'static>> {
    let width = usize::from(area.width);
    let left = width.saturating_sub(5 + 8 + 6 + 16 + 6);
    let target = (left / 2).clamp(10, 40);
    let columns = [
        Column::figures("LOST", 5),
        Column::figures("TIME", 8),
        Column::figures("GAIN", 6),
        Column::names("KIND", 16),
        Column::names("TARGET", target),
        Column::names("WHO", left.saturating_sub(target)),
    ];
    let mut lines = vec![table::titles(&columns, theme.title())];
    let seen = usize::from(area.height).saturating_sub(1);
    let processes = state.data.catalog.topology.application_processes().len();
    let shown = state.analysis.findings();
    for i in shown.visible(seen) {
        let finding = &analysed.analysis.findings[shown[i]];
        let selected = i == shown.position();
        let (marker, base) = table::selection(selected, theme);
        let lost = time_lost(finding, analysed, processes);
        let severe = match finding.level() {
            Level::High => theme.bad(),
            _ => Style::new(),
        };
        let cells = [
            (share(finding.severity), severe),
            (text::time(lost), Style::new()),
            (gain(finding), theme.good()),
            (finding.kind.name().to_owned(), theme.wait()),
            (finding.target(), theme.title()),
            (who(finding), Style::new()),
        ];
        lines.push(table::row(&columns, cells, marker, base));
    }
    lines
}

pub(super) fn share(fraction: f64) -> String {
    match 100.0 * fraction {
        p if p > 0.0 && p < 1.0 => "<1%".to_owned(),
        p => format!("{p:.0}%"),
    }
}

/// The projected gain; `~` marks an estimate without a replay.
fn gain(finding: &Finding) -> String {
    match (finding.predicted_gain, finding.gain_from) {
        (None, _) => "–".to_owned(),
        (Some(gain), Some(GainFrom::Replay)) => share(gain),
        (Some(gain), _) => format!("~{}", share(gain)),
    }
}

/// The projected gain in words, and where it comes from.
fn gain_in_words(finding: &Finding) -> Option<String> {
    let gain = share(finding.predicted_gain?).replace('%', " %");
    Some(match finding.gain_from {
        Some(GainFrom::Replay) => {
            format!("gain: {gain} of the run time, by a replay of the run")
        }
        _ => format!(
            "gain: about {gain} of the run time, estimated from the costs of accesses in this part of the run"
        ),
    })
}

/// The processes if they are few, otherwise the groups.
fn who(finding: &Finding) -> String {
    match finding.aps.len() {
        0 => finding.groups.join(" "),
        1..=4 => finding.aps.join(" "),
        n => format!("{n} processes, {} …", finding.aps[0]),
    }
}

/// All processes and groups, where the table names only some.
fn everybody(finding: &Finding) -> String {
    let processes = finding.aps.join(" ");
    let groups = finding.groups.join(" ");
    match (finding.aps.len() > 4, finding.groups.len() > 1) {
        (false, false) => String::new(),
        (true, false) => format!("processes: {processes}"),
        (false, true) => format!("groups: {groups}"),
        (true, true) => format!("processes: {processes} · groups: {groups}"),
    }
}

/// Everything about the selected finding.
fn detail(state: &State, theme: Theme, area: Rect) -> Vec<Line<'static>> {
    let Some(finding) = state.analysis.selected_finding() else {
        return Vec::new();
    };
    let width = usize::from(area.width).saturating_sub(2);
    let mut lines = vec![Line::raw("")];
    let title = format!(" {} · {}", finding.kind, finding.target());
    lines.push(Line::styled(text::fit(&title, width), theme.title()));
    for line in text::wrap(&everybody(finding), width) {
        lines.push(Line::styled(format!(" {line}"), theme.faint()));
    }
    for line in text::wrap(&finding.advice, width) {
        lines.push(Line::raw(format!(" {line}")));
    }
    for line in text::wrap(&gain_in_words(finding).unwrap_or_default(), width) {
        lines.push(Line::styled(format!(" {line}"), theme.good()));
    }
    if finding.completeness < 1.0 {
        let from = format!(
            " based on {:.0}% of the accesses",
            100.0 * finding.completeness
        );
        lines.push(Line::styled(from, theme.faint()));
    }
    for line in finding.patch_in_short().iter().flat_map(|p| p.lines()) {
        let style = match line.chars().next() {
            Some('+') => theme.good(),
            Some('-') => theme.bad(),
            _ => theme.faint(),
        };
        lines.push(Line::styled(
            format!("   {}", text::fit(line, width)),
            style,
        ));
    }
    let evidence = dosmos_client::evidence(finding).into_iter();
    let evidence: Vec<String> = evidence
        .map(|(name, value)| format!("{name}: {value}"))
        .collect();
    for line in text::wrap(&evidence.join(" · "), width) {
        lines.push(Line::styled(format!(" {line}"), theme.section()));
    }
    let room = usize::from(area.height);
    if lines.len() > room {
        let hidden = lines.len() + 1 - room;
        lines.truncate(room.saturating_sub(1));
        let more = format!(" … {hidden} more lines on a higher terminal, or `dosmos check`");
        lines.push(Line::styled(more, theme.faint()));
    }
    lines
}
