//! One pass over the records of a run: who did what, how often, to whose objects, phase by phase.
//!
//! Size: one entry a (phase, process, operation, variable, owner), one a (process, operation, object), a
//! version a (memory process, object), and a bounded address stream per process; independent of the number
//! of records.

use std::collections::{BTreeMap, HashMap, HashSet};

use dosmos_proto::{ApId, MpId, ObjectId, VarId};
use dosmos_trace::record::{Op, Origin, Record, Side};

/// Phases told apart; what comes later belongs to the last of them.
pub(super) const MOST_PHASES: u64 = 2000;
/// References kept of each process, from its first.
const MOST_REFERENCES: usize = 100_000;

/// What a sum is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    /// Barriers the process had passed.
    pub(super) phase: u64,
    pub(super) ap: ApId,
    pub(super) op: Op,
    pub(super) var: VarId,
    /// The memory process that owns the objects (of a barrier: its coordinator).
    pub(super) owner: MpId,
}

/// Sums over like accesses.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Sum {
    /// Accesses, as the applications did them.
    pub(super) count: u64,
    /// Of them, asked of another memory process.
    pub(super) remote: u64,
    /// Of the reads, those that would fetch if copies could be kept: the first of each released state at
    /// a memory process.
    pub(super) fresh: u64,
    /// Of the remote reads and writes, the first of this process to the object.
    pub(super) cold: u64,
    pub(super) bytes: u64,
    /// Time at the owner, without waiting.
    pub(super) service_ns: u64,
    /// Waiting: for the lock, for acknowledgements, for other processes at a barrier.
    pub(super) wait_ns: u64,
    /// From the request's arrival at the own memory process to its reply.
    pub(super) duration_ns: u64,
}

/// A sum and the sum of squares, for means and variances.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Moments {
    pub(super) count: u64,
    sum: f64,
    squares: f64,
}

impl Moments {
    /// `n` values of `x`.
    fn add(&mut self, x: f64, n: u64) {
        self.count += n;
        self.sum += x * n as f64;
        self.squares += x * x * n as f64;
    }

    /// The mean; 0 of nothing.
    pub(super) fn mean(&self) -> f64 {
        self.sum / (self.count.max(1) as f64)
    }

    pub(super) fn variance(&self) -> f64 {
        let mean = self.mean();
        (self.squares / self.count.max(1) as f64 - mean * mean).max(0.0)
    }
}

/// What a process did to one object, over all phases.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Used {
    pub(super) count: u64,
    pub(super) wait_ns: u64,
}

/// Objects by index.
pub(super) type Objects = BTreeMap<u32, Used>;

/// What was referenced by one process, in order.
#[derive(Clone, Debug, Default)]
pub(super) struct References {
    pub(super) objects: Vec<u64>,
    pub(super) bytes: u64,
    pub(super) count: u64,
}

/// All that the pass gathers.
#[derive(Clone, Debug, Default)]
pub(super) struct Tally {
    pub(super) sums: BTreeMap<Key, Sum>,
    /// Service of requests from elsewhere, as their owners recorded it, in µs.
    pub(super) served: Moments,
    /// Waiting at the owner before the service, acquires excluded, in µs.
    pub(super) queued: Moments,
    /// Both ways together of a remote access, in µs: what the requester's memory process saw beyond what the owner
    /// did and what was waited for.
    pub(super) under_way: Moments,
    pub(super) references: BTreeMap<ApId, References>,
    /// The same accesses by object, over all phases.
    pub(super) objects: BTreeMap<(ApId, Op, VarId, MpId), Objects>,
    /// The state of an object that a memory process last saw.
    seen: HashMap<(MpId, ObjectId), u64>,
    /// Objects that a process asked for elsewhere.
    fetched: HashSet<(ApId, ObjectId)>,
    passed: BTreeMap<ApId, u64>,
}

impl Tally {
    /// Takes a record; those of a process must come in order of their start.
    pub(super) fn add(&mut self, record: &Record) {
        let n = record.accesses();
        // Of several accesses only sums are known.
        let us = |ns: u64| ns as f64 / n as f64 / 1e3;
        if record.side == Side::Owner && !record.flags.failed && !record.flags.waiting {
            if !record.flags.in_process {
                self.served.add(us(record.service.0), n);
                if record.op != Op::Acquire {
                    self.queued.add(us(record.wait.0), n);
                }
            }
            return;
        }
        if !record.is_access() {
            return;
        }
        let phase = *self.passed.entry(record.ap).or_default();
        if record.op == Op::Barrier {
            *self.passed.entry(record.ap).or_default() += 1;
        } else {
            self.refer(record);
            if record.flags.in_process {
                // Plain memory: part of what the process computes, wherever the owner is.
                return;
            }
            let owned = (record.ap, record.op, record.object.var, record.peer);
            let objects = self.objects.entry(owned).or_default();
            let used = objects.entry(record.object.index).or_default();
            used.count += n;
            used.wait_ns += record.wait.0;
        }
        let fresh = self.is_fresh(record);
        let key = Key {
            phase: phase.min(MOST_PHASES - 1),
            ap: record.ap,
            op: record.op,
            var: record.object.var,
            owner: record.peer,
        };
        let first =
            record.origin != Origin::Local && self.fetched.insert((record.ap, record.object));
        let sum = self.sums.entry(key).or_default();
        sum.count += n;
        sum.fresh += u64::from(fresh);
        sum.bytes += record.bytes;
        sum.service_ns += record.service.0;
        sum.wait_ns += record.wait.0;
        sum.duration_ns += record.spent().0;
        if record.origin != Origin::Local {
            sum.remote += n;
            sum.cold += u64::from(first && matches!(record.op, Op::Read | Op::Write));
            if record.op != Op::Barrier {
                let at_owner = record.service + record.wait;
                self.under_way.add(us((record.spent() - at_owner).0), n);
            }
        }
    }

    fn refer(&mut self, record: &Record) {
        let of = self.references.entry(record.ap).or_default();
        of.count += record.accesses();
        of.bytes += record.bytes;
        if matches!(record.op, Op::Read | Op::Write) {
            let ObjectId { var, index } = record.object;
            let room = MOST_REFERENCES.saturating_sub(of.objects.len());
            let times = room.min(record.count as usize);
            let object = u64::from(var.0) << 32 | u64::from(index);
            of.objects.extend(std::iter::repeat_n(object, times));
        }
    }

    /// Whether a memory process that kept copies would have to fetch for this access.
    fn is_fresh(&mut self, record: &Record) -> bool {
        let at = (record.mp, record.object);
        match record.op {
            Op::Read => self.seen.insert(at, record.version) != Some(record.version),
            // Who writes drops its copy.
            Op::Write => {
                self.seen.remove(&at);
                false
            }
            _ => false,
        }
    }
}
