//! Work as the processes measured it themselves: time on a processor, which a busy machine does not make longer.

use std::collections::{BTreeMap, BTreeSet};

use dosmos_proto::{ApId, Component, Nanos, PhaseTimes};
use dosmos_trace::query::TimeRange;

use super::Spread;

/// A program that is on a processor for less than this fraction of its time between calls does not compute there: it
/// sleeps, or waits for devices, and its processor time says nothing about its work.
const COMPUTES: f64 = 0.05;

/// Time between calls in the barrier phases of some processes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OnProcessor {
    /// Time on a processor, phase by phase.
    pub each: Spread,
    /// Time between calls without one, phase by phase.
    pub without: Spread,
    /// Both, phase by phase.
    pub between: Spread,
    /// By process, the longest time without one in a phase.
    pub longest: BTreeMap<ApId, Nanos>,
    /// Σ by process: on a processor, and between calls without one.
    pub by_ap: BTreeMap<ApId, (Nanos, Nanos)>,
}

/// When processes began, and how long each then waited until its first barrier opened.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Beginnings(pub BTreeMap<ApId, (Nanos, Nanos)>);

impl Beginnings {
    /// Of those who told of the time before their first barrier.
    pub(super) fn of(pieces: &[PhaseTimes]) -> Self {
        let firsts = pieces.iter().filter(|piece| piece.phase == 0);
        let ended = firsts.filter(|piece| piece.spent.calls(Component::Barrier) > 0);
        let waited =
            |p: &PhaseTimes| p.spent.time(Component::Barrier) + p.spent.time(Component::Other);
        Self(ended.map(|p| (p.ap, (p.start, waited(p)))).collect())
    }
}

impl OnProcessor {
    /// Of the phases in the window that end in a barrier and that all of `aps` have told of; none, if there is none.
    pub(super) fn of(
        pieces: &[PhaseTimes],
        aps: &BTreeSet<ApId>,
        window: TimeRange,
    ) -> Option<Self> {
        let mut phases: BTreeMap<u64, Vec<&PhaseTimes>> = BTreeMap::new();
        // What is before the first barrier is preparation.
        let inside = |p: &&PhaseTimes| {
            let ended = p.spent.calls(Component::Barrier) > 0 && p.phase > 0;
            ended && aps.contains(&p.ap) && window.from <= p.start && p.end() <= window.to
        };
        for piece in pieces.iter().filter(inside) {
            phases.entry(piece.phase).or_default().push(piece);
        }
        let mut sums = Self::default();
        for phase in phases.values().filter(|phase| phase.len() == aps.len()) {
            let busy = phase.iter().map(|p| p.spent.time(Component::Busy));
            sums.each.add(busy.clone());
            let without = phase.iter().map(|p| p.spent.time(Component::Service));
            sums.without.add(without.clone());
            let both = busy.zip(without).map(|(on, off)| on + off);
            sums.between.add(both);
            for piece in phase {
                let own = sums.by_ap.entry(piece.ap).or_default();
                own.0 += piece.spent.time(Component::Busy);
                let without = piece.spent.time(Component::Service);
                own.1 += without;
                sums.longer(piece.ap, without);
            }
        }
        (!sums.by_ap.is_empty()).then_some(sums)
    }

    /// Counts what came later.
    pub(super) fn append(&mut self, later: Self) {
        self.each.join(&later.each);
        self.without.join(&later.without);
        self.between.join(&later.between);
        for (ap, longest) in later.longest {
            self.longer(ap, longest);
        }
        for (ap, (on, off)) in later.by_ap {
            let own = self.by_ap.entry(ap).or_default();
            own.0 += on;
            own.1 += off;
        }
    }

    fn longer(&mut self, ap: ApId, without: Nanos) {
        let longest = self.longest.entry(ap).or_default();
        *longest = without.max(*longest);
    }

    /// All phases together.
    pub fn total(&self) -> Spread {
        Spread::over(self.by_ap.values().map(|t| t.0))
    }

    /// Whether processor time is what these processes need.
    pub fn computes(&self) -> bool {
        let sum = |of: fn(&(Nanos, Nanos)) -> Nanos| self.by_ap.values().map(|t| of(t).0).sum();
        let (on, off): (u64, u64) = (sum(|t| t.0), sum(|t| t.1));
        on as f64 >= COMPUTES * (on + off) as f64
    }
}
