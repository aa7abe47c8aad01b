//! A comparison as text: the runs, the accesses by variable and operation, the phases that differ most, the findings.

use dosmos_analysis::compare::{Comparison, PhaseRow, Row, RunSummary, Sums};

use crate::args::Format;
use crate::output::Table;

/// Phases shown.
const PHASES: usize = 10;

pub(super) fn report(c: &Comparison) -> String {
    let mut text = runs(c).render(Format::Table);
    text += "\naccesses by variable and operation (2: second run)\n";
    text += &totals(c).render(Format::Table);
    if !c.phases.is_empty() {
        text += &phases(c);
    }
    text += &findings(c);
    text
}

fn runs(c: &Comparison) -> Table {
    let mut table = Table::new(&["", "first", "second", "change"]);
    let mut row = |name: &str, of: fn(&RunSummary) -> f64, unit: &str| {
        let (a, b) = (of(&c.first), of(&c.second));
        let show = |x: f64| match unit {
            "s" => format!("{x:.3} s"),
            "%" => format!("{x:.1} %"),
            _ => format!("{x}"),
        };
        table.row([name.to_owned(), show(a), show(b), change(a, b)]);
    };
    row("length", |r| r.length_ns as f64 / 1e9, "s");
    row("phases", |r| r.phases as f64, "");
    row("processes", |r| r.processes as f64, "");
    row("accesses", |r| r.accesses as f64, "");
    row("recorded", |r| 100.0 * r.complete, "%");
    table
}

/// One row per variable and operation.
pub(super) fn totals(c: &Comparison) -> Table {
    let mut table = Table::new(&[
        "variable",
        "op",
        "count",
        "count 2",
        "change",
        "time ms",
        "time 2 ms",
        "change",
        "wait ms",
        "wait 2 ms",
        "local",
        "local 2",
        "intra",
        "intra 2",
        "inter",
        "inter 2",
    ]);
    for row in &c.totals {
        table.row(cells(row));
    }
    table
}

fn cells(row: &Row) -> Vec<String> {
    let both = |of: fn(&Sums) -> u64| {
        let one = |s: &Option<Sums>| s.as_ref().map_or(0, of) as f64;
        (one(&row.first), one(&row.second))
    };
    let mut cells = vec![row.variable.clone(), row.op.name().to_owned()];
    let (count, time, wait) = (both(|s| s.count), both(|s| s.time_ns), both(|s| s.wait_ns));
    let ms = |ns: f64| format!("{:.3}", ns / 1e6);
    cells.extend([
        count.0.to_string(),
        count.1.to_string(),
        change(count.0, count.1),
    ]);
    cells.extend([ms(time.0), ms(time.1), change(time.0, time.1)]);
    cells.extend([ms(wait.0), ms(wait.1)]);
    for (a, b) in [both(|s| s.local), both(|s| s.intra), both(|s| s.inter)] {
        cells.extend([a.to_string(), b.to_string()]);
    }
    cells
}

/// The phases whose length differs most, and what differs in them.
fn phases(c: &Comparison) -> String {
    let difference = |p: &PhaseRow| match (p.first_ns, p.second_ns) {
        (Some(a), Some(b)) => a.abs_diff(b),
        (one, two) => one.or(two).unwrap_or(0),
    };
    let mut by_difference: Vec<&PhaseRow> = c.phases.iter().collect();
    by_difference.sort_by_key(|p| std::cmp::Reverse(difference(p)));
    let mut table = Table::new(&[
        "phase",
        "first ms",
        "second ms",
        "change",
        "what differs most",
    ]);
    for phase in by_difference.iter().take(PHASES) {
        let ms =
            |ns: Option<u64>| ns.map_or("-".to_owned(), |ns| format!("{:.3}", ns as f64 / 1e6));
        let changed = match (phase.first_ns, phase.second_ns) {
            (Some(a), Some(b)) => change(a as f64, b as f64),
            (None, _) => "new".to_owned(),
            (_, None) => "gone".to_owned(),
        };
        let name = match c.stride {
            1 => phase.phase.to_string(),
            n => format!("{}..{}", phase.phase, phase.phase + n),
        };
        table.row([
            name,
            ms(phase.first_ns),
            ms(phase.second_ns),
            changed,
            most(&phase.rows),
        ]);
    }
    let shown = c.phases.len().min(PHASES);
    let of = c.phases.len();
    format!(
        "\nphases whose length differs most ({shown} of {of})\n{}",
        table.render(Format::Table)
    )
}

/// The variable and operation whose time differs most.
fn most(rows: &[Row]) -> String {
    let time = |s: &Option<Sums>| s.as_ref().map_or(0, |s| s.time_ns);
    let row = rows
        .iter()
        .max_by_key(|r| time(&r.first).abs_diff(time(&r.second)));
    row.map_or(String::new(), |r| {
        let (a, b) = (time(&r.first) as f64 / 1e6, time(&r.second) as f64 / 1e6);
        format!("{} {} {:+.3} ms", r.variable, r.op, b - a)
    })
}

fn findings(c: &Comparison) -> String {
    let mut text = "\nfindings\n".to_owned();
    let percent = |x: f64| format!("{:.1} %", 100.0 * x);
    for f in &c.findings.new {
        text += &format!(
            "  only second  {} of {}: {}; {}\n",
            f.kind,
            f.target(),
            percent(f.severity),
            f.advice
        );
    }
    for f in &c.findings.gone {
        text += &format!(
            "  only first   {} of {}: {}\n",
            f.kind,
            f.target(),
            percent(f.severity)
        );
    }
    for k in &c.findings.kept {
        let (a, b) = (percent(k.first), percent(k.second));
        text += &format!("  both         {} of {}: {a}, then {b}\n", k.kind, k.target);
    }
    if c.findings == Default::default() {
        text += "  none in either run\n";
    }
    text
}

/// By how much `b` differs from `a`.
fn change(a: f64, b: f64) -> String {
    match (a == b, a == 0.0) {
        (true, _) => "=".to_owned(),
        (_, true) => "new".to_owned(),
        _ => format!("{:+.1} %", 100.0 * (b - a) / a),
    }
}
