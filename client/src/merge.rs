//! Merging: what many event managers say, as one. Pure; the asking is in `fused`.

use std::collections::BTreeMap;

use dosmos_proto::{MpId, ObjectId, VarId, Variable};
use dosmos_trace::clock::ProcessClock;
use dosmos_trace::meta::{OperationTimes, PrimaryMeta, SecondaryMeta};
use dosmos_trace::query::table::{VariableFigures, VariableTable};
use dosmos_trace::query::{
    BarrierName, Catalog, Completeness, EmpStatus, Histogram, History, HistoryQuery, MetaObjects,
    OriginCounts, Status, TimeRange,
};

use dosmos_trace::query::causality::respect_sections;
use dosmos_trace::query::gather::gather;

/// The smallest range that holds both.
pub(crate) fn union(a: Option<TimeRange>, b: Option<TimeRange>) -> Option<TimeRange> {
    match (a, b) {
        (Some(a), Some(b)) => Some(TimeRange {
            from: a.from.min(b.from),
            to: a.to.max(b.to),
        }),
        (one, other) => one.or(other),
    }
}

/// Notes a contradiction once.
fn note(completeness: &mut Completeness, text: String) {
    if !completeness.notes.contains(&text) {
        completeness.notes.push(text);
    }
}

pub(crate) fn catalogs(parts: Vec<(String, Catalog)>) -> Catalog {
    let mut all = Catalog::default();
    let mut variables: BTreeMap<VarId, Variable> = BTreeMap::new();
    let mut barriers: BTreeMap<VarId, BarrierName> = BTreeMap::new();
    let mut clocks: BTreeMap<MpId, ProcessClock> = BTreeMap::new();
    for (source, part) in parts {
        all.completeness.merge(&part.completeness);
        if all.run.is_some() && part.run.is_some() && all.run != part.run {
            let text = format!("{source} belongs to another run");
            note(&mut all.completeness, text);
        }
        all.run = all.run.or(part.run);
        if all.topology == Default::default() {
            all.topology = part.topology;
        } else if all.topology != part.topology && part.topology != Default::default() {
            let text = format!("{source} belongs to another cluster; its numbers may mean others");
            note(&mut all.completeness, text);
        }
        for name in part.event_managers {
            if !all.event_managers.contains(&name) {
                all.event_managers.push(name);
            }
        }
        for variable in part.variables {
            let known = variables
                .entry(variable.id())
                .or_insert_with(|| variable.clone());
            if *known != variable {
                let text = format!(
                    "{source} knows variable {} differently",
                    variable.spec().name()
                );
                note(&mut all.completeness, text);
            }
        }
        for clock in part.clocks {
            // One event manager knows a memory process; two that say something were one.
            let known = clocks.get(&clock.mp);
            let clock = known.map_or(clock, |before| clock.after(before));
            clocks.insert(clock.mp, clock);
        }
        for barrier in part.barriers {
            barriers.entry(barrier.id).or_insert(barrier);
        }
        all.extent = union(all.extent, part.extent);
        all.records += part.records;
        all.live |= part.live;
    }
    all.variables = variables.into_values().collect();
    all.barriers = barriers.into_values().collect();
    all.clocks = clocks.into_values().collect();
    all
}

/// A primary meta-object lives at one event manager, so two of one object mean that a source was
/// named twice; the one that knows more stands.
pub(crate) fn meta_objects(parts: Vec<(String, MetaObjects)>) -> MetaObjects {
    let mut primaries: BTreeMap<ObjectId, PrimaryMeta> = BTreeMap::new();
    let mut secondaries: Vec<SecondaryMeta> = Vec::new();
    let mut times: BTreeMap<VarId, OperationTimes> = BTreeMap::new();
    let mut completeness = Completeness::default();
    for (_, part) in parts {
        completeness.merge(&part.completeness);
        for (variable, its) in part.times {
            times.entry(variable).or_default().add(&its);
        }
        for primary in part.primaries {
            match primaries.get(&primary.object) {
                Some(known) if known.counts.total() >= primary.counts.total() => {}
                _ => {
                    primaries.insert(primary.object, primary);
                }
            }
        }
        secondaries.extend(part.secondaries);
    }
    secondaries.sort_by_key(|s| (s.object, s.copy_at));
    MetaObjects {
        primaries: primaries.into_values().collect(),
        secondaries,
        times,
        completeness,
    }
}

/// The parts of one variable's figures are added.
pub(crate) fn described(parts: Vec<(String, VariableTable)>) -> VariableTable {
    let mut rows: BTreeMap<VarId, VariableFigures> = BTreeMap::new();
    let mut completeness = Completeness::default();
    for (_, part) in parts {
        completeness.merge(&part.completeness);
        for row in part.rows {
            match rows.get_mut(&row.variable.id()) {
                Some(known) => known.sums.add(&row.sums),
                None => {
                    rows.insert(row.variable.id(), row);
                }
            }
        }
    }
    VariableTable {
        rows: rows.into_values().collect(),
        completeness,
    }
}

/// Histograms over `range`; a part that covers another range or has another number of buckets is
/// counted as missing, for it cannot be added.
pub(crate) fn histograms(
    parts: Vec<(String, Histogram)>,
    range: TimeRange,
    buckets: u32,
) -> Histogram {
    let mut all = Histogram {
        range,
        buckets: vec![OriginCounts::default(); buckets as usize],
        completeness: Completeness::default(),
    };
    for (source, part) in parts {
        if part.range != range || part.buckets.len() != all.buckets.len() {
            all.completeness.missing.push(source);
            continue;
        }
        all.completeness.merge(&part.completeness);
        for (sum, bucket) in all.buckets.iter_mut().zip(&part.buckets) {
            sum.add(bucket);
        }
    }
    all
}

pub(crate) fn histories(
    parts: Vec<(String, History)>,
    range: TimeRange,
    query: &HistoryQuery,
) -> History {
    let mut completeness = Completeness::default();
    let mut points = Vec::new();
    let mut matched = 0;
    for (_, part) in parts {
        completeness.merge(&part.completeness);
        matched += part.matched;
        points.extend(part.points);
    }
    respect_sections(&mut points);
    History {
        range,
        points: gather(points, range, query.max_points),
        matched,
        completeness,
    }
}

pub(crate) fn statuses(parts: Vec<(String, Status)>) -> Status {
    let mut all = Status::default();
    for (_, part) in parts {
        all.completeness.merge(&part.completeness);
        let new = |emp: &EmpStatus| !all.event_managers.iter().any(|e| e.name == emp.name);
        let fresh: Vec<EmpStatus> = part.event_managers.into_iter().filter(new).collect();
        all.event_managers.extend(fresh);
    }
    all.event_managers.sort_by(|a, b| a.name.cmp(&b.name));
    all
}
