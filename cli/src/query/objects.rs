//! Variables, processes, groups and meta-objects with their counts.

use std::collections::{BTreeMap, BTreeSet};

use dosmos_proto::{Nanos, ObjectId, Topology, VarId, Variable, VariableSpec};
use dosmos_trace::meta::{OpCounts, Sketch};
use dosmos_trace::query::table::{Sums, TableQuery, sums_of};
use dosmos_trace::query::{Catalog, MetaQuery, TraceSource};
use dosmos_trace::record::PerOrigin;
use serde_json::json;

use super::answer::Answer;
use super::times::share;
use crate::args::QueryArgs;
use crate::output::{self, Cell, Column, Table};

/// What the meta-objects of a variable say together.
#[derive(Default)]
pub(crate) struct VariableTotals {
    pub(crate) sums: Sums,
    /// Accesses to the main copies.
    pub(crate) by_origin: PerOrigin<OpCounts>,
    wait_sketch: Sketch,
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
    for (variable, sums) in sums_of(&metas) {
        totals.entry(variable).or_default().sums = sums;
    }
    for p in &metas.primaries {
        let total = totals.entry(p.object.var).or_default();
        for (origin, here) in p.by_origin.iter() {
            total.by_origin[origin].add(here);
        }
        total.wait_sketch.add(&p.wait_sketch);
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
    if query.objects.is_empty() {
        query.variables.clone_from(&ranked);
    }
    let (totals, completeness) = totals(source, &query).await?;
    let described = ["variable", "layout", "policy", "group", "owners"].map(Column::plain);
    let times = [
        Column::time("time"),
        Column::plain("share"),
        Column::time("p50"),
        Column::time("p99"),
        Column::time("max"),
    ];
    let counted = ["copies", "reads", "cached", "writes", "acquires", "delayed"].map(Column::plain);
    let mean = [
        Column::named("wait", "mean_wait_ns"),
        Column::named("hold", "mean_hold_ns"),
    ];
    let columns = described.into_iter().chain(times).chain(counted);
    let mut table = Table::of(columns.chain(mean));
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
    shown.sort_by_key(|v| ranked.iter().position(|id| *id == v.id()));
    let all = catalog.process_time();
    for v in shown {
        let t = totals.get(&v.id()).unwrap_or(&none);
        let owners: BTreeSet<_> = v.owners().iter().collect();
        let owners: Vec<String> = owners
            .into_iter()
            .map(|&mp| catalog.topology.mp_name(mp))
            .collect();
        let mean = |sum: Nanos, n: u64| Nanos(sum.0.checked_div(n).unwrap_or(0));
        let (wait, hold) = (
            mean(t.sums.wait, t.sums.counts.acquires),
            mean(t.sums.hold, t.sums.counts.releases),
        );
        let its = t.sums.times.all();
        let group = catalog.topology.group_name(v.group());
        table.row([
            Cell::from(v.spec().name()),
            v.spec().layout().to_string().into(),
            policy(v.spec()).into(),
            group.clone().into(),
            Cell::two(catalog.topology.owners_of(v), owners.join(" ")),
            its.total.into(),
            share(its.total, all),
            its.quantile(0.5).into(),
            its.quantile(0.99).into(),
            its.longest.into(),
            t.sums.copies.into(),
            t.sums.reads().into(),
            t.sums.reads_on_copies.into(),
            t.sums.counts.writes.into(),
            t.sums.counts.acquires.into(),
            t.sums.delayed.into(),
            wait.into(),
            hold.into(),
        ]);
        items.push(json!({
            "id": v.id(), "name": v.spec().name(), "element": v.spec().layout().element(), "rows": v.spec().layout().rows(),
            "columns": v.spec().layout().columns(), "objects": v.spec().layout().objects(),
            "policy": v.spec().policy(), "replicas": v.spec().replicas(), "group": group, "owners": owners, "copies": t.sums.copies,
            "reads": t.sums.reads(), "reads_on_copies": t.sums.reads_on_copies, "writes": t.sums.counts.writes,
            "acquires": t.sums.counts.acquires, "releases": t.sums.counts.releases, "delayed": t.sums.delayed,
            "main_copy_by_origin": by_origin(&t.by_origin),
            "wait_ns": t.sums.wait.0, "wait_p99_ns": t.wait_sketch.quantile(0.99).map(|n| n.0),
            "hold_ns": t.sums.hold.0,
            "time_ns": its.total.0, "p50_ns": its.quantile(0.5).map(|n| n.0), "p99_ns": its.quantile(0.99).map(|n| n.0),
            "max_ns": its.longest.0,
        }));
    }
    Ok(Answer::list(table, "variables", &items, completeness))
}

/// The variables asked for in the order asked for, the first ones; what took most time first if none was said.
async fn ranked(
    source: &dyn TraceSource,
    query: &MetaQuery,
    args: &QueryArgs,
) -> anyhow::Result<Vec<VarId>> {
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
    Ok(chosen.take(most).collect())
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
    let columns = [
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
    ];
    let columns = columns.map(Column::plain).into_iter();
    let mut table = Table::of(columns.chain([Column::time("cpu")]));
    let mut items = Vec::new();
    let known: BTreeMap<_, _> = status
        .event_managers
        .iter()
        .flat_map(|e| &e.processes)
        .map(|p| (p.mp, p))
        .collect();
    if known.is_empty() {
        output::note("what processes count is known while they run only, not from stores");
    }
    for (id, mp) in (0u32..).zip(topology.memory_processes()) {
        let kind = if mp.link { "link" } else { "memory" };
        let (group, emp) = (
            topology.group_name(mp.group),
            topology.emp_name(mp.event_manager),
        );
        let state = known.get(&dosmos_proto::MpId(id));
        let number =
            |of: fn(&dosmos_trace::query::ProcessStatus) -> u64| Cell::from(state.map(|p| of(p)));
        table.row([
            mp.name.clone().into(),
            kind.into(),
            group.clone().into(),
            emp.clone().into(),
            state
                .map(|p| if p.connected { "up" } else { "gone" })
                .into(),
            number(|p| p.counters.requests),
            number(|p| p.counters.served),
            number(|p| p.counters.forwarded),
            number(|p| p.counters.recorded),
            number(|p| p.counters.dropped),
            state.and_then(|p| p.counters.cpu).into(),
        ]);
        items.push(json!({ "name": mp.name, "kind": kind, "group": group, "event_manager": emp, "status": state }));
    }
    for ap in topology.application_processes() {
        let mp = topology.mp_name(ap.memory_process);
        let group = topology
            .mp(ap.memory_process)
            .map(|m| topology.group_name(m.group));
        let mut row: Vec<Cell> = vec![
            ap.name.clone().into(),
            "application".into(),
            group.clone().into(),
            mp.clone().into(),
        ];
        row.resize(11, Cell::none());
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

/// The name of a variable, with the other groups in which it has owners.
fn with_owners_elsewhere(topology: &Topology, variable: &Variable) -> String {
    let groups = variable.owners().iter().filter_map(|&mp| topology.mp(mp));
    let elsewhere = groups.map(|mp| mp.group).filter(|g| *g != variable.group());
    let elsewhere: BTreeSet<_> = elsewhere.collect();
    let name = variable.spec().name();
    if elsewhere.is_empty() {
        return name.to_owned();
    }
    let elsewhere = elsewhere.into_iter().map(|g| topology.group_name(g));
    let elsewhere: Vec<String> = elsewhere.collect();
    format!("{name} (owner in {})", elsewhere.join(", "))
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
        let declared = catalog.variables.iter().filter(|v| v.group() == id);
        let variables: Vec<&str> = declared.clone().map(|v| v.spec().name()).collect();
        let shown = declared.map(|v| with_owners_elsewhere(t, v));
        let shown: Vec<String> = shown.collect();
        let (mps, link) = (here(false), here(true));
        table.row([
            Cell::from(group.path.to_string()),
            mps.join(" ").into(),
            link.join(" ").into(),
            aps.join(" ").into(),
            Cell::two(shown.join(" "), variables.join(" ")),
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
        match last.is_empty() {
            true => Cell::none(),
            false => last.join(" ").into(),
        }
    };
    for p in &metas.primaries {
        table.row([
            name(p.object).into(),
            "primary".into(),
            t.mp_name(p.owner).into(),
            t.group_name(p.group).into(),
            (p.copies_at.len() as u64).into(),
            (p.counts.reads + p.reads_on_copies).into(),
            p.reads_on_copies.into(),
            p.counts.writes.into(),
            p.counts.acquires.into(),
            p.counts.releases.into(),
            list(&p.last_acquires),
            list(&p.last_writes),
        ]);
    }
    for s in &metas.secondaries {
        let group = t
            .mp(s.copy_at)
            .map(|m| t.group_name(m.group))
            .unwrap_or_default();
        let mut row: Vec<Cell> = vec![
            name(s.object).into(),
            "secondary".into(),
            t.mp_name(s.copy_at).into(),
            group.into(),
            Cell::none(),
            s.reads.into(),
            s.reads.into(),
        ];
        row.resize(12, Cell::none());
        table.row(row);
    }
    let json = json!({ "primaries": metas.primaries, "secondaries": metas.secondaries });
    Ok(Answer::new(table, json, metas.completeness))
}

/// What a release does to copies, and at how many other memory processes the content is kept, if at any.
fn policy(spec: &VariableSpec) -> String {
    match spec.replicas() {
        0 => spec.policy().to_string(),
        1 => format!("{}, 1 replica", spec.policy()),
        n => format!("{}, {n} replicas", spec.policy()),
    }
}
