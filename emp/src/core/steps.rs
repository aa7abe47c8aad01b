//! Whether the clock of an event manager was set while it was away. Sans-IO.
//!
//! What memory processes make of their clocks relates their times to the clock of one start of their event manager. The next
//! start has another one: if that was set meanwhile, times before and after are in two orders. A memory process that was
//! there before and after shows by how much; then that is part of the bound of all times that the store holds.

use std::collections::BTreeMap;

use dosmos_node::correction::Corrector;
use dosmos_proto::clock::ClockEstimate;
use dosmos_proto::{MpId, Nanos};
use dosmos_trace::clock::{Corrected, Correction, Corrections};
use dosmos_trace::store::{BatchMark, Event};

/// What earlier starts of an event manager left, and how far the clock of this one is from theirs.
#[derive(Debug, Default)]
pub(super) struct Steps {
    /// How starts of memory processes were corrected.
    earlier: BTreeMap<(MpId, u64), Corrections>,
    /// Up to which of their times.
    until: BTreeMap<(MpId, u64), Corrected>,
    /// The most that is known.
    step: Nanos,
}

impl Steps {
    /// After earlier starts, which left these marks.
    pub(super) fn new<'a>(marks: impl IntoIterator<Item = &'a BatchMark>) -> Self {
        let until = marks.into_iter().map(|m| ((m.mp, m.incarnation), m.until));
        Self {
            until: until.collect(),
            ..Self::default()
        }
    }

    /// So did earlier starts correct the times of these starts of memory processes.
    pub(super) fn know(&mut self, earlier: impl IntoIterator<Item = ((MpId, u64), Corrections)>) {
        self.earlier = earlier.into_iter().collect();
    }

    /// What corrects a start of a memory process that connects: times that follow what is on disk, and what `before`
    /// corrected of an earlier start, stay behind it.
    pub(super) fn corrector(&self, start: (MpId, u64), before: &Corrector) -> Corrector {
        let known = |start| self.earlier.get(start).filter(|c| is_known(c));
        if let (Some(known), Some(&until)) = (known(&start), self.until.get(&start)) {
            return Corrector::after(known, until);
        }
        let on_disk = self
            .until
            .iter()
            .filter(|(of, _)| of.0 == start.0 && known(of).is_some());
        let floor = on_disk.map(|(_, until)| until.to).max();
        Corrector::following(floor.unwrap_or_default().max(before.floor()))
    }

    /// A start of a memory process says what it makes of its clock. What is to be put into the log: if that shows a step, the
    /// bounds of what earlier starts corrected.
    pub(super) fn learn(&mut self, start: (MpId, u64), now: &ClockEstimate) -> Vec<Event> {
        let before = self.earlier.get(&start).filter(|c| is_known(c));
        let Some(before) = before.and_then(Corrections::last) else {
            return Vec::new();
        };
        let at = now.reference;
        let moved = now.offset_at(at).abs_diff(before.by.offset_at(at));
        let within = now.error_at(at) + before.by.error_at(at);
        if Nanos(moved) <= within || Nanos(moved) + within <= self.step {
            return Vec::new();
        }
        self.step = Nanos(moved) + within;
        let known = self.earlier.iter().filter(|(_, c)| is_known(c));
        let last = known.filter_map(|(start, all)| Some((start, *all.last()?)));
        last.map(|(&(mp, incarnation), correction)| Event::Clock {
            mp,
            incarnation,
            correction: self.widen(correction),
        })
        .collect()
    }

    /// The same with the step in its bound.
    pub(super) fn widen(&self, correction: Correction) -> Correction {
        Correction {
            error: correction.error + self.step,
            ..correction
        }
    }
}

/// Whether anything is known of the clock.
fn is_known(corrections: &Corrections) -> bool {
    let last = corrections.last();
    last.is_some_and(|last| last.error < Nanos::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn estimate(at: u64, offset_ns: i64) -> ClockEstimate {
        ClockEstimate {
            reference: Nanos(at),
            offset_ns,
            error: Nanos(1_000),
            since: Nanos(at),
            until: Nanos(at),
            growth_ppb: 500_000,
            ..ClockEstimate::default()
        }
    }

    fn correction(at: u64, offset_ns: i64) -> Correction {
        Correction {
            by: estimate(at, offset_ns),
            error: Nanos(2_000),
            begins: None,
        }
    }

    fn of(correction: Correction) -> Corrections {
        [correction].into_iter().collect()
    }

    fn errors(events: &[Event]) -> Vec<(u32, u64)> {
        let error = |event: &Event| match event {
            Event::Clock { mp, correction, .. } => (mp.0, correction.error.0),
            other => panic!("{other:?}"),
        };
        events.iter().map(error).collect()
    }

    #[test]
    fn starts_come_after_those_that_are_on_disk_and_those_that_were_here() {
        let until = |to| Corrected {
            local: Nanos(SECOND),
            to: Nanos(to),
        };
        let mark = |mp, to| BatchMark {
            mp: MpId(mp),
            incarnation: 7,
            sequence: 3,
            until: until(to),
        };
        let mut steps = Steps::new(&[mark(0, 5 * SECOND), mark(1, 9 * SECOND)]);
        let next = steps.corrector((MpId(0), 8), &Corrector::default());
        assert_eq!(next.floor(), Nanos::ZERO, "nothing was known of its clock");
        steps.know([((MpId(0), 7), of(correction(SECOND, 0)))]);
        let next = steps.corrector((MpId(0), 8), &Corrector::default());
        assert_eq!(next.floor(), Nanos(5 * SECOND));
        let here = Corrector::following(Nanos(6 * SECOND));
        let next = steps.corrector((MpId(0), 8), &here);
        assert_eq!(next.floor(), Nanos(6 * SECOND));
        let of_another = steps.corrector((MpId(2), 8), &Corrector::default());
        assert_eq!(of_another.floor(), Nanos::ZERO);
    }

    #[test]
    fn a_clock_that_was_set_is_part_of_all_bounds() {
        let unknown = Correction {
            error: Nanos::MAX,
            ..Correction::default()
        };
        let mut steps = Steps::default();
        steps.know([
            ((MpId(0), 7), of(correction(SECOND, 50_000))),
            ((MpId(1), 7), of(correction(SECOND, 0))),
            ((MpId(2), 7), of(unknown)),
        ]);
        // A second later the old estimate may be off by 501 µs, so this may be the same clock.
        let same = estimate(2 * SECOND, 400_000);
        assert_eq!(steps.learn((MpId(0), 7), &same), []);
        assert_eq!(steps.widen(correction(0, 0)), correction(0, 0));
        // Another start of the process: its clock is another, too.
        let set = estimate(2 * SECOND, 900_050_000);
        assert_eq!(steps.learn((MpId(0), 8), &set), []);
        let events = steps.learn((MpId(0), 7), &set);
        let step = 900_000_000 + 1_000 + 501_000;
        assert_eq!(errors(&events), [(0, step + 2_000), (1, step + 2_000)]);
        assert_eq!(steps.widen(correction(0, 0)).error, Nanos(step + 2_000));
        assert_eq!(steps.learn((MpId(0), 7), &set), [], "that is known");
    }
}
