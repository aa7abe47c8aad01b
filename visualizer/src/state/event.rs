//! One access looked at closer: which it is, and what is known of it beyond its point in the history.

use dosmos_proto::{ApId, Nanos, ObjectId};
use dosmos_trace::query::{Filter, HistoryPoint, TimeRange};
use dosmos_trace::{Op, Record};

/// Causality may have moved a point after the start of its record, by no more than this.
const MOVED: Nanos = Nanos(1_000_000);

/// The access of a point that stands for one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventQuery {
    /// When it began, according to the history.
    pub start: Nanos,
    /// How long it took.
    pub duration: Nanos,
    /// How long it waited.
    pub wait: Nanos,
    /// What was done.
    pub op: Op,
    /// By whom.
    pub ap: ApId,
    /// To what.
    pub object: ObjectId,
    /// At which version.
    pub version: u64,
}

impl EventQuery {
    /// Of a point; none if it stands for several accesses.
    pub fn of(point: &HistoryPoint) -> Option<Self> {
        (point.count == 1).then_some(Self {
            start: point.start,
            duration: point.duration,
            wait: point.wait,
            op: point.op,
            ap: point.ap,
            object: point.object,
            version: point.version,
        })
    }

    /// The records among which its own is.
    pub fn record(&self) -> Filter {
        Filter {
            variables: vec![self.object.var],
            object: Some(self.object.index),
            aps: vec![self.ap],
            ops: vec![self.op],
            range: Some(TimeRange {
                from: self.start - MOVED,
                to: self.start + Nanos(1),
            }),
            ..Filter::default()
        }
    }

    /// The records that tell whom it waited for; none if it did not wait for a process.
    pub fn others(&self) -> Option<Filter> {
        let op = match self.op {
            Op::Acquire if self.wait > Nanos::ZERO => Op::Release,
            Op::Barrier => Op::Barrier,
            _ => return None,
        };
        Some(Filter {
            variables: vec![self.object.var],
            object: Some(self.object.index),
            ops: vec![op],
            range: Some(TimeRange {
                from: self.start,
                to: self.start + self.duration + Nanos(1),
            }),
            ..Filter::default()
        })
    }

    /// What `records` (of [`Self::record`]) and `others` (of [`Self::others`]) tell of it.
    pub fn detail(&self, records: &[Record], others: &[Record]) -> EventDetail {
        let mine = |r: &&Record| r.version == self.version && r.accesses() == 1;
        let record = records.iter().filter(mine).max_by_key(|r| r.start);
        let waited_for = match self.op {
            Op::Acquire if self.wait > Nanos::ZERO => {
                let granted = self.start + self.duration;
                let before = |r: &&Record| r.ap != self.ap && r.start <= granted;
                let releases = others.iter().filter(before);
                let last = releases.clone().max_by_key(|r| r.start);
                last.map(|r| WaitedFor::Holder {
                    ap: r.ap,
                    released: r.start,
                    before: releases.count() - 1,
                })
            }
            Op::Barrier => {
                let last = others.iter().max_by_key(|r| r.start);
                last.map(|r| WaitedFor::LastToArrive {
                    ap: r.ap,
                    at: r.start,
                })
            }
            _ => None,
        };
        EventDetail {
            record: record.copied(),
            waited_for,
        }
    }
}

/// Whom an access waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitedFor {
    /// An acquire: the process that held the lock last before.
    Holder {
        /// That process.
        ap: ApId,
        /// When it released the lock.
        released: Nanos,
        /// How many other sections ended while it was waited.
        before: usize,
    },
    /// A barrier: the process that arrived last, maybe the waiting one itself.
    LastToArrive {
        /// That process.
        ap: ApId,
        /// When it arrived.
        at: Nanos,
    },
}

/// What is known of one access.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct EventDetail {
    /// Its record; none if it was not found.
    pub record: Option<Record>,
    /// Whom it waited for, if anybody and if that was recorded.
    pub waited_for: Option<WaitedFor>,
}

/// The event at the cursor among the points of a lane, in order of their start: the one that begins there, otherwise
/// the last one that begins in the cursor's column, otherwise the last one that is not over there.
pub(super) fn at_cursor<'a>(
    points: impl Iterator<Item = &'a HistoryPoint>,
    cursor: Nanos,
    column: TimeRange,
) -> Option<&'a HistoryPoint> {
    let rank = |p: &&HistoryPoint| {
        let over = p.start + p.duration;
        match p.start {
            start if start == cursor => Some(2),
            start if column.contains(start) => Some(1),
            start if start < cursor && cursor < over => Some(0),
            _ => None,
        }
    };
    let ranked = points.filter_map(|p| Some((rank(&p)?, p)));
    ranked
        .max_by_key(|(rank, p)| (*rank, p.start))
        .map(|(_, p)| p)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::lanes;

    fn point(start: u64, duration: u64) -> HistoryPoint {
        lanes::tests::point(Op::Read, start, duration, 0)
    }

    #[test]
    fn the_event_at_the_cursor_begins_there_or_near_or_lasts() {
        let points = [point(10, 5), point(100, 80), point(120, 1), point(125, 1)];
        let column = TimeRange {
            from: Nanos(120),
            to: Nanos(130),
        };
        let at = |cursor| at_cursor(points.iter(), Nanos(cursor), column).map(|p| p.start.0);
        assert_eq!(at(120), Some(120));
        assert_eq!(at(124), Some(125), "the last one of the column");
        let column = TimeRange {
            from: Nanos(160),
            to: Nanos(170),
        };
        let at = |cursor| at_cursor(points.iter(), Nanos(cursor), column).map(|p| p.start.0);
        assert_eq!(at(165), Some(100), "it lasts");
        assert_eq!(at(181), None);
    }
}
