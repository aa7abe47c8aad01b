//! One application process: what comes before its next step, what it holds, what it wrote and did not publish.

use std::collections::VecDeque;

use dosmos_proto::{ApId, Nanos, ObjectId, VarId};
use dosmos_trace::Record;
use rustc_hash::FxHashMap;

use crate::clocks::Clock;

/// Whether a record tells times by the clock of the application process itself, of which nobody knows how far it is from that of
/// its memory process: accesses that it served in itself and reported later. What a section wrote has elements, and the time
/// of its release.
pub(crate) fn by_own_clock(record: &Record) -> bool {
    record.flags.in_process && record.range == (0, 0)
}

/// A section that is open.
#[derive(Clone, Debug)]
pub(crate) struct Section {
    pub(crate) object: ObjectId,
    /// Its grant.
    pub(crate) acquire: Record,
    /// A write in it.
    pub(crate) wrote: Option<Record>,
    /// The highest version of a write in it.
    pub(crate) highest: u64,
}

/// An operation whose end does not lie before what the process did next, as far as is known.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Open {
    /// Of its object, among the objects.
    pub(crate) slot: usize,
    pub(crate) record: Record,
}

#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) ap: ApId,
    /// What is ordered before its next step by acquires, releases and barriers. Its own component is its phase.
    pub(crate) clock: Clock,
    /// The same, ordered by atomic operations too.
    pub(crate) loose: Clock,
    /// Operations whose end is not known to lie before the next.
    pub(crate) open: Vec<Open>,
    pub(crate) sections: Vec<Section>,
    /// Written outside sections and not published: the last write of each object, and its object among the objects.
    pub(crate) unpublished: FxHashMap<ObjectId, Open>,
    /// A release or barrier failed then: what began to be written before may not be published by a later one.
    pub(crate) in_doubt_until: Nanos,
    /// The last acquire or barrier: by it the process learned what it knows.
    pub(crate) learned: Option<Record>,
    /// The last passage of each barrier.
    pub(crate) passed: FxHashMap<VarId, Record>,
    /// Records that wait, in order, for what must come before them.
    pub(crate) waiting: VecDeque<Record>,
    /// An operation of it failed, so that its requests and what was served of them may differ.
    pub(crate) failed: bool,
}

impl Process {
    pub(crate) fn new(ap: ApId, processes: usize) -> Self {
        let mut clock = Clock::new(processes);
        clock.set(ap, 1);
        Self {
            ap,
            loose: clock.clone(),
            clock,
            open: Vec::new(),
            sections: Vec::new(),
            unpublished: FxHashMap::default(),
            in_doubt_until: Nanos::ZERO,
            learned: None,
            passed: FxHashMap::default(),
            waiting: VecDeque::new(),
            failed: false,
        }
    }

    /// Its phase.
    pub(crate) fn phase(&self) -> u32 {
        self.clock.of(self.ap)
    }

    /// A new phase begins: what it does from now on does not come before what was told so far.
    pub(crate) fn next_phase(&mut self) {
        let next = self.phase().saturating_add(1);
        self.clock.set(self.ap, next);
        self.loose.set(self.ap, next);
    }

    pub(crate) fn section(&mut self, object: ObjectId) -> Option<&mut Section> {
        self.sections.iter_mut().find(|s| s.object == object)
    }

    /// A section begins.
    pub(crate) fn enter(&mut self, acquire: Record) {
        self.sections.push(Section {
            object: acquire.object,
            acquire,
            wrote: None,
            highest: acquire.version,
        });
    }

    pub(crate) fn take_section(&mut self, object: ObjectId) -> Option<Section> {
        let at = self.sections.iter().position(|s| s.object == object)?;
        Some(self.sections.swap_remove(at))
    }
}
