//! Vector clocks: which phases of which processes come before something.
//!
//! A process's own component counts its phases: it goes up when the process releases, arrives at a barrier or does an
//! atomic operation. What a process did in its phase `n` comes before something if the clock of that something has at
//! least `n` for it. Clocks are shared until they change.

use std::sync::Arc;

use dosmos_proto::ApId;

/// One vector clock.
#[derive(Clone, Debug)]
pub(crate) struct Clock(Arc<Vec<u32>>);

impl Clock {
    /// Of `processes` processes; nothing comes before it.
    pub(crate) fn new(processes: usize) -> Self {
        Self(Arc::new(vec![0; processes]))
    }

    /// Up to which phase of `ap` everything comes before it.
    pub(crate) fn of(&self, ap: ApId) -> u32 {
        self.0.get(ap.index()).copied().unwrap_or(0)
    }

    /// Whether the phase `phase` of `ap` comes before it.
    pub(crate) fn knows(&self, ap: ApId, phase: u32) -> bool {
        self.of(ap) >= phase
    }

    pub(crate) fn set(&mut self, ap: ApId, phase: u32) {
        if let Some(own) = Arc::make_mut(&mut self.0).get_mut(ap.index()) {
            *own = phase;
        }
    }

    /// What comes before `other` comes before this from now on.
    pub(crate) fn join(&mut self, other: &Self) {
        if Arc::ptr_eq(&self.0, &other.0) {
            return;
        }
        let own = Arc::make_mut(&mut self.0);
        for (mine, theirs) in own.iter_mut().zip(other.0.iter()) {
            *mine = (*mine).max(*theirs);
        }
    }

    /// What comes before both.
    pub(crate) fn meet(&mut self, other: &Self) {
        let own = Arc::make_mut(&mut self.0);
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
    /// Ordered by atomic operations too.
    pub(crate) loose: Clock,
}

impl Past {
    /// Of the first phase of `ap`, one of `processes` processes.
    pub(crate) fn new(ap: ApId, processes: usize) -> Self {
        let mut clock = Clock::new(processes);
        clock.set(ap, 1);
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

    /// The next phase of `ap` begins.
    pub(crate) fn next_phase(&mut self, ap: ApId) {
        let next = self.clock.of(ap).saturating_add(1);
        self.clock.set(ap, next);
        self.loose.set(ap, next);
    }
}
