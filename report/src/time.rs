//! Where the processes' time went: the execution-time breakdown.

use dosmos_plot::{Axis, Block, Chart, Color};
use dosmos_proto::{Component, PhaseTimes};
use dosmos_trace::query::QueryError;

use crate::asked::Asked;

/// Bars that can be told apart.
const BARS: usize = 32;

const WORDS: &str = "Busy: on a processor, in the program. Service: on none, as others had it. Local: accesses the own \
    memory process served. Fault: accesses another had to serve; cold: the first to an object. Lock: acquires and \
    releases.";

pub(super) async fn blocks(asked: &Asked<'_>) -> Result<Vec<Block>, QueryError> {
    let processes = asked.source.breakdown().await?.by_process();
    let bars: Vec<(String, PhaseTimes)> = processes
        .into_iter()
        .filter(|p| p.wall.0 > 0)
        .take(BARS)
        .map(|p| (asked.catalog.topology.ap_name(p.ap), p))
        .collect();
    if bars.is_empty() {
        return Ok(Vec::new());
    }
    let chart = breakdown("Execution time by component", &bars);
    Ok(vec![Block::chart(chart, WORDS)])
}

/// A bar for each of `bars`: the share of each component of its wall time, in percent.
pub fn breakdown(title: &str, bars: &[(String, PhaseTimes)]) -> Chart {
    let x = Axis::new("").categories(bars.iter().map(|b| b.0.clone()));
    let y = Axis::new("% of wall time").range(0.0, 100.0);
    let series: Vec<(String, Color, Vec<f64>)> = Component::ALL
        .into_iter()
        .enumerate()
        .map(|(i, component)| {
            let share =
                |p: &PhaseTimes| 100.0 * p.spent.time(component).0 as f64 / p.wall.0.max(1) as f64;
            let heights = bars.iter().map(|(_, p)| share(p)).collect();
            (component.name().to_owned(), Color::Series(i), heights)
        })
        .collect();
    Chart::new(title, x, y).size(860, 300).stacked(&series)
}
