//! Where the application processes' time went.

use std::collections::BTreeMap;

use dosmos_proto::{ApId, MpId, Nanos, PhaseTimes};
use serde::{Deserialize, Serialize};

use super::Completeness;

/// The execution-time breakdown: one entry per process and phase, in that order.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Breakdown {
    /// One entry per process and phase.
    pub phases: Vec<PhaseTimes>,
    /// Processor time that serving the run took of each memory and link process that has ended.
    pub processor: BTreeMap<MpId, Nanos>,
    /// What is missing. A process that has not ended still owes up to the last half second before
    /// its last call; one that was killed never gives it.
    pub completeness: Completeness,
}

/// All phases of one process together; `phase` is the number of the first.
pub type ProcessTimes = PhaseTimes;

impl Breakdown {
    /// Adds what another source says; pieces of one phase become one.
    pub fn merge(&mut self, other: &Self) {
        self.phases.extend_from_slice(&other.phases);
        self.phases.sort_by_key(|p| (p.ap, p.phase));
        self.phases.dedup_by(|next, kept| {
            let same = (kept.ap, kept.phase) == (next.ap, next.phase);
            if same {
                kept.join(next);
            }
            same
        });
        for (mp, time) in &other.processor {
            *self.processor.entry(*mp).or_default() += *time;
        }
        self.completeness.merge(&other.completeness);
    }

    /// One entry per process, in order.
    pub fn by_process(&self) -> Vec<ProcessTimes> {
        let mut processes: Vec<ProcessTimes> = Vec::new();
        for phase in &self.phases {
            match processes.last_mut() {
                Some(last) if last.ap == phase.ap => last.join(phase),
                _ => processes.push(*phase),
            }
        }
        processes
    }

    /// The phases of one process, in order.
    pub fn of(&self, ap: ApId) -> impl Iterator<Item = &PhaseTimes> {
        self.phases.iter().filter(move |p| p.ap == ap)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dosmos_proto::{Component, Spent};

    fn piece(ap: u32, phase: u64, wall: u64) -> PhaseTimes {
        let mut spent = Spent::default();
        spent.add(Component::Busy, Nanos(wall), 0);
        PhaseTimes {
            ap: ApId(ap),
            phase,
            start: Nanos(phase * 100),
            wall: Nanos(wall),
            spent,
        }
    }

    #[test]
    fn pieces_of_a_phase_from_two_sources_become_one() {
        let mut all = Breakdown::default();
        for phases in [
            vec![piece(1, 0, 10), piece(1, 1, 5)],
            vec![piece(0, 0, 7), piece(1, 1, 6)],
        ] {
            all.merge(&Breakdown {
                phases,
                processor: [(MpId(0), Nanos(3))].into(),
                completeness: Completeness::default(),
            });
        }
        let walls: Vec<_> = all
            .phases
            .iter()
            .map(|p| (p.ap.0, p.phase, p.wall.0))
            .collect();
        assert_eq!(walls, [(0, 0, 7), (1, 0, 10), (1, 1, 11)]);
        assert_eq!(all.processor, [(MpId(0), Nanos(6))].into());
        let totals: Vec<_> = all.by_process().iter().map(|p| p.wall.0).collect();
        assert_eq!(totals, [7, 21]);
        assert!(all.by_process().iter().all(|p| p.spent.total() == p.wall));
    }
}
