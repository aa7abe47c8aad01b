//! Answers as rows and as JSON.

use std::collections::BTreeMap;

use dosmos_proto::{Nanos, ObjectId, VarId};
use dosmos_trace::meta::{OpCounts, PrimaryMeta, Sketch};
use dosmos_trace::query::table::TableQuery;
use dosmos_trace::query::{
    Catalog, HistogramQuery, HistoryQuery, MetaQuery, OriginCounts, TraceSource, page,
};
use dosmos_trace::record::{Origin, Record, Side};
use serde_json::json;

use super::{Answer, select};
use crate::args::QueryArgs;
use crate::output::{self, Table};

/// What the meta-objects of a variable say together.
#[derive(Default)]
pub(crate) struct VariableTotals {
    pub(crate) counts: OpCounts,
    pub(crate) by_origin: [OpCounts; 3],
    /// Reads on copies, handed over or not.
    pub(crate) on_copies: u64,
    pub(crate) copies: u64,
    pub(crate) delayed: u64,
    wait: Nanos,
    hold: Nanos,
    wait_sketch: Sketch,
}

impl VariableTotals {
    fn add(&mut self, p: &PrimaryMeta) {
        self.counts.add(&p.counts);
        for (sum, here) in self.by_origin.iter_mut().zip(&p.by_origin) {
            sum.add(here);
        }
        self.on_copies += p.reads_on_copies;
        self.delayed += p.delayed;
        self.wait += p.wait;
        self.hold += p.hold;
        self.wait_sketch.add(&p.wait_sketch);
    }

    /// All reads, on main copies and on copies.
    pub(crate) fn reads(&self) -> u64 {
        self.counts.reads + self.on_copies
    }
}

/// Totals by variable, from all meta-objects.
pub(crate) async fn totals(
    source: &dyn TraceSource,
    query: &MetaQuery,
) -> anyhow::Result<(
    BTreeMap<VarId, VariableTotals>,
    dosmos_trace::query::Completeness,
)> {
    let metas = source.meta_objects(query).await?;
    let mut totals: BTreeMap<VarId, VariableTotals> = BTreeMap::new();
    for p in &metas.primaries {
        totals.entry(p.object.var).or_default().add(p);
    }
    for s in &metas.secondaries {
        let total = totals.entry(s.object.var).or_default();
        total.on_copies += s.reads;
        total.copies += 1;
    }
    Ok((totals, metas.completeness))
}

pub(super) async fn variables(
    source: &dyn TraceSource,
    catalog: &Catalog,
    args: &QueryArgs,
) -> anyhow::Result<Answer> {
    let mut query = select::meta_query(catalog, &args.select)?;
    let ranked = ranked(source, &query, args).await?;
    if let Some(ranked) = &ranked {
        query.variables.clone_from(ranked);
    }
    let (totals, completeness) = totals(source, &query).await?;
    let mut table = Table::new(&[
        "variable",
        "layout",
        "policy",
        "group",
        "owners",
        "copies",
        "reads",
        "on copies",
        "writes",
        "acquires",
        "delayed",
        "wait",
        "hold",
    ]);
    let mut items = Vec::new();
    let none = VariableTotals::default();
    let wanted = |id| {
        query.variables.is_empty() && query.objects.is_empty()
            || query.variables.contains(&id)
            || query.objects.iter().any(|o| o.var == id)
    };
    let mut shown: Vec<_> = catalog.variables.iter().filter(|v| wanted(v.id)).collect();
    if let Some(ranked) = ranked {
        shown.sort_by_key(|v| ranked.iter().position(|id| *id == v.id));
    }
    for v in shown {
        let t = totals.get(&v.id).unwrap_or(&none);
        let mut owners: Vec<String> = v
            .owners
            .iter()
            .map(|&m| catalog.topology.mp_name(m))
            .collect();
        owners.dedup();
        let mean = |sum: Nanos, n: u64| Nanos(sum.0.checked_div(n).unwrap_or(0));
        let (wait, hold) = (
            mean(t.wait, t.counts.acquires),
            mean(t.hold, t.counts.releases),
        );
        let group = catalog.topology.group_name(v.group);
        table.row([
            v.spec.name.clone(),
            v.spec.layout.to_string(),
            v.spec.policy.to_string(),
            group.clone(),
            owners.join(" "),
            t.copies.to_string(),
            t.reads().to_string(),
            t.on_copies.to_string(),
            t.counts.writes.to_string(),
            t.counts.acquires.to_string(),
            t.delayed.to_string(),
            wait.to_string(),
            hold.to_string(),
        ]);
        items.push(json!({
            "id": v.id, "name": v.spec.name, "element": v.spec.layout.element(), "rows": v.spec.layout.rows(),
            "columns": v.spec.layout.columns(), "objects": v.spec.layout.objects(),
            "policy": v.spec.policy, "group": group, "owners": owners, "copies": t.copies,
            "reads": t.reads(), "reads_on_copies": t.on_copies, "writes": t.counts.writes,
            "acquires": t.counts.acquires, "releases": t.counts.releases, "delayed": t.delayed,
            "main_copy_by_origin": by_origin(&t.by_origin),
            "wait_ns": t.wait.0, "wait_p99_ns": t.wait_sketch.quantile(0.99).map(|n| n.0),
            "hold_ns": t.hold.0,
        }));
    }
    Ok(Answer::list(table, "variables", &items, completeness))
}

/// The variables asked for in the order asked for, the first so many; none if neither was said.
async fn ranked(
    source: &dyn TraceSource,
    query: &MetaQuery,
    args: &QueryArgs,
) -> anyhow::Result<Option<Vec<VarId>>> {
    if args.sort.is_none() && args.top.is_none() {
        return Ok(None);
    }
    let table = TableQuery {
        pattern: None,
        sort: args.sort.unwrap_or_default(),
        reverse: false,
        offset: 0,
        limit: if query.variables.is_empty() {
            args.top.unwrap_or(u32::MAX)
        } else {
            u32::MAX
        },
    };
    let rows = source.table(&table).await?.rows;
    let chosen = rows.iter().map(|row| row.variable.id);
    let chosen = chosen.filter(|id| query.variables.is_empty() || query.variables.contains(id));
    let most = args.top.map_or(usize::MAX, |k| k as usize);
    Ok(Some(chosen.take(most).collect()))
}

fn by_origin(counts: &[OpCounts; 3]) -> serde_json::Value {
    let entries = Origin::ALL.iter().zip(counts);
    entries
        .map(|(o, c)| (o.name().to_owned(), json!(c)))
        .collect::<serde_json::Map<_, _>>()
        .into()
}

pub(super) async fn processes(
    source: &dyn TraceSource,
    catalog: &Catalog,
) -> anyhow::Result<Answer> {
    let status = source.status().await?;
    let topology = &catalog.topology;
    let mut table = Table::new(&[
        "process",
        "kind",
        "group",
        "reports to",
        "state",
        "requests",
        "served",
        "forwarded",
        "recorded",
        "dropped",
        "cpu",
    ]);
    let mut items = Vec::new();
    let known: BTreeMap<_, _> = status
        .event_managers
        .iter()
        .flat_map(|e| &e.processes)
        .map(|p| (p.mp, p))
        .collect();
    for (id, mp) in (0u32..).zip(&topology.memory_processes) {
        let kind = if mp.link { "link" } else { "memory" };
        let (group, emp) = (
            topology.group_name(mp.group),
            topology.emp_name(mp.event_manager),
        );
        let state = known.get(&dosmos_proto::MpId(id));
        let number = |of: fn(&dosmos_trace::query::ProcessStatus) -> u64| {
            state.map_or_else(|| "-".to_owned(), |p| of(p).to_string())
        };
        table.row([
            mp.name.clone(),
            kind.to_owned(),
            group.clone(),
            emp.clone(),
            state
                .map_or("-", |p| if p.connected { "up" } else { "gone" })
                .to_owned(),
            number(|p| p.requests),
            number(|p| p.served),
            number(|p| p.forwarded),
            number(|p| p.recorded),
            number(|p| p.dropped),
            state.map_or_else(|| "-".to_owned(), |p| p.cpu.to_string()),
        ]);
        items.push(json!({ "name": mp.name, "kind": kind, "group": group, "event_manager": emp, "status": state }));
    }
    for ap in &topology.application_processes {
        let mp = topology.mp_name(ap.memory_process);
        let group = topology
            .mp(ap.memory_process)
            .map(|m| topology.group_name(m.group));
        let mut row = vec![
            ap.name.clone(),
            "application".into(),
            group.clone().unwrap_or_default(),
            mp.clone(),
        ];
        row.resize(11, "-".to_owned());
        table.row(row);
        items.push(
            json!({ "name": ap.name, "kind": "application", "group": group, "memory_process": mp }),
        );
    }
    Ok(Answer::list(
        table,
        "processes",
        &items,
        status.completeness,
    ))
}

pub(super) fn groups(catalog: &Catalog) -> Answer {
    let t = &catalog.topology;
    let mut table = Table::new(&[
        "group",
        "memory processes",
        "link process",
        "application processes",
        "variables",
    ]);
    let mut items = Vec::new();
    for (i, group) in (0u32..).zip(&t.groups) {
        let id = dosmos_proto::GroupId(i);
        let here = |link: bool| -> Vec<String> {
            let mps = t.memory_processes.iter();
            mps.filter(|p| p.group == id && p.link == link)
                .map(|p| p.name.clone())
                .collect()
        };
        let aps: Vec<String> = t
            .application_processes
            .iter()
            .filter(|ap| t.mp(ap.memory_process).is_some_and(|m| m.group == id))
            .map(|ap| ap.name.clone())
            .collect();
        let variables: Vec<String> = catalog
            .variables
            .iter()
            .filter(|v| v.group == id)
            .map(|v| v.spec.name.clone())
            .collect();
        let (mps, link) = (here(false), here(true));
        table.row([
            group.path.to_string(),
            mps.join(" "),
            link.join(" "),
            aps.join(" "),
            variables.join(" "),
        ]);
        items.push(json!({
            "path": group.path, "memory_processes": mps, "link_process": link.first(),
            "application_processes": aps, "variables": variables,
        }));
    }
    Answer::list(table, "groups", &items, catalog.completeness.clone())
}

pub(super) async fn meta(
    source: &dyn TraceSource,
    catalog: &Catalog,
    args: &QueryArgs,
) -> anyhow::Result<Answer> {
    let metas = source
        .meta_objects(&select::meta_query(catalog, &args.select)?)
        .await?;
    let t = &catalog.topology;
    let name = |o: ObjectId| format!("{}[{}]", catalog.name_of(o.var), o.index);
    let mut table = Table::new(&[
        "object",
        "kind",
        "at",
        "group",
        "copies",
        "reads",
        "on copies",
        "writes",
        "acquires",
        "releases",
        "last acquires",
        "last writes",
    ]);
    let list = |accesses: &[dosmos_trace::meta::Access]| {
        let last: Vec<String> = accesses
            .iter()
            .rev()
            .take(4)
            .map(|a| t.ap_name(a.ap))
            .collect();
        if last.is_empty() {
            "-".to_owned()
        } else {
            last.join(" ")
        }
    };
    for p in &metas.primaries {
        table.row([
            name(p.object),
            "primary".into(),
            t.mp_name(p.owner),
            t.group_name(p.group),
            p.copies_at.len().to_string(),
            p.counts.reads.to_string(),
            p.reads_on_copies.to_string(),
            p.counts.writes.to_string(),
            p.counts.acquires.to_string(),
            p.counts.releases.to_string(),
            list(&p.last_acquires),
            list(&p.last_writes),
        ]);
    }
    for s in &metas.secondaries {
        let group = t
            .mp(s.copy_at)
            .map(|m| t.group_name(m.group))
            .unwrap_or_default();
        let mut row = vec![
            name(s.object),
            "secondary".into(),
            t.mp_name(s.copy_at),
            group,
            "-".into(),
            "-".into(),
            s.reads.to_string(),
        ];
        row.resize(12, "-".to_owned());
        table.row(row);
    }
    let json = json!({ "primaries": metas.primaries, "secondaries": metas.secondaries });
    Ok(Answer::new(table, json, metas.completeness))
}

pub(super) async fn histogram(
    source: &dyn TraceSource,
    catalog: &Catalog,
    args: &QueryArgs,
) -> anyhow::Result<Answer> {
    let filter = select::filter(catalog, &args.select, args.all)?;
    let h = source
        .histogram(&HistogramQuery {
            filter,
            buckets: args.buckets,
        })
        .await?;
    let mut table = Table::new(&["from (s)", "to (s)", "local", "intra", "inter", "optimized"]);
    let zero = catalog.extent.map_or(h.range.from, |e| e.from);
    let edge = |i: usize| {
        let into = u128::from(h.range.length().0) * i as u128 / h.buckets.len().max(1) as u128;
        h.range.from + Nanos(into as u64)
    };
    let mut total = OriginCounts::default();
    for (i, b) in h.buckets.iter().enumerate() {
        total.add(b);
        let times = [edge(i), edge(i + 1)].map(|t| format!("{:.4}", (t - zero).as_secs_f64()));
        let counts = [b.local, b.intra, b.inter, b.optimized].map(|n| n.to_string());
        table.row(times.into_iter().chain(counts));
    }
    let sums = [total.local, total.intra, total.inter, total.optimized].map(|n| n.to_string());
    if args.format == crate::args::Format::Table {
        table.row(["all".to_owned(), String::new()].into_iter().chain(sums));
    }
    let json = json!({ "range": h.range, "buckets": h.buckets, "total": total });
    Ok(Answer::new(table, json, h.completeness))
}

pub(super) async fn history(
    source: &dyn TraceSource,
    catalog: &Catalog,
    args: &QueryArgs,
) -> anyhow::Result<Answer> {
    let filter = select::filter(catalog, &args.select, args.all)?;
    let h = source
        .history(&HistoryQuery {
            filter,
            max_points: args.limit,
        })
        .await?;
    let zero = catalog.extent.map_or(h.range.from, |e| e.from);
    let mut table = Table::new(&[
        "at (s)", "took", "waited", "op", "origin", "ap", "object", "version", "count",
    ]);
    let mut items = Vec::new();
    for p in &h.points {
        let origin = if p.optimized { "copy" } else { p.origin.name() };
        table.row([
            format!("{:.6}", (p.start - zero).as_secs_f64()),
            p.duration.to_string(),
            p.wait.to_string(),
            p.op.to_string(),
            origin.to_owned(),
            catalog.topology.ap_name(p.ap),
            subject(catalog, p.object),
            p.version.to_string(),
            p.count.to_string(),
        ]);
        items.push(json!({
            "start_ns": p.start, "duration_ns": p.duration, "wait_ns": p.wait, "op": p.op, "origin": p.origin,
            "optimized": p.optimized, "ap": catalog.topology.ap_name(p.ap),
            "variable": catalog.name_of(p.object.var), "object": p.object.index, "version": p.version, "count": p.count,
        }));
    }
    let json = json!({ "range": h.range, "matched": h.matched, "points": items });
    Ok(Answer::new(table, json, h.completeness))
}

fn subject(catalog: &Catalog, o: ObjectId) -> String {
    format!("{}[{}]", catalog.name_of(o.var), o.index)
}

pub(super) async fn events(
    source: &dyn TraceSource,
    catalog: &Catalog,
    args: &QueryArgs,
) -> anyhow::Result<Answer> {
    let filter = select::filter(catalog, &args.select, args.all)?;
    let (records, next) = match args.limit {
        0 => (source.records(&filter, 0).await?, None),
        limit => page::page(source, &filter, args.after, limit.into()).await?,
    };
    let zero = catalog.extent.map_or(Nanos::ZERO, |e| e.from);
    let t = &catalog.topology;
    let mut table = Table::new(&[
        "at (s)", "took", "waited", "op", "origin", "ap", "mp", "owner", "object", "bytes",
        "version", "side", "flags",
    ]);
    let mut items = Vec::new();
    for r in records.iter() {
        let side = if r.side == Side::Owner {
            "owner"
        } else {
            "requester"
        };
        table.row([
            format!("{:.6}", (r.start - zero).as_secs_f64()),
            r.duration.to_string(),
            r.wait.to_string(),
            r.op.to_string(),
            r.origin.to_string(),
            t.ap_name(r.ap),
            t.mp_name(r.mp),
            t.mp_name(r.peer),
            subject(catalog, r.object),
            r.bytes.to_string(),
            r.version.to_string(),
            side.to_owned(),
            flags(r),
        ]);
        items.push(json!({
            "start_ns": r.start, "duration_ns": r.duration, "wait_ns": r.wait, "service_ns": r.service,
            "op": r.op, "origin": r.origin, "ap": t.ap_name(r.ap), "mp": t.mp_name(r.mp), "owner": t.mp_name(r.peer),
            "variable": catalog.name_of(r.object.var), "object": r.object.index, "bytes": r.bytes,
            "version": r.version, "side": side, "optimized": r.flags.optimized, "sampled": r.flags.sampled,
            "failed": r.flags.failed, "waiting": r.flags.waiting, "range": [r.range.0, r.range.1],
        }));
    }
    let next = next.map(|n| n.to_string());
    if let Some(next) = &next {
        output::note(&format!("there is more: --after {next}"));
    }
    let json = json!({ "events": items, "next": next });
    Ok(Answer::new(table, json, records.completeness))
}

fn flags(r: &Record) -> String {
    let f = r.flags;
    let all = [
        (f.optimized, "optimized"),
        (f.sampled, "sampled"),
        (f.failed, "failed"),
        (f.waiting, "waiting"),
    ];
    let set: Vec<&str> = all.iter().filter(|(on, _)| *on).map(|(_, n)| *n).collect();
    if set.is_empty() {
        "-".to_owned()
    } else {
        set.join(" ")
    }
}
