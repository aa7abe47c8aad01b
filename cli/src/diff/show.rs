//! A comparison as text: the conclusion, the runs, the accesses by variable and operation, the phases that differ most, the
//! findings.

use dosmos_analysis::Efficiency;
use dosmos_analysis::compare::{Comparison, PhaseRow, Row, RunSummary, Sums};
use dosmos_proto::Nanos;

use crate::args::Format;
use crate::output::{Cell, Column, Table};

/// Phases shown.
const PHASES: usize = 10;
/// Rows of accesses shown; CSV and JSON have all.
const ROWS: usize = 20;

pub(super) fn report(c: &Comparison) -> String {
    let mut text = format!("{}\n", c.conclusion.verdict);
    for reason in &c.conclusion.because {
        text += &format!("  {:>10}  {}\n", signed(reason.change_ns), reason.text);
    }
    text.push('\n');
    text += &runs(c).render(Format::Table);
    text += &format!("\ntime by variable and operation{}\n", extent(c));
    text += &accesses(&c.matched[..c.matched.len().min(ROWS)]).render(Format::Table);
    match c.matched.len().saturating_sub(ROWS) {
        0 => {}
        more => text += &format!("{more} more rows with less time: --format csv\n"),
    }
    if c.phases.len() > 1 {
        text += &phases(c);
    }
    text += &findings(c);
    text
}

/// What the figures are of.
fn extent(c: &Comparison) -> String {
    match (c.first.phases == c.second.phases, c.conclusion.phases) {
        (true, _) => String::new(),
        (false, 0) => " (no phase is in both runs)".to_owned(),
        (false, n) => format!(" (the {n} phases of both)"),
    }
}

fn signed(ns: i64) -> String {
    let sign = if ns < 0 { "-" } else { "+" };
    format!("{sign}{}", Nanos(ns.unsigned_abs()))
}

fn runs(c: &Comparison) -> Table {
    let mut table = Table::new(&["", "first", "second", "change"]);
    let mut row = |name: &str, of: &dyn Fn(&RunSummary) -> Option<f64>, unit: Unit| {
        let (a, b) = (of(&c.first), of(&c.second));
        let show = |x: Option<f64>| x.map_or("-".to_owned(), |x| unit.show(x));
        let changed = match (a, b) {
            (Some(a), Some(b)) => unit.change(a, b),
            _ => "-".to_owned(),
        };
        table.row([name.to_owned(), show(a), show(b), changed]);
    };
    let efficiency =
        |of: fn(&Efficiency) -> f64| move |r: &RunSummary| r.efficiency.as_ref().map(of);
    row("length", &|r| Some(r.length_ns as f64), Unit::Time);
    row("phases", &|r| Some(r.phases as f64), Unit::Count);
    row("processes", &|r| Some(r.processes as f64), Unit::Count);
    row("accesses", &|r| Some(r.accesses as f64), Unit::Count);
    row("recorded", &|r| Some(r.complete), Unit::Share);
    row("efficiency", &efficiency(|e| e.parallel), Unit::Share);
    row("load balance", &efficiency(|e| e.load_balance), Unit::Share);
    for (to, name) in lost(c) {
        let share = move |r: &RunSummary| {
            let e = r.efficiency.as_ref()?;
            let lost = e.lost.iter().find(|l| l.to == to);
            Some(lost.map_or(0.0, |l| l.share))
        };
        row(&name, &share, Unit::Share);
    }
    table
}

/// What processes did instead of computing in either run, where it was at least half a percent.
fn lost(c: &Comparison) -> Vec<(dosmos_analysis::efficiency::Instead, String)> {
    let runs = [&c.first, &c.second].into_iter();
    let lost = runs
        .filter_map(|r| r.efficiency.as_ref())
        .flat_map(|e| &e.lost);
    let mut kinds: Vec<_> = lost.filter(|l| l.share >= 0.005).map(|l| l.to).collect();
    kinds.sort_unstable();
    kinds.dedup();
    let named = |to: dosmos_analysis::efficiency::Instead| (to, format!("lost: {}", to.name()));
    kinds.into_iter().map(named).collect()
}

#[derive(Clone, Copy)]
enum Unit {
    Time,
    Count,
    Share,
}

impl Unit {
    fn show(self, x: f64) -> String {
        match self {
            Self::Time => Nanos(x as u64).to_string(),
            Self::Count => format!("{x}"),
            Self::Share => format!("{:.1} %", 100.0 * x),
        }
    }

    /// Shares differ by points of percent.
    fn change(self, a: f64, b: f64) -> String {
        match self {
            Self::Share if a == b => "=".to_owned(),
            Self::Share => format!("{:+.1}", 100.0 * (b - a)),
            Self::Time | Self::Count => change(a, b),
        }
    }
}

/// One row per variable and operation: how many, how long each, how long together, where from.
pub(super) fn accesses(rows: &[Row]) -> Table {
    let twice = |of: fn(&str) -> Column, name: &str| [of(name), of(&format!("{name} 2"))];
    let mut columns = vec![Column::plain("variable"), Column::plain("op")];
    columns.extend(twice(Column::plain, "count"));
    columns.extend(twice(Column::time, "each"));
    columns.push(Column::named("change", "change_of_each"));
    columns.extend(twice(Column::time, "p99"));
    columns.extend(twice(Column::time, "together"));
    columns.extend(twice(Column::time, "wait"));
    columns.extend(twice(Column::plain, "inter"));
    let mut table = Table::of(columns);
    for row in rows {
        table.row(cells(row));
    }
    table
}

fn cells(row: &Row) -> Vec<Cell> {
    let both = |of: fn(&Sums) -> Cell| [&row.first, &row.second].map(|s| s.as_ref().map(of));
    let mut cells: Vec<Cell> = vec![row.variable.as_str().into(), row.op.name().into()];
    let mut add = |pair: [Option<Cell>; 2]| cells.extend(pair.map(Cell::from));
    add(both(|s| s.count.into()));
    add(both(|s| Nanos(s.mean_ns()).into()));
    cells.push(match (&row.first, &row.second) {
        (Some(a), Some(b)) => relative(a.mean_ns() as f64, b.mean_ns() as f64),
        (None, _) => Cell::two("new", ""),
        (_, None) => Cell::two("gone", ""),
    });
    let mut add = |pair: [Option<Cell>; 2]| cells.extend(pair.map(Cell::from));
    add(both(|s| s.times.quantile(0.99).into()));
    add(both(|s| s.times.total.into()));
    add(both(|s| Nanos(s.wait_ns).into()));
    add(both(|s| s.inter.into()));
    cells
}

fn relative(a: f64, b: f64) -> Cell {
    match a == 0.0 {
        true => Cell::two(change(a, b), ""),
        false => Cell::two(change(a, b), (b / a - 1.0).to_string()),
    }
}

/// The phases whose length differs most, and what differs in them.
fn phases(c: &Comparison) -> String {
    let difference = |p: &PhaseRow| match (p.first_ns, p.second_ns) {
        (Some(a), Some(b)) => a.abs_diff(b),
        _ => 0,
    };
    let of_both = |p: &&PhaseRow| p.first_ns.is_some() && p.second_ns.is_some();
    let mut by_difference: Vec<&PhaseRow> = c.phases.iter().filter(of_both).collect();
    by_difference.sort_by_key(|p| std::cmp::Reverse(difference(p)));
    let of = by_difference.len();
    let mut table = Table::new(&["phase", "first", "second", "change", "what differs most"]);
    for phase in by_difference.iter().take(PHASES) {
        let (a, b) = (
            phase.first_ns.unwrap_or_default(),
            phase.second_ns.unwrap_or_default(),
        );
        let name = match c.stride {
            1 => phase.phase.to_string(),
            n => format!("{}..{}", phase.phase, phase.phase + n),
        };
        table.row([
            name,
            Nanos(a).to_string(),
            Nanos(b).to_string(),
            change(a as f64, b as f64),
            most(&phase.rows),
        ]);
    }
    let shown = table.len();
    let mut text = format!(
        "\nphases whose length differs most ({shown} of {of})\n{}",
        table.render(Format::Table)
    );
    let only = |of: fn(&PhaseRow) -> bool| c.phases.iter().filter(|p| of(p)).count();
    for (which, n) in [
        ("first", only(|p| p.second_ns.is_none())),
        ("second", only(|p| p.first_ns.is_none())),
    ] {
        if n > 0 {
            text += &format!("{n} phases only in the {which} run\n");
        }
    }
    text
}

/// The variable and operation whose time differs most.
fn most(rows: &[Row]) -> String {
    let row = rows.iter().max_by_key(|r| {
        let (a, b) = r.time_ns();
        a.abs_diff(b)
    });
    row.map_or(String::new(), |r| {
        let (a, b) = r.time_ns();
        let change = i64::try_from(i128::from(b) - i128::from(a)).unwrap_or_default();
        format!("{} {} {}", r.variable, r.op, signed(change))
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
