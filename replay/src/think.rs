//! What a process does between its operations: how much of it is computing.
//!
//! Between two operations lie the way of the response back, what the program does, and the way of the next request.
//! The ways are replayed; what the program does is known phase by phase, from the breakdown that the process measured
//! itself: `busy` is time on a processor, `service` time without one. It is divided among the operations of the phase by
//! how long the time before each was.

use std::collections::BTreeMap;

use dosmos_proto::{ApId, Component, PhaseTimes, Spent};
use dosmos_trace::query::Breakdown;

use crate::ids::Time;
use crate::thread::{Thinking, Thread};

/// A program that is on a processor for less than this fraction of its time between calls sleeps there, or waits for
/// devices.
const COMPUTES: f64 = 0.05;

/// Divides the time between operations, which is all in `asleep`, into computing and sleep.
pub(crate) fn divide(threads: &mut [Thread], times: &Breakdown) {
    let mut phases: BTreeMap<(ApId, u64), &PhaseTimes> = BTreeMap::new();
    for phase in &times.phases {
        phases.insert((phase.ap, phase.phase), phase);
    }
    for process in times.by_process() {
        let Some(thread) = threads.get_mut(process.ap.index()) else {
            continue;
        };
        let sleeps = sleeps(&process.spent);
        let least = least(thread);
        let mut gaps = by_phase(thread, least);
        let of = |number: u32| phases.get(&(process.ap, u64::from(number)));
        if gaps.keys().all(|number| of(*number).is_some()) {
            for (number, gap) in &mut gaps {
                gap.divided(of(*number).map(|p| &p.spent), sleeps);
            }
        } else {
            // Some phases are not told apart: what is known is the sum of all.
            let mut all = Gaps::default();
            gaps.values().for_each(|gap| all.join(gap));
            all.divided(Some(&process.spent), sleeps);
            gaps.values_mut().for_each(|gap| *gap = all);
        }
        for step in &mut thread.steps {
            if let Some(gap) = gaps.get(&step.phase) {
                step.thinking = gap.share(step.thinking.asleep, least);
            }
        }
        if let Some((_, gap)) = gaps.last_key_value() {
            thread.tail = gap.share(thread.tail.asleep, least);
        }
    }
}

fn sleeps(spent: &Spent) -> bool {
    let on = spent.time(Component::Busy).0 as f64;
    let off = spent.time(Component::Service).0 as f64;
    on < COMPUTES * (on + off)
}

/// What lies between two operations even if the program does nothing: the ways, about the shortest time between any.
fn least(thread: &Thread) -> Time {
    // From the end of an operation, which was a message, to the begin of another one.
    let pairs = thread.steps.iter().zip(thread.steps.iter().skip(1));
    let apart =
        pairs.filter(|(a, b)| b.ahead == 0 && !a.in_process && !a.asked_ahead && !b.in_process);
    let mut gaps: Vec<Time> = apart.map(|(_, b)| b.thinking.asleep).collect();
    let at = gaps.len() / 20;
    match gaps.is_empty() {
        true => 0.0,
        false => *gaps.select_nth_unstable_by(at, f64::total_cmp).1,
    }
}

/// The times between the operations of a phase, together.
#[derive(Clone, Copy, Debug, Default)]
struct Gaps {
    /// Beyond the least.
    sum: Time,
    count: f64,
    computing: Time,
    asleep: Time,
    without: Time,
}

fn by_phase(thread: &Thread, least: Time) -> BTreeMap<u32, Gaps> {
    let mut gaps: BTreeMap<u32, Gaps> = BTreeMap::new();
    for step in &thread.steps {
        gaps.entry(step.phase)
            .or_default()
            .add(step.thinking.asleep, least);
    }
    gaps.entry(thread.last_phase())
        .or_default()
        .add(thread.tail.asleep, least);
    gaps
}

impl Gaps {
    fn add(&mut self, gap: Time, least: Time) {
        self.sum += (gap - least).max(0.0);
        self.count += 1.0;
    }

    fn join(&mut self, other: &Self) {
        self.sum += other.sum;
        self.count += other.count;
    }

    /// What was computed and slept, as the process told.
    fn divided(&mut self, told: Option<&Spent>, sleeps: bool) {
        let Some(spent) = told else { return };
        self.computing = spent.time(Component::Busy).0 as Time;
        let without = spent.time(Component::Service).0 as Time;
        match sleeps {
            true => self.asleep = without,
            false => self.without = without,
        }
    }

    fn share(&self, gap: Time, least: Time) -> Thinking {
        let share = match self.sum > 0.0 {
            true => (gap - least).max(0.0) / self.sum,
            false => 1.0 / self.count.max(1.0),
        };
        Thinking {
            computing: self.computing * share,
            asleep: self.asleep * share,
            without: self.without * share,
        }
    }
}
