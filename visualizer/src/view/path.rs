//! The critical path and who was waited for why: shares by what it was, a table of the parts, a table of the delays, and below
//! them the selected row, with the causes of its cause.

use std::ops::Range;

use dosmos_analysis::{CriticalPath, Delay, PathPart};
use dosmos_client::{Part, text};
use dosmos_proto::Nanos;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::Style;
use ratatui::text::Line;
use ratatui::widgets::Paragraph;

use super::findings;
use super::message::message;
use super::table::{self, Column};
use super::theme::Theme;
use crate::state::{PathRow, State};

/// Heading with shares, table of the parts, table of the delays, detail.
fn layout(state: &State, area: Rect) -> [Rect; 4] {
    let head = shares(state, area.width).len() as u16 + 1;
    let most = (area.height.saturating_sub(head) / 3)
        .saturating_sub(1)
        .clamp(2, 12);
    let (parts, all) = (state.path.parts(), state.path.rows().len());
    let rows = |n: usize| u16::try_from(n).unwrap_or(u16::MAX).clamp(1, most) + 1;
    let rows = [
        Constraint::Length(head),
        Constraint::Length(rows(parts)),
        Constraint::Length(rows(all - parts)),
        Constraint::Min(3),
    ];
    Layout::vertical(rows).areas(area)
}

/// The rows seen in the table of the parts or, if not `of_parts`, of the delays.
fn visible(state: &State, of_parts: bool, area: Rect) -> Range<usize> {
    let (parts, all) = (state.path.parts(), state.path.rows().len());
    let (first, end) = if of_parts { (0, parts) } else { (parts, all) };
    let seen = usize::from(area.height).saturating_sub(1).min(end - first);
    let selected = state.path.rows().position();
    // The table without the selection shows its begin.
    let from = match (first..end).contains(&selected) {
        true => selected.saturating_sub(seen / 2).clamp(first, end - seen),
        false => first,
    };
    from..from + seen
}

/// The row at a line of the screen.
pub(super) fn row_at(state: &State, area: Rect, y: u16) -> Option<usize> {
    state.analysis.part()?;
    let [_, parts, delays, _] = layout(state, area);
    let at = |area: Rect, of_parts| {
        let line = usize::from(y.checked_sub(area.y + 1)?);
        visible(state, of_parts, area).nth(line)
    };
    at(delays, false).or_else(|| at(parts, true).filter(|_| y < delays.y))
}

pub(super) fn render(frame: &mut Frame<'_>, area: Rect, state: &State, theme: Theme) {
    let Some(analysed) = state.analysis.part() else {
        return message(frame, area, &findings::none_yet(state));
    };
    let Some(path) = &analysed.analysis.critical_path else {
        return message(
            frame,
            area,
            "No operation was recorded in this part of the run.",
        );
    };
    let [top, parts, delays, below] = layout(state, area);
    let mut head = vec![heading(state, analysed, path, theme)];
    let shares = shares(state, area.width).into_iter();
    head.extend(shares.map(|line| Line::styled(format!(" {line}"), theme.section())));
    frame.render_widget(Paragraph::new(head), top);
    frame.render_widget(Paragraph::new(table_of_parts(state, theme, parts)), parts);
    frame.render_widget(
        Paragraph::new(table_of_delays(state, theme, delays)),
        delays,
    );
    frame.render_widget(Paragraph::new(detail(state, analysed, theme, below)), below);
}

fn heading(state: &State, analysed: &Part, path: &CriticalPath, theme: Theme) -> Line<'static> {
    let start = state.data.extent().from;
    let at = |t: Nanos| format!("{:.1}", (t - start).as_secs_f64());
    let (from, to) = (at(analysed.range.from), at(analysed.range.to));
    let missing = match path.complete {
        true => "",
        false => " · INCOMPLETE: it may lead through what was not recorded",
    };
    let words = format!(
        " critical path of {from}–{to} s: {}{missing}",
        text::time(Nanos(path.length_ns)),
    );
    Line::styled(text::fit(&words, usize::from(state.size.0)), theme.title())
}

/// How much of the path was what, and what is not explained.
fn shares(state: &State, width: u16) -> Vec<String> {
    let path = state.analysis.part();
    let Some(path) = path.and_then(|part| part.analysis.critical_path.as_ref()) else {
        return Vec::new();
    };
    let kinds = path.kinds.iter();
    let mut words: Vec<String> = kinds
        .map(|kind| format!("{} {}", in_words(kind.doing), findings::share(kind.share)))
        .collect();
    if path.unexplained_ns > 0 {
        let time = text::time(Nanos(path.unexplained_ns));
        words.push(format!("waits for locks without a recorded cause: {time}"));
    }
    text::wrap(&words.join(" · "), usize::from(width).saturating_sub(2))
}

fn table_of_parts(state: &State, theme: Theme, area: Rect) -> Vec<Line<'static>> {
    let names = usize::from(area.width).saturating_sub(6 + 9 + 1);
    let of = (names / 3).clamp(12, 40);
    let columns = [
        Column::figures("PATH", 5),
        Column::figures("TIME", 8),
        Column::names("DOES", 14),
        Column::names("OF", of),
        Column::names("PROCESS", names.saturating_sub(14 + of + 2)),
    ];
    let mut lines = vec![table::titles(&columns, theme.title())];
    if state.path.parts() == 0 {
        lines.push(none(state, "Nothing was on the path", theme));
    }
    for i in visible(state, true, area) {
        let PathRow::Part(part) = &state.path.rows()[i] else {
            continue;
        };
        let (marker, base) = table::selection(i == state.path.rows().position(), theme);
        let several = || "several".to_owned();
        let cells = [
            (findings::share(part.share), Style::new()),
            (text::time(Nanos(part.time_ns)), Style::new()),
            (in_words(part.doing).to_owned(), theme.wait()),
            (part.of.clone().unwrap_or_default(), theme.title()),
            (part.process.clone().unwrap_or_else(several), Style::new()),
        ];
        lines.push(table::row(&columns, cells, marker, base));
    }
    lines
}

fn table_of_delays(state: &State, theme: Theme, area: Rect) -> Vec<Line<'static>> {
    let names = usize::from(area.width).saturating_sub(6 + 9 + 1);
    let process = 12;
    let at = (names.saturating_sub(process) / 3).clamp(12, 30);
    let columns = [
        Column::figures("LOST", 5),
        Column::figures("TIME", 8),
        Column::names("WAITED FOR", process),
        Column::names("AT", at),
        Column::names("BECAUSE IT", names.saturating_sub(process + at + 2)),
    ];
    let mut lines = vec![table::titles(&columns, theme.title())];
    if state.path.parts() == state.path.rows().len() {
        lines.push(none(state, "No process waited for another", theme));
    }
    for i in visible(state, false, area) {
        let PathRow::Delay(delay) = &state.path.rows()[i] else {
            continue;
        };
        let (marker, base) = table::selection(i == state.path.rows().position(), theme);
        let nobody = || "copies".to_owned();
        let cells = [
            (findings::share(delay.share), Style::new()),
            (text::time(Nanos(delay.waited_ns)), Style::new()),
            (delay.process.clone().unwrap_or_else(nobody), Style::new()),
            (delay.of.clone(), theme.title()),
            (because(delay), theme.wait()),
        ];
        lines.push(table::row(&columns, cells, marker, base));
    }
    lines
}

/// In place of rows.
fn none(state: &State, why: &str, theme: Theme) -> Line<'static> {
    let text = match state.filter() {
        Some(_) => "   Nothing matches the filter.".to_owned(),
        None => format!("   {why} for at least 0.5 % of the time."),
    };
    Line::styled(text, theme.faint())
}

/// What is done on the path, in words.
fn in_words(doing: &str) -> &str {
    match doing {
        "access" => "local access",
        "remote" => "remote access",
        "lock" => "locks",
        "barrier" => "barriers",
        "other" => "many others",
        other => other,
    }
}

/// What the process that was waited for did, in short.
fn because(delay: &Delay) -> String {
    let of = delay.because_of.as_deref().unwrap_or_default();
    let by = delay.because_by.as_deref().unwrap_or("others in turn");
    match delay.because {
        "computing" => "computed".to_owned(),
        "access" => format!("read and wrote {of}"),
        "remote" => format!("read and wrote {of}, remotely"),
        "lock" => format!("locked {of}"),
        "held" => format!("waited for {of}, held by {by}"),
        "late" => format!("waited for {by} at {of}"),
        "copies" => "waited for acknowledgements".to_owned(),
        "barrier" => format!("was at {of}"),
        _ => "did many small things".to_owned(),
    }
}

/// The selected row in full.
fn detail(state: &State, analysed: &Part, theme: Theme, area: Rect) -> Vec<Line<'static>> {
    let width = usize::from(area.width).saturating_sub(2);
    let mut lines = vec![Line::raw("")];
    let mut add = |words: &str, indent: usize, style: Style| {
        for line in text::wrap(words, width.saturating_sub(indent)) {
            lines.push(Line::styled(format!(" {:indent$}{line}", ""), style));
        }
    };
    match state.path.rows().selected() {
        None => {}
        Some(PathRow::Part(part)) => add(&of_part(part), 0, Style::new()),
        Some(PathRow::Delay(delay)) => {
            for (depth, link) in state
                .path
                .chain(&analysed.analysis.delays)
                .iter()
                .enumerate()
            {
                add(
                    &link.text,
                    2 * depth.min(5),
                    if depth == 0 {
                        Style::new()
                    } else {
                        theme.faint()
                    },
                );
            }
            let who = delay.waiting.join(" ");
            let times = text::plural(delay.times, "time");
            add(&format!("waiting, {times}: {who}"), 0, theme.faint());
            if let Some(share) = delay.path_share {
                let cause = delay.because_by.as_ref().or(delay.process.as_ref());
                let cause = cause.map_or("it", String::as_str);
                let share = findings::share(share);
                add(
                    &format!("{share} of the critical path leads through {cause}"),
                    0,
                    theme.section(),
                );
            }
        }
    }
    let room = usize::from(area.height);
    if lines.len() > room {
        let hidden = lines.len() + 1 - room;
        lines.truncate(room.saturating_sub(1));
        lines.push(Line::styled(
            format!(" … {hidden} more lines on a higher terminal"),
            theme.faint(),
        ));
    }
    lines
}

fn of_part(part: &PathPart) -> String {
    let who = part.process.as_deref().unwrap_or("several processes");
    let of = part.of.as_deref().unwrap_or_default();
    let did = match part.doing {
        "computing" => "computed".to_owned(),
        "access" => format!("read and wrote {of} at its own memory process"),
        "remote" => format!("read and wrote {of} at other memory processes"),
        "lock" => format!("acquired and released {of}"),
        "barrier" => format!("went through {of}"),
        _ => "did what is too little for a row of its own".to_owned(),
    };
    format!(
        "{who} {did} for {} of the critical path",
        text::time(Nanos(part.time_ns))
    )
}
