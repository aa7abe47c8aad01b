//! Circles of waiting that ended: an acquire in one of them failed at its deadline, and the others went on.
//!
//! A process waits for one object at a time. When an acquire fails, what the others were doing at that instant tells
//! whether it was part of a circle. Records come in order of their start, so the instant is looked at when the
//! first later record comes.

use std::collections::BTreeMap;

use dosmos_proto::{ApId, Nanos, ObjectId};
use dosmos_trace::record::{Op, Record};

use super::ObjectProfile;

/// One step of a circle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    /// Who waits.
    pub ap: ApId,
    /// Since when.
    pub since: Nanos,
    /// For what.
    pub object: ObjectId,
}

/// A circle that a deadline broke.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// Its steps.
    pub circle: Vec<Wait>,
    /// When.
    pub at: Nanos,
}

/// Circles kept at most: a program that runs into more has been told enough.
const KEPT: usize = 100;

/// What each process was last seen acquiring, and the failures not yet looked at.
#[derive(Clone, Debug, Default)]
pub(super) struct Waits {
    doing: BTreeMap<ApId, (Wait, Nanos)>,
    failed: BTreeMap<(Nanos, ApId), Wait>,
    pub(super) broken: Vec<Broken>,
}

impl Waits {
    /// An acquire that was granted or failed.
    pub(super) fn acquired(&mut self, record: &Record) {
        let wait = Wait {
            ap: record.ap,
            since: record.start,
            object: record.object,
        };
        if record.op == Op::Acquire {
            self.doing.insert(record.ap, (wait, record.end()));
            if record.flags.failed && self.broken.len() < KEPT {
                self.failed.insert((record.end(), record.ap), wait);
            }
        }
    }

    /// The notice of an acquire whose end is not known yet; it stands unless the end already is.
    pub(super) fn noticed(&mut self, record: &Record) {
        let known = self.doing.get(&record.ap);
        if known.is_none_or(|(_, until)| *until < record.start) {
            let wait = Wait {
                ap: record.ap,
                since: record.start,
                object: record.object,
            };
            self.doing.insert(record.ap, (wait, Nanos::MAX));
        }
    }

    /// Looks at all failures before `now`.
    pub(super) fn until(&mut self, now: Nanos, objects: &BTreeMap<ObjectId, ObjectProfile>) {
        while let Some((&(at, ap), &wait)) = self.failed.first_key_value()
            && at < now
        {
            self.failed.remove(&(at, ap));
            if let Some(circle) = self.circle(wait, at, objects) {
                self.broken.push(Broken { circle, at });
            }
        }
    }

    fn circle(
        &self,
        first: Wait,
        at: Nanos,
        objects: &BTreeMap<ObjectId, ObjectProfile>,
    ) -> Option<Vec<Wait>> {
        let mut circle = vec![first];
        loop {
            let last = circle.last()?;
            let held = objects.get(&last.object)?.held.iter();
            let holder = held
                .filter(|(_, since)| **since <= at)
                .max_by_key(|h| *h.1)?
                .0;
            if *holder == first.ap {
                return (circle.len() > 1).then_some(circle);
            }
            let (wait, until) = *self.doing.get(holder)?;
            // Two that failed together broke one circle: it is told once, by the later one.
            let waits = wait.since <= at && at < until;
            if !waits || circle.iter().any(|w| w.ap == wait.ap) {
                return None;
            }
            circle.push(wait);
        }
    }
}

#[cfg(test)]
mod tests {
    use dosmos_proto::{MpId, VarId};
    use dosmos_trace::query::Catalog;
    use dosmos_trace::record::{Flags, Origin, Side};

    use super::*;
    use crate::profile::ProfileBuilder;

    fn acquire(ap: u32, var: u32, (start, end): (u64, u64), failed: bool) -> Record {
        Record {
            start: Nanos(start),
            duration: Nanos(end - start),
            wait: Nanos(0),
            service: Nanos(0),
            op: Op::Acquire,
            side: Side::Requester,
            origin: Origin::Local,
            flags: Flags {
                failed,
                ..Flags::default()
            },
            object: ObjectId::new(VarId(var), 0),
            ap: ApId(ap),
            mp: MpId(0),
            peer: MpId(0),
            count: 1,
            bytes: 0,
            version: 0,
            range: (0, 0),
        }
    }

    fn broken(records: &[Record]) -> Vec<Vec<u32>> {
        let mut builder = ProfileBuilder::new(Catalog::default());
        records.iter().for_each(|r| builder.add(r));
        let broken = builder.finish(None).broken;
        let aps = |b: &Broken| b.circle.iter().map(|w| w.ap.0).collect();
        broken.iter().map(aps).collect()
    }

    #[test]
    fn a_circle_that_a_deadline_broke_is_seen() {
        let first = [acquire(0, 10, (0, 1), false), acquire(1, 11, (0, 1), false)];
        let crossed = |second: Record, third: Record| {
            let mut all = first.to_vec();
            all.extend([second, third]);
            broken(&all)
        };
        // 0 gives up at 100; 1 has its lock at 110.
        let gives_up = acquire(0, 11, (5, 100), true);
        let goes_on = acquire(1, 10, (6, 110), false);
        assert_eq!(crossed(gives_up, goes_on), [[0, 1]]);
        // 1 asks only when 0 has given up: no circle.
        let later = acquire(1, 10, (101, 110), false);
        assert!(crossed(gives_up, later).is_empty());
        // 0 waits for somebody who is only slow.
        assert!(broken(&[first[1], gives_up]).is_empty());
    }
}
