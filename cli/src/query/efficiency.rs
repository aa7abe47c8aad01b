//! How efficient the run was, and its groups, processes and phases: how much of their time was computing, and where the rest
//! went.

use dosmos_analysis::efficiency::{Instead, OfPart, Part, of_parts};
use dosmos_proto::Nanos;
use dosmos_trace::query::{Catalog, TraceSource};
use serde_json::json;

use super::accesses::into_run;
use super::answer::Answer;
use crate::args::QueryArgs;
use crate::output::{self, Cell, Column, Table};

/// Phases shown without `--all`: those that lost most.
const PHASES: usize = 10;

pub(super) async fn answer(
    source: &dyn TraceSource,
    catalog: &Catalog,
    args: &QueryArgs,
) -> anyhow::Result<Answer> {
    let breakdown = source.breakdown().await?;
    let monitor = source.status().await?.monitor();
    let topology = &catalog.topology;
    let mut parts = of_parts(&breakdown.phases, catalog, &monitor);
    if parts.is_empty() {
        output::note(dosmos_client::NO_BREAKDOWN);
    }
    if !args.all {
        let mut phases = 0;
        parts.retain(|of| {
            phases += usize::from(matches!(of.part, Part::Phase(..)));
            phases <= PHASES
        });
    }
    let first = ["of", "name"].map(Column::plain).into_iter();
    let figures = ["efficiency", "load balance", "communication"];
    let lost = Instead::ALL.map(Instead::name);
    let shares = figures.into_iter().chain(lost).chain(["recording up to"]);
    let columns = first.chain([Column::named("at (s)", "at_s"), Column::time("time")]);
    let mut table = Table::of(columns.chain(shares.map(Column::plain)));
    let mut items = Vec::new();
    let zero = catalog.extent.map_or(Nanos::ZERO, |e| e.from);
    for OfPart {
        part,
        range,
        efficiency: e,
        recording,
    } in parts
    {
        let mut cells: Vec<Cell> = vec![
            part.kind().into(),
            part.name(topology).into(),
            into_run(range.from, zero, 3),
            Nanos(e.span_ns).into(),
        ];
        cells.extend([e.parallel, e.load_balance, e.communication].map(Cell::share));
        cells.extend(Instead::ALL.map(|to| Cell::share(e.lost_to(to))));
        cells.push(recording.map(Cell::share).into());
        table.row(cells);
        items.push(json!({
            "of": part.kind(), "name": part.name(topology), "range": range, "efficiency": e, "recording_up_to": recording,
        }));
    }
    Ok(Answer::list(
        table,
        "efficiency",
        &items,
        breakdown.completeness,
    ))
}
