//! The phases that both runs have: only they can be compared.

use std::collections::BTreeSet;

use dosmos_proto::Nanos;
use dosmos_trace::query::TimeRange;

use super::phased::{Phase, PhasedRun, joined};
use super::rows::{Row, rows};

/// What both runs have, from the first phase on.
pub(super) struct Matched {
    /// Phases, joined ones counted each; none: no barrier tells phases apart.
    pub(super) phases: u64,
    pub(super) first: Side,
    pub(super) second: Side,
    /// By variable and operation; what took most time first.
    pub(super) rows: Vec<Row>,
}

/// The matched phases of one run.
#[derive(Default)]
pub(super) struct Side {
    /// How far each phase brought the run, nanoseconds. The sum is the time that the phases took together.
    pub(super) steps: Vec<u64>,
    /// Where the phases lie; none: they are the whole run.
    pub(super) part: Option<TimeRange>,
}

impl Side {
    fn of<'a>(phases: impl Iterator<Item = Option<&'a Phase>>, whole: bool) -> Self {
        let mut side = Self::default();
        let mut range: Option<TimeRange> = None;
        for phase in phases {
            let Some((from, to)) = phase.and_then(|p| p.span) else {
                side.steps.push(0);
                continue;
            };
            let known = range.get_or_insert(TimeRange { from, to: from });
            let reached = known.to.max(to);
            side.steps.push((reached - known.to).0);
            known.to = reached;
        }
        let nothing = TimeRange {
            from: Nanos::ZERO,
            to: Nanos::ZERO,
        };
        side.part = (!whole).then_some(range.unwrap_or(nothing));
        side
    }

    pub(super) fn length(&self) -> u64 {
        self.steps.iter().sum()
    }
}

impl Matched {
    /// Of runs with the same stride.
    pub(super) fn of(a: &PhasedRun, b: &PhasedRun) -> Self {
        let (in_a, in_b) = (a.barriers(), b.barriers());
        let common = in_a.min(in_b);
        let same = in_a == in_b;
        // A phase that no barrier ends in one of the runs is not the same piece of work in both.
        let ended = |number: &u64| same || (number + 1) * a.stride <= common;
        let numbers: BTreeSet<u64> = a.phases.keys().chain(b.phases.keys()).copied().collect();
        let numbers: Vec<u64> = numbers.into_iter().filter(ended).collect();
        let of = |run: &PhasedRun| {
            let phases = numbers.iter().map(|n| run.phases.get(n));
            let whole = run.phases.keys().all(&ended);
            let table = joined(phases.clone().flatten()).table;
            (Side::of(phases, whole), run.named(&table))
        };
        let ((first, in_first), (second, in_second)) = (of(a), of(b));
        let mut rows = rows(&in_first, &in_second);
        rows.sort_by_key(|row| std::cmp::Reverse(row.time_ns().0.max(row.time_ns().1)));
        Self {
            phases: match same {
                true => common,
                false => common / a.stride * a.stride,
            },
            first,
            second,
            rows,
        }
    }
}
