//! Histories as lanes (DOSMOS-Trace, figures 10 and 11): one lane per process, or per object, cut into columns of
//! time; in each column what was read, what was written, who waited and who held.

use std::collections::BTreeMap;

use dosmos_proto::{ApId, Nanos, ObjectId, VarId};
use dosmos_trace::query::{Catalog, History, HistoryPoint};
use dosmos_trace::{Op, Origin};

use super::window::Scale;

/// What a lane shows the history of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LaneKey {
    /// What this process did (to the variable shown).
    Ap(ApId),
    /// What was done to this object (by the process shown).
    Object(ObjectId),
    /// The process's arrivals at this barrier.
    Barrier(VarId),
    /// What several processes did: too much to tell them apart.
    SeveralAps,
    /// What was done to several objects: too much to tell them apart.
    SeveralObjects,
}

/// The lane that a point is on.
pub(super) fn lane_of(point: &HistoryPoint, by_process: bool) -> LaneKey {
    match (by_process, point.op) {
        (true, _) if point.several.aps => LaneKey::SeveralAps,
        (true, _) => LaneKey::Ap(point.ap),
        (false, Op::Barrier) => LaneKey::Barrier(point.object.var),
        (false, _) if point.several.objects => LaneKey::SeveralObjects,
        (false, _) => LaneKey::Object(point.object),
    }
}

/// Reads or writes of one column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// The farthest of them.
    pub origin: Origin,
    /// How many.
    pub count: u64,
    /// How many of them were reads served from a copy.
    pub cached: u64,
}

impl Mark {
    /// All of them were served from a copy.
    pub fn all_cached(&self) -> bool {
        self.cached == self.count
    }
}

/// One column of a lane. Shares are of the column's time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cell {
    /// Reads.
    pub read: Option<Mark>,
    /// Writes.
    pub write: Option<Mark>,
    /// Share spent waiting for a lock.
    pub acquiring: f64,
    /// Share spent waiting for a release's acknowledgements.
    pub releasing: f64,
    /// Share spent waiting at a barrier.
    pub at_barrier: f64,
    /// Share spent in exclusive sections.
    pub holding: f64,
    /// Sections begun.
    pub granted: u32,
    /// Sections ended.
    pub released: u32,
}

/// What a lane sums up to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Reads, cached ones included.
    pub reads: u64,
    /// Cached reads.
    pub optimized: u64,
    /// Writes.
    pub writes: u64,
    /// Acquires.
    pub acquires: u64,
    /// Releases.
    pub releases: u64,
    /// Arrivals at barriers.
    pub barriers: u64,
    /// Time spent waiting.
    pub wait: Nanos,
}

/// A lane.
#[derive(Clone, Debug, PartialEq)]
pub struct Lane {
    /// Whose.
    pub key: LaneKey,
    /// Its name.
    pub label: String,
    /// One per column.
    pub cells: Vec<Cell>,
    /// What they sum up to.
    pub totals: Totals,
}

/// The lanes of a history, by process or by object. `known` lanes come even without a point, so that
/// a lane does not vanish while one looks elsewhere in time.
pub fn lanes(
    history: &History,
    catalog: &Catalog,
    scale: Scale,
    by_process: bool,
    known: impl IntoIterator<Item = LaneKey>,
) -> Vec<Lane> {
    let mut points: BTreeMap<LaneKey, Vec<&HistoryPoint>> =
        known.into_iter().map(|k| (k, Vec::new())).collect();
    for point in &history.points {
        let key = lane_of(point, by_process);
        points.entry(key).or_default().push(point);
    }
    points
        .into_iter()
        .map(|(key, points)| lane(key, &points, catalog, scale))
        .collect()
}

/// Name of what a lane shows.
fn label(key: LaneKey, catalog: &Catalog) -> String {
    match key {
        LaneKey::Ap(ap) => catalog.topology.ap_name(ap),
        LaneKey::Barrier(id) => catalog.name_of(id),
        LaneKey::Object(object) => object_name(object, catalog),
        LaneKey::SeveralAps => "all processes".to_owned(),
        LaneKey::SeveralObjects => "all objects".to_owned(),
    }
}

/// `variable[index]`; of a variable with one object without the index.
pub(super) fn object_name(object: ObjectId, catalog: &Catalog) -> String {
    let name = catalog.name_of(object.var);
    let variable = catalog.variables.iter().find(|v| v.id() == object.var);
    match variable {
        Some(v) if v.spec().layout().objects() == 1 => name,
        _ => format!("{name}[{}]", object.index),
    }
}

fn lane(key: LaneKey, points: &[&HistoryPoint], catalog: &Catalog, scale: Scale) -> Lane {
    let mut lane = Lane {
        key,
        label: label(key, catalog),
        cells: vec![Cell::default(); usize::from(scale.columns)],
        totals: Totals::default(),
    };
    let mut held: BTreeMap<ObjectId, Nanos> = BTreeMap::new();
    for point in points {
        count(&mut lane.totals, point);
        match point.op {
            Op::Read | Op::Write => access(&mut lane.cells, point, scale),
            Op::Barrier => {
                let until = point.start + point.duration;
                share(&mut lane.cells, scale, point.start, until, |c| {
                    &mut c.at_barrier
                });
            }
            Op::Acquire => acquire(&mut lane.cells, point, scale, &mut held),
            Op::Release => release(&mut lane.cells, point, scale, &mut held),
        }
    }
    for since in held.into_values() {
        let end = scale.range().to.min(history_end(points));
        share(&mut lane.cells, scale, since, end, |c| &mut c.holding);
    }
    lane
}

fn history_end(points: &[&HistoryPoint]) -> Nanos {
    let ends = points.iter().map(|p| p.start + p.duration);
    ends.max().unwrap_or_default()
}

fn count(totals: &mut Totals, point: &HistoryPoint) {
    let n = point.count;
    match point.op {
        Op::Read => totals.reads += n,
        Op::Write => totals.writes += n,
        Op::Acquire => totals.acquires += n,
        Op::Release => totals.releases += n,
        Op::Barrier => totals.barriers += n,
    }
    if point.op == Op::Read && cached(point) {
        totals.optimized += n;
    }
    totals.wait += point.wait;
}

/// A read or write stands where it started; gathered ones are spread over the columns they span.
fn access(cells: &mut [Cell], point: &HistoryPoint, scale: Scale) {
    let is_cached = point.op == Op::Read && cached(point);
    let first = scale.column(point.start);
    let last = if point.count > 1 {
        scale.column(point.start + point.duration)
    } else {
        first
    };
    let columns = (last - first).unsigned_abs() + 1;
    let marks = point.count.clamp(1, columns);
    for i in 0..marks.min(cells.len() as u64) {
        let at = first + (u128::from(i) * u128::from(columns) / u128::from(marks)) as i64;
        let Some(cell) = usize::try_from(at).ok().and_then(|at| cells.get_mut(at)) else {
            continue;
        };
        let mark = match point.op {
            Op::Read => &mut cell.read,
            _ => &mut cell.write,
        };
        let count = point.count / marks + u64::from(i < point.count % marks);
        let old = mark.unwrap_or(Mark {
            origin: point.origin,
            count: 0,
            cached: 0,
        });
        *mark = Some(Mark {
            origin: old.origin.max(point.origin),
            count: old.count + count,
            cached: old.cached + if is_cached { count } else { 0 },
        });
    }
}

/// Whether it was served from a copy, wherever that was.
fn cached(point: &HistoryPoint) -> bool {
    point.optimized || point.in_process
}

fn share(
    cells: &mut [Cell],
    scale: Scale,
    from: Nanos,
    to: Nanos,
    of: impl Fn(&mut Cell) -> &mut f64,
) {
    for (column, covered) in scale.cover(from, to) {
        if let Some(cell) = cells.get_mut(column) {
            *of(cell) += covered;
        }
    }
}

fn cell_at(cells: &mut [Cell], scale: Scale, at: Nanos) -> Option<&mut Cell> {
    cells.get_mut(usize::try_from(scale.column(at)).ok()?)
}

fn acquire(
    cells: &mut [Cell],
    point: &HistoryPoint,
    scale: Scale,
    held: &mut BTreeMap<ObjectId, Nanos>,
) {
    let end = point.start + point.duration;
    if point.count > 1 {
        // Several sections: how long each was held is not known, that they were is.
        spread(cells, point, scale, |c| &mut c.acquiring);
        share(cells, scale, point.start, end, |c| &mut c.holding);
        if let Some(cell) = cell_at(cells, scale, point.start) {
            cell.granted += 2;
        }
        return;
    }
    let granted = end.max(point.start + point.wait);
    let until = point.start + point.wait;
    share(cells, scale, point.start, until, |c| &mut c.acquiring);
    if let Some(cell) = cell_at(cells, scale, granted) {
        cell.granted += 1;
    }
    held.insert(point.object, granted);
}

fn release(
    cells: &mut [Cell],
    point: &HistoryPoint,
    scale: Scale,
    held: &mut BTreeMap<ObjectId, Nanos>,
) {
    if point.count > 1 {
        spread(cells, point, scale, |c| &mut c.releasing);
        if let Some(cell) = cell_at(cells, scale, point.start) {
            cell.released += 2;
        }
        return;
    }
    if let Some(since) = held.remove(&point.object) {
        share(cells, scale, since, point.start, |c| &mut c.holding);
    }
    let until = point.start + point.wait;
    share(cells, scale, point.start, until, |c| &mut c.releasing);
    if let Some(cell) = cell_at(cells, scale, point.start) {
        cell.released += 1;
    }
}

/// The waits of gathered points, evenly over the time they span.
fn spread(
    cells: &mut [Cell],
    point: &HistoryPoint,
    scale: Scale,
    of: impl Fn(&mut Cell) -> &mut f64,
) {
    let length = point.duration.0.max(1) as f64;
    let density = (point.wait.0 as f64 / length).min(1.0);
    for (column, covered) in scale.cover(point.start, point.start + point.duration) {
        if let Some(cell) = cells.get_mut(column) {
            *of(cell) += covered * density;
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use dosmos_trace::query::{Several, TimeRange};

    /// An access to object 0 of variable 1 by process 0.
    pub(in crate::state) fn point(op: Op, start: u64, duration: u64, wait: u64) -> HistoryPoint {
        HistoryPoint {
            start: Nanos(start),
            duration: Nanos(duration),
            wait: Nanos(wait),
            op,
            origin: Origin::Local,
            optimized: false,
            in_process: false,
            ap: ApId(0),
            object: ObjectId::new(VarId(1), 0),
            version: 0,
            count: 1,
            several: Several::default(),
        }
    }

    fn drawn(points: Vec<HistoryPoint>) -> Lane {
        let range = TimeRange {
            from: Nanos(0),
            to: Nanos(1_000),
        };
        let history = History {
            range,
            matched: points.len() as u64,
            points,
            completeness: Default::default(),
        };
        let scale = Scale::new(range, Nanos(0), 10);
        let mut lanes = lanes(&history, &Catalog::default(), scale, true, []);
        assert_eq!(lanes.len(), 1);
        lanes.remove(0)
    }

    #[test]
    fn a_section_is_waited_for_held_and_left() {
        let lane = drawn(vec![
            point(Op::Acquire, 100, 210, 200),
            point(Op::Write, 350, 10, 0),
            point(Op::Release, 600, 100, 50),
        ]);
        let cells = &lane.cells;
        assert!((cells[1].acquiring - 1.0).abs() < 1e-9);
        assert!((cells[2].acquiring - 1.0).abs() < 1e-9);
        assert_eq!(cells[3].granted, 1);
        assert!((cells[4].holding - 1.0).abs() < 1e-9);
        assert_eq!(cells[6].released, 1);
        assert!((cells[6].releasing - 0.5).abs() < 1e-9);
        assert!(cells[3].write.is_some() && cells[3].read.is_none());
        assert_eq!(lane.totals.wait, Nanos(250));
    }

    #[test]
    fn the_farthest_and_the_dearest_of_a_column_shows() {
        let mut near = point(Op::Read, 10, 1, 0);
        near.optimized = true;
        let mut far = point(Op::Read, 20, 1, 0);
        far.origin = Origin::Inter;
        let mark = drawn(vec![near, far]).cells[0].read.unwrap();
        assert_eq!(mark.origin, Origin::Inter);
        assert!(mark.count == 2 && mark.cached == 1);
        let mark = drawn(vec![near]).cells[0].read.unwrap();
        assert!(mark.all_cached() && mark.count == 1);
    }

    #[test]
    fn gathered_accesses_are_spread_over_their_time() {
        let mut many = point(Op::Read, 0, 990, 0);
        many.count = 5;
        let cells = drawn(vec![many]).cells;
        let marked = cells.iter().filter(|c| c.read.is_some()).count();
        assert_eq!(marked, 5);
        many.count = 500;
        let cells = drawn(vec![many]).cells;
        let counts = cells.iter().filter_map(|c| c.read).map(|m| m.count);
        assert!(counts.clone().all(|n| n > 1));
        assert_eq!(counts.sum::<u64>(), 500);
    }

    #[test]
    fn points_of_several_processes_are_on_a_lane_of_their_own() {
        let one = point(Op::Read, 10, 1, 0);
        let mut merged = point(Op::Read, 20, 500, 0);
        (merged.count, merged.several.aps) = (40, true);
        let range = TimeRange {
            from: Nanos(0),
            to: Nanos(1_000),
        };
        let history = History {
            range,
            matched: 41,
            points: vec![one, merged],
            completeness: Default::default(),
        };
        let scale = Scale::new(range, Nanos(0), 10);
        let lanes = lanes(&history, &Catalog::default(), scale, true, []);
        let reads: Vec<_> = lanes.iter().map(|l| (l.key, l.totals.reads)).collect();
        assert_eq!(
            reads,
            [(LaneKey::Ap(ApId(0)), 1), (LaneKey::SeveralAps, 40)]
        );
    }
}
