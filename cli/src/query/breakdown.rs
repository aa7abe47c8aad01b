//! The execution-time breakdown, one row per process, or with `--all` one per process and phase.

use std::collections::BTreeMap;

use dosmos_proto::{Component, PhaseTimes};
use dosmos_trace::query::{Catalog, TraceSource};
use serde_json::json;

use super::answer::Answer;
use crate::args::QueryArgs;
use crate::output::{self, Cell, Column, Table};

pub(super) async fn answer(
    source: &dyn TraceSource,
    catalog: &Catalog,
    args: &QueryArgs,
) -> anyhow::Result<Answer> {
    let wanted = args.select.scope().filter(catalog, false)?.aps;
    let breakdown = source.breakdown().await?;
    let rows: Vec<PhaseTimes> = if args.all {
        breakdown.phases.clone()
    } else {
        breakdown.by_process()
    };
    let first = ["process", "phase"].map(Column::plain).into_iter();
    // Shares for people, times for programs.
    let components = Component::ALL.iter().map(|c| Column::time(c.name()));
    let mut table = Table::of(first.chain([Column::time("wall")]).chain(components));
    let mut items = Vec::new();
    if rows.is_empty() {
        output::note(dosmos_client::NO_BREAKDOWN);
    }
    for row in &rows {
        if !(wanted.is_empty() || wanted.contains(&row.ap)) {
            continue;
        }
        let name = catalog.topology.ap_name(row.ap);
        let phase = match args.all {
            true => row.phase.into(),
            false => Cell::from("all"),
        };
        let wall = row.wall.0.max(1) as f64;
        let mut cells: Vec<Cell> = vec![name.clone().into(), phase, row.wall.into()];
        let mut item = json!({
            "process": name, "phase": args.all.then_some(row.phase),
            "start_ns": row.start.0, "wall_ns": row.wall.0,
        });
        for of in Component::ALL {
            let time = row.spent.time(of).0;
            let share = format!("{:.1} %", 100.0 * time as f64 / wall);
            cells.push(Cell::two(share, time.to_string()));
            item[of.name()] = json!({ "time_ns": time, "calls": row.spent.calls(of) });
        }
        table.row(cells);
        items.push(item);
    }
    let name = |mp| catalog.topology.mp_name(mp);
    let serving = breakdown.processor.iter();
    let serving: BTreeMap<String, u64> = serving.map(|(mp, time)| (name(*mp), time.0)).collect();
    let answer = json!({ "breakdown": items, "serving_ns": serving });
    Ok(Answer::new(table, answer, breakdown.completeness))
}
