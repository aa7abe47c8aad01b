//! The table of variables: one row per variable, summed over its objects. Only the page that is seen
//! is here.

use dosmos_proto::{Nanos, Topology, VarId, Variable};
use dosmos_trace::meta::{Access, OperationTimes};
use dosmos_trace::query::table::{Table, VariableFigures};

/// A variable's figures.
#[derive(Clone, Debug, PartialEq)]
pub struct VariableRow {
    /// Which.
    pub id: VarId,
    /// Where it stands in the table's order.
    pub position: usize,
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
    /// All reads.
    pub reads: u64,
    /// Those of them served from other copies than the main one.
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
    /// Accesses by origin; cached reads are local.
    pub origins: [u64; 3],
    /// How long its accesses took, by operation.
    pub times: OperationTimes,
    /// The newest acquires, newest first.
    pub last_acquires: Vec<Access>,
    /// The newest writes, newest first.
    pub last_writes: Vec<Access>,
}

impl VariableRow {
    /// All accesses.
    pub fn accesses(&self) -> u64 {
        self.origins.iter().sum()
    }
}

/// The rows of a page of the table.
pub(super) fn rows(page: &Table, topology: &Topology) -> Vec<VariableRow> {
    let positions = page.offset as usize..;
    let rows = positions.zip(&page.rows);
    rows.map(|(position, figures)| row(topology, position, figures))
        .collect()
}

fn row(topology: &Topology, position: usize, figures: &VariableFigures) -> VariableRow {
    let (variable, sums) = (&figures.variable, &figures.sums);
    let mut origins = sums.origins.into_array();
    origins[0] += sums.reads_on_copies;
    VariableRow {
        id: variable.id(),
        position,
        name: variable.spec().name().to_owned(),
        layout: layout(variable),
        policy: variable.spec().policy().to_string(),
        group: topology.group_name(variable.group()),
        owners: topology.owners_of(variable),
        objects: u64::from(variable.spec().layout().objects()),
        copies: sums.copies_now(),
        reads: sums.reads(),
        reads_copies: sums.reads_on_copies,
        writes: sums.counts.writes,
        acquires: sums.counts.acquires,
        delayed: sums.delayed,
        wait: sums.mean_wait(),
        hold: sums.mean_hold(),
        origins,
        times: sums.times.clone(),
        last_acquires: sums.last_acquires.clone(),
        last_writes: sums.last_writes.clone(),
    }
}

fn layout(variable: &Variable) -> String {
    let l = variable.spec().layout();
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
