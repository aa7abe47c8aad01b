//! Operations that a process asked for ahead, and went on.
//!
//! A record tells whether its process waited for the reply when it sent the request. Who posts a write never does. Who asks for a read may
//! come to wait for it soon after, or have much to do before: each process measures for how long it is in reads that its memory process
//! served, and in those that others had to serve. Where that is less than these took by their records, it did not wait for those that it
//! asked for so.

use dosmos_proto::{Component, Nanos, PhaseTimes};
use dosmos_trace::query::Breakdown;
use dosmos_trace::record::Op;

use crate::ids::Time;
use crate::thread::{Step, Thread};

/// A process that is in its reads for less than the time that they took at its memory process and this did not wait for them: no
/// reply comes as soon.
const SOONEST_NS: Time = 5_000.0;

/// Reads and writes that a process is told apart by how long it is in them.
const KINDS: [(bool, &[Component]); 2] = [
    (false, &[Component::Local]),
    (true, &[Component::Fault, Component::Cold]),
];

/// Takes the mark from posted reads that processes waited for after all, of operations that began before `until`.
pub(crate) fn find(threads: &mut [Thread], times: &Breakdown, until: Nanos) {
    for process in times.by_process() {
        if let Some(thread) = threads.get_mut(process.ap.index()) {
            let whole = (process.end() - process.start).0.max(1) as Time;
            let part = (process.end().min(until) - process.start).0 as Time / whole;
            waited_for(thread, &process, part);
        }
    }
}

/// The same for one process, in a part of its run.
fn waited_for(thread: &mut Thread, process: &PhaseTimes, part: Time) {
    for (remote, components) in KINDS {
        let is_one =
            |s: &Step| matches!(s.op, Op::Read | Op::Write) && !s.in_process && s.remote == remote;
        let its = || thread.steps.iter().filter(|s| is_one(s));
        let soonest: Time = its()
            .filter(|s| s.op == Op::Read || !s.asked_ahead)
            .map(|s| s.took + SOONEST_NS)
            .sum();
        let times = components.iter().map(|c| process.spent.time(*c).0);
        let waited = times.sum::<u64>() as Time * part;
        if waited >= soonest {
            let its = thread.steps.iter_mut().filter(|s| is_one(s));
            its.filter(|s| s.op == Op::Read)
                .for_each(|step| step.asked_ahead = false);
        }
    }
}
