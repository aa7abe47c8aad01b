//! What one process does: operations, and what lies between them.

use dosmos_proto::{MpId, Nanos, ObjectId};
use dosmos_trace::record::Op;

use crate::ids::Time;

/// Time between two operations of a process.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Thinking {
    /// On a processor.
    pub(crate) computing: Time,
    /// Not on one, and not because others had it.
    pub(crate) asleep: Time,
    /// Not on one: because others had it, or asleep.
    pub(crate) without: Time,
}

/// An operation of a process, and what it did before.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    /// From the operation before (its begin or its end) to this one.
    pub(crate) thinking: Thinking,
    /// When it began.
    pub(crate) began: Nanos,
    /// How long it took.
    pub(crate) took: Time,
    /// Another memory process than its own had to serve it.
    pub(crate) remote: bool,
    /// The process goes on without waiting for it, until it comes to the object again, to a barrier or to its end.
    pub(crate) asked_ahead: bool,
    /// Operations that may still be under way when it begins, but those asked for ahead.
    pub(crate) ahead: u32,
    pub(crate) op: Op,
    /// A read that a copy served.
    pub(crate) cached: bool,
    /// Reads from a copy in the application process: no message, as long as there is one.
    pub(crate) in_process: bool,
    /// A write that stored something; a release of a section that wrote.
    pub(crate) stored: bool,
    /// A write that is an atomic operation.
    pub(crate) atomic: bool,
    /// With it the process takes work that any other could have taken, from the queue of that number ([`crate::queues`]).
    pub(crate) takes_from: Option<u32>,
    pub(crate) object: ObjectId,
    /// It goes on where the one before ended ([`crate::neighbours`]).
    pub(crate) goes_on: bool,
    /// The bytes of this one and of those that go on from it.
    pub(crate) together: u32,
    /// The owner in the run, or the coordinator of the barrier.
    pub(crate) owner: MpId,
    pub(crate) bytes: u32,
    /// Sections of the object that had ended: when it was read, or with this release.
    pub(crate) version: u64,
    /// The process reads the object again and again until it has this version; 0: once.
    pub(crate) until: u64,
    /// Barriers passed before.
    pub(crate) phase: u32,
}

/// What one process does.
#[derive(Clone, Debug, Default)]
pub(crate) struct Thread {
    /// When it begins, from the begin of the first.
    pub(crate) begin: Time,
    pub(crate) steps: Vec<Step>,
    /// After the last operation.
    pub(crate) tail: Thinking,
}

impl Thread {
    fn thinking(&self) -> impl Iterator<Item = &Thinking> {
        let steps = self.steps.iter().map(|s| &s.thinking);
        steps.chain([&self.tail])
    }

    /// For how long it was without a processor between operations.
    pub(crate) fn without(&self) -> Time {
        self.thinking().map(|t| t.without).sum()
    }

    /// Of the time without a processor this part was sleep.
    pub(crate) fn sleep(&mut self, part: f64) {
        let steps = self.steps.iter_mut().map(|s| &mut s.thinking);
        for thinking in steps.chain([&mut self.tail]) {
            let slept = part * thinking.without;
            thinking.asleep += slept;
            thinking.without -= slept;
        }
    }

    /// The phase that follows the last operation.
    pub(crate) fn last_phase(&self) -> u32 {
        let last = self.steps.last();
        last.map_or(0, |last| last.phase + u32::from(last.op == Op::Barrier))
    }
}
