//! What this process did to each object, counted when the memory process has answered: the
//! application's own word, to hold against what the monitor says.

use std::collections::BTreeMap;
use std::sync::Arc;

use dosmos_proto::ObjectId;

use crate::cache::Served;
use crate::operation::{Op, Operation, Target};

/// Operations done on one object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct OpCounts {
    /// Reads, of the whole object or a part.
    pub reads: u64,
    /// Writes, fetch-adds and compare-exchanges (whether or not they stored).
    pub writes: u64,
    /// Acquires granted.
    pub acquires: u64,
    /// Releases.
    pub releases: u64,
    /// Operations that failed, of any kind.
    pub failed: u64,
}

/// Operations done on one object, and which object it is.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ObjectCounts {
    /// Name of the variable.
    pub variable: Arc<str>,
    /// The object.
    pub object: ObjectId,
    /// What was done to it.
    pub ops: OpCounts,
}

/// All that this process did so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counts {
    /// One entry per object touched, in order of the objects' numbers.
    pub objects: Vec<ObjectCounts>,
    /// Barriers passed.
    pub barriers: u64,
}

impl Counts {
    /// The sums over all objects.
    pub fn total(&self) -> OpCounts {
        self.objects
            .iter()
            .fold(OpCounts::default(), |sum, o| OpCounts {
                reads: sum.reads + o.ops.reads,
                writes: sum.writes + o.ops.writes,
                acquires: sum.acquires + o.ops.acquires,
                releases: sum.releases + o.ops.releases,
                failed: sum.failed + o.ops.failed,
            })
    }
}

/// Counts under way.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    objects: BTreeMap<ObjectId, (Arc<str>, OpCounts)>,
    barriers: u64,
}

impl Tally {
    pub(crate) fn count(&mut self, operation: &Operation, done: bool) {
        if operation.op == Op::Barrier && done {
            self.barriers += 1;
        }
        let Some(object) = operation.target.object else {
            return;
        };
        let (_, ops) = self
            .objects
            .entry(object)
            .or_insert_with(|| (operation.target.name.clone(), OpCounts::default()));
        match (done, operation.op) {
            (false, _) => ops.failed += 1,
            (true, Op::Read) => ops.reads += 1,
            (true, Op::Write | Op::Atomic) => ops.writes += 1,
            (true, Op::Acquire) => ops.acquires += 1,
            (true, Op::Release) => ops.releases += 1,
            (true, _) => {}
        }
    }

    /// What was served in this process.
    pub(crate) fn count_local(&mut self, target: &Target, served: &Served) {
        self.add(target, |ops| {
            let sections = &served.sections;
            ops.reads += served.reads.count + sections.reads.count;
            ops.writes += served.writes.count + sections.writes.count;
            ops.acquires += sections.count + sections.handed_over;
            ops.releases += sections.count;
        });
    }

    /// Reads that a section served, and writes that its release carried.
    pub(crate) fn count_section(&mut self, target: &Target, reads: u64, writes: u64) {
        self.add(target, |ops| {
            ops.reads += reads;
            ops.writes += writes;
        });
    }

    fn add(&mut self, target: &Target, to: impl FnOnce(&mut OpCounts)) {
        if let Some(object) = target.object {
            let of_object = self.objects.entry(object);
            let (_, ops) = of_object.or_insert_with(|| (target.name.clone(), OpCounts::default()));
            to(ops);
        }
    }

    pub(crate) fn counts(&self) -> Counts {
        let objects = self.objects.iter();
        Counts {
            objects: objects
                .map(|(object, (variable, ops))| ObjectCounts {
                    variable: variable.clone(),
                    object: *object,
                    ops: *ops,
                })
                .collect(),
            barriers: self.barriers,
        }
    }
}
