//! Objects shared otherwise than they were: what advice to change the program comes to.
//!
//! Nothing here says what the change of the program costs elsewhere (values to be combined at a barrier, say):
//! what a prediction with it saves is the most that can be saved.

use std::collections::BTreeSet;

use dosmos_proto::ObjectId;
use dosmos_trace::record::Op;

use super::tally::{Key, Objects};

/// Objects that are to be shared otherwise.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sharing {
    /// Not shared any more: an ordinary variable, to which no access goes through a memory process.
    pub private: BTreeSet<ObjectId>,
    /// Each process has one of its own instead, at its own memory process, and waits for nobody.
    pub split: BTreeSet<ObjectId>,
    /// Sections on them are free whenever they are asked for.
    pub free: BTreeSet<ObjectId>,
}

/// What becomes of like accesses of one process. Shares of them; together with what stays as it is, 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Shares {
    /// Served by the own memory process.
    pub(super) split: f64,
    /// As today, but for the waiting.
    pub(super) stay: f64,
    /// Of the waiting of those that stay, what remains.
    pub(super) waiting: f64,
}

impl Sharing {
    /// What becomes of the accesses of `key`, by object `objects`.
    pub(super) fn shares(&self, key: &Key, objects: Option<&Objects>) -> Shares {
        let as_today = Shares {
            split: 0.0,
            stay: 1.0,
            waiting: 1.0,
        };
        let Some(objects) = objects.filter(|_| *self != Self::default()) else {
            return as_today;
        };
        let (mut all, mut split, mut stay) = (0.0, 0.0, 0.0);
        let (mut waited, mut waits) = (0.0, 0.0);
        for (index, used) in objects {
            let object = ObjectId::new(key.var, *index);
            let (count, wait) = (used.count as f64, used.wait_ns as f64);
            all += count;
            waited += wait;
            if self.private.contains(&object) {
                continue;
            }
            if self.split.contains(&object) {
                split += count;
                continue;
            }
            stay += count;
            if key.op != Op::Acquire || !self.free.contains(&object) {
                waits += wait;
            }
        }
        if all <= 0.0 {
            return as_today;
        }
        // A mean wait stands for all objects of the key: those that leave take theirs with them.
        let mean_before = waited / all;
        let mean_after = if stay > 0.0 { waits / stay } else { 0.0 };
        Shares {
            split: split / all,
            stay: stay / all,
            waiting: if mean_before > 0.0 {
                mean_after / mean_before
            } else {
                1.0
            },
        }
    }
}
