//! Level of detail: a history reduced to a number of points by gathering like neighbours.
//!
//! Guarantees: never more points than asked for; the accesses behind them stay the same in number
//! and in waiting time; a point still spans from the start of its first access to the end of its last.

use std::collections::HashMap;

use super::{HistoryPoint, Several, TimeRange};
use crate::record::{Op, Origin};
use dosmos_proto::{Nanos, ObjectId};

/// What makes two accesses alike. `None`: not distinguished at this level of detail.
type Likeness = (
    Option<Op>,
    Option<(Origin, bool, bool)>,
    Option<dosmos_proto::ApId>,
    Option<ObjectId>,
);

/// What is given up, level by level, when even one point per kind would be too many.
const LEVELS: [fn(&HistoryPoint) -> Likeness; 5] = [
    |p| {
        (
            Some(p.op),
            Some((p.origin, p.optimized, p.in_process)),
            Some(p.ap),
            Some(p.object),
        )
    },
    |p| (Some(p.op), None, Some(p.ap), Some(p.object)),
    |p| (Some(p.op), None, Some(p.ap), None),
    |p| (Some(p.op), None, None, None),
    |_| (None, None, None, None),
];

/// The points of records on their way to a history. Those that stand for several accesses are left whole while there is
/// room, else cut into slices of time, so that accesses are where they were.
#[derive(Clone, Debug)]
pub struct Collected {
    range: TimeRange,
    most: u32,
    points: Vec<HistoryPoint>,
    /// Points of records with several accesses, not cut.
    several: Vec<HistoryPoint>,
    matched: u64,
}

impl Collected {
    /// Nothing yet, of what will be at most `max_points` points.
    pub fn new(range: TimeRange, max_points: u32) -> Self {
        Self {
            range,
            most: max_points.max(1),
            points: Vec::new(),
            several: Vec::new(),
            matched: 0,
        }
    }

    /// Adds what of the point of a record is in the range.
    pub fn add(&mut self, point: &HistoryPoint) {
        let Some(point) = point.within(self.range) else {
            return;
        };
        self.matched += point.count;
        match point.count {
            1 => self.points.push(point),
            _ => self.several.push(point),
        }
    }

    /// Keeps memory bounded however many points come: gathers in between, to four times what is asked for.
    pub fn bound(&mut self) {
        let fine = self.most.saturating_mul(4);
        if self.points.len() + self.several.len() > 4 * fine as usize {
            self.cut(fine);
            self.points = gather(std::mem::take(&mut self.points), self.range, fine);
        }
    }

    /// Accesses behind the points.
    pub fn matched(&self) -> u64 {
        self.matched
    }

    /// The points, to be gathered.
    pub fn points(mut self) -> Vec<HistoryPoint> {
        if self.points.len() + self.several.len() > self.most as usize {
            self.cut(self.most);
        }
        self.points.append(&mut self.several);
        self.points.sort_by_key(|p| p.start);
        self.points
    }

    fn cut(&mut self, slices: u32) {
        for point in std::mem::take(&mut self.several) {
            point.cut(self.range, slices, |piece| self.points.push(piece));
        }
    }
}

/// At most `max_points` (at least 1) points in order of their start that stand for all of `points`.
/// Accesses are alike that share operation, origin, process and object; like ones of one slice of
/// `range` (or of what part of it has points) become one point. The slices are as fine as the bound
/// allows.
pub fn gather(
    mut points: Vec<HistoryPoint>,
    range: TimeRange,
    max_points: u32,
) -> Vec<HistoryPoint> {
    let most = max_points.max(1) as usize;
    points.sort_by_key(|p| p.start);
    if points.len() <= most {
        return points;
    }
    let range = TimeRange {
        from: range.from.max(points[0].start),
        to: range.to.min(points[points.len() - 1].start + Nanos(1)),
    };
    for likeness in LEVELS {
        let mut slices = most as u64;
        while slices > 0 {
            if let Some(gathered) = at_level(&points, range, (slices, most), likeness) {
                return gathered;
            }
            slices /= 2;
        }
    }
    // The last level has one kind and one slice.
    Vec::new()
}

/// None: they would be more than `most`. That is found out early, since most levels are tried in vain.
fn at_level(
    points: &[HistoryPoint],
    range: TimeRange,
    (slices, most): (u64, usize),
    likeness: fn(&HistoryPoint) -> Likeness,
) -> Option<Vec<HistoryPoint>> {
    let length = u128::from(range.length().0.max(1));
    let mut place: HashMap<(u64, Likeness), usize> = HashMap::new();
    let mut gathered: Vec<HistoryPoint> = Vec::new();
    for point in points {
        let into = u128::from((point.start - range.from).0);
        let slice = (into * u128::from(slices) / length).min(u128::from(slices - 1)) as u64;
        let at = *place
            .entry((slice, likeness(point)))
            .or_insert(gathered.len());
        match gathered.get_mut(at) {
            Some(first) => join(first, point),
            None if at == most => return None,
            None => gathered.push(*point),
        }
    }
    Some(gathered)
}

/// Adds `next`, which does not start before `first`, to `first`.
fn join(first: &mut HistoryPoint, next: &HistoryPoint) {
    let end = (first.start + first.duration).max(next.start + next.duration);
    first.duration = end - first.start;
    first.wait += next.wait;
    first.count += next.count;
    first.several = Several {
        ops: first.several.ops || next.several.ops || first.op != next.op,
        aps: first.several.aps || next.several.aps || first.ap != next.ap,
        objects: first.several.objects || next.several.objects || first.object != next.object,
    };
    first.version = first.version.max(next.version);
    first.optimized &= next.optimized;
    first.in_process &= next.in_process;
    first.origin = first.origin.max(next.origin);
}

#[cfg(test)]
mod tests {
    use super::*;
    use dosmos_proto::{ApId, VarId};
    use proptest::prelude::*;
    use proptest::strategy::ValueTree;

    fn point() -> impl Strategy<Value = HistoryPoint> {
        (
            0u64..1_000,
            0u64..50,
            1u32..=5,
            1u32..=3,
            0u32..6,
            0u32..4,
            1u64..4,
        )
            .prop_map(
                |(start, duration, op, origin, ap, object, count)| HistoryPoint {
                    start: Nanos(start),
                    duration: Nanos(duration),
                    wait: Nanos(duration / 2),
                    op: Op::from_number(op).unwrap(),
                    origin: Origin::from_number(origin).unwrap(),
                    optimized: false,
                    in_process: false,
                    ap: ApId(ap),
                    object: ObjectId::new(VarId(1), object),
                    version: start,
                    count,
                    several: Several::default(),
                },
            )
    }

    proptest! {
        #![proptest_config(dosmos_testseeds::config(256))]

        #[test]
        fn bounded_and_nothing_lost(
            points in prop::collection::vec(point(), 0..300),
            most in 1u32..400,
        ) {
            let range = TimeRange { from: Nanos(0), to: Nanos(1_000) };
            let counts = |p: &[HistoryPoint]| p.iter().map(|p| p.count).sum::<u64>();
            let waits = |p: &[HistoryPoint]| p.iter().map(|p| p.wait.0).sum::<u64>();
            let end = |p: &[HistoryPoint]| p.iter().map(|p| p.start + p.duration).max();
            let gathered = gather(points.clone(), range, most);
            prop_assert!(gathered.len() <= most as usize);
            prop_assert!(gathered.is_sorted_by_key(|p| p.start));
            prop_assert_eq!(counts(&gathered), counts(&points));
            prop_assert_eq!(waits(&gathered), waits(&points));
            prop_assert_eq!(end(&gathered), end(&points));
            // What a point says of its accesses holds for each of them.
            for g in gathered.iter().filter(|g| !g.several.aps) {
                let within = |p: &&HistoryPoint| p.ap == g.ap && p.start >= g.start;
                let its: u64 = points.iter().filter(within).map(|p| p.count).sum();
                prop_assert!(its >= g.count, "{g:?}");
            }
        }
    }

    #[test]
    fn a_range_much_wider_than_its_points_does_not_blur_them() {
        let mut runner = proptest::test_runner::TestRunner::deterministic();
        let one = point().new_tree(&mut runner).unwrap().current();
        let points = (0..1_000).map(|i| HistoryPoint {
            start: Nanos(1_000_000 + i),
            ..one
        });
        let gathered = gather(points.collect(), TimeRange::ALL, 100);
        assert!(gathered.len() >= 50, "{} points", gathered.len());
    }

    #[test]
    fn few_points_stay_as_they_are() {
        let mut runner = proptest::test_runner::TestRunner::deterministic();
        let points = prop::collection::vec(point(), 20);
        let mut points = points.new_tree(&mut runner).unwrap().current();
        points.sort_by_key(|p| p.start);
        let all = TimeRange::ALL;
        assert_eq!(gather(points.clone(), all, 20), points);
        assert!(gather(points, all, 19).len() <= 19);
    }
}
