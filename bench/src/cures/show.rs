//! The measurements as a table with sentences below it, or as JSON.

use dosmos_analysis::GainFrom;
use dosmos_cli::args::Format;
use dosmos_cli::output::{Cell, Column, Table};
use dosmos_plot::{Block, Page};
use serde_json::json;

use super::measured::{How, OfCure, OfProgram};
use super::programs::Program;
use super::summary::Summary;
use crate::args::{CuresArgs, CuresFormat};
use crate::machine::machine;
use crate::statistics::spread;

/// The programs with their arguments.
pub(super) fn list(programs: &[Program]) -> String {
    let mut table = Table::new(&["name", "program"]);
    for program in programs {
        table.row([program.name.clone(), program.to_string()]);
    }
    table.render(Format::Table)
}

/// Everything, in the format asked for.
pub(super) fn shown(measured: &[OfProgram], args: &CuresArgs) -> anyhow::Result<String> {
    let summary = Summary::of(measured);
    let setting = format!("{}; {} pairs of runs of each cure", machine(), args.pairs);
    let table = table(measured);
    Ok(match args.format {
        CuresFormat::Table => format!(
            "{setting}\n\n{}\n{}\n",
            table.render(Format::Table),
            summary.lines().join("\n")
        ),
        // Its rows alone: programs read what is summed up from the JSON.
        CuresFormat::Csv => table.render(Format::Csv),
        CuresFormat::Markdown => {
            let mut page = Page::new("Cures", &setting);
            page.section("Gains", vec![table.page()]);
            let lines = summary.lines();
            page.section("Summary", lines.iter().map(Block::text).collect());
            page.markdown(|_, _| String::new())
        }
        CuresFormat::Json => {
            let all = json!({
                "machine": machine(), "pairs": args.pairs, "patches": args.patches,
                "programs": measured, "summary": summary,
            });
            serde_json::to_string_pretty(&all)? + "\n"
        }
    })
}

/// Headings, and the names of the columns in CSV, where lengths are in nanoseconds and gains are fractions.
const COLUMNS: [(&str, &str); 13] = [
    ("program", "program"),
    ("run (ms)", "run_ns"),
    ("rank", "rank"),
    ("kind", "kind"),
    ("target", "target"),
    ("cure", "cure"),
    ("predicted (%)", "predicted_gain"),
    ("from", "gain_from"),
    ("measured (%)", "measured_gain"),
    ("at least (%)", "measured_low"),
    ("at most (%)", "measured_high"),
    ("difference (points)", "difference"),
    ("result", "result"),
];

fn table(measured: &[OfProgram]) -> Table {
    let columns = COLUMNS.map(|(heading, key)| Column::named(heading, key));
    let mut table = Table::of(columns);
    for program in measured {
        for cure in &program.cures {
            table.row(row(program, Some(cure)));
        }
        if program.cures.is_empty() || program.failed.is_some() {
            table.row(row(program, None));
        }
    }
    table
}

/// A cure of a program; without one, why there is none.
fn row(program: &OfProgram, cure: Option<&OfCure>) -> [Cell; 13] {
    let percent = |fraction: f64| {
        let shown = format!("{:+.1}", 100.0 * fraction);
        Cell::two(shown, fraction.to_string())
    };
    let gain = cure.and_then(|c| c.measured);
    let run = match program.run_us.is_empty() {
        true => program.checked_us,
        false => Some(spread(program.run_us.clone())[1]),
    };
    let run = run.map(|us| Cell::two(format!("{:.0}", us / 1e3), format!("{:.0}", us * 1e3)));
    let rank = cure.and_then(|c| c.rank);
    [
        program.program.as_str().into(),
        run.into(),
        rank.map(|rank| rank as u64).into(),
        cure.map(|c| c.kind.name()).into(),
        cure.map(|c| c.target.clone()).into(),
        cure.map(|c| how(c.how)).into(),
        cure.and_then(|c| c.predicted_gain).map(percent).into(),
        cure.and_then(|c| c.gain_from).map(from).into(),
        gain.map(|g| percent(g.mean)).into(),
        gain.map(|g| percent(g.low)).into(),
        gain.map(|g| percent(g.high)).into(),
        cure.and_then(OfCure::difference).map(percent).into(),
        result(program, cure).into(),
    ]
}

fn how(how: How) -> &'static str {
    match how {
        How::Patch => "patch",
        How::Healthy => "healthy program",
        How::None => "in the program",
    }
}

/// What a gain was predicted from, as in the JSON of `dosmos check`.
fn from(from: GainFrom) -> String {
    let json = json!(from);
    json.as_str()
        .map_or_else(|| json.to_string(), str::to_owned)
}

fn result(program: &OfProgram, cure: Option<&OfCure>) -> String {
    let Some(cure) = cure else {
        return match (&program.failed, program.findings) {
            (Some(why), _) => format!("the program failed: {why}"),
            (None, 0) => "no finding".to_owned(),
            (None, n) => format!("{n} findings, no cure to try"),
        };
    };
    let of_rank = match cure.rank {
        Some(_) => "",
        None => ", should be found",
    };
    let measured = match (&cure.failed, cure.how) {
        (Some(why), _) => format!("failed: {why}"),
        (None, How::None) => "not tried".to_owned(),
        (None, _) if cure.is_faster() => "faster".to_owned(),
        (None, _) if cure.is_slower() => "slower".to_owned(),
        (None, _) if cure.measured.is_some() => "within noise".to_owned(),
        (None, _) => "not measured".to_owned(),
    };
    measured + of_rank
}
