//! Work that is divided evenly, and processes that are without a processor no longer than others.

use std::collections::{BTreeMap, BTreeSet};

use dosmos_proto::ApId;
use rustc_hash::FxHashMap;

use crate::change::Change;
use crate::ids::Time;
use crate::script::Script;
use crate::thread::Thinking;

/// What processes that divide their work evenly do in each phase, by the factor to what they did.
#[derive(Debug, Default)]
pub(crate) struct Balance {
    work: FxHashMap<(u32, u32), f64>,
    /// The same of the time without a processor only.
    without: FxHashMap<(u32, u32), f64>,
}

/// What each of these processes does between operations, by process and phase, as `time` counts it.
pub(crate) fn sums(
    script: &Script,
    aps: &BTreeSet<ApId>,
    time: impl Fn(&Thinking) -> Time,
) -> BTreeMap<u32, BTreeMap<u32, Time>> {
    let mut by_phase: BTreeMap<u32, BTreeMap<u32, Time>> = BTreeMap::new();
    for ap in aps {
        let Some(thread) = script.threads.get(ap.index()) else {
            continue;
        };
        let tail = (thread.last_phase(), thread.tail);
        let steps = thread.steps.iter().map(|s| (s.phase, s.thinking));
        for (phase, thinking) in steps.chain([tail]) {
            let sums = by_phase.entry(phase).or_default();
            *sums.entry(ap.0).or_default() += time(&thinking);
        }
    }
    by_phase
}

impl Balance {
    pub(crate) fn of(script: &Script, change: &Change) -> Self {
        let work = |t: &Thinking| t.computing + t.asleep;
        let by_phase = sums(script, &change.balanced, work);
        let all = change.balanced.len().max(1) as f64;
        let mut factors = FxHashMap::default();
        for (phase, sums) in by_phase {
            let mean = sums.values().sum::<Time>() / all;
            for (ap, sum) in sums.into_iter().filter(|(_, sum)| *sum > 0.0) {
                factors.insert((ap, phase), mean / sum);
            }
        }
        Self {
            work: factors,
            without: unhindered(script, change),
        }
    }

    pub(crate) fn of_phase(&self, ap: u32, phase: u32, thinking: Thinking) -> Thinking {
        let factor = |of: &FxHashMap<_, _>| of.get(&(ap, phase)).copied().unwrap_or(1.0);
        let (work, without) = (factor(&self.work), factor(&self.without));
        Thinking {
            computing: thinking.computing * work,
            asleep: thinking.asleep * work * without,
            without: thinking.without * work * without,
        }
    }
}

/// How much of their time without a processor the processes keep that are to be as long without one as others.
fn unhindered(script: &Script, change: &Change) -> FxHashMap<(u32, u32), f64> {
    // Who is hardly ever on a processor seems to sleep.
    let without = |t: &Thinking| t.without + t.asleep;
    let others = sums(script, &change.others, without);
    let mut factors = FxHashMap::default();
    for (phase, sums) in sums(script, &change.unhindered, without) {
        let theirs = others.get(&phase).into_iter().flat_map(BTreeMap::values);
        let mean = theirs.sum::<Time>() / change.others.len().max(1) as f64;
        for (ap, own) in sums.into_iter().filter(|(_, own)| *own > mean) {
            factors.insert((ap, phase), mean / own);
        }
    }
    factors
}
