//! Tables of what was measured.

use dosmos_cli::output::Table;
use serde_json::json;

use super::pairs::{Pair, Row};
use super::runs::Run;
use crate::statistics::{Interval, spread};

/// Table 1 of the paper, seconds.
const PAPER: [f64; 4] = [21.90, 40.00, 48.20, 28.30];

const ABOUT: [&str; 4] = [
    "no monitoring",
    "an event manager each",
    "one event manager",
    "one, own processor",
];

/// What the paper says that a configuration costs, %.
fn paper(ratio: u64, configuration: usize) -> f64 {
    100.0
        * ((PAPER[configuration] + ratio as f64 * PAPER[0]) / ((1 + ratio) as f64 * PAPER[0]) - 1.0)
}

/// One of the figures.
type Figure = fn(&Run) -> f64;

/// What is told of a run beside its time: how it is called, and what it is.
const FIGURES: [(&str, &str, Figure); 3] = [
    ("time (%)", "time", |run| run.seconds),
    (
        "processor, program (%)",
        "processor_of_program",
        Run::program,
    ),
    ("processor, all (%)", "processor", |run| run.processor),
];

/// A row for each ratio and monitored configuration.
pub(crate) fn table(rows: &[Row]) -> Table {
    let mut headings = vec!["R", "configuration", "off (s)", "on (s)"];
    headings.extend(FIGURES.map(|(heading, ..)| heading));
    headings.push("paper (%)");
    let mut table = Table::new(&headings);
    for row in rows {
        let seconds = |of: fn(&Pair) -> &Run| {
            let all = row.pairs.iter().map(|pair| of(pair).seconds).collect();
            format!("{:.3}", spread(all)[1])
        };
        let mut cells = vec![
            row.ratio.to_string(),
            format!("{} {}", row.configuration + 1, ABOUT[row.configuration]),
            seconds(|pair| &pair.off),
            seconds(|pair| &pair.on),
        ];
        cells.extend(FIGURES.map(|(_, _, of)| Interval::percent(row.overhead(of))));
        cells.push(format!("{:.0}", paper(row.ratio, row.configuration)));
        table.row(cells);
    }
    table
}

pub(super) fn items(rows: &[Row]) -> Vec<serde_json::Value> {
    let run = |run: &Run| {
        json!({
            "seconds": run.seconds, "processor_seconds": run.processor, "event_managers_processor_seconds": run.managers,
        })
    };
    let item = |row: &Row| {
        let mut overhead = serde_json::Map::new();
        for (_, key, of) in FIGURES {
            let percent = row.overhead(of).map(Interval::percent_item);
            overhead.insert(key.to_owned(), json!(percent));
        }
        json!({
            "ratio": row.ratio,
            "configuration": row.configuration + 1,
            "pairs": row.pairs.iter().map(|p| json!({ "on": run(&p.on), "off": run(&p.off) })).collect::<Vec<_>>(),
            "overhead_percent": overhead,
            "paper_overhead_percent": paper(row.ratio, row.configuration),
        })
    };
    rows.iter().map(item).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_papers_percentages_come_out() {
        let table_1 = [0, 1, 2, 3].map(|c| paper(0, c).round());
        assert_eq!(table_1, [0.0, 83.0, 120.0, 29.0]);
        let table_2: Vec<[f64; 3]> = (1..=3)
            .map(|r| [1, 2, 3].map(|c| paper(r, c).round()))
            .collect();
        assert_eq!(
            table_2,
            [[41.0, 60.0, 15.0], [28.0, 40.0, 10.0], [21.0, 30.0, 7.0]]
        );
    }
}
