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
    /// Σ busy and computing time by process.
    pub by_ap: BTreeMap<ApId, (Nanos, Nanos)>,
    /// Instants of the first and last opening.
    pub span: Option<(Nanos, Nanos)>,
    /// What the processes measured themselves; none if they did not.
    pub processor: Option<OnProcessor>,
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
    /// time went to until it arrived.
    pub(super) fn passed(&mut self, record: &Record, members: usize, before: Spent) {
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
            self.close(opening);
        } else if self.arrived.len() > OPEN {
            let first = |(_, here): &(&(VarId, u32), &BTreeMap<ApId, Passage>)| {
                here.values().map(|p| p.arrived).min()
            };
            if let Some((&oldest, _)) = self.arrived.iter().min_by_key(first) {
                self.arrived.remove(&oldest);
            }
        }
    }

    fn close(&mut self, opening: (VarId, u32)) {
        let Some(here) = self.arrived.remove(&opening) else {
            return;
        };
        let opened = here.values().map(|p| p.left).max().unwrap_or_default();
        if !here.is_empty() && here.keys().all(|ap| self.left.contains_key(ap)) {
            let phase = here.iter().map(|(ap, p)| (*ap, p, &self.left[ap]));
            let busy: Vec<(ApId, Nanos)> = phase
                .clone()
                .map(|(ap, p, last)| {
                    let waited = p.before.waiting - last.after.waiting;
                    (ap, p.arrived - last.left - waited)
                })
                .collect();
            let computing: Vec<Nanos> = phase
                .map(|(_, p, last)| {
                    let accessed = p.before.accesses - last.after.accesses;
                    p.arrived - last.left - accessed
                })
                .collect();
            self.count += 1;
            let took = here.iter();
            let took = took.map(|(ap, p)| (*ap, p.arrived - self.left[ap].left));
            self.arrivals.add(took);
            self.busy.add(busy.iter().map(|b| b.1));
            self.computing.add(computing.iter().copied());
            for ((ap, busy), computing) in busy.into_iter().zip(computing) {
                let sums = self.by_ap.entry(ap).or_default();
                sums.0 += busy;
                sums.1 += computing;
            }
            let from = self.span.map_or(opened, |s| s.0);
            self.span = Some((from, opened));
        }
        self.left.extend(here);
    }
}
