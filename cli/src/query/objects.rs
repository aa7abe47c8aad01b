//! Variables, processes, groups and meta-objects with their counts.

use std::collections::BTreeMap;

use dosmos_proto::{Nanos, ObjectId, VarId};
use dosmos_trace::meta::{OpCounts, PrimaryMeta, Sketch};
use dosmos_trace::query::table::TableQuery;
use dosmos_trace::query::{Catalog, MetaQuery, TraceSource};
use dosmos_trace::record::PerOrigin;
use serde_json::json;

use super::answer::Answer;
use crate::args::QueryArgs;
use crate::output::Table;

/// What the meta-objects of a variable say together.
#[derive(Default)]
pub(crate) struct VariableTotals {
    pub(crate) counts: OpCounts,
    pub(crate) by_origin: PerOrigin<OpCounts>,
    /// Cached reads, handed over or not.
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
        for (origin, here) in p.by_origin.iter() {
            self.by_origin[origin].add(here);
        }
        self.on_copies += p.reads_on_copies;
        self.delayed += p.delayed;
        self.wait += p.wait;
        self.hold += p.hold;
        self.wait_sketch.add(&p.wait_sketch);
    }

    /// All reads, cached ones included.
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
    let mut query = args.select.scope().meta_query(catalog)?;
    let ranked = ranked(source, &query, args).await?;
    if let Some(ranked) = &ranked {
        query.variables.clone_from(ranked);
    }
    let (totals, completeness) = totals(source, &query).await?;
    let mut table = Table::new(&[
        "variable", "layout", "policy", "group", "owners", "copies", "reads", "cached", "writes",
        "acquires", "delayed", "wait", "hold",
    ]);
    let mut items = Vec::new();
    let none = VariableTotals::default();
    let wanted = |id| {
        query.variables.is_empty() && query.objects.is_empty()
            || query.variables.contains(&id)
            || query.objects.iter().any(|o| o.var == id)
    };
    let mut shown: Vec<_> = catalog
        .variables
        .iter()
        .filter(|v| wanted(v.id()))
        .collect();
    if let Some(ranked) = ranked {
        shown.sort_by_key(|v| ranked.iter().position(|id| *id == v.id()));
    }
    for v in shown {
        let t = totals.get(&v.id()).unwrap_or(&none);
        let mut owners: Vec<String> = v
            .owners()
            .iter()
            .map(|&m| catalog.topology.mp_name(m))
            .collect();
        owners.dedup();
        let mean = |sum: Nanos, n: u64| Nanos(sum.0.checked_div(n).unwrap_or(0));
        let (wait, hold) = (
            mean(t.wait, t.counts.acquires),
            mean(t.hold, t.counts.releases),
        );
        let group = catalog.topology.group_name(v.group());
        table.row([
            v.spec().name().to_owned(),
            v.spec().layout().to_string(),
            v.spec().policy().to_string(),
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
            "id": v.id(), "name": v.spec().name(), "element": v.spec().layout().element(), "rows": v.spec().layout().rows(),
            "columns": v.spec().layout().columns(), "objects": v.spec().layout().objects(),
            "policy": v.spec().policy(), "group": group, "owners": owners, "copies": t.copies,
            "reads": t.reads(), "reads_on_copies": t.on_copies, "writes": t.counts.writes,
            "acquires": t.counts.acquires, "releases": t.counts.releases, "delayed": t.delayed,
            "main_copy_by_origin": by_origin(&t.by_origin),
            "wait_ns": t.wait.0, "wait_p99_ns": t.wait_sketch.quantile(0.99).map(|n| n.0),
            "hold_ns": t.hold.0,
        }));
    }
    Ok(Answer::list(table, "variables", &items, completeness))
}

/// The variables asked for in the order asked for, the first ones; none if neither was said.
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
    let chosen = rows.iter().map(|row| row.variable.id());
    let chosen = chosen.filter(|id| query.variables.is_empty() || query.variables.contains(id));
    let most = args.top.map_or(usize::MAX, |k| k as usize);
    Ok(Some(chosen.take(most).collect()))
}

fn by_origin(counts: &PerOrigin<OpCounts>) -> serde_json::Value {
    counts
        .iter()
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
    for (id, mp) in (0u32..).zip(topology.memory_processes()) {
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
            number(|p| p.counters.requests),
            number(|p| p.counters.served),
            number(|p| p.counters.forwarded),
            number(|p| p.counters.recorded),
            number(|p| p.counters.dropped),
            state.map_or_else(|| "-".to_owned(), |p| p.counters.cpu.to_string()),
        ]);
        items.push(json!({ "name": mp.name, "kind": kind, "group": group, "event_manager": emp, "status": state }));
    }
    for ap in topology.application_processes() {
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
    for (i, group) in (0u32..).zip(t.groups()) {
        let id = dosmos_proto::GroupId(i);
        let here = |link: bool| -> Vec<String> {
            let mps = t.memory_processes().iter();
            mps.filter(|p| p.group == id && p.link == link)
                .map(|p| p.name.clone())
                .collect()
        };
        let aps: Vec<String> = t
            .application_processes()
            .iter()
            .filter(|ap| t.mp(ap.memory_process).is_some_and(|m| m.group == id))
            .map(|ap| ap.name.clone())
            .collect();
        let variables: Vec<String> = catalog
            .variables
            .iter()
            .filter(|v| v.group() == id)
            .map(|v| v.spec().name().to_owned())
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
        .meta_objects(&args.select.scope().meta_query(catalog)?)
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
        "cached",
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
