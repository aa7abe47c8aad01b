//! What a chunk holds, without decoding it: enough to answer histograms and coarse histories, and to skip it.

use std::collections::BTreeMap;

use dosmos_proto::{ApId, Nanos, ObjectId, VarId};
use serde::{Deserialize, Serialize};

use super::symbols::{Interner, Symbols};
use crate::query::{Filter, TimeRange};
use crate::record::{Op, Origin, Record};
use crate::wire::kind_of;

/// Accesses of one kind, by one variable or application process: 6 bytes, as there are hundreds a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Cell {
    /// Position in the list of variables, or of application processes.
    who: u16,
    /// Operation, origin, served from a copy.
    kind: u8,
    /// One less than how many records: a chunk has up to 2^13.
    more: u16,
}

/// What few cells have, if it is not zero: the time that its accesses waited, in nanoseconds, or how many accesses its
/// records stand for beyond one each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Rare {
    cell: u16,
    sum: u64,
}

/// What a filter finds in a chunk, by kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tally {
    /// What was done.
    pub op: Op,
    /// How far it went.
    pub origin: Origin,
    /// Served from a copy.
    pub optimized: bool,
    /// Served in the application process.
    pub in_process: bool,
    /// How often.
    pub count: u64,
    /// Waiting time, summed.
    pub wait: Nanos,
    /// The variable, or if the filter asks for processes the first one there is.
    pub variable: VarId,
    /// The application process, or if the filter asks for variables the first one there is.
    pub ap: ApId,
}

/// What a chunk holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Summary {
    /// From the earliest access to just after the latest one began.
    pub starts: TimeRange,
    /// The latest end.
    pub end: Nanos,
    /// All records: owners', failed ones and notices too.
    pub records: u32,
    /// How many accesses they stand for beyond one each.
    pub extra: u64,
    /// Variables of all records, in order; with the object, if it is the same in all of them.
    pub variables: Vec<(VarId, Option<u32>)>,
    /// Application processes of all records, in order.
    pub aps: Vec<ApId>,
    /// Completed accesses, each counted once, by variable, and again by application process.
    by_variable: Vec<Cell>,
    by_ap: Vec<Cell>,
    variable_waits: Vec<Rare>,
    ap_waits: Vec<Rare>,
    variable_extra: Vec<Rare>,
    ap_extra: Vec<Rare>,
}

/// From when to when records go.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    from: Nanos,
    /// When the latest access began.
    last: Nanos,
    end: Nanos,
}

impl Span {
    /// Of no records.
    pub(super) const NONE: Self = Self {
        from: Nanos::MAX,
        last: Nanos::ZERO,
        end: Nanos::ZERO,
    };

    #[inline]
    pub(super) fn add(&mut self, record: &Record) {
        self.from = self.from.min(record.start);
        self.last = self.last.max(record.spread().last());
        self.end = self.end.max(record.end());
    }

    fn of(records: &[Record]) -> Self {
        let mut span = Self::NONE;
        records.iter().for_each(|r| span.add(r));
        span
    }
}

/// What a summary is made of.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen<'a> {
    pub(super) span: Span,
    /// Positions of the records that waited, and how long, in nanoseconds.
    pub(super) waits: &'a [(u16, u64)],
    /// Positions of the records that stand for several accesses, and how many more than one.
    pub(super) extra: &'a [(u16, u64)],
    pub(super) kinds: &'a Symbols<u64>,
    pub(super) objects: &'a Symbols<u64>,
    pub(super) aps: &'a Symbols<u64>,
}

/// Bits of a cell's kind that are not the operation.
const ORIGIN_SHIFT: u8 = 3;
const OPTIMIZED: u8 = 1 << 5;
const IN_PROCESS: u8 = 1 << 6;
/// Kinds a cell can have.
const KINDS: usize = 128;

impl Summary {
    /// The summary of at most [`MOST_RECORDS`](super::layout::MOST_RECORDS) records; none if there are none.
    pub fn of(records: &[Record]) -> Option<Self> {
        let [mut kinds, mut objects, mut aps] = std::array::from_fn(|_| Interner::new());
        kinds.take(records.iter().map(|r| kind_of(r).into()));
        objects.take(records.iter().map(|r| r.object.to_wire()));
        aps.take(records.iter().map(|r| r.ap.0.into()));
        let waits = (0u16..).zip(records).filter(|(_, r)| r.wait.0 > 0);
        let waits: Vec<(u16, u64)> = waits.map(|(i, r)| (i, r.wait.0)).collect();
        let extra = (0u16..).zip(records).filter(|(_, r)| r.count > 1);
        let extra: Vec<(u16, u64)> = extra.map(|(i, r)| (i, r.accesses() - 1)).collect();
        let seen = Seen {
            span: Span::of(records),
            waits: &waits,
            extra: &extra,
            kinds: &kinds.symbols,
            objects: &objects.symbols,
            aps: &aps.symbols,
        };
        Self::with_symbols(&seen)
    }

    /// The same, where the records' symbols are known.
    pub(super) fn with_symbols(seen: &Seen<'_>) -> Option<Self> {
        let Seen {
            span,
            waits,
            extra,
            kinds,
            objects,
            aps,
        } = *seen;
        // Objects are in order, so those of a variable stand together.
        let mut variables: Vec<(VarId, Option<u32>)> = Vec::new();
        let mut variable_of = Vec::with_capacity(objects.values.len());
        for object in objects.values.iter().map(|o| ObjectId::from_wire(*o)) {
            match variables.last_mut() {
                Some((variable, only)) if *variable == object.var => *only = None,
                _ => variables.push((object.var, Some(object.index))),
            }
            variable_of.push(variables.len() - 1);
        }
        let mut by_variable = Sums::new(variables.len());
        let mut by_ap = Sums::new(aps.values.len());
        let kind_of_cell: Vec<Option<usize>> = kinds.values.iter().map(|k| cell_kind(*k)).collect();
        let places = objects.of.iter().zip(&aps.of).zip(&kinds.of);
        for ((object, ap), kind) in places {
            if let Some(kind) = kind_of_cell[usize::from(*kind)] {
                by_variable.count(variable_of[usize::from(*object)], kind);
                by_ap.count(usize::from(*ap), kind);
            }
        }
        for &(i, wait) in waits {
            let i = usize::from(i);
            if let Some(kind) = kind_of_cell[usize::from(kinds.of[i])] {
                by_variable.wait(variable_of[usize::from(objects.of[i])], kind, wait);
                by_ap.wait(usize::from(aps.of[i]), kind, wait);
            }
        }
        for &(i, more) in extra {
            let i = usize::from(i);
            if let Some(kind) = kind_of_cell[usize::from(kinds.of[i])] {
                by_variable.extra(variable_of[usize::from(objects.of[i])], kind, more);
                by_ap.extra(usize::from(aps.of[i]), kind, more);
            }
        }
        let (by_variable, by_ap) = (by_variable.cells(), by_ap.cells());
        (!kinds.of.is_empty()).then_some(Self {
            starts: TimeRange {
                from: span.from,
                to: span.last + Nanos(1),
            },
            end: span.end,
            records: kinds.of.len() as u32,
            extra: extra.iter().map(|(_, more)| more).sum(),
            variables,
            aps: aps.values.iter().map(|ap| ApId(*ap as u32)).collect(),
            by_variable: by_variable.all,
            by_ap: by_ap.all,
            variable_waits: by_variable.waits,
            ap_waits: by_ap.waits,
            variable_extra: by_variable.extra,
            ap_extra: by_ap.extra,
        })
    }

    /// Whether the chunk may hold a record that `filter` matches.
    pub fn may_match(&self, filter: &Filter) -> bool {
        let overlaps = |r: TimeRange| self.starts.from < r.to && r.from < self.starts.to;
        let has = |v: &VarId| self.variable(*v).is_some();
        let by = |a: &ApId| self.aps.binary_search(a).is_ok();
        filter.range.is_none_or(overlaps)
            && (filter.variables.is_empty() || filter.variables.iter().any(has))
            && (filter.aps.is_empty() || filter.aps.iter().any(by))
    }

    /// Whether all its accesses began within the range.
    pub fn is_within(&self, range: TimeRange) -> bool {
        range.from <= self.starts.from && self.starts.to <= range.to
    }

    fn variable(&self, variable: VarId) -> Option<&(VarId, Option<u32>)> {
        let at = self.variables.binary_search_by_key(&variable, |v| v.0);
        at.ok().map(|at| &self.variables[at])
    }

    /// Whether [`tallies`](Self::tallies) can tell what `filter` finds, its range aside.
    pub fn can_count(&self, filter: &Filter) -> bool {
        !filter.everything && self.object_is_known(filter) && self.columns_of(filter).is_some()
    }

    /// Whether all records of the variables asked for are of the object asked for.
    fn object_is_known(&self, filter: &Filter) -> bool {
        let only = |v: &VarId| {
            self.variable(*v)
                .is_none_or(|(_, only)| *only == filter.object)
        };
        filter.object.is_none() || !filter.variables.is_empty() && filter.variables.iter().all(only)
    }

    /// The cells that know what `filter` asks for: whether they are those by application process.
    fn columns_of(&self, filter: &Filter) -> Option<bool> {
        let all_aps = filter.aps.is_empty() || self.aps.iter().all(|a| filter.aps.contains(a));
        let all_variables = filter.variables.is_empty()
            || self
                .variables
                .iter()
                .all(|v| filter.variables.contains(&v.0));
        match (all_aps, all_variables) {
            (true, false) => Some(false),
            (false, true) => Some(true),
            // Either knows; there are fewer processes than variables, mostly.
            (true, true) => Some(self.by_ap.len() < self.by_variable.len()),
            (false, false) => None,
        }
    }

    /// What `filter` finds, its range aside. Nothing unless [`can_count`](Self::can_count).
    pub fn tallies(&self, filter: &Filter, mut each: impl FnMut(Tally)) {
        let Some(by_ap) = self.columns_of(filter) else {
            return;
        };
        let (cells, waits, extra) = if by_ap {
            (&self.by_ap, &self.ap_waits, &self.ap_extra)
        } else {
            let (waits, extra) = (&self.variable_waits, &self.variable_extra);
            (&self.by_variable, waits, extra)
        };
        let wanted = |who: usize| {
            if by_ap {
                let ap = self.aps.get(who);
                ap.is_some_and(|a| filter.aps.is_empty() || filter.aps.contains(a))
            } else {
                let variable = self.variables.get(who);
                variable.is_some_and(|(v, _)| {
                    filter.variables.is_empty() || filter.variables.contains(v)
                })
            }
        };
        // Cells are in order of whose they are: of one variable among many, only its own are looked at.
        let whose = if by_ap {
            self.aps.len()
        } else {
            self.variables.len()
        };
        let mut all = (0..whose).filter(|who| wanted(*who));
        let Some(first) = all.next() else { return };
        let last = all.next_back().unwrap_or(first);
        let from = cells.partition_point(|c| usize::from(c.who) < first);
        let to = cells.partition_point(|c| usize::from(c.who) <= last);
        let variable = |at: usize| self.variables.get(at).map(|v| v.0).unwrap_or_default();
        let ap = |at: usize| self.aps.get(at).copied().unwrap_or_default();
        let (mut waits, mut extra) = (rare_from(waits, from), rare_from(extra, from));
        for (number, cell) in (0u16..).zip(cells).skip(from).take(to - from) {
            let (waited, more) = (waits(number), extra(number));
            let who = usize::from(cell.who);
            if let Some((op, origin, optimized, in_process)) = kind_of_number(cell.kind)
                && (filter.ops.is_empty() || filter.ops.contains(&op))
                && (filter.origins.is_empty() || filter.origins.contains(&origin))
                && wanted(who)
            {
                each(Tally {
                    op,
                    origin,
                    optimized,
                    in_process,
                    count: u64::from(cell.more) + 1 + more,
                    wait: Nanos(waited),
                    variable: variable(if by_ap { 0 } else { who }),
                    ap: ap(if by_ap { who } else { 0 }),
                });
            }
        }
    }

    /// Bytes it takes in memory.
    pub fn memory(&self) -> usize {
        size_of::<Self>()
            + size_of_val(&self.variables[..])
            + size_of_val(&self.aps[..])
            + size_of_val(&self.by_variable[..])
            + size_of_val(&self.by_ap[..])
            + size_of_val(&self.variable_waits[..])
            + size_of_val(&self.ap_waits[..])
            + size_of_val(&self.variable_extra[..])
            + size_of_val(&self.ap_extra[..])
    }
}

/// The kind a record's completed accesses are counted under; none if it is none.
fn cell_kind(kind: u64) -> Option<usize> {
    let (op, side, origin, flags) = crate::wire::kind_from(kind as u32).ok()?;
    let access = side == crate::Side::Requester && !flags.failed && !flags.waiting;
    let optimized = if flags.optimized { OPTIMIZED } else { 0 };
    let in_process = if flags.in_process { IN_PROCESS } else { 0 };
    access.then_some(usize::from(
        op as u8 | (origin as u8) << ORIGIN_SHIFT | optimized | in_process,
    ))
}

/// Gives for one cell after another, from `first` on, what is in the list for it; 0 if nothing is.
fn rare_from(list: &[Rare], first: usize) -> impl FnMut(u16) -> u64 {
    let at = list.partition_point(|r| usize::from(r.cell) < first);
    let mut rest = list[at..].iter().peekable();
    move |cell| rest.next_if(|r| r.cell == cell).map_or(0, |r| r.sum)
}

/// Operation, origin, served from a copy, served in the application process.
fn kind_of_number(kind: u8) -> Option<(Op, Origin, bool, bool)> {
    let op = Op::from_number(u32::from(kind & 7))?;
    let origin = Origin::from_number(u32::from(kind >> ORIGIN_SHIFT & 3))?;
    let (optimized, in_process) = (kind & OPTIMIZED != 0, kind & IN_PROCESS != 0);
    Some((op, origin, optimized, in_process))
}

/// Sums while a summary is made.
enum Sums {
    /// A place for every cell there could be.
    Dense(Vec<CellSum>),
    /// Where those would be too many.
    Sparse(BTreeMap<usize, CellSum>),
}

#[derive(Clone, Copy, Default)]
struct CellSum {
    records: u32,
    wait: u64,
    extra: u64,
}

/// The cells that are used.
#[derive(Default)]
struct Cells {
    all: Vec<Cell>,
    waits: Vec<Rare>,
    extra: Vec<Rare>,
}

impl Sums {
    fn new(whose: usize) -> Self {
        match whose {
            0..=512 => Self::Dense(vec![CellSum::default(); whose * KINDS]),
            _ => Self::Sparse(BTreeMap::new()),
        }
    }

    #[inline]
    fn at(&mut self, who: usize, kind: usize) -> &mut CellSum {
        let at = who * KINDS + kind;
        match self {
            Self::Dense(sums) => &mut sums[at],
            Self::Sparse(sums) => sums.entry(at).or_default(),
        }
    }

    #[inline]
    fn count(&mut self, who: usize, kind: usize) {
        self.at(who, kind).records += 1;
    }

    fn wait(&mut self, who: usize, kind: usize, ns: u64) {
        let waited = &mut self.at(who, kind).wait;
        *waited = waited.saturating_add(ns);
    }

    fn extra(&mut self, who: usize, kind: usize, more: u64) {
        // 2^13 counts of 32 bits each.
        self.at(who, kind).extra += more;
    }

    fn cells(self) -> Cells {
        let mut cells = Cells::default();
        let mut add = |at: usize, sums: CellSum| {
            let cell = cells.all.len() as u16;
            for (list, sum) in [
                (&mut cells.waits, sums.wait),
                (&mut cells.extra, sums.extra),
            ] {
                if sum > 0 {
                    list.push(Rare { cell, sum });
                }
            }
            cells.all.push(Cell {
                who: (at / KINDS) as u16,
                kind: (at % KINDS) as u8,
                more: (sums.records - 1) as u16,
            });
        };
        match self {
            Self::Dense(sums) => {
                let used = sums.into_iter().enumerate().filter(|(_, s)| s.records > 0);
                used.for_each(|(at, sum)| add(at, sum));
            }
            Self::Sparse(sums) => sums.into_iter().for_each(|(at, sum)| add(at, sum)),
        }
        cells.all.shrink_to_fit();
        cells
    }
}
