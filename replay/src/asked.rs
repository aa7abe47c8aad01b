//! Operations that a process asked for ahead, and went on.
//!
//! A record tells when an operation began and how long it took, not whether its process waited for it: where messages are fast, one
//! that was asked for ahead is over long before it is needed, and looks like any other. But each process measures for how long it is
//! in reads and writes that its memory process served, and in those that others had to serve. Where that is less than these took by their
//! records, and the way of a reply, it did not wait for them.

use dosmos_proto::{Component, Nanos, PhaseTimes};
use dosmos_trace::query::Breakdown;
use dosmos_trace::record::Op;

use crate::ids::Time;
use crate::thread::{Step, Thread};

/// A process that is in its reads and writes for less than the time that they took at its memory process and this did not wait for
/// them: no reply comes as soon.
const SOONEST_NS: Time = 5_000.0;

/// Reads and writes that a process is told apart by how long it is in them.
const KINDS: [(bool, &[Component]); 2] = [
    (false, &[Component::Local]),
    (true, &[Component::Fault, Component::Cold]),
];

/// What is not in a call.
const BETWEEN: [Component; 3] = [Component::Busy, Component::Service, Component::Other];

/// Marks what processes did not wait for, of operations that began before `until`.
pub(crate) fn find(threads: &mut [Thread], times: &Breakdown, until: Nanos) {
    for process in times.by_process() {
        if let Some(thread) = threads.get_mut(process.ap.index()) {
            let whole = (process.end() - process.start).0.max(1) as Time;
            let part = (process.end().min(until) - process.start).0 as Time / whole;
            mark(thread, &process, part);
        }
    }
}

/// Marks what a process did not wait for in a part of its run.
fn mark(thread: &mut Thread, process: &PhaseTimes, part: Time) {
    let calls = Component::ALL.into_iter().filter(|c| !BETWEEN.contains(c));
    if calls.map(|c| process.spent.time(c).0).sum::<u64>() == 0 {
        // It did not measure that.
        return;
    }
    for (remote, components) in KINDS {
        let is_one =
            |s: &Step| matches!(s.op, Op::Read | Op::Write) && !s.in_process && s.remote == remote;
        let its = || thread.steps.iter().filter(|s| is_one(s));
        let took: Time = its().map(|s| s.took).sum();
        let soonest = took + SOONEST_NS * its().count() as Time;
        let times = components.iter().map(|c| process.spent.time(*c).0);
        let waited = times.sum::<u64>() as Time * part;
        if waited < soonest {
            let its = thread.steps.iter_mut().filter(|s| is_one(s));
            its.for_each(|step| step.asked_ahead = true);
        }
    }
}
