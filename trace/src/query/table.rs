//! The table of variables, page by page: what is asked and sent is bounded by what is shown, however
//! many variables there are.
//!
//! An event manager knows a part of the variables' figures: those of the objects and copies of its own
//! memory processes. [`rank`] gives a part of its order of variables (name and sort key only),
//! [`describe`] the figures of some. A variable whose objects and copies can only be here is *whole*: its
//! figures are final. Of the others, *split* ones, the figures of several event managers are added; for them
//! every ranking says how large the next one it kept back can be, so that whoever merges rankings knows
//! when the first so many are certain.

use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap};

use dosmos_proto::{EmpId, GroupId, Nanos, Topology, VarId, Variable};
use regex::{Regex, RegexBuilder};
use serde::{Deserialize, Serialize};

use super::{Catalog, Completeness, MetaObjects, QueryError};
use crate::meta::{Access, OpCounts, PrimaryMeta, SecondaryMeta};

/// Entries of a list of last accesses that [`Sums`] keeps.
const LAST: usize = 4;
/// Memory a compiled pattern may take, in bytes.
const PATTERN_BYTES: usize = 1 << 20;

/// What the table is sorted by. Names ascend, figures descend; reversed, the other way round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[allow(missing_docs)] // the columns' names
pub enum SortKey {
    #[default]
    Name,
    Objects,
    Copies,
    ReadsMain,
    ReadsCopies,
    Writes,
    Acquires,
    Delayed,
    /// Mean wait of an acquire.
    Wait,
    /// Mean time from grant to release.
    Hold,
    /// Share of the accesses that left their group.
    Inter,
}

impl SortKey {
    /// All of them, in the order of the columns.
    pub const ALL: [Self; 11] = [
        Self::Name,
        Self::Objects,
        Self::Copies,
        Self::ReadsMain,
        Self::ReadsCopies,
        Self::Writes,
        Self::Acquires,
        Self::Delayed,
        Self::Wait,
        Self::Hold,
        Self::Inter,
    ];

    /// What it is called in commands.
    pub fn name(self) -> &'static str {
        match self {
            Self::Name => "name",
            Self::Objects => "objects",
            Self::Copies => "copies",
            Self::ReadsMain => "reads",
            Self::ReadsCopies => "oncopy",
            Self::Writes => "writes",
            Self::Acquires => "acquires",
            Self::Delayed => "delayed",
            Self::Wait => "wait",
            Self::Hold => "hold",
            Self::Inter => "inter",
        }
    }

    /// The next column's.
    #[must_use]
    pub fn next(self) -> Self {
        let at = Self::ALL.iter().position(|k| *k == self).unwrap_or(0);
        Self::ALL[(at + 1) % Self::ALL.len()]
    }

    /// Whether the merged key of a split variable is a sum of the parts' keys (and not a ratio of sums).
    pub fn adds_up(self) -> bool {
        !matches!(
            self,
            Self::Name | Self::Objects | Self::Wait | Self::Hold | Self::Inter
        )
    }
}

impl std::str::FromStr for SortKey {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let known = Self::ALL.into_iter();
        known.clone().find(|k| k.name() == text).ok_or_else(|| {
            let names: Vec<&str> = known.map(Self::name).collect();
            format!("no column {text:?}; there is {}", names.join(", "))
        })
    }
}

/// Which names: those that a regular expression matches somewhere, or those that it does not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamePattern {
    /// The regular expression (syntax of the crate `regex`).
    pub text: String,
    /// Names that it does not match.
    pub negate: bool,
}

impl NamePattern {
    /// As a user types it: `!` in front negates. Empty: none.
    ///
    /// # Errors
    /// If it is no regular expression; says why.
    pub fn parse(typed: &str) -> Result<Option<Self>, String> {
        let negate = typed.starts_with('!');
        let text = typed.strip_prefix('!').unwrap_or(typed);
        if text.is_empty() {
            return Ok(None);
        }
        let pattern = Self {
            text: text.to_owned(),
            negate,
        };
        pattern.compile()?;
        Ok(Some(pattern))
    }

    /// As a user would type it.
    pub fn typed(&self) -> String {
        format!("{}{}", if self.negate { "!" } else { "" }, self.text)
    }

    /// Whether it lets a name through. One that is no regular expression lets nothing through.
    pub fn matcher(&self) -> impl Fn(&str) -> bool + use<> {
        let regex = self.compile().ok();
        let negate = self.negate;
        move |name| regex.as_ref().is_some_and(|r| r.is_match(name) != negate)
    }

    /// The names that are exactly this.
    pub fn exactly(name: &str) -> Self {
        Self {
            text: format!("^{}$", regex::escape(name)),
            negate: false,
        }
    }

    fn compile(&self) -> Result<Regex, String> {
        let built = RegexBuilder::new(&self.text)
            .size_limit(PATTERN_BYTES)
            .build();
        built.map_err(|e| {
            let why = e.to_string();
            let why = why.lines().last().unwrap_or_default().trim();
            let why = why.strip_prefix("error: ").unwrap_or(why);
            format!("{:?} is no regular expression: {why}", self.text)
        })
    }
}

/// Which part of an order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RankQuery {
    /// Only these; none: all.
    pub pattern: Option<NamePattern>,
    /// In which order.
    pub sort: SortKey,
    /// The other way round.
    pub reverse: bool,
    /// So many are left out at the beginning.
    pub skip: u32,
    /// At most so many.
    pub take: u32,
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
    /// What is lacking.
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
    /// At most so many rows.
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
    /// What is lacking.
    pub completeness: Completeness,
}

/// Figures of some variables.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct VariableTable {
    /// One a variable.
    pub rows: Vec<VariableFigures>,
    /// What is lacking.
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

/// Figures summed over the objects of a variable.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sums {
    /// Copies whose secondary meta-objects are here.
    pub copies: u64,
    /// Copies that the primary meta-objects know of.
    pub copies_listed: u64,
    /// Accesses to the main copies.
    pub counts: OpCounts,
    /// Reads on copies, handed over or not.
    pub reads_on_copies: u64,
    /// Acquires that had to wait.
    pub delayed: u64,
    /// Waits of acquires, summed.
    pub wait: Nanos,
    /// Times from grant to release, summed.
    pub hold: Nanos,
    /// Accesses to the main copies by origin: local, intra, inter.
    pub origins: [u64; 3],
    /// The newest acquires of all objects, newest first.
    pub last_acquires: Vec<Access>,
    /// The newest writes, newest first.
    pub last_writes: Vec<Access>,
}

impl Sums {
    /// Adds an object's.
    pub fn primary(&mut self, p: &PrimaryMeta, copies: u64) {
        self.copies_listed += copies;
        self.counts.add(&p.counts);
        self.reads_on_copies += p.reads_on_copies;
        self.delayed += p.delayed;
        self.wait += p.wait;
        self.hold += p.hold;
        for (sum, origin) in self.origins.iter_mut().zip(&p.by_origin) {
            *sum += origin.total();
        }
        keep_newest(&mut self.last_acquires, &p.last_acquires);
        keep_newest(&mut self.last_writes, &p.last_writes);
    }

    /// Adds a copy's.
    pub fn secondary(&mut self, s: &SecondaryMeta) {
        self.copies += 1;
        self.reads_on_copies += s.reads;
    }

    /// Adds what another event manager knows.
    pub fn add(&mut self, other: &Self) {
        self.copies += other.copies;
        self.copies_listed += other.copies_listed;
        self.counts.add(&other.counts);
        self.reads_on_copies += other.reads_on_copies;
        self.delayed += other.delayed;
        self.wait += other.wait;
        self.hold += other.hold;
        for (sum, n) in self.origins.iter_mut().zip(other.origins) {
            *sum += n;
        }
        keep_newest(&mut self.last_acquires, &other.last_acquires);
        keep_newest(&mut self.last_writes, &other.last_writes);
    }

    /// All accesses, those on copies too.
    pub fn accesses(&self) -> u64 {
        self.origins.iter().sum::<u64>() + self.reads_on_copies
    }

    /// Copies there are now.
    pub fn copies_now(&self) -> u64 {
        self.copies.max(self.copies_listed)
    }

    /// Mean wait of an acquire.
    pub fn mean_wait(&self) -> Option<Nanos> {
        self.wait.0.checked_div(self.counts.acquires).map(Nanos)
    }

    /// Mean time from grant to release.
    pub fn mean_hold(&self) -> Option<Nanos> {
        self.hold.0.checked_div(self.counts.releases).map(Nanos)
    }

    /// What a variable of so many objects with these figures is sorted by. What is not there comes
    /// after zero.
    pub fn key(&self, sort: SortKey, objects: u32) -> f64 {
        let mean = |t: Option<Nanos>| t.map_or(-1.0, |t| t.0 as f64);
        match sort {
            SortKey::Name => 0.0,
            SortKey::Objects => f64::from(objects),
            SortKey::Copies => self.copies_now() as f64,
            SortKey::ReadsMain => self.counts.reads as f64,
            SortKey::ReadsCopies => self.reads_on_copies as f64,
            SortKey::Writes => self.counts.writes as f64,
            SortKey::Acquires => self.counts.acquires as f64,
            SortKey::Delayed => self.delayed as f64,
            SortKey::Wait => mean(self.mean_wait()),
            SortKey::Hold => mean(self.mean_hold()),
            SortKey::Inter => match self.accesses() {
                0 => -1.0,
                all => self.origins[2] as f64 / all as f64,
            },
        }
    }
}

/// Merges `more`, in any order, into `list`, newest first.
fn keep_newest(list: &mut Vec<Access>, more: &[Access]) {
    list.extend_from_slice(more);
    list.sort_by_key(|a| std::cmp::Reverse(a.at));
    list.truncate(LAST);
}

/// What comes first in the table: by key, then by name, then by number.
pub fn order(
    sort: SortKey,
    reverse: bool,
    a: (f64, &str, VarId),
    b: (f64, &str, VarId),
) -> Ordering {
    let forward = match sort {
        SortKey::Name => Ordering::Equal,
        _ => b.0.total_cmp(&a.0),
    };
    let forward = forward
        .then_with(|| a.1.cmp(b.1))
        .then_with(|| a.2.cmp(&b.2));
    if reverse { forward.reverse() } else { forward }
}

/// Which event managers a source stands for, and what follows for each variable.
#[derive(Debug)]
pub struct Share {
    /// Of each memory process: whether its event manager is among them.
    mine: Vec<bool>,
    /// Of each group: whether all its memory processes are.
    group_mine: Vec<bool>,
    group_of: Vec<GroupId>,
}

impl Share {
    /// The share of `managers` in a cluster.
    pub fn new(topology: &Topology, managers: &[EmpId]) -> Self {
        let processes = &topology.memory_processes;
        let mine: Vec<bool> = processes
            .iter()
            .map(|p| managers.contains(&p.event_manager))
            .collect();
        let mut group_mine = vec![true; topology.groups.len()];
        for (process, mine) in processes.iter().zip(&mine) {
            if let Some(all) = group_mine.get_mut(process.group.index()) {
                *all &= mine;
            }
        }
        Self {
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
        }
    }

    /// Whether this is where the variable is counted.
    fn counts(&self, variable: &Variable) -> bool {
        let first = variable.owners.first();
        first.is_none_or(|mp| self.mine.get(mp.index()).is_none_or(|mine| *mine))
    }

    /// Whether all of its figures are here: copies live in their owner's group only.
    fn has_whole(&self, variable: &Variable) -> bool {
        variable.owners.iter().all(|mp| {
            let group = self.group_of.get(mp.index());
            group.is_none_or(|g| self.group_mine.get(g.index()).is_none_or(|mine| *mine))
        })
    }
}

/// The part of the order of `variables` that is asked for, by the figures in `sums`.
///
/// # Errors
/// If the pattern is no regular expression.
pub fn rank_over<'a>(
    variables: impl Iterator<Item = &'a Variable>,
    sums: &HashMap<VarId, Sums>,
    share: &Share,
    query: &RankQuery,
) -> Result<Ranking, QueryError> {
    let pattern = query.pattern.as_ref();
    let regex = pattern.map(NamePattern::compile).transpose();
    let regex = regex.map_err(QueryError::BadQuery)?;
    let negate = pattern.is_some_and(|p| p.negate);
    let mut ranking = Ranking::default();
    let mut rows: Vec<(f64, &Variable, bool)> = Vec::new();
    let nothing = Sums::default();
    for variable in variables {
        let counted = share.counts(variable);
        ranking.known += u64::from(counted);
        if regex
            .as_ref()
            .is_some_and(|r| r.is_match(&variable.spec.name) == negate)
        {
            continue;
        }
        ranking.matched += u64::from(counted);
        let its = sums.get(&variable.id);
        if counted || its.is_some() {
            let objects = variable.spec.layout.objects();
            let key = its.unwrap_or(&nothing).key(query.sort, objects);
            rows.push((key, variable, !share.has_whole(variable)));
        }
    }
    let by = |a: &(f64, &Variable, bool), b: &(f64, &Variable, bool)| {
        let a = (a.0, a.1.spec.name.as_str(), a.1.id);
        order(
            query.sort,
            query.reverse,
            a,
            (b.0, b.1.spec.name.as_str(), b.1.id),
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
            variable: v.id,
            name: v.spec.name.clone(),
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
    sums
}

/// [`rank_over`] of what a source answered.
///
/// # Errors
/// If the pattern is no regular expression.
pub fn rank(
    catalog: &Catalog,
    metas: &MetaObjects,
    query: &RankQuery,
) -> Result<Ranking, QueryError> {
    let managers: Vec<EmpId> = (0u32..)
        .zip(&catalog.topology.event_managers)
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
    let wanted: std::collections::HashSet<VarId> = wanted.iter().copied().collect();
    let its = catalog.variables.iter().filter(|v| wanted.contains(&v.id));
    VariableTable {
        rows: its
            .map(|v| VariableFigures {
                variable: v.clone(),
                sums: sums.remove(&v.id).unwrap_or_default(),
            })
            .collect(),
        completeness: metas.completeness.clone(),
    }
}

/// The page of `wanted`, in this order, from their ranking and their figures.
pub fn page(offset: u32, wanted: &[VarId], ranking: Ranking, described: VariableTable) -> Table {
    let mut rows: BTreeMap<VarId, VariableFigures> = BTreeMap::new();
    for row in described.rows {
        match rows.entry(row.variable.id) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_typed_with_an_exclamation_mark_to_negate() {
        let pattern = NamePattern::parse("!^grid").unwrap().unwrap();
        assert!(pattern.negate);
        assert_eq!(pattern.typed(), "!^grid");
        assert_eq!(NamePattern::parse(""), Ok(None));
        assert_eq!(NamePattern::parse("!"), Ok(None));
        let error = NamePattern::parse("a(").unwrap_err();
        assert!(error.contains("a("), "{error}");
    }

    #[test]
    fn columns_have_the_names_that_commands_use() {
        for key in SortKey::ALL {
            assert_eq!(key.name().parse(), Ok(key));
        }
        assert!("nonsense".parse::<SortKey>().unwrap_err().contains("inter"));
    }

    #[test]
    fn figures_descend_and_equal_ones_go_by_name() {
        let (a, b) = ((1.0, "a", VarId(1)), (2.0, "b", VarId(2)));
        assert_eq!(order(SortKey::Writes, false, a, b), Ordering::Greater);
        assert_eq!(order(SortKey::Writes, true, a, b), Ordering::Less);
        assert_eq!(order(SortKey::Name, false, a, b), Ordering::Less);
        let c = (1.0, "c", VarId(0));
        assert_eq!(order(SortKey::Writes, false, a, c), Ordering::Less);
    }
}
