//! What a chunk holds, without decoding it: enough to answer histograms and to skip it.

use std::collections::{BTreeMap, BTreeSet};

use dosmos_proto::{ApId, Nanos, VarId};
use serde::{Deserialize, Serialize};

use crate::query::{Filter, OriginCounts, TimeRange};
use crate::record::{Op, Origin, Record};

/// Accesses of one kind in a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cell {
    /// The variable (or barrier).
    pub variable: VarId,
    /// What was done.
    pub op: Op,
    /// How far it went.
    pub origin: Origin,
    /// Served from a copy.
    pub optimized: bool,
    /// How often.
    pub count: u32,
}

/// What a chunk holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Summary {
    /// From the earliest start to just after the latest.
    pub starts: TimeRange,
    /// The latest end.
    pub end: Nanos,
    /// All records: owners', failed ones and notices too.
    pub records: u32,
    /// Completed accesses, each counted once.
    pub cells: Vec<Cell>,
    /// Variables of all records.
    pub variables: Vec<VarId>,
    /// Application processes of all records.
    pub aps: Vec<ApId>,
}

impl Summary {
    /// The summary of `records`; none if there are none.
    pub fn of(records: &[Record]) -> Option<Self> {
        let from = records.iter().map(|r| r.start).min()?;
        let last = records.iter().map(|r| r.start).max()?;
        let mut cells: BTreeMap<(VarId, Op, Origin, bool), u32> = BTreeMap::new();
        let (mut variables, mut aps) = (BTreeSet::new(), BTreeSet::new());
        for r in records {
            variables.insert(r.object.var);
            aps.insert(r.ap);
            if r.is_access() {
                let key = (r.object.var, r.op, r.origin, r.flags.optimized);
                *cells.entry(key).or_default() += 1;
            }
        }
        Some(Self {
            starts: TimeRange {
                from,
                to: last + Nanos(1),
            },
            end: records.iter().map(Record::end).max()?,
            records: records.len() as u32,
            cells: cells
                .into_iter()
                .map(|((variable, op, origin, optimized), count)| Cell {
                    variable,
                    op,
                    origin,
                    optimized,
                    count,
                })
                .collect(),
            variables: variables.into_iter().collect(),
            aps: aps.into_iter().collect(),
        })
    }

    /// Whether the chunk may hold a record that `filter` matches.
    pub fn may_match(&self, filter: &Filter) -> bool {
        let overlaps = |r: TimeRange| self.starts.from < r.to && r.from < self.starts.to;
        let has = |v: &VarId| self.variables.binary_search(v).is_ok();
        let by = |a: &ApId| self.aps.binary_search(a).is_ok();
        filter.range.is_none_or(overlaps)
            && (filter.variables.is_empty() || filter.variables.iter().any(has))
            && (filter.aps.is_empty() || filter.aps.iter().any(by))
    }

    /// Whether the cells tell how many accesses `filter` matches, its range aside.
    pub fn can_count(&self, filter: &Filter) -> bool {
        let all_by_these = filter.aps.is_empty() || self.aps.iter().all(|a| filter.aps.contains(a));
        filter.object.is_none() && !filter.everything && all_by_these
    }

    /// The accesses that `filter` matches, its range aside. Only if [`can_count`](Self::can_count).
    pub fn count(&self, filter: &Filter) -> OriginCounts {
        let mut counts = OriginCounts::default();
        for cell in &self.cells {
            let wanted = (filter.variables.is_empty() || filter.variables.contains(&cell.variable))
                && (filter.ops.is_empty() || filter.ops.contains(&cell.op))
                && (filter.origins.is_empty() || filter.origins.contains(&cell.origin));
            if wanted {
                let count = u64::from(cell.count);
                match cell.origin {
                    Origin::Local => counts.local += count,
                    Origin::Intra => counts.intra += count,
                    Origin::Inter => counts.inter += count,
                }
                counts.optimized += if cell.optimized { count } else { 0 };
            }
        }
        counts
    }
}
