//! The measurements as tables.

use dosmos_cli::args::Format;
use dosmos_cli::output::Table;

use super::measured::{Measured, OfProgram, OfWay};
use crate::statistics::spread;

/// One table of all programs; with measurements of an earlier run, another one beside it.
pub(super) fn tables(measured: &Measured, earlier: Option<&Measured>, format: Format) -> String {
    let mut text = format!("{}\n\n", measured.machine());
    let mut table = Table::new(&[
        "program",
        "way",
        "ms",
        "spread",
        "/ sequential",
        "spread",
        "/ MPI",
        "speed-up",
        "possible",
    ]);
    for program in measured.programs() {
        for way in &program.ways {
            table.row(row(program, way));
        }
    }
    text += &table.render(format);
    if let Some(earlier) = earlier {
        text += &format!("\nNow / then ({}):\n\n", earlier.machine());
        text += &compared(measured, earlier).render(format);
    }
    text
}

fn row(program: &OfProgram, way: &OfWay) -> [String; 9] {
    let [least, median, most] = spread(way.seconds.clone());
    let sequential = program.ways.first().map_or(&[][..], |w| &w.seconds);
    let [low, ratio, high] = ratios(&way.seconds, sequential);
    // Times by the same number of processes: the fastest of the MPI programs.
    let processes = way.way.split(' ').next().unwrap_or_default();
    let alike = format!(", {processes} processes");
    let mpi = program.ways.iter().filter(|w| w.way.ends_with(&alike));
    let mpi = mpi
        .map(|w| spread(w.seconds.clone())[1])
        .min_by(f64::total_cmp);
    let [_, alone, _] = spread(sequential.to_vec());
    let [_, busiest, _] = spread(way.busiest.clone());
    let or_dash = |figure: f64| match figure.is_finite() {
        true => format!("{figure:.2}"),
        false => "–".to_owned(),
    };
    [
        program.program.clone(),
        way.way.clone(),
        format!("{:.2}", median * 1e3),
        format!("{:.2}–{:.2}", least * 1e3, most * 1e3),
        or_dash(ratio),
        format!("{low:.2}–{high:.2}"),
        or_dash(mpi.map_or(f64::NAN, |mpi| median / mpi)),
        or_dash(1.0 / ratio),
        or_dash(alone / busiest),
    ]
}

/// Least, median and greatest of the ratios within a round.
fn ratios(of: &[f64], to: &[f64]) -> [f64; 3] {
    spread(of.iter().zip(to).map(|(of, to)| of / to).collect())
}

/// Times relative to those of an earlier run.
fn compared(measured: &Measured, earlier: &Measured) -> Table {
    let mut table = Table::new(&["program", "way", "now / then", "interval"]);
    for program in measured.programs() {
        for way in &program.ways {
            let then = earlier.of(&program.program).and_then(|p| p.way(&way.way));
            let Some(then) = then else {
                continue;
            };
            let now = spread(way.seconds.clone());
            let then = spread(then.seconds.clone());
            table.row([
                program.program.clone(),
                way.way.clone(),
                format!("{:.2}", now[1] / then[1]),
                format!("{:.2}–{:.2}", now[0] / then[2], now[2] / then[0]),
            ]);
        }
    }
    table
}
