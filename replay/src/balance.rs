//! Work that is divided evenly.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use crate::change::Change;
use crate::ids::Time;
use crate::script::Script;
use crate::thread::Thinking;

/// What processes that divide their work evenly do in each phase, by the factor to what they did.
#[derive(Debug, Default)]
pub(crate) struct Balance(FxHashMap<(u32, u32), f64>);

impl Balance {
    pub(crate) fn of(script: &Script, change: &Change) -> Self {
        let mut by_phase: BTreeMap<u32, BTreeMap<u32, Time>> = BTreeMap::new();
        for ap in &change.balanced {
            let Some(thread) = script.threads.get(ap.index()) else {
                continue;
            };
            let tail = (thread.last_phase(), thread.tail);
            let steps = thread.steps.iter().map(|s| (s.phase, s.thinking));
            for (phase, thinking) in steps.chain([tail]) {
                let sums = by_phase.entry(phase).or_default();
                *sums.entry(ap.0).or_default() +=
                    thinking.computing + thinking.asleep + script.slept * thinking.without;
            }
        }
        let all = change.balanced.len().max(1) as f64;
        let mut factors = FxHashMap::default();
        for (phase, sums) in by_phase {
            let mean = sums.values().sum::<Time>() / all;
            for (ap, sum) in sums.into_iter().filter(|(_, sum)| *sum > 0.0) {
                factors.insert((ap, phase), mean / sum);
            }
        }
        Self(factors)
    }

    pub(crate) fn of_phase(&self, ap: u32, phase: u32, thinking: Thinking) -> Thinking {
        match self.0.get(&(ap, phase)) {
            None => thinking,
            Some(factor) => Thinking {
                computing: thinking.computing * factor,
                asleep: thinking.asleep * factor,
                without: thinking.without * factor,
            },
        }
    }
}
