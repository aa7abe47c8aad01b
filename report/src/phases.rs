//! What happens between the openings of a barrier: how long, and who waits for whom.

use dosmos_analysis::Analysis;
use dosmos_analysis::profile::Phases;
use dosmos_plot::{Axis, Block, Chart, Color, Table};
use dosmos_proto::Nanos;

use crate::asked::Asked;
use crate::figures::WIDE;
use dosmos_client::text;

/// Processes in a diagram.
const BARS: usize = 32;

pub(super) fn blocks(asked: &Asked<'_>, analysis: &Analysis) -> Vec<Block> {
    let phases: Vec<_> = analysis
        .phases
        .iter()
        .filter(|(_, p)| p.count > 0)
        .collect();
    if phases.is_empty() {
        return Vec::new();
    }
    let mut table = Table::new([
        "barriers of",
        "phases",
        "busy, mean",
        "busy, slowest",
        "lost to waiting",
    ]);
    let mut charts = Vec::new();
    for (group, p) in phases {
        let name = match group {
            Some(group) => asked.catalog.topology.group_name(*group),
            None => "all processes".to_owned(),
        };
        let each = |sum: f64| text::time(Nanos((sum / p.count as f64) as u64));
        table.row([
            name.clone(),
            text::count(p.count),
            each(p.busy.mean),
            each(p.busy.max),
            text::time(Nanos(p.busy.lost as u64)),
        ]);
        charts.push(Block::chart(chart(asked, &name, p), ""));
    }
    let mut blocks = vec![Block::Table(table)];
    blocks.extend(charts);
    blocks
}

/// A bar a process: computing, in accesses, and the rest of the mean longest phase.
fn chart(asked: &Asked<'_>, name: &str, p: &Phases) -> Chart {
    let each = |sum: f64| sum / p.count as f64 / 1e6;
    let longest = each(p.busy.max);
    let bars: Vec<(String, f64, f64)> = p
        .by_ap
        .iter()
        .take(BARS)
        .map(|(ap, (busy, computing))| {
            let computing = each(computing.0 as f64);
            let accesses = each(busy.0 as f64) - computing;
            (
                asked.catalog.topology.ap_name(*ap),
                computing,
                accesses.max(0.0),
            )
        })
        .collect();
    let x = Axis::new("").categories(bars.iter().map(|b| b.0.clone()));
    let y = Axis::new("ms per phase").range(0.0, longest.max(1e-6) * 1.05);
    let series = [
        (
            "computing",
            Color::Series(0),
            bars.iter().map(|b| b.1).collect(),
        ),
        (
            "in accesses",
            Color::Series(1),
            bars.iter().map(|b| b.2).collect(),
        ),
        (
            "waiting for the slowest",
            Color::Faint,
            bars.iter()
                .map(|b| (longest - b.1 - b.2).max(0.0))
                .collect(),
        ),
    ];
    Chart::new(format!("Phases of {name}"), x, y)
        .size(WIDE, 260)
        .stacked(
            &series.map(|(label, color, heights): (&str, Color, Vec<f64>)| {
                (label.to_owned(), color, heights)
            }),
        )
}
