//! The table of variables, page by page: what is asked and sent is bounded by what is shown, however
//! many variables there are.
//!
//! An event manager knows a part of the variables' figures: those of the objects and copies of its own
//! memory processes. [`rank`] gives a part of its order of variables (name and sort key only),
//! [`describe`] the figures of some. A variable whose objects and copies can only be here is *whole*: its
//! figures are final. Of the others, *split* ones, the figures of several event managers are added; for them
//! every ranking says how large the next one it kept back can be, so that whoever merges rankings knows
//! when the first ones are certain.

mod order;
mod sums;

use std::collections::{BTreeMap, HashMap, HashSet};

use dosmos_proto::{EmpId, GroupId, Topology, VarId, Variable};

use super::{Catalog, Completeness, MetaObjects, QueryError};
pub use order::{NamePattern, SortKey, order};
pub use sums::Sums;

/// Which part of an order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RankQuery {
    /// Only these; none: all.
    pub pattern: Option<NamePattern>,
    /// In which order.
    pub sort: SortKey,
    /// The other way round.
    pub reverse: bool,
    /// This many are skipped at the beginning.
    pub skip: u32,
    /// At most this many.
    pub take: u32,
    /// Only these; none: all. [`Ranking::known`] and [`Ranking::matched`] count the others too.
    pub among: Vec<VarId>,
}

/// A variable's place in an order.
#[derive(Clone, Debug, PartialEq)]
pub struct Ranked {
    /// Which.
    pub variable: VarId,
    /// Its name, which decides between equal keys.
    pub name: String,
    /// Its key, as far as this event manager knows; 0 if sorted by name.
    pub key: f64,
    /// Other event managers may have a part of its figures.
    pub split: bool,
}

/// A part of an order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ranking {
    /// In order.
    pub entries: Vec<Ranked>,
    /// There are more after these.
    pub more: bool,
    /// Key of the first split variable after these.
    pub next_split: Option<f64>,
    /// Variables counted here: each at one event manager of the cluster.
    pub known: u64,
    /// Those of them that the pattern lets through.
    pub matched: u64,
    /// What is missing.
    pub completeness: Completeness,
}

/// A page of the table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TableQuery {
    /// Only these; none: all.
    pub pattern: Option<NamePattern>,
    /// In which order.
    pub sort: SortKey,
    /// The other way round.
    pub reverse: bool,
    /// Position of the first row.
    pub offset: u32,
    /// At most this many rows.
    pub limit: u32,
}

impl TableQuery {
    /// The same page of the order of one source.
    pub fn rank(&self) -> RankQuery {
        RankQuery {
            pattern: self.pattern.clone(),
            sort: self.sort,
            reverse: self.reverse,
            skip: self.offset,
            take: self.limit,
            among: Vec::new(),
        }
    }
}

/// The rows of a page.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// Position of the first row.
    pub offset: u32,
    /// In order.
    pub rows: Vec<VariableFigures>,
    /// All variables there are.
    pub known: u64,
    /// Those of them that the pattern lets through.
    pub matched: u64,
    /// What is missing.
    pub completeness: Completeness,
}

/// Figures of some variables.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct VariableTable {
    /// One per variable.
    pub rows: Vec<VariableFigures>,
    /// What is missing.
    pub completeness: Completeness,
}

/// A variable and its figures.
#[derive(Clone, Debug, PartialEq)]
pub struct VariableFigures {
    /// Name, layout, owners.
    pub variable: Variable,
    /// Summed over its objects.
    pub sums: Sums,
}

/// Which event managers a source stands for, and what follows for each variable.
#[derive(Debug)]
pub struct Share {
    /// Of each memory process: whether its event manager is among them.
    mine: Vec<bool>,
    /// Of each group: whether all its memory processes are.
    group_mine: Vec<bool>,
    group_of: Vec<GroupId>,
    /// Whether all event managers are among them.
    complete: bool,
}

impl Share {
    /// The share of `managers` in a cluster.
    pub fn new(topology: &Topology, managers: &[EmpId]) -> Self {
        let processes = topology.memory_processes();
        let mine: Vec<bool> = processes
            .iter()
            .map(|p| managers.contains(&p.event_manager))
            .collect();
        let mut group_mine = vec![true; topology.groups().len()];
        for (process, mine) in processes.iter().zip(&mine) {
            if let Some(all) = group_mine.get_mut(process.group.index()) {
                *all &= mine;
            }
        }
        Self {
            complete: mine.iter().all(|mine| *mine),
            mine,
            group_mine,
            group_of: processes.iter().map(|p| p.group).collect(),
        }
    }

    /// Every variable is counted here and whole.
    fn everything() -> Self {
        Self {
            mine: Vec::new(),
            group_mine: Vec::new(),
            group_of: Vec::new(),
            complete: true,
        }
    }

    /// Whether this is where the variable is counted.
    fn counts(&self, variable: &Variable) -> bool {
        let first = variable.owners().first();
        first.is_none_or(|mp| self.mine.get(mp.index()).is_none_or(|mine| *mine))
    }

    /// Whether all that its key is made of is here: copies live in their owner's group only, but whoever accesses
    /// it may report to any event manager.
    fn has_whole(&self, variable: &Variable, key: SortKey) -> bool {
        if key == SortKey::Time {
            return self.complete;
        }
        variable.owners().iter().all(|mp| {
            let group = self.group_of.get(mp.index());
            group.is_none_or(|g| self.group_mine.get(g.index()).is_none_or(|mine| *mine))
        })
    }
}

/// The part of the order of `variables` that is asked for, by the figures in `sums`.
///
/// # Errors
/// If the pattern makes no sense.
pub fn rank_over<'a>(
    variables: impl Iterator<Item = &'a Variable>,
    sums: &HashMap<VarId, Sums>,
    share: &Share,
    query: &RankQuery,
) -> Result<Ranking, QueryError> {
    let pattern = query.pattern.as_ref();
    let passes = pattern.map(NamePattern::compile).transpose();
    let passes = passes.map_err(|e| QueryError::BadQuery(e.to_string()))?;
    let mut ranking = Ranking::default();
    let mut rows: Vec<(f64, &Variable, bool)> = Vec::new();
    let nothing = Sums::default();
    let among: HashSet<VarId> = query.among.iter().copied().collect();
    for variable in variables {
        let counted = share.counts(variable);
        ranking.known += u64::from(counted);
        if !passes
            .as_ref()
            .is_none_or(|passes| passes(variable.spec().name()))
        {
            continue;
        }
        ranking.matched += u64::from(counted);
        if !among.is_empty() && !among.contains(&variable.id()) {
            continue;
        }
        let its = sums.get(&variable.id());
        let ranked = match query.sort {
            SortKey::Time => its.is_some(),
            _ => its.is_some_and(Sums::knows_objects),
        };
        if counted || ranked {
            let objects = variable.spec().layout().objects();
            let key = its.unwrap_or(&nothing).key(query.sort, objects);
            rows.push((key, variable, !share.has_whole(variable, query.sort)));
        }
    }
    let by = |a: &(f64, &Variable, bool), b: &(f64, &Variable, bool)| {
        let a = (a.0, a.1.spec().name(), a.1.id());
        order(
            query.sort,
            query.reverse,
            a,
            (b.0, b.1.spec().name(), b.1.id()),
        )
    };
    let skip = (query.skip as usize).min(rows.len());
    let end = skip.saturating_add(query.take as usize).min(rows.len());
    if end < rows.len() && end > 0 {
        rows.select_nth_unstable_by(end - 1, by);
    }
    let (first, rest) = rows.split_at_mut(end);
    first.sort_unstable_by(by);
    ranking.more = !rest.is_empty();
    let next = rest.iter().filter(|r| r.2).min_by(|a, b| by(a, b));
    ranking.next_split = next.map(|r| r.0);
    ranking.entries = first[skip..]
        .iter()
        .map(|(key, v, split)| Ranked {
            variable: v.id(),
            name: v.spec().name().to_owned(),
            key: *key,
            split: *split,
        })
        .collect();
    Ok(ranking)
}

/// Figures by variable.
pub fn sums_of(metas: &MetaObjects) -> HashMap<VarId, Sums> {
    let mut sums: HashMap<VarId, Sums> = HashMap::new();
    for primary in &metas.primaries {
        let copies = primary.copies_at.len() as u64;
        sums.entry(primary.object.var)
            .or_default()
            .primary(primary, copies);
    }
    for secondary in &metas.secondaries {
        sums.entry(secondary.object.var)
            .or_default()
            .secondary(secondary);
    }
    for (&variable, times) in &metas.times {
        sums.entry(variable).or_default().times.add(times);
    }
    sums
}

/// [`rank_over`] of what a source answered.
///
/// # Errors
/// If the pattern makes no sense.
pub fn rank(
    catalog: &Catalog,
    metas: &MetaObjects,
    query: &RankQuery,
) -> Result<Ranking, QueryError> {
    let managers: Vec<EmpId> = (0u32..)
        .zip(catalog.topology.event_managers())
        .filter(|(_, m)| catalog.event_managers.contains(&m.name))
        .map(|(i, _)| EmpId(i))
        .collect();
    let share = match managers.is_empty() {
        true => Share::everything(),
        false => Share::new(&catalog.topology, &managers),
    };
    let mut ranking = rank_over(catalog.variables.iter(), &sums_of(metas), &share, query)?;
    ranking.completeness = metas.completeness.clone();
    Ok(ranking)
}

/// The figures of `wanted` in what a source answered.
pub fn describe(catalog: &Catalog, metas: &MetaObjects, wanted: &[VarId]) -> VariableTable {
    let mut sums = sums_of(metas);
    let wanted: HashSet<VarId> = wanted.iter().copied().collect();
    let its = catalog
        .variables
        .iter()
        .filter(|v| wanted.contains(&v.id()));
    VariableTable {
        rows: its
            .map(|v| VariableFigures {
                variable: v.clone(),
                sums: sums.remove(&v.id()).unwrap_or_default(),
            })
            .collect(),
        completeness: metas.completeness.clone(),
    }
}

/// The page of `wanted`, in this order, from their ranking and their figures.
pub fn page(offset: u32, wanted: &[VarId], ranking: Ranking, described: VariableTable) -> Table {
    let mut rows: BTreeMap<VarId, VariableFigures> = BTreeMap::new();
    for row in described.rows {
        match rows.entry(row.variable.id()) {
            std::collections::btree_map::Entry::Vacant(e) => {
                e.insert(row);
            }
            std::collections::btree_map::Entry::Occupied(mut e) => e.get_mut().sums.add(&row.sums),
        }
    }
    Table {
        offset,
        rows: wanted.iter().filter_map(|id| rows.remove(id)).collect(),
        known: ranking.known,
        matched: ranking.matched,
        completeness: ranking.completeness,
    }
}
