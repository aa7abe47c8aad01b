//! Reading an object again and again until it has changed: how often that is depends on how long the change takes, so in a
//! replay it is one step, which reads until the change is there.

use dosmos_proto::ObjectId;
use dosmos_trace::record::Op;
use rustc_hash::FxHashMap;

use crate::thread::{Step, Thinking, Thread};

/// Reads of a wait at least: fewer are not a loop.
const SHORTEST: usize = 4;

/// Reads of a wait per change that they find, at least.
const READS_PER_CHANGE: usize = 3;

/// Makes one step of the reads of each wait that ends with a section of another process.
pub(crate) fn find(threads: &mut [Thread]) {
    let mut versions = Versions::default();
    for step in threads.iter().flat_map(|t| &t.steps) {
        if step.op == Op::Release {
            versions.rise(step.object, step.version);
        }
    }
    for thread in threads {
        let steps = std::mem::take(&mut thread.steps);
        let mut rest = steps.as_slice();
        while let Some(first) = rest.first() {
            let reads = reads_of_wait(rest, versions.of(first.object));
            let (wait, others) = rest.split_at(reads.max(1));
            thread.steps.push(match reads {
                0 => *first,
                _ => until_changed(wait),
            });
            rest = others;
        }
    }
}

/// The number of steps at the begin of `steps` that are one wait for a version up to `last`.
fn reads_of_wait(steps: &[Step], last: u64) -> usize {
    let first = &steps[0];
    let reads = steps.iter().take_while(|s| {
        let blocking = s.op == Op::Read && s.ahead == 0 && !s.in_process && !s.asked_ahead;
        blocking && s.object == first.object
    });
    let (mut changes, mut end) = (0, 0);
    let mut version = first.version;
    for (number, step) in (1..).zip(reads) {
        if step.version != version {
            version = step.version;
            changes += 1;
            if number >= SHORTEST && READS_PER_CHANGE * changes <= number && version <= last {
                end = number;
            }
        }
    }
    end
}

/// One step in place of the reads of a wait, with what lies between two of them on average.
fn until_changed(reads: &[Step]) -> Step {
    let count = reads.len().max(1) as f64;
    let mean =
        |of: fn(&Thinking) -> f64| reads.iter().map(|s| of(&s.thinking)).sum::<f64>() / count;
    let mut step = reads[reads.len() - 1];
    step.thinking = Thinking {
        computing: mean(|t| t.computing),
        asleep: mean(|t| t.asleep),
        without: mean(|t| t.without),
    };
    step.until = step.version;
    step
}

/// Sections of each object that have ended.
#[derive(Debug, Default)]
pub(crate) struct Versions(FxHashMap<ObjectId, u64>);

impl Versions {
    pub(crate) fn of(&self, object: ObjectId) -> u64 {
        self.0.get(&object).copied().unwrap_or(0)
    }

    pub(crate) fn rise(&mut self, object: ObjectId, version: u64) {
        let known = self.0.entry(object).or_default();
        *known = version.max(*known);
    }
}
