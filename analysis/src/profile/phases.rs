//! Barrier phases: how busy each process was from one opening of a barrier to the next of the same
//! processes.

use std::collections::BTreeMap;

use dosmos_proto::{ApId, Nanos, VarId};
use dosmos_trace::record::Record;

use super::arrivals::Arrivals;
use super::{OnProcessor, Spread};

/// What a process's time went to, in all, up to an instant.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Spent {
    /// In accesses and barriers.
    pub(super) accesses: Nanos,
    /// Of that, waiting.
    pub(super) waiting: Nanos,
}

/// A process's passage of a barrier.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Passage {
    arrived: Nanos,
    left: Nanos,
    /// Spent before it arrived, and when it left.
    before: Spent,
    after: Spent,
}

impl Passage {
    /// What the process did since it left the barrier before.
    fn since(&self, ap: ApId, last: &Self) -> Own {
        let took = self.arrived - last.left;
        Own {
            ap,
            took,
            busy: took - (self.before.waiting - last.after.waiting),
            computing: took - (self.before.accesses - last.after.accesses),
        }
    }
}

/// A process in a phase.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Own {
    ap: ApId,
    /// From one opening to its next arrival.
    took: Nanos,
    /// Of that, not waiting.
    busy: Nanos,
    /// Of that, outside accesses.
    computing: Nanos,
}

/// One phase: what each process did from one opening of a barrier to the next.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Phase {
    /// When the barrier at its end opened.
    pub(super) opened: Nanos,
    /// The shortest time that a process spent in it.
    shortest: Nanos,
    each: Vec<Own>,
}

/// Sums over the phases of one set of processes. Holds few openings at a time, so its size does not grow
/// with the run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Phases {
    /// Phases gathered.
    pub count: u64,
    /// Time not waiting: accesses and what is between them.
    pub busy: Spread,
    /// Time outside accesses.
    pub computing: Spread,
    /// Time in barriers of who spent least in each: what passing them costs those that wait for nobody.
    pub overhead: Nanos,
    /// Σ busy and computing time by process.
    pub by_ap: BTreeMap<ApId, (Nanos, Nanos)>,
    /// Instants of the first and last opening.
    pub span: Option<(Nanos, Nanos)>,
    /// What the processes measured themselves; none if they did not.
    pub processor: Option<OnProcessor>,
    /// The same of those that did, where some did not; and who did not.
    pub partly: Option<(OnProcessor, Vec<ApId>)>,
    /// Passages that processes must have made, as they passed the same barrier before and after, and that were not
    /// recorded; only processes with any. Openings that failed are among them, for all alike.
    pub skipped: BTreeMap<ApId, u64>,
    arrivals: Arrivals,
    /// The opening of each barrier that each process passed last.
    last: BTreeMap<(VarId, ApId), u32>,
    left: BTreeMap<ApId, Passage>,
    arrived: BTreeMap<(VarId, u32), BTreeMap<ApId, Passage>>,
}

/// Openings that may be incomplete at a time; beyond that the oldest lost records and is given up.
const OPEN: usize = 64;

impl Phases {
    /// Nanoseconds by which the phases together would be shorter if these processes lost so much less in them
    /// (nanoseconds in all, taken as spread evenly; negative: more).
    pub fn shorter(&self, saved: &BTreeMap<ApId, f64>) -> f64 {
        self.arrivals.shorter(saved)
    }

    /// Takes one process's passage into account; `members` is how many pass, `before` what the process's
    /// time went to until it arrived. The phase that this ends, if it does.
    pub(super) fn passed(
        &mut self,
        record: &Record,
        members: usize,
        before: Spent,
    ) -> Option<Phase> {
        let opening = (record.object.var, record.object.index);
        let last = self.last.insert((opening.0, record.ap), opening.1);
        let between = last.map_or(0, |last| opening.1.saturating_sub(last).saturating_sub(1));
        if between > 0 {
            *self.skipped.entry(record.ap).or_default() += u64::from(between);
        }
        let passage = Passage {
            arrived: record.start,
            left: record.end(),
            before,
            after: Spent {
                accesses: before.accesses + record.duration,
                waiting: before.waiting + record.duration,
            },
        };
        let here = self.arrived.entry(opening).or_default();
        here.insert(record.ap, passage);
        if here.len() >= members {
            return self.close(opening);
        }
        if self.arrived.len() > OPEN {
            let first = |(_, here): &(&(VarId, u32), &BTreeMap<ApId, Passage>)| {
                here.values().map(|p| p.arrived).min()
            };
            if let Some((&oldest, _)) = self.arrived.iter().min_by_key(first) {
                self.arrived.remove(&oldest);
            }
        }
        None
    }

    fn close(&mut self, opening: (VarId, u32)) -> Option<Phase> {
        let here = self.arrived.remove(&opening)?;
        let opened = here.values().map(|p| p.left).max().unwrap_or_default();
        let all_left = !here.is_empty() && here.keys().all(|ap| self.left.contains_key(ap));
        let phase = all_left.then(|| {
            let each = here.iter().map(|(ap, p)| p.since(*ap, &self.left[ap]));
            let passing = here.values().map(|p| p.left - p.arrived);
            Phase {
                opened,
                shortest: passing.min().unwrap_or_default(),
                each: each.collect(),
            }
        });
        self.left.extend(here);
        let phase = phase?;
        self.add(&phase);
        self.arrivals
            .add(phase.each.iter().map(|own| (own.ap, own.took)));
        Some(phase)
    }

    /// Counts a phase.
    pub(super) fn add(&mut self, phase: &Phase) {
        self.count += 1;
        self.overhead += phase.shortest;
        self.busy.add(phase.each.iter().map(|own| own.busy));
        self.computing
            .add(phase.each.iter().map(|own| own.computing));
        for own in &phase.each {
            let sums = self.by_ap.entry(own.ap).or_default();
            sums.0 += own.busy;
            sums.1 += own.computing;
        }
        let from = self.span.map_or(phase.opened, |s| s.0);
        self.span = Some((from, phase.opened));
    }

    /// Counts what came later, of phases that were counted alone.
    pub(super) fn append(&mut self, later: Self) {
        self.count += later.count;
        self.overhead += later.overhead;
        self.busy.join(&later.busy);
        self.computing.join(&later.computing);
        for (ap, (busy, computing)) in later.by_ap {
            let sums = self.by_ap.entry(ap).or_default();
            sums.0 += busy;
            sums.1 += computing;
        }
        self.span = match (self.span, later.span) {
            (Some((from, _)), Some((_, to))) => Some((from, to)),
            (own, later) => own.or(later),
        };
        self.processor = match (self.processor.take(), later.processor) {
            (Some(mut own), Some(later)) => {
                own.append(later);
                Some(own)
            }
            (own, later) => own.or(later),
        };
    }
}
