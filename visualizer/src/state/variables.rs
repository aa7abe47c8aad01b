//! The table of variables: one row a variable, summed over its objects.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use dosmos_proto::{MpId, Nanos, VarId, Variable};
use dosmos_trace::meta::PrimaryMeta;

use super::data::Data;

/// A variable's figures.
#[derive(Clone, Debug, PartialEq)]
pub struct VariableRow {
    /// Which.
    pub id: VarId,
    /// Its name.
    pub name: String,
    /// Type, shape and split, as `f64 1024×64 / 8`.
    pub layout: String,
    /// What releases do to copies.
    pub policy: String,
    /// The group it belongs to.
    pub group: String,
    /// Its owners' names.
    pub owners: String,
    /// Number of objects.
    pub objects: u64,
    /// Copies there are now.
    pub copies: u64,
    /// Reads on the main copies.
    pub reads_main: u64,
    /// Reads on other copies.
    pub reads_copies: u64,
    /// Writes.
    pub writes: u64,
    /// Acquires.
    pub acquires: u64,
    /// Acquires that had to wait.
    pub delayed: u64,
    /// Mean wait of an acquire.
    pub wait: Option<Nanos>,
    /// Mean time from grant to release.
    pub hold: Option<Nanos>,
    /// Accesses by origin, reads on copies among the local ones.
    pub origins: [u64; 3],
}

impl VariableRow {
    /// All accesses.
    pub fn accesses(&self) -> u64 {
        self.origins.iter().sum()
    }

    /// Fraction of the accesses that left their group.
    pub fn inter(&self) -> Option<f64> {
        let all = self.accesses();
        (all > 0).then(|| self.origins[2] as f64 / all as f64)
    }
}

/// What the table is sorted by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)] // the fields of `VariableRow` of these names
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
    Wait,
    Hold,
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

    /// The next column's.
    #[must_use]
    pub fn next(self) -> Self {
        let at = Self::ALL.iter().position(|k| *k == self).unwrap_or(0);
        Self::ALL[(at + 1) % Self::ALL.len()]
    }

    /// Names ascend, figures descend.
    fn compare(self, a: &VariableRow, b: &VariableRow) -> Ordering {
        let figures = match self {
            Self::Name => Ordering::Equal,
            Self::Objects => b.objects.cmp(&a.objects),
            Self::Copies => b.copies.cmp(&a.copies),
            Self::ReadsMain => b.reads_main.cmp(&a.reads_main),
            Self::ReadsCopies => b.reads_copies.cmp(&a.reads_copies),
            Self::Writes => b.writes.cmp(&a.writes),
            Self::Acquires => b.acquires.cmp(&a.acquires),
            Self::Delayed => b.delayed.cmp(&a.delayed),
            Self::Wait => b.wait.cmp(&a.wait),
            Self::Hold => b.hold.cmp(&a.hold),
            Self::Inter => b
                .inter()
                .unwrap_or(-1.0)
                .total_cmp(&a.inter().unwrap_or(-1.0)),
        };
        figures.then_with(|| a.name.cmp(&b.name))
    }
}

/// The rows of the table, sorted.
pub fn rows(data: &Data, sort: SortKey, reverse: bool) -> Vec<VariableRow> {
    let mut primaries: BTreeMap<VarId, Vec<&PrimaryMeta>> = BTreeMap::new();
    for primary in &data.metas.primaries {
        primaries
            .entry(primary.object.var)
            .or_default()
            .push(primary);
    }
    // Copies and the reads on them that have not been handed over yet.
    let mut secondaries: BTreeMap<VarId, (u64, u64)> = BTreeMap::new();
    for secondary in &data.metas.secondaries {
        let (copies, reads) = secondaries.entry(secondary.object.var).or_default();
        *copies += 1;
        *reads += secondary.reads;
    }
    let row = |variable: &Variable| {
        let primaries = primaries.get(&variable.id).map_or(&[][..], Vec::as_slice);
        let secondaries = secondaries.get(&variable.id).copied().unwrap_or_default();
        row(data, variable, primaries, secondaries)
    };
    let mut rows: Vec<VariableRow> = data.catalog.variables.iter().map(row).collect();
    rows.sort_by(|a, b| sort.compare(a, b));
    if reverse {
        rows.reverse();
    }
    rows
}

fn row(
    data: &Data,
    variable: &Variable,
    primaries: &[&PrimaryMeta],
    (copies, reads_on_copies): (u64, u64),
) -> VariableRow {
    let sum = |f: fn(&PrimaryMeta) -> u64| primaries.iter().map(|p| f(p)).sum::<u64>();
    let acquires = sum(|p| p.counts.acquires);
    let releases = sum(|p| p.counts.releases);
    let reads_copies = sum(|p| p.reads_on_copies) + reads_on_copies;
    let mut origins = [
        sum(|p| p.by_origin[0].total()),
        sum(|p| p.by_origin[1].total()),
        sum(|p| p.by_origin[2].total()),
    ];
    origins[0] += reads_copies;
    let mean = |total: u64, n: u64| total.checked_div(n).map(Nanos);
    VariableRow {
        id: variable.id,
        name: variable.spec.name.clone(),
        layout: layout(variable),
        policy: variable.spec.policy.to_string(),
        group: data.catalog.topology.group_name(variable.group),
        owners: owners(data, variable),
        objects: u64::from(variable.spec.layout.objects()),
        copies: copies.max(sum(|p| p.copies_at.len() as u64)),
        reads_main: sum(|p| p.counts.reads),
        reads_copies,
        writes: sum(|p| p.counts.writes),
        acquires,
        delayed: sum(|p| p.delayed),
        wait: mean(sum(|p| p.wait.0), acquires),
        hold: mean(sum(|p| p.hold.0), releases),
        origins,
    }
}

fn layout(variable: &Variable) -> String {
    let l = &variable.spec.layout;
    let shape = match (l.rows(), l.columns()) {
        (1, 1) => String::new(),
        (1, n) => format!(" {n}"),
        (rows, columns) => format!(" {rows}×{columns}"),
    };
    match l.parts() {
        (1, 1) => format!("{}{shape}", l.element()),
        (rows, 1) => format!("{}{shape}, {rows} row parts", l.element()),
        (1, columns) => format!("{}{shape}, {columns} parts", l.element()),
        (rows, columns) => format!("{}{shape}, {rows}×{columns} blocks", l.element()),
    }
}

fn owners(data: &Data, variable: &Variable) -> String {
    let mut owners: Vec<MpId> = variable.owners.clone();
    owners.sort_unstable();
    owners.dedup();
    let names: Vec<String> = owners
        .iter()
        .map(|mp| data.catalog.topology.mp_name(*mp))
        .collect();
    names.join(" ")
}
