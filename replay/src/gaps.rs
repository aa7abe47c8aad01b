//! The time between a process's operations, from their begins and ends.

use dosmos_proto::Nanos;

use crate::ids::Time;
use crate::thread::Thread;

/// Reads from copies in the process that follow one another so closely are taken to be asked for together, where they
/// have to be asked for: a variable is read as a whole.
const TOGETHER: Nanos = Nanos(20_000);

/// Measures what lies before each operation of a process that was there from `began` to `ended`, and after the last; all of it
/// is in `asleep`. It begins where the operation before did, or where the last one ended that was waited for.
pub(crate) fn measure(thread: &mut Thread, began: Nanos, ended: Nanos) {
    let mut under_way: Vec<Nanos> = Vec::new();
    let (mut last_begin, mut last_end) = (began, began);
    // Of the step before: that it was a read in the process, and what it had ahead.
    let mut before: Option<u32> = None;
    for step in &mut thread.steps {
        let now = step.began;
        for end in under_way.extract_if(.., |end| *end <= now) {
            last_end = last_end.max(end);
        }
        let since = now - last_begin.max(last_end);
        let together = before.filter(|_| step.in_process && since < TOGETHER);
        step.ahead = together.map_or(under_way.len() as u32, |ahead| ahead + 1);
        step.thinking.asleep = since.0 as Time;
        if !step.in_process && !step.asked_ahead {
            under_way.push(now + Nanos(step.took as u64));
        }
        before = step.in_process.then_some(step.ahead);
        last_begin = now;
    }
    let last = under_way
        .into_iter()
        .fold(last_begin.max(last_end), Nanos::max);
    thread.tail.asleep = (ended - last).0 as Time;
}
