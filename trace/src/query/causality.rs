//! Causality of merged histories: whatever the clocks of the processes say, a lock is not granted
//! before the release that allowed it began.
//!
//! The order of an object's exclusive sections is that of its version (docs/design/monitoring.md#causality): the release that
//! made version `v` comes before the acquire that starts from `v`, and that before the release that
//! makes a later one. Where times contradict, the later step is moved forward, as little as possible.
//! With clocks that agree nothing changes.

use std::collections::HashMap;

use super::HistoryPoint;
use crate::record::Op;
use dosmos_proto::{ApId, Nanos, ObjectId};

/// Moves grants, and what follows them in their sections, forward to where causality allows them, and
/// puts the points in order of their start again. Gathered points are left alone: what they stand for
/// has no order any more.
pub fn respect_sections(points: &mut [HistoryPoint]) {
    let mut sections: HashMap<ObjectId, Vec<usize>> = HashMap::new();
    for (i, point) in points.iter().enumerate() {
        let known = point.count == 1 && !point.in_process;
        if known && matches!(point.op, Op::Acquire | Op::Release) {
            sections.entry(point.object).or_default().push(i);
        }
    }
    // When the section (object, holder, version) was granted, if that had to be moved.
    let mut moved: HashMap<(ObjectId, ApId, u64), Nanos> = HashMap::new();
    for (object, mut steps) in sections {
        // A release carries the version it made, an acquire the one it starts from.
        steps.sort_by_key(|&i| (points[i].version, points[i].op == Op::Acquire));
        let mut released = Nanos::ZERO;
        let mut holder: Option<(ApId, Nanos)> = None;
        for i in steps {
            let point = &mut points[i];
            if point.op == Op::Acquire {
                let late = released - (point.start + point.duration);
                if late > Nanos::ZERO {
                    point.duration += late;
                    point.wait += late;
                    let granted = point.start + point.duration;
                    moved.insert((object, point.ap, point.version), granted);
                }
                holder = Some((point.ap, point.start + point.duration));
            } else {
                if let Some((_, granted)) = holder.take_if(|(ap, _)| *ap == point.ap) {
                    point.start = point.start.max(granted);
                }
                released = released.max(point.start);
            }
        }
    }
    if !moved.is_empty() {
        for point in points.iter_mut() {
            let in_section = matches!(point.op, Op::Read | Op::Write) && point.count == 1;
            if let Some(&granted) = moved.get(&(point.object, point.ap, point.version))
                && in_section
            {
                point.start = point.start.max(granted);
            }
        }
    }
    points.sort_by_key(|p| p.start);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::Several;
    use crate::record::Origin;
    use dosmos_proto::VarId;

    fn point(ap: u32, op: Op, start: u64, end: u64, version: u64) -> HistoryPoint {
        HistoryPoint {
            start: Nanos(start),
            duration: Nanos(end - start),
            wait: Nanos(0),
            op,
            origin: Origin::Intra,
            optimized: false,
            in_process: false,
            ap: ApId(ap),
            object: ObjectId::new(VarId(1), 0),
            version,
            count: 1,
            several: Several::default(),
        }
    }

    /// Two processes hand one lock to and fro; the second one's clock is `skew` behind.
    fn hand_overs(skew: u64) -> Vec<HistoryPoint> {
        let mut points = Vec::new();
        for v in 0..10 {
            let (ap, base) = ((v % 2) as u32, 1_000 + v * 100);
            let base = if ap == 1 { base - skew } else { base };
            // Asks while the other one still holds it.
            points.push(point(ap, Op::Acquire, base - 40, base + 5, v));
            points.push(point(ap, Op::Write, base + 10, base + 20, v));
            points.push(point(ap, Op::Release, base + 90, base + 110, v + 1));
        }
        points.sort_by_key(|p| p.start);
        points
    }

    #[test]
    fn clocks_that_agree_change_nothing() {
        let truth = hand_overs(0);
        let mut points = truth.clone();
        respect_sections(&mut points);
        assert_eq!(points, truth);
    }

    #[test]
    fn a_grant_never_precedes_the_release_that_allowed_it() {
        for skew in [30, 150, 500] {
            let mut points = hand_overs(skew);
            respect_sections(&mut points);
            let find = |op, version| {
                let is = |p: &&HistoryPoint| p.op == op && p.version == version;
                points.iter().find(is).unwrap()
            };
            assert!(points.is_sorted_by_key(|p| p.start));
            for v in 1..10 {
                let (release, acquire) = (find(Op::Release, v), find(Op::Acquire, v));
                let granted = acquire.start + acquire.duration;
                assert!(release.start <= granted, "skew {skew}, version {v}");
                assert!(granted <= find(Op::Write, v).start);
                assert!(granted <= find(Op::Release, v + 1).start);
            }
        }
    }
}
