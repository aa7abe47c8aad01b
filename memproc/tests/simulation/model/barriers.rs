//! Who may pass a barrier, also after faults.
//!
//! A call of the barrier *counts* while its application process waits. One that failed may still count for a while: what
//! takes it back is on its way, or a link is down. It counts no more once the cluster was *quiet*: nothing was
//! under way, all links were up, nobody was stopped.

use super::*;

/// A call of the barrier.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival {
    asked: u64,
    /// When it failed, if that is known to those who wait for it.
    failed: Option<u64>,
    generation: Option<u64>,
    /// The generation for which one that failed may have counted.
    counted: Option<u64>,
}

impl Arrival {
    /// Others may wait for it for ever.
    pub(super) fn is_in_doubt(&mut self) {
        self.failed = self.failed.map(|_| u64::MAX);
    }

    fn counts(&self, generation: u64, asked: u64, quiet: u64) -> bool {
        let over = self.failed.is_some_and(|at| at < quiet && quiet <= asked);
        match self.generation.or(self.counted) {
            Some(of) => of == generation && !over,
            None => !over,
        }
    }
}

/// How many of these calls passed.
pub(super) fn passed(calls: &[Arrival]) -> usize {
    calls.iter().filter(|c| c.generation.is_some()).count()
}

impl Sim {
    /// Notes when the cluster was quiet.
    pub(super) fn note_quiet(&mut self, busy: bool) {
        self.steps += 1;
        let apart = !self.down.is_empty() || !self.c.unaware().is_empty();
        if !busy && !apart && self.c.stopped.is_empty() {
            self.quiet = self.steps;
        }
    }

    /// `a` calls the barrier; the number of the call.
    pub(super) fn arrive(&mut self, a: usize) -> usize {
        self.arrivals[a].push(Arrival {
            asked: self.steps,
            failed: None,
            generation: None,
            counted: None,
        });
        self.arrivals[a].len() - 1
    }

    pub(super) fn arrival_failed(&mut self, a: usize, call: usize) {
        self.arrivals[a][call].failed = Some(self.steps);
    }

    /// `a` passed: everybody else has a call that counted with this one.
    pub(super) fn arrival_passed(&mut self, a: usize, call: usize, generation: u64) {
        let before = self.arrivals[a][..call]
            .iter()
            .rev()
            .find_map(|c| c.generation);
        let rose = self.restarted || before.is_none_or(|before| before < generation);
        let what = format!("ap{a} passed generation {generation} after {before:?}");
        self.must(rose, &what);
        self.arrivals[a][call].generation = Some(generation);
        let asked = self.arrivals[a][call].asked;
        for b in (0..self.aps.len()).filter(|b| *b != a) {
            let quiet = self.quiet;
            let calls = &mut self.arrivals[b];
            let fits = |c: &&mut Arrival| c.counts(generation, asked, quiet);
            let known = |c: &&mut Arrival| fits(c) && c.generation.or(c.counted).is_some();
            let found = match calls.iter_mut().find(known) {
                Some(call) => Some(call),
                None => calls.iter_mut().find(fits),
            };
            let there = found.is_some();
            if let Some(call) = found.filter(|c| c.failed.is_some()) {
                call.counted = Some(generation);
            }
            let what = format!("ap{a} passed generation {generation}, and ap{b} was not there");
            self.must(there, &what);
        }
    }
}
