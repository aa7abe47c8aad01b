//! Findings as text: a table, then for each finding the advice, the evidence and the change of the cluster file.

use dosmos_analysis::{Finding, GainFrom, Kind};
use dosmos_client::{Launch, evidence};

use super::answer::{Answer, Judged};
use super::baseline::Change;
use crate::args::Format;
use crate::output::{Cell, Column, Table};

/// Delays in the text: as many, and of at least this fraction of process time.
const DELAYS: usize = 3;
const DELAYED: f64 = 0.01;

/// One row per finding.
pub(super) fn table(answer: &Answer<'_>) -> Table {
    // By this number `--apply` takes a finding.
    let mut columns = vec![Column::named("#", "finding")];
    let headings = ["lost", "gain", "kind", "target", "processes", "complete"];
    columns.extend(headings.map(Column::plain));
    let against_baseline = answer.findings.iter().any(|j| j.change.is_some());
    if against_baseline {
        columns.push(Column::plain("change"));
    }
    let mut table = Table::of(columns);
    for (number, judged) in (1u64..).zip(&answer.findings) {
        let f = judged.finding;
        let mut cells = vec![
            Cell::from(number),
            Cell::share(f.severity),
            gain(f).into(),
            f.kind.name().into(),
            f.target().into(),
            f.aps.join(" ").into(),
            Cell::share(f.completeness),
        ];
        if against_baseline {
            cells.push(change(judged.change).into());
        }
        table.row(cells);
    }
    table
}

/// Everything: the table, and below it each finding in words.
pub(super) fn report(answer: &Answer<'_>, launch: &Launch) -> String {
    let seconds = answer.to_ns.saturating_sub(answer.from_ns) as f64 / 1e9;
    let mut text = format!("{}\n", answer.verdict);
    text += &path(answer);
    if let Some(oversubscribed) = answer.oversubscribed {
        text += &format!("processors: {}\n", oversubscribed.sentence());
    }
    for (what, is) in launch.lines() {
        text += &format!("{what:12}{is}\n");
    }
    text += &match answer.findings.len() {
        0 => format!("no findings in {seconds:.3} s"),
        1 => format!("1 finding in {seconds:.3} s"),
        n => format!("{n} findings in {seconds:.3} s"),
    };
    if answer.complete < 1.0 {
        text += &format!(" ({} of the accesses recorded)", percent(answer.complete));
    }
    text.push('\n');
    if !answer.findings.is_empty() {
        text.push('\n');
        text += &table(answer).render(Format::Table);
    }
    for (number, judged) in (1u64..).zip(&answer.findings) {
        text += &in_words(number, judged);
    }
    if !answer.dismissed.is_empty() {
        text += "\nnot reported, because a replay of the run gains too little with the cure:\n";
        for d in answer.dismissed {
            text += &format!("  {} of {}: saves {}\n", d.kind, d.target, percent(d.gain));
        }
    }
    if !answer.withheld.is_empty() {
        text += "\nwithheld, because records that are missing could explain them:\n";
        for w in answer.withheld {
            text += &format!("  {} of {}: {}\n", w.kind, w.target, w.why);
        }
    }
    text + &races(answer)
}

/// What is not known of data races.
fn races(answer: &Answer<'_>) -> String {
    if !answer.races.looked {
        let why = "leave out --from and --to, or see `dosmos verify`";
        return format!("\ndata races: not looked for ({why})\n");
    }
    let undecided = answer.races.undecided.iter();
    let undecided: String = undecided.map(|why| format!("  {why}\n")).collect();
    match undecided.is_empty() {
        true => String::new(),
        false => format!("\nnot decided (`dosmos verify` says what would decide it):\n{undecided}"),
    }
}

/// The critical path, and the largest delays.
fn path(answer: &Answer<'_>) -> String {
    let Some(path) = answer.critical_path else {
        return String::new();
    };
    let mut text = format!("critical path: {}\n", path.summary);
    let told = answer.delays.iter().filter(|d| d.share >= DELAYED);
    for delay in told.take(DELAYS) {
        text += &format!("  {}\n", delay.text);
    }
    text
}

/// A finding in a line: what it is, of what, and what it costs.
pub(super) fn headline(f: &Finding) -> String {
    let costs = match f.kind {
        Kind::DataRace => "what the program computes may be wrong".to_owned(),
        _ => format!("{:.3} s of process time", f.lost_ns as f64 / 1e9),
    };
    format!("{} of {}: {costs}", f.kind, f.target())
}

fn in_words(number: u64, judged: &Judged<'_>) -> String {
    let f = judged.finding;
    let mut text = format!("\n{number}. {}\n", headline(f));
    text += &format!("  advice    {}\n", f.advice);
    let gained = f.predicted_gain.map(percent);
    match (gained, f.gain_from) {
        (Some(gain), Some(GainFrom::Replay)) => {
            let [least, most] = f.gain_range.unwrap_or_default().map(percent);
            text += &format!(
                "  gain      {gain} of the run time, by a replay of the run ({least} to {most})\n"
            );
        }
        (Some(gain), _) => {
            text += &format!(
                "  gain      about {gain} of the run time, estimated from the costs of accesses\n"
            );
        }
        (None, _) => {}
    }
    for (i, (name, value)) in evidence(f).into_iter().enumerate() {
        let head = if i == 0 { "evidence" } else { "" };
        text += &format!("  {head:10}{name}: {value}\n");
    }
    for (i, line) in f
        .patch_in_short()
        .iter()
        .flat_map(|p| p.lines())
        .enumerate()
    {
        let head = if i == 0 { "patch" } else { "" };
        text += &format!("  {head:10}{line}\n");
    }
    text
}

/// The projected gain; `~` marks an estimate without a replay.
fn gain(finding: &Finding) -> Option<Cell> {
    let gain = finding.predicted_gain?;
    Some(match finding.gain_from {
        Some(GainFrom::Replay) => Cell::share(gain),
        _ => Cell::two(format!("~{}", percent(gain)), gain.to_string()),
    })
}

pub(super) fn change(change: Option<Change>) -> &'static str {
    match change {
        Some(Change::New) => "new",
        Some(Change::Worse) => "worse",
        Some(Change::Known) => "known",
        None => "",
    }
}

fn percent(fraction: f64) -> String {
    format!("{:.1} %", 100.0 * fraction)
}
