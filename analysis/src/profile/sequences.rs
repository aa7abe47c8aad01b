//! What application processes do one access right after the other: elements or objects one by one that one call could
//! transfer together, and reads of the same object again and again until it has changed.
//!
//! *Right after* means that the time between two accesses is at most as long as the longer of them: the process does next
//! to nothing in between. Memory processes measure, so the way of a reply and of the next request lies in between too; how
//! long that takes only the breakdown tells, which comes with the last records: for neighbours both are summed up, what
//! lies right after and what would if that way took the longest ([`Near`]). Accesses that a process serves in itself cost
//! next to nothing, and those that are under way at the same time are together already: both end a sequence. State is one
//! sequence of each sort per application process.

use std::collections::BTreeMap;

use dosmos_proto::{ApId, Nanos, ObjectId, VarId};
use dosmos_replay::neighbours::{self, LONGEST_HOP};
use dosmos_trace::record::{Op, Record};

/// Accesses of a sequence at least: fewer are not a loop.
const SHORTEST: u64 = 4;

/// Bytes of an access at most: larger ones cost more for what they carry than for their way.
const SMALL: u64 = 4_096;

/// Sequences of accesses to neighbours: of one process, to one variable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Runs {
    /// Sequences.
    pub count: u64,
    /// Accesses in them.
    pub accesses: u64,
    /// Time in these accesses.
    pub time: Nanos,
    /// Between them.
    pub between: Nanos,
    /// Of both, what one access a sequence would not have taken.
    pub excess: Nanos,
}

/// Sequences of accesses to neighbours by what lies between two of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Near {
    /// Right after one another.
    pub right_after: Runs,
    /// By [`neighbours::LONGEST_HOP`] at most.
    pub apart: Runs,
}

/// Several times the average hop may lie between two accesses on average.
const HOPS: f64 = 1.5;

impl Near {
    /// The sequences of a process whose replies and next requests take that long: those farther apart too, if it is that way
    /// which lies between.
    pub fn of_hop(&self, hop: Option<Nanos>) -> Runs {
        let apart = &self.apart;
        let gaps = apart.accesses.saturating_sub(apart.count) as f64;
        match hop {
            Some(hop) if apart.between.0 as f64 <= HOPS * hop.0 as f64 * gaps => *apart,
            _ => self.right_after,
        }
    }
}

/// Sequences of reads of one object, of one process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Polls {
    /// Those that ended with the first read of a new version.
    pub ended: u64,
    /// Reads in these.
    pub reads: u64,
    /// From the first of these reads to the last.
    pub time: Nanos,
    /// All others.
    pub others: u64,
}

/// What is known of all sequences.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sequences {
    /// Accesses to neighbours, by variable, whether they write, and application process.
    pub runs: BTreeMap<(VarId, bool, ApId), Near>,
    /// Repeated reads, by object and application process.
    pub polls: BTreeMap<(ObjectId, ApId), Polls>,
}

/// The sequences that are not over, by application process.
#[derive(Clone, Debug, Default)]
pub(super) struct Following {
    open: BTreeMap<ApId, Open>,
}

/// Those of a process.
#[derive(Clone, Copy, Debug)]
struct Open {
    last: Record,
    right_after: Run,
    apart: Run,
    poll: Poll,
}

impl Following {
    /// Takes an access into account; what it ends is added to `sums`.
    pub(super) fn access(&mut self, record: &Record, sums: &mut Sequences) {
        let Some(open) = self.open.get_mut(&record.ap) else {
            self.open.insert(record.ap, Open::of(record));
            return;
        };
        let last = std::mem::replace(&mut open.last, *record);
        let single = neighbours::is_single(record);
        let upwards = neighbours::upwards(&last, record).filter(|_| single);
        for (run, within) in [
            (&mut open.right_after, Nanos::ZERO),
            (&mut open.apart, LONGEST_HOP),
        ] {
            let upwards = upwards.filter(|up| run.upwards.is_none_or(|before| before == *up));
            match upwards.filter(|_| run.accesses > 0) {
                Some(upwards) if neighbours::follows(&last, record, within) => {
                    run.add(record, record.start - last.end(), upwards);
                }
                _ => {
                    run.end(within, &last, sums);
                    *run = Run::of(record);
                }
            }
        }
        let again = single && record.op == Op::Read && record.object == last.object;
        if again && open.poll.reads > 0 && neighbours::follows(&last, record, Nanos::ZERO) {
            open.poll.add(record, last.version);
        } else {
            open.poll.end(&last, sums);
            open.poll = Poll::of(record);
        }
    }

    /// Nothing more comes.
    pub(super) fn finish(self, sums: &mut Sequences) {
        for open in self.open.values() {
            open.right_after.end(Nanos::ZERO, &open.last, sums);
            open.apart.end(LONGEST_HOP, &open.last, sums);
            open.poll.end(&open.last, sums);
        }
    }
}

impl Open {
    fn of(record: &Record) -> Self {
        Self {
            last: *record,
            right_after: Run::of(record),
            apart: Run::of(record),
            poll: Poll::of(record),
        }
    }
}

/// Accesses to neighbours, in one direction.
#[derive(Clone, Copy, Debug)]
struct Run {
    accesses: u64,
    bytes: u64,
    time: Nanos,
    between: Nanos,
    longest: Nanos,
    /// Upwards or downwards; none: not known yet.
    upwards: Option<bool>,
}

impl Run {
    fn of(record: &Record) -> Self {
        Self {
            accesses: u64::from(neighbours::is_single(record)),
            bytes: record.bytes,
            time: record.duration,
            between: Nanos::ZERO,
            longest: record.duration,
            upwards: None,
        }
    }

    fn add(&mut self, record: &Record, between: Nanos, upwards: bool) {
        self.upwards = Some(upwards);
        self.accesses += 1;
        self.bytes += record.bytes;
        self.time += record.duration;
        self.between += between;
        self.longest = self.longest.max(record.duration);
    }

    /// Adds it to those whose accesses are apart by at most `within`, if it is one; `last` is its last access.
    fn end(&self, within: Nanos, last: &Record, sums: &mut Sequences) {
        if self.accesses < SHORTEST || self.bytes > SMALL * self.accesses {
            return;
        }
        let key = (last.object.var, last.op == Op::Write, last.ap);
        let near = sums.runs.entry(key).or_default();
        let own = match within {
            Nanos::ZERO => &mut near.right_after,
            _ => &mut near.apart,
        };
        own.count += 1;
        own.accesses += self.accesses;
        own.time += self.time;
        own.between += self.between;
        own.excess += self.time - self.longest;
        if within > Nanos::ZERO {
            own.excess += self.between;
        }
    }
}

/// Reads of one object.
#[derive(Clone, Copy, Debug)]
struct Poll {
    first: Nanos,
    reads: u64,
    /// Reads of a version that the read before had not seen.
    changes: u64,
    /// The last read was such a one.
    changed: bool,
}

impl Poll {
    fn of(record: &Record) -> Self {
        let reads = record.op == Op::Read && neighbours::is_single(record);
        Self {
            first: record.start,
            reads: u64::from(reads),
            changes: 0,
            changed: false,
        }
    }

    /// Another read, after one of this version.
    fn add(&mut self, record: &Record, version: u64) {
        self.reads += 1;
        self.changed = record.version != version;
        self.changes += u64::from(self.changed);
    }

    /// `last` is the last read of it.
    fn end(&self, last: &Record, sums: &mut Sequences) {
        if self.reads < SHORTEST {
            return;
        }
        let own = sums.polls.entry((last.object, last.ap)).or_default();
        if self.waited() {
            own.ended += 1;
            own.reads += self.reads;
            own.time += last.start - self.first;
        } else {
            own.others += 1;
        }
    }

    /// Whether it looks like waiting for a change: it saw one and stopped, and saw none most of the time.
    fn waited(&self) -> bool {
        self.changed && 3 * self.changes <= self.reads
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ten accesses of 5 µs with so much between them.
    fn runs(between_us: u64) -> Near {
        let apart = Runs {
            count: 1,
            accesses: 10,
            time: Nanos(50_000),
            between: Nanos(9 * between_us * 1_000),
            excess: Nanos(45_000 + 9 * between_us * 1_000),
        };
        Near {
            right_after: Runs::default(),
            apart,
        }
    }

    #[test]
    fn accesses_with_only_a_hop_between_them_lie_right_after_one_another() {
        let hop = Some(Nanos(40_000));
        assert_eq!(runs(40).of_hop(hop).accesses, 10);
        assert_eq!(runs(60).of_hop(hop).accesses, 10);
        // Something is done in between.
        assert_eq!(runs(61).of_hop(hop), Runs::default());
        // Nobody told how long a hop takes.
        assert_eq!(runs(40).of_hop(None), Runs::default());
    }
}
