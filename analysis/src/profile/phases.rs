//! Barrier phases: how busy each process was from one opening of a barrier to its next.

use std::collections::BTreeMap;

use dosmos_proto::{ApId, Nanos};
use dosmos_trace::record::Record;

/// One phase, gathered when its barrier has opened.
#[derive(Clone, Debug, PartialEq)]
pub struct Phase {
    /// Number of the barrier's opening.
    pub generation: u32,
    /// From the last opening of the barrier before until this one.
    pub length: Nanos,
    /// Time each process was busy: from the opening before until its arrival.
    pub busy: BTreeMap<ApId, Nanos>,
}

impl Phase {
    /// (max − mean) / max of busy time; 0 if nobody was busy.
    pub fn imbalance(&self) -> f64 {
        let (max, mean) = self.max_and_mean();
        if max > 0.0 { (max - mean) / max } else { 0.0 }
    }

    /// Largest and mean busy time, nanoseconds.
    pub fn max_and_mean(&self) -> (f64, f64) {
        let max = self.busy.values().map(|n| n.0).max().unwrap_or(0) as f64;
        let sum: u64 = self.busy.values().map(|n| n.0).sum();
        (max, sum as f64 / self.busy.len().max(1) as f64)
    }
}

/// Sums over the phases of one barrier. Holds one generation at a time, so its size does not grow
/// with the run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Phases {
    /// Phases gathered.
    pub count: u64,
    /// Σ max busy time.
    pub max_busy: f64,
    /// Σ mean busy time.
    pub mean_busy: f64,
    /// Σ (max − busy) over processes: time lost to waiting for the slowest.
    pub lost: f64,
    /// Σ busy time by process.
    pub busy: BTreeMap<ApId, Nanos>,
    /// Instants of the first and last opening.
    pub span: Option<(Nanos, Nanos)>,
    left: BTreeMap<ApId, Nanos>,
    arrived: BTreeMap<u32, BTreeMap<ApId, (Nanos, Nanos)>>,
}

impl Phases {
    /// Takes one process's passage into account; `members` is how many pass.
    pub(super) fn passed(&mut self, record: &Record, members: usize) {
        let generation = record.object.index;
        let here = self.arrived.entry(generation).or_default();
        here.insert(record.ap, (record.start, record.end()));
        if here.len() >= members {
            self.close(generation);
        }
    }

    fn close(&mut self, generation: u32) {
        let Some(here) = self.arrived.remove(&generation) else {
            return;
        };
        // Older generations that never filled up lost records: they say nothing.
        self.arrived.retain(|&g, _| g > generation);
        let opened = here.values().map(|t| t.1).max().unwrap_or_default();
        let known = here.keys().all(|ap| self.left.contains_key(ap));
        if known && !here.is_empty() {
            let busy: BTreeMap<ApId, Nanos> = here
                .iter()
                .map(|(&ap, t)| (ap, t.0 - self.left[&ap]))
                .collect();
            self.add(&busy);
            let from = self.span.map_or(opened, |s| s.0);
            self.span = Some((from, opened));
        }
        for (ap, (_, left)) in here {
            self.left.insert(ap, left);
        }
    }

    fn add(&mut self, busy: &BTreeMap<ApId, Nanos>) {
        let max = busy.values().map(|n| n.0).max().unwrap_or(0);
        let sum: u64 = busy.values().map(|n| n.0).sum();
        self.count += 1;
        self.max_busy += max as f64;
        self.mean_busy += sum as f64 / busy.len() as f64;
        self.lost += busy.values().map(|n| (max - n.0) as f64).sum::<f64>();
        for (&ap, &time) in busy {
            *self.busy.entry(ap).or_default() += time;
        }
    }
}
