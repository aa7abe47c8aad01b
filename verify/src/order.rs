//! What is ordered before the next step of each process, and since when it knows.

use dosmos_proto::ApId;
use dosmos_trace::Record;

use crate::clocks::{Clock, Past, Start};

/// Phases after which what everybody knows is worked out again; the number of processes, if that is larger, since the work is one
/// join of clocks for each process.
const FLOOR_AFTER: usize = 256;

#[derive(Debug)]
struct Process {
    start: Start,
    past: Past,
    /// The last acquire or barrier: by it the process learned what it knows.
    learned: Option<Record>,
}

#[derive(Debug)]
pub(crate) struct Order {
    processes: Vec<Process>,
    /// Of all processes.
    starts: usize,
    /// What comes before the next step of everybody, as of some time ago.
    floor: Clock,
    /// Phases that begin before `floor` is worked out again.
    phases_left: usize,
}

impl Order {
    pub(crate) fn new(processes: usize) -> Self {
        let process = |i| Process {
            start: Start(i),
            past: Past::new(Start(i), processes),
            learned: None,
        };
        Self {
            processes: (0..processes).map(process).collect(),
            starts: processes,
            floor: Clock::new(processes),
            phases_left: FLOOR_AFTER,
        }
    }

    /// What comes before the next step of a process. Its own component is its phase.
    pub(crate) fn past(&self, ap: ApId) -> &Past {
        &self.processes[ap.index()].past
    }

    /// Which start of a process it is now, and its phase.
    pub(crate) fn phase(&self, ap: ApId) -> (Start, u32) {
        let process = &self.processes[ap.index()];
        (process.start, process.past.clock.of(process.start))
    }

    /// A process of the same name as one before begins. What that one learned this one need not know, and it may not even be
    /// later: the clocks of two starts of a memory process are corrected each by itself.
    pub(crate) fn starts_again(&mut self, ap: ApId) {
        let processes = self.processes.len();
        let process = &mut self.processes[ap.index()];
        let fresh = process.learned.is_none() && process.past.clock.of(process.start) == 1;
        if fresh {
            return;
        }
        let start = Start(self.starts);
        self.starts += 1;
        let mut past = Past::new(start, processes);
        past.loose.join(&process.past.loose);
        *process = Process {
            start,
            past,
            learned: None,
        };
    }

    pub(crate) fn floor(&self) -> &Clock {
        &self.floor
    }

    pub(crate) fn learned(&self, ap: ApId) -> Option<Record> {
        self.processes[ap.index()].learned
    }

    /// An acquire or a barrier of a process, by which it learns what `past` knows.
    pub(crate) fn learn(&mut self, by: &Record, past: Option<&Past>) {
        let process = &mut self.processes[by.ap.index()];
        process.learned = Some(*by);
        if let Some(past) = past {
            process.past.join(past);
        }
    }

    /// The next step of a process comes after the atomic operations that `atomics` knows.
    pub(crate) fn follow(&mut self, ap: ApId, atomics: &Clock) {
        self.processes[ap.index()].past.loose.join(atomics);
    }

    /// A new phase of a process begins: what it does from now on does not come before what was told so far.
    pub(crate) fn next_phase(&mut self, ap: ApId) {
        let process = &mut self.processes[ap.index()];
        process.past.next_phase(process.start);
        let Some(left) = self.phases_left.checked_sub(1) else {
            self.phases_left = FLOOR_AFTER.max(self.processes.len());
            return self.raise_floor();
        };
        self.phases_left = left;
    }

    fn raise_floor(&mut self) {
        let mut clocks = self.processes.iter().map(|p| &p.past.clock);
        if let Some(first) = clocks.next() {
            let mut floor = first.clone();
            clocks.for_each(|c| floor.meet(c));
            self.floor = floor;
        }
    }
}
