//! How long the operations on each variable took, and the waits at each barrier.

use dosmos_proto::Nanos;
use dosmos_trace::meta::Times;
use dosmos_trace::query::{Catalog, TraceSource};
use serde_json::json;

use super::answer::Answer;
use crate::args::QueryArgs;
use crate::output::{Cell, Column, Table};

/// Part of the application processes' time.
pub(crate) fn share(time: Nanos, all: Nanos) -> Cell {
    Cell::share(time.0 as f64 / all.0.max(1) as f64)
}

pub(super) async fn answer(
    source: &dyn TraceSource,
    catalog: &Catalog,
    args: &QueryArgs,
) -> anyhow::Result<Answer> {
    let query = args.select.scope().meta_query(catalog)?;
    let metas = source.meta_objects(&query).await?;
    let mut rows: Vec<(String, &str, &Times)> = Vec::new();
    for (id, times) in &metas.times {
        let measured = times.by_operation().into_iter();
        let measured = measured.filter(|(_, t)| t.number() > 0);
        rows.extend(measured.map(|(operation, t)| (catalog.name_of(*id), operation, t)));
    }
    rows.sort_by(|a, b| b.2.total.cmp(&a.2.total).then_with(|| a.0.cmp(&b.0)));
    rows.truncate(args.top.map_or(usize::MAX, |k| k as usize));
    let all = catalog.process_time();
    let mut table = Table::of([
        Column::plain("variable"),
        Column::plain("operation"),
        Column::plain("number"),
        Column::time("total"),
        Column::plain("share"),
        Column::time("mean"),
        Column::time("p50"),
        Column::time("p99"),
        Column::time("max"),
    ]);
    let mut items = Vec::new();
    for (name, operation, t) in rows {
        let (p50, p99) = (t.quantile(0.5), t.quantile(0.99));
        table.row([
            Cell::from(name.as_str()),
            operation.into(),
            t.number().into(),
            t.total.into(),
            share(t.total, all),
            t.mean().into(),
            p50.into(),
            p99.into(),
            t.longest.into(),
        ]);
        items.push(json!({
            "variable": name, "operation": operation, "number": t.number(), "total_ns": t.total.0,
            "mean_ns": t.mean().map(|n| n.0), "p50_ns": p50.map(|n| n.0), "p99_ns": p99.map(|n| n.0),
            "max_ns": t.longest.0,
        }));
    }
    Ok(Answer::list(table, "times", &items, metas.completeness))
}
