//! What application processes do one access right after the other: elements or objects one by one that one call could
//! transfer together, and reads of the same object again and again until it has changed.
//!
//! *Right after* means that the time between two accesses is at most as long as the longer of them: the process does next
//! to nothing in between. Accesses that a process serves in itself cost next to nothing, and those that are under way at the
//! same time are together already: both end a sequence. State is one sequence of each sort per application process.

use std::collections::BTreeMap;

use dosmos_proto::{ApId, Nanos, ObjectId, VarId};
use dosmos_trace::record::{Op, Record};

/// Accesses of a sequence at least: fewer are no loop.
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
    /// Of that, what one access a sequence would not have taken.
    pub excess: Nanos,
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
    pub runs: BTreeMap<(VarId, bool, ApId), Runs>,
    /// Repeated reads, by object and application process.
    pub polls: BTreeMap<(ObjectId, ApId), Polls>,
}

/// The sequences that are not over, by application process.
#[derive(Clone, Debug, Default)]
pub(super) struct Following {
    open: BTreeMap<ApId, (Run, Poll)>,
}

impl Following {
    /// Takes an access into account; what it ends is added to `sums`.
    pub(super) fn access(&mut self, record: &Record, sums: &mut Sequences) {
        let counts = record.count <= 1 && !record.flags.in_process && !record.flags.atomic;
        let Some((run, poll)) = self.open.get_mut(&record.ap) else {
            let new = (Run::of(record, counts), Poll::of(record, counts));
            self.open.insert(record.ap, new);
            return;
        };
        if counts && run.goes_on(record) {
            run.add(record);
        } else {
            run.end(record.ap, sums);
            *run = Run::of(record, counts);
        }
        if counts && poll.goes_on(record) {
            poll.add(record);
        } else {
            poll.end(record.ap, sums);
            *poll = Poll::of(record, counts);
        }
    }

    /// Nothing more comes.
    pub(super) fn finish(self, sums: &mut Sequences) {
        for (ap, (run, poll)) in &self.open {
            run.end(*ap, sums);
            poll.end(*ap, sums);
        }
    }
}

/// Whether a record follows another access right after.
fn follows(record: &Record, end: Nanos, longest: Nanos) -> bool {
    record.start >= end && record.start - end <= record.duration.max(longest)
}

/// Accesses to neighbours, in one direction.
#[derive(Clone, Copy, Debug)]
struct Run {
    last: Record,
    accesses: u64,
    bytes: u64,
    time: Nanos,
    longest: Nanos,
    /// Upwards or downwards; none: not known yet.
    upwards: Option<bool>,
}

impl Run {
    fn of(record: &Record, counts: bool) -> Self {
        let can = counts && matches!(record.op, Op::Read | Op::Write);
        Self {
            last: *record,
            accesses: u64::from(can),
            bytes: record.bytes,
            time: record.duration,
            longest: record.duration,
            upwards: None,
        }
    }

    fn goes_on(&self, record: &Record) -> bool {
        let step = step(&self.last, record);
        self.accesses > 0
            && record.op == self.last.op
            && step.is_some_and(|up| self.upwards.is_none_or(|before| before == up))
            && follows(record, self.last.end(), self.last.duration)
    }

    fn add(&mut self, record: &Record) {
        self.upwards = step(&self.last, record);
        self.accesses += 1;
        self.bytes += record.bytes;
        self.time += record.duration;
        self.longest = self.longest.max(record.duration);
        self.last = *record;
    }

    fn end(&self, ap: ApId, sums: &mut Sequences) {
        if self.accesses < SHORTEST || self.bytes > SMALL * self.accesses {
            return;
        }
        let key = (self.last.object.var, self.last.op == Op::Write, ap);
        let own = sums.runs.entry(key).or_default();
        own.count += 1;
        own.accesses += self.accesses;
        own.time += self.time;
        own.excess += self.time - self.longest;
    }
}

/// Whether an access goes to what comes after the one before (or to what comes before it), such that one call could do
/// both: of reads other objects of the variable too, of writes other elements of the object.
fn step(before: &Record, record: &Record) -> Option<bool> {
    if before.object.var != record.object.var {
        return None;
    }
    if before.object == record.object {
        let ((first, end), (next_first, next_end)) = (before.range, record.range);
        let one_after = first < end && next_first < next_end;
        return match one_after {
            true if end == next_first => Some(true),
            true if next_end == first => Some(false),
            _ => None,
        };
    }
    (record.op == Op::Read).then_some(record.object.index > before.object.index)
}

/// Reads of one object.
#[derive(Clone, Copy, Debug)]
struct Poll {
    object: ObjectId,
    reads: u64,
    /// Reads of a version that the read before had not seen.
    changes: u64,
    version: u64,
    /// The last read was such a one.
    changed: bool,
    first: Nanos,
    last: Nanos,
    end: Nanos,
    duration: Nanos,
}

impl Poll {
    fn of(record: &Record, counts: bool) -> Self {
        Self {
            object: record.object,
            reads: u64::from(counts && record.op == Op::Read),
            changes: 0,
            version: record.version,
            changed: false,
            first: record.start,
            last: record.start,
            end: record.end(),
            duration: record.duration,
        }
    }

    fn goes_on(&self, record: &Record) -> bool {
        self.reads > 0
            && record.op == Op::Read
            && record.object == self.object
            && follows(record, self.end, self.duration)
    }

    fn add(&mut self, record: &Record) {
        self.reads += 1;
        self.changed = record.version != self.version;
        self.changes += u64::from(self.changed);
        self.version = record.version;
        (self.last, self.end) = (record.start, record.end());
        self.duration = record.duration;
    }

    fn end(&self, ap: ApId, sums: &mut Sequences) {
        if self.reads < SHORTEST {
            return;
        }
        let own = sums.polls.entry((self.object, ap)).or_default();
        if self.waited() {
            own.ended += 1;
            own.reads += self.reads;
            own.time += self.last - self.first;
        } else {
            own.others += 1;
        }
    }

    /// Whether it looks like waiting for a change: it saw one and stopped, and saw none most of the time.
    fn waited(&self) -> bool {
        self.changed && 3 * self.changes <= self.reads
    }
}
