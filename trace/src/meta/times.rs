//! How long operations took, as their application processes saw it.

use dosmos_proto::Nanos;
use serde::{Deserialize, Serialize};

use super::sketch::Sketch;
use crate::record::{Op, Record};

/// How long operations of one kind took, from the request at the memory process to its reply.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Times {
    /// All of them together.
    pub total: Nanos,
    /// The longest.
    pub longest: Nanos,
    /// Their distribution.
    pub sketch: Sketch,
}

impl Times {
    /// `n` accesses that together took `total`: of more than one only the mean is known.
    pub fn count(&mut self, total: Nanos, n: u64) {
        let each = Nanos(total.0 / n.max(1));
        self.total += total;
        self.longest = self.longest.max(each);
        self.sketch.count(each, n);
    }

    /// Adds another's.
    pub fn add(&mut self, other: &Self) {
        self.total += other.total;
        self.longest = self.longest.max(other.longest);
        self.sketch.add(&other.sketch);
    }

    /// Number of accesses whose time is known.
    pub fn number(&self) -> u64 {
        self.sketch.total()
    }

    /// The mean, if there was an access.
    pub fn mean(&self) -> Option<Nanos> {
        self.total.0.checked_div(self.number()).map(Nanos)
    }

    /// [`Sketch::quantile`], never more than the longest.
    pub fn quantile(&self, q: f64) -> Option<Nanos> {
        Some(self.sketch.quantile(q)?.min(self.longest))
    }
}

/// How long the accesses to a variable took, or the waits at a barrier. Accesses in the application process itself are not among
/// them: they send no message, and nobody measures their time. Those of asynchronous operations go on while their
/// process computes, so that they can add up to more than it waited.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OperationTimes {
    /// Reads that went to the owner.
    pub reads: Times,
    /// Reads served from a copy at the memory process.
    pub cached: Times,
    /// Writes and atomic operations.
    pub writes: Times,
    /// Acquires, waiting included.
    pub acquires: Times,
    /// Releases.
    pub releases: Times,
    /// Arrivals at a barrier until its opening.
    pub barriers: Times,
}

impl OperationTimes {
    /// Counts an operation as its requester saw it.
    pub fn count(&mut self, record: &Record) {
        let times = match record.op {
            Op::Read if record.flags.optimized => &mut self.cached,
            Op::Read => &mut self.reads,
            Op::Write => &mut self.writes,
            Op::Acquire => &mut self.acquires,
            Op::Release => &mut self.releases,
            Op::Barrier => &mut self.barriers,
        };
        times.count(record.spent(), record.accesses());
    }

    /// Whether a record says how long an operation took that an application process asked for by a message.
    pub fn measures(record: &Record) -> bool {
        record.is_access() && !record.flags.in_process
    }

    /// Adds another's.
    pub fn add(&mut self, other: &Self) {
        self.reads.add(&other.reads);
        self.cached.add(&other.cached);
        self.writes.add(&other.writes);
        self.acquires.add(&other.acquires);
        self.releases.add(&other.releases);
        self.barriers.add(&other.barriers);
    }

    /// Adds how long another's took in all, without the distributions.
    pub(super) fn add_totals(&mut self, other: &Self) {
        self.reads.total += other.reads.total;
        self.cached.total += other.cached.total;
        self.writes.total += other.writes.total;
        self.acquires.total += other.acquires.total;
        self.releases.total += other.releases.total;
        self.barriers.total += other.barriers.total;
    }

    /// By operation, with its name in tables and files.
    pub fn by_operation(&self) -> [(&'static str, &Times); 6] {
        [
            ("read", &self.reads),
            ("cached read", &self.cached),
            ("write", &self.writes),
            ("acquire", &self.acquires),
            ("release", &self.releases),
            ("barrier", &self.barriers),
        ]
    }

    /// Of all operations together.
    pub fn all(&self) -> Times {
        let mut all = Times::default();
        for (_, times) in self.by_operation() {
            all.add(times);
        }
        all
    }

    /// Time of all operations together.
    pub fn total(&self) -> Nanos {
        let each = self.by_operation().into_iter();
        each.map(|(_, times)| times.total)
            .fold(Nanos::ZERO, |a, b| a + b)
    }
}
