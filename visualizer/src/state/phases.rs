//! The phases of the run, from one barrier to the next: how efficient each was, which one lost most.

use dosmos_analysis::Efficiency;
use dosmos_analysis::efficiency::of_phases;
use dosmos_trace::query::{Breakdown, Catalog, TimeRange};

use super::list::{List, Rows};

/// What processes did between two barriers.
#[derive(Clone, Debug, PartialEq)]
pub struct Phase {
    /// Its number, from 0, behind the group that it is of if groups have barriers of their own.
    pub name: String,
    /// From the first start to the last end.
    pub range: TimeRange,
    /// How much of the processes' time was computing, and where the rest went.
    pub efficiency: Efficiency,
    /// It lost more time than any other.
    pub worst: bool,
}

/// The phases, and whether they are shown.
#[derive(Clone, Debug, Default)]
pub struct Phases {
    rows: Rows<Phase>,
    shown: bool,
    /// A phase was selected by the user; until then it is the worst one.
    chosen: bool,
}

impl Phases {
    /// By number; none if there is only one, which is the run.
    pub fn rows(&self) -> &Rows<Phase> {
        &self.rows
    }

    /// Whether they are shown in the overview.
    pub fn shown(&self) -> bool {
        self.shown
    }

    /// Shows them, or again not.
    pub(super) fn toggle(&mut self) {
        self.shown = !self.shown;
    }

    /// The selection, and the number of phases.
    pub(super) fn list(&mut self) -> (&mut List, usize) {
        self.chosen = true;
        self.rows.list()
    }

    /// The time of the selected phase.
    pub(super) fn range(&self) -> Option<TimeRange> {
        let range = self.rows.selected()?.range;
        (range.from < range.to).then_some(range)
    }

    /// Takes where the processes' time went.
    pub(super) fn take(&mut self, breakdown: &Breakdown, catalog: &Catalog) {
        let phases = of_phases(&breakdown.phases, catalog);
        let mut worst = phases.iter().any(|of| of.efficiency.lost_ns() > 0.0);
        let phases = phases.into_iter().map(|of| Phase {
            name: of.part.name(&catalog.topology),
            range: of.range,
            efficiency: of.efficiency,
            // The first one lost most.
            worst: std::mem::take(&mut worst),
        });
        let mut phases: Vec<Phase> = phases.collect();
        phases.sort_by(|a, b| (a.range.from, &a.name).cmp(&(b.range.from, &b.name)));
        let worst = phases.iter().position(|phase| phase.worst);
        self.rows.replace_by_key(phases, |phase| phase.name.clone());
        if !self.chosen {
            self.rows.list().0.select(worst.unwrap_or(0));
        }
    }
}

#[cfg(test)]
mod tests {
    use dosmos_proto::{ApId, Component, Nanos, PhaseTimes, Spent};

    use super::*;

    /// Of two processes, as long each: how much of each phase the first one waited at the barrier.
    fn breakdown(waited: &[u64]) -> Breakdown {
        let piece = |phase: usize, ap: u32, waited: u64| {
            let mut spent = Spent::default();
            spent.add(Component::Busy, Nanos(1_000 - waited), 0);
            spent.add(Component::Barrier, Nanos(waited), 1);
            PhaseTimes {
                ap: ApId(ap),
                phase: phase as u64,
                start: Nanos(1_000 * phase as u64),
                wall: Nanos(1_000),
                spent,
            }
        };
        let phases = waited.iter().enumerate();
        let phases = phases.flat_map(|(i, w)| [piece(i, 0, *w), piece(i, 1, 0)]);
        Breakdown {
            phases: phases.collect(),
            ..Breakdown::default()
        }
    }

    fn told(phases: &Phases) -> Vec<(&str, u64, bool)> {
        let rows = phases.rows().iter();
        rows.map(|p| {
            let percent = (100.0 * p.efficiency.parallel).round() as u64;
            (p.name.as_str(), percent, p.worst)
        })
        .collect()
    }

    #[test]
    fn phases_are_told_by_number_and_the_one_that_lost_most_is_selected() {
        let mut phases = Phases::default();
        phases.take(&breakdown(&[100, 800, 0]), &Catalog::default());
        let expected = [("0", 95, false), ("1", 60, true), ("2", 100, false)];
        assert_eq!(told(&phases), expected);
        assert_eq!(phases.rows().position(), 1);
        let range = phases.range().map(|r| (r.from, r.to));
        assert_eq!(range, Some((Nanos(1_000), Nanos(2_000))));
        // Another one becomes the worst: until a user has chosen one, that is selected.
        phases.take(&breakdown(&[100, 800, 900]), &Catalog::default());
        assert_eq!(phases.rows().position(), 2);
        phases.list().0.select(0);
        phases.take(&breakdown(&[100, 800, 0, 900]), &Catalog::default());
        assert_eq!(phases.rows().position(), 0);
    }

    #[test]
    fn one_phase_is_the_run_and_without_a_loss_none_is_the_worst() {
        let mut phases = Phases::default();
        phases.take(&Breakdown::default(), &Catalog::default());
        assert!(phases.rows().is_empty() && phases.range().is_none());
        phases.take(&breakdown(&[500]), &Catalog::default());
        assert!(phases.rows().is_empty());
        phases.take(&breakdown(&[0, 0]), &Catalog::default());
        assert_eq!(told(&phases), [("0", 100, false), ("1", 100, false)]);
    }
}
