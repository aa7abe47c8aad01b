//! Memory hierarchies (docs/bibliography.md#memory-hierarchies): time per instruction on SMPs, workstations and clusters of SMPs (figures 2 to 4), in every way of
//! treating a level that saturates.

use dosmos_model::memhier::{Estimate, Machine, estimates};
use dosmos_plot::{Axis, Block, Chart, Color, Table};

const PROGRAMS: [&str; 4] = ["FFT", "LU", "Radix", "EDGE"];
const FIGURES: [(&str, std::ops::RangeInclusive<usize>); 3] = [
    ("Memory hierarchies, figure 2: SMPs", 1..=6),
    (
        "Memory hierarchies, figure 3: clusters of workstations",
        7..=11,
    ),
    ("Memory hierarchies, figure 4: clusters of SMPs", 12..=15),
];

pub(super) fn blocks() -> anyhow::Result<Vec<Block>> {
    let mut blocks = vec![Block::text(
        "The paper compares its model with a simulator; its open queueing formula has no steady state for FFT, LU and Radix \
         on any of its machines (docs/design/models.md#memory-saturation), so its bars show what the formula gives beyond its pole. Here: without \
         queueing (a lower bound), closed (processors slowed by their own stalls; recommended) and the printed formula \
         evaluated beyond saturation.",
    )];
    for (title, configurations) in FIGURES {
        let names: Vec<String> = configurations.map(|c| format!("C{c}")).collect();
        let mut table = Table::new([
            "program",
            "machine",
            "no queue (ns)",
            "closed (ns)",
            "printed formula (ns)",
            "saturated",
        ]);
        let x = Axis::new("").categories(names.clone());
        let y = Axis::new("E(Instr), ns, closed").log();
        let mut chart = Chart::new(title, x, y);
        for (i, program) in PROGRAMS.into_iter().enumerate() {
            let mut line = Vec::new();
            for (at, name) in names.iter().enumerate() {
                let all = estimates(&Machine::configuration(name, program)?)?;
                let nanos = |e: &Estimate| {
                    e.instruction
                        .map_or("–".to_owned(), |s| format!("{:.3}", s * 1e9))
                };
                let saturated: Vec<String> = all
                    .open
                    .saturated
                    .iter()
                    .map(|level| format!("{level:?}").to_lowercase())
                    .collect();
                table.row([
                    program.to_owned(),
                    name.clone(),
                    nanos(&all.none),
                    nanos(&all.closed),
                    nanos(&all.raw),
                    if saturated.is_empty() {
                        "no".to_owned()
                    } else {
                        saturated.join(", ")
                    },
                ]);
                if let Some(s) = all.closed.instruction {
                    line.push((at as f64, s * 1e9));
                }
            }
            chart = chart.line(program, Color::Series(i), line.clone()).marks(
                "",
                Color::Series(i),
                dosmos_plot::Mark::Dot,
                line,
            );
        }
        blocks.push(Block::chart(chart, ""));
        blocks.push(Block::Details {
            summary: "All ways".to_owned(),
            blocks: vec![Block::Table(table)],
        });
    }
    Ok(blocks)
}
