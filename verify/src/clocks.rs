//! Vector clocks: which phases of which processes come before something.
//!
//! A process's own component counts its phases: it goes up when the process releases, arrives at a barrier or does an
//! atomic operation. What a process did in its phase `n` comes before something if the clock of that something has at
//! least `n` for it. Each start of a process has a component of its own. Clocks are shared until they change.

use std::sync::Arc;

/// A start of a process: the first starts have the numbers of their processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Start(pub(crate) usize);

/// One vector clock.
#[derive(Clone, Debug)]
pub(crate) struct Clock(Arc<Vec<u32>>);

impl Clock {
    /// Of `processes` processes; nothing comes before it.
    pub(crate) fn new(processes: usize) -> Self {
        Self(Arc::new(vec![0; processes]))
    }

    /// Up to which phase of `start` everything comes before it.
    pub(crate) fn of(&self, start: Start) -> u32 {
        self.0.get(start.0).copied().unwrap_or(0)
    }

    /// Whether the phase `phase` of `start` comes before it.
    pub(crate) fn knows(&self, start: Start, phase: u32) -> bool {
        self.of(start) >= phase
    }

    pub(crate) fn set(&mut self, start: Start, phase: u32) {
        let own = Arc::make_mut(&mut self.0);
        if own.len() <= start.0 {
            own.resize(start.0 + 1, 0);
        }
        own[start.0] = phase;
    }

    /// What comes before `other` comes before this from now on.
    pub(crate) fn join(&mut self, other: &Self) {
        if Arc::ptr_eq(&self.0, &other.0) {
            return;
        }
        let own = Arc::make_mut(&mut self.0);
        own.resize(own.len().max(other.0.len()), 0);
        for (mine, theirs) in own.iter_mut().zip(other.0.iter()) {
            *mine = (*mine).max(*theirs);
        }
    }

    /// What comes before both.
    pub(crate) fn meet(&mut self, other: &Self) {
        let own = Arc::make_mut(&mut self.0);
        own.truncate(other.0.len());
        for (mine, theirs) in own.iter_mut().zip(other.0.iter()) {
            *mine = (*mine).min(*theirs);
        }
    }
}

/// What comes before something.
#[derive(Clone, Debug)]
pub(crate) struct Past {
    /// Ordered by acquires, releases and barriers.
    pub(crate) clock: Clock,
    /// Ordered by atomic operations too, and by the starts of one process.
    pub(crate) loose: Clock,
}

impl Past {
    /// Of the first phase of `start`; there are `processes` processes.
    pub(crate) fn new(start: Start, processes: usize) -> Self {
        let mut clock = Clock::new(processes);
        clock.set(start, 1);
        Self {
            loose: clock.clone(),
            clock,
        }
    }

    /// What comes before `other` comes before this from now on.
    pub(crate) fn join(&mut self, other: &Self) {
        self.clock.join(&other.clock);
        self.loose.join(&other.loose);
    }

    /// The next phase of `start` begins.
    pub(crate) fn next_phase(&mut self, start: Start) {
        let next = self.clock.of(start).saturating_add(1);
        self.clock.set(start, next);
        self.loose.set(start, next);
    }
}
