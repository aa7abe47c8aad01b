//! Single accesses and their sums over time: histogram, history, events.

use dosmos_proto::{Nanos, ObjectId};
use dosmos_trace::query::{Catalog, HistogramQuery, HistoryQuery, OriginCounts, TraceSource, page};
use dosmos_trace::record::{Record, Side};
use serde_json::{Value, json};

use super::answer::Answer;
use crate::args::QueryArgs;
use crate::output::{self, Cell, Column, Table};

/// Buckets of a histogram, and rows of lists, unless told otherwise.
const BUCKETS: u32 = 20;
const ROWS: u32 = 100;

pub(super) async fn histogram(
    source: &dyn TraceSource,
    catalog: &Catalog,
    args: &QueryArgs,
) -> anyhow::Result<Answer> {
    let filter = args.select.scope().filter(catalog, false)?;
    let h = source
        .histogram(&HistogramQuery {
            filter,
            buckets: args.buckets.unwrap_or(BUCKETS),
        })
        .await?;
    let mut total = OriginCounts::default();
    h.buckets.iter().for_each(|b| total.add(b));
    let split = total.optimized > 0 && total.in_process > 0;
    let mut heads = vec!["from (s)", "to (s)", "local", "intra", "inter", "cached"];
    if split {
        heads.extend(["cached at mp", "cached at ap"]);
    }
    let mut table = Table::new(&heads);
    let zero = catalog.extent.map_or(h.range.from, |e| e.from);
    let edge = |i: usize| {
        let into = u128::from(h.range.length().0) * i as u128 / h.buckets.len().max(1) as u128;
        h.range.from + Nanos(into as u64)
    };
    for (i, b) in h.buckets.iter().enumerate() {
        let times = [edge(i), edge(i + 1)].map(|t| into_run(t, zero, 4));
        let counts = columns(b, split);
        table.row(times.into_iter().chain(counts.into_iter().map(Cell::from)));
    }
    let sums = columns(&total, split);
    if args.format == crate::args::Format::Table {
        table.row(["all".to_owned(), String::new()].into_iter().chain(sums));
    }
    let json = json!({ "range": h.range, "buckets": h.buckets, "total": total });
    Ok(Answer::new(table, json, h.completeness).matching(total.total()))
}

/// What the table has of a bucket: by origin; of the local ones, the cached ones, and where the copies were if they were
/// at both places.
fn columns(b: &OriginCounts, split: bool) -> Vec<String> {
    let mut counts = vec![b.local, b.intra, b.inter, b.optimized + b.in_process];
    if split {
        counts.extend([b.optimized, b.in_process]);
    }
    counts.iter().map(u64::to_string).collect()
}

pub(super) async fn history(
    source: &dyn TraceSource,
    catalog: &Catalog,
    args: &QueryArgs,
) -> anyhow::Result<Answer> {
    let filter = args.select.scope().filter(catalog, false)?;
    let h = source
        .history(&HistoryQuery {
            filter,
            max_points: args.limit.unwrap_or(ROWS),
        })
        .await?;
    let zero = catalog.extent.map_or(h.range.from, |e| e.from);
    let [at, took, waited] = times();
    let rest = ["op", "origin", "ap", "object", "version", "count"].map(Column::plain);
    let mut table = Table::of([at, took, waited].into_iter().chain(rest));
    let mut items = Vec::new();
    for p in &h.points {
        let origin = match (p.in_process, p.optimized) {
            (true, _) => "cached at ap",
            (false, true) => "cached",
            (false, false) => p.origin.name(),
        };
        table.row([
            into_run(p.start, zero, 6),
            p.duration.into(),
            p.wait.into(),
            one_of(p.several.ops, p.op.name()),
            origin.into(),
            one_of(p.several.aps, &catalog.topology.ap_name(p.ap)),
            one_of(p.several.objects, &object_name(catalog, p.object)),
            p.version.into(),
            p.count.into(),
        ]);
        items.push(json!({
            "start_ns": p.start, "duration_ns": p.duration, "wait_ns": p.wait, "op": p.op, "origin": p.origin,
            "optimized": p.optimized, "in_process": p.in_process, "ap": catalog.topology.ap_name(p.ap),
            "variable": catalog.name_of(p.object.var), "object": p.object.index, "version": p.version, "count": p.count,
            "several": p.several,
        }));
    }
    let json = json!({ "range": h.range, "matched": h.matched, "points": items });
    Ok(Answer::new(table, json, h.completeness).matching(h.matched))
}

/// What all accesses of a point have, or that they differ in it.
fn one_of(several: bool, name: &str) -> Cell {
    match several {
        true => "several".into(),
        false => name.into(),
    }
}

/// The columns of when an access began and how long it took and waited.
fn times() -> [Column; 3] {
    [
        Column::named("at (s)", "at_s"),
        Column::time("took"),
        Column::time("waited"),
    ]
}

/// How far into the run, in seconds; exactly in CSV.
pub(super) fn into_run(at: Nanos, zero: Nanos, digits: usize) -> Cell {
    let seconds = (at - zero).as_secs_f64();
    Cell::two(format!("{seconds:.digits$}"), format!("{seconds:.9}"))
}

fn object_name(catalog: &Catalog, o: ObjectId) -> String {
    format!("{}[{}]", catalog.name_of(o.var), o.index)
}

pub(super) async fn events(
    source: &dyn TraceSource,
    catalog: &Catalog,
    args: &QueryArgs,
) -> anyhow::Result<Answer> {
    let filter = args.select.scope().filter(catalog, args.all)?;
    let (records, next) = match args.limit.unwrap_or(ROWS) {
        0 => (source.records(&filter, 0).await?, None),
        limit => page::page(source, &filter, args.after, limit.into()).await?,
    };
    let (table, items) = listed(catalog, &records);
    let next = next.map(|n| n.to_string());
    if let Some(next) = &next {
        output::note(&format!("more records follow: --after {next}"));
    }
    // After the end of what was read by pages there is nothing more.
    let matched = match args.after.is_some() {
        true => 1,
        false => records.len() as u64,
    };
    let json = json!({ "events": items, "next": next });
    Ok(Answer::new(table, json, records.completeness).matching(matched))
}

/// Records as rows and as JSON.
pub(crate) fn listed(catalog: &Catalog, records: &[Record]) -> (Table, Vec<Value>) {
    let zero = catalog.extent.map_or(Nanos::ZERO, |e| e.from);
    let t = &catalog.topology;
    let rest = [
        "op", "origin", "ap", "mp", "owner", "object", "bytes", "version", "side", "count", "flags",
    ];
    let mut table = Table::of(times().into_iter().chain(rest.map(Column::plain)));
    let mut items = Vec::new();
    for r in records {
        let side = if r.side == Side::Owner {
            "owner"
        } else {
            "requester"
        };
        table.row([
            into_run(r.start, zero, 6),
            r.duration.into(),
            r.wait.into(),
            r.op.name().into(),
            r.origin.name().into(),
            t.ap_name(r.ap).into(),
            t.mp_name(r.mp).into(),
            t.mp_name(r.peer).into(),
            object_name(catalog, r.object).into(),
            r.bytes.into(),
            r.version.into(),
            side.into(),
            u64::from(r.count).into(),
            flags(r),
        ]);
        items.push(json!({
            "start_ns": r.start, "duration_ns": r.duration, "wait_ns": r.wait, "service_ns": r.service,
            "op": r.op, "origin": r.origin, "ap": t.ap_name(r.ap), "mp": t.mp_name(r.mp), "owner": t.mp_name(r.peer),
            "variable": catalog.name_of(r.object.var), "object": r.object.index, "bytes": r.bytes,
            "version": r.version, "side": side, "optimized": r.flags.optimized, "sampled": r.flags.sampled,
            "failed": r.flags.failed, "waiting": r.flags.waiting, "in_process": r.flags.in_process,
            "atomic": r.flags.atomic, "first": r.flags.first, "own_clock": r.flags.own_clock, "ahead": r.flags.ahead, "posted": r.flags.posted, "count": r.count, "range": [r.range.0, r.range.1],
        }));
    }
    (table, items)
}

fn flags(r: &Record) -> Cell {
    let f = r.flags;
    let all = [
        (f.optimized, "cached"),
        (f.in_process, "in process"),
        (f.atomic, "atomic"),
        (f.first, "first"),
        (f.own_clock, "own clock"),
        (f.ahead, "ahead"),
        (f.posted, "posted"),
        (f.sampled, "sampled"),
        (f.failed, "failed"),
        (f.waiting, "waiting"),
    ];
    let set: Vec<&str> = all.iter().filter(|(on, _)| *on).map(|(_, n)| *n).collect();
    match set.is_empty() {
        true => Cell::none(),
        false => set.join(" ").into(),
    }
}
