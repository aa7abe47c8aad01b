//! Locks of objects: first in, first out.

use std::collections::VecDeque;

use dosmos_proto::ObjectId;
use rustc_hash::FxHashMap;

use crate::ids::OpId;

#[derive(Debug, Default)]
struct Lock {
    /// Number of the application process that has it.
    holder: Option<u32>,
    waiting: VecDeque<(u32, OpId)>,
    /// The holder wrote.
    changed: bool,
}

/// All locks.
#[derive(Debug, Default)]
pub(crate) struct Locks(FxHashMap<ObjectId, Lock>);

impl Locks {
    /// Asks for the lock; whether it is granted at once, else `op` waits.
    pub(crate) fn ask(&mut self, object: ObjectId, ap: u32, op: OpId) -> bool {
        let lock = self.0.entry(object).or_default();
        match lock.holder {
            None => {
                lock.holder = Some(ap);
                true
            }
            Some(_) => {
                lock.waiting.push_back((ap, op));
                false
            }
        }
    }

    /// Whether the process has the lock.
    pub(crate) fn held_by(&self, object: ObjectId, ap: u32) -> bool {
        self.0.get(&object).is_some_and(|l| l.holder == Some(ap))
    }

    /// The holder wrote in its section.
    pub(crate) fn changed(&mut self, object: ObjectId) {
        if let Some(lock) = self.0.get_mut(&object) {
            lock.changed = true;
        }
    }

    /// Whether the section that ends changed the object.
    pub(crate) fn ends(&mut self, object: ObjectId) -> bool {
        let lock = self.0.get_mut(&object);
        lock.is_some_and(|l| std::mem::take(&mut l.changed))
    }

    /// The lock is free: who has it next.
    pub(crate) fn pass_on(&mut self, object: ObjectId) -> Option<OpId> {
        let lock = self.0.get_mut(&object)?;
        let next = lock.waiting.pop_front();
        lock.holder = next.map(|(ap, _)| ap);
        next.map(|(_, op)| op)
    }
}
