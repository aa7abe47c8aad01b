//! Where the processes' time went: the execution-time breakdown.

use dosmos_analysis::efficiency::{self, Instead, Part};
use dosmos_client::{NO_BREAKDOWN, text};
use dosmos_plot::{Axis, Block, Cell, Chart, Color, Table};
use dosmos_proto::{Component, Nanos, PhaseTimes};
use dosmos_trace::query::QueryError;

use crate::asked::Asked;

/// Bars that can be told apart.
const BARS: usize = 32;
/// Phases in the table of efficiencies: those that lost most.
const PHASES: usize = 5;

const WORDS: &str = "Busy: on a processor, in the program. Service: on none, as others had it. Local: accesses the own \
    memory process served. Fault: accesses another had to serve; cold: the first to an object. Lock: acquires and \
    releases.";

pub(super) async fn blocks(asked: &Asked<'_>) -> Result<Vec<Block>, QueryError> {
    let times = asked.source.breakdown().await?;
    let (processes, phases) = (times.by_process(), times.phases);
    let bars: Vec<(String, PhaseTimes)> = processes
        .into_iter()
        .filter(|p| p.wall.0 > 0)
        .take(BARS)
        .map(|p| (asked.catalog.topology.ap_name(p.ap), p))
        .collect();
    if bars.is_empty() {
        // Neither a chart nor nothing: the reason.
        return Ok(vec![Block::text(format!("{NO_BREAKDOWN}."))]);
    }
    let chart = breakdown("Execution time by component", &bars);
    Ok(vec![
        Block::Columns(vec![vec![Block::chart(chart, WORDS)], vec![table(&bars)]]),
        of_parts(asked, &phases).await?,
    ])
}

/// The efficiency of the run, its groups and processes, and of the phases that lost most.
async fn of_parts(asked: &Asked<'_>, pieces: &[PhaseTimes]) -> Result<Block, QueryError> {
    let topology = &asked.catalog.topology;
    let monitor = asked.source.status().await?.monitor();
    let parts = efficiency::of_parts(pieces, &asked.catalog, &monitor);
    let heads = ["of", "name", "time", "efficiency", "load balance"];
    let lost = Instead::ALL.map(Instead::name);
    let mut table = Table::new(heads.into_iter().chain(lost).chain(["recording up to"]));
    let percent = |share: f64| format!("{:.1} %", 100.0 * share);
    let (mut processes, mut phases) = (0, 0);
    for of in parts {
        match of.part {
            Part::Process(_) => processes += 1,
            Part::Phase(..) => phases += 1,
            Part::Run | Part::Group(_) => {}
        }
        if processes > BARS || phases > PHASES {
            continue;
        }
        let e = &of.efficiency;
        let mut cells: Vec<Cell> = vec![
            of.part.kind().into(),
            of.part.name(topology).into(),
            text::time(Nanos(e.span_ns)).into(),
            Cell::shaded(percent(e.parallel), Color::Local, e.parallel),
            percent(e.load_balance).into(),
        ];
        for to in Instead::ALL {
            let share = e.lost_to(to);
            cells.push(Cell::shaded(percent(share), Color::Inter, share));
        }
        cells.push(of.recording.map_or_else(|| "–".to_owned(), percent).into());
        table.row(cells);
    }
    Ok(Block::Table(table))
}

/// The same in figures.
fn table(bars: &[(String, PhaseTimes)]) -> Block {
    let components = Component::ALL.iter().map(|c| c.name());
    let mut table = Table::new(["process", "wall"].into_iter().chain(components));
    for (name, times) in bars {
        let mut cells: Vec<Cell> = vec![name.clone().into(), text::time(times.wall).into()];
        for (i, component) in Component::ALL.into_iter().enumerate() {
            let time = times.spent.time(component);
            let share = time.0 as f64 / times.wall.0.max(1) as f64;
            cells.push(Cell::shaded(text::time(time), Color::Series(i), share));
        }
        table.row(cells);
    }
    Block::Table(table)
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
    let mut chart = Chart::new(title, x, y).size(860, 300).stacked(&series);
    for (i, (name, times)) in bars.iter().enumerate() {
        let parts = Component::ALL.into_iter().filter_map(|component| {
            let time = times.spent.time(component);
            let share = 100.0 * time.0 as f64 / times.wall.0.max(1) as f64;
            (share >= 0.05).then(|| {
                let time = text::time(time);
                format!("{} {time} ({share:.1} %)", component.name())
            })
        });
        let parts: Vec<String> = parts.collect();
        let at = i as f64;
        chart = chart.tip(at - 0.4, at + 0.4, format!("{name}: {}", parts.join(", ")));
    }
    chart
}
