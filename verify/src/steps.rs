//! The steps of each process: which are not over yet, and which wait for what other processes do.

use std::collections::{BTreeMap, VecDeque};
use std::mem;

use dosmos_proto::{ApId, Nanos};
use dosmos_trace::{Op, Record};
use rustc_hash::FxHashMap;

/// How long after the end of an operation what must come before it is waited for, in the time of the records.
const SLACK: Nanos = Nanos(50_000_000);
/// Most records that wait for others; beyond, nothing is waited for.
const MOST_WAITING: usize = 1 << 18;

/// An operation of a process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    /// Of its object, among the objects; of a barrier, none of them.
    pub(crate) slot: usize,
    pub(crate) record: Record,
}

impl Step {
    /// The version that it makes, if it is a release that succeeded.
    fn released(&self) -> Option<u64> {
        let released = self.record.op == Op::Release && !self.record.flags.failed;
        released.then_some(self.record.version)
    }
}

#[derive(Debug, Default)]
struct Process {
    /// Operations whose end does not lie before what the process did next, as far as is known.
    open: Vec<Step>,
    /// What waits, in order, for what must come before it.
    waiting: VecDeque<Step>,
}

#[derive(Debug)]
pub(crate) struct Steps {
    processes: Vec<Process>,
    /// Processes that wait.
    waiting: Vec<ApId>,
    waiting_records: usize,
    /// The versions that waiting releases of an object make, and of each how many do.
    waiting_releases: FxHashMap<usize, BTreeMap<u64, u32>>,
    now: Nanos,
}

impl Steps {
    pub(crate) fn new(processes: usize) -> Self {
        Self {
            processes: (0..processes).map(|_| Process::default()).collect(),
            waiting: Vec::new(),
            waiting_records: 0,
            waiting_releases: FxHashMap::default(),
            now: Nanos::ZERO,
        }
    }

    /// The step of a process has begun.
    pub(crate) fn open(&mut self, step: Step) {
        self.processes[step.record.ap.index()].open.push(step);
    }

    /// The first open step of a process that ends, if it ends up to `until`; and which of the open ones it is.
    pub(crate) fn over(&self, ap: ApId, until: Nanos) -> Option<(usize, Step)> {
        let open = self.processes[ap.index()].open.iter().enumerate();
        let over = open.filter(|(_, s)| s.record.end() <= until);
        let (at, step) = over.min_by_key(|(_, s)| s.record.end())?;
        Some((at, *step))
    }

    /// The open step `at` of a process is over.
    pub(crate) fn close(&mut self, ap: ApId, at: usize) {
        self.processes[ap.index()].open.remove(at);
    }

    /// The grant of the section that its owner ended by `end`, if the process did nothing since: it does not count any more. It is one
    /// from `version`, if that is known.
    pub(crate) fn take_back_grant(
        &mut self,
        slot: usize,
        end: &Record,
        version: Option<u64>,
    ) -> Option<Record> {
        let open = &mut self.processes[end.ap.index()].open;
        let at = open.iter().position(|s| {
            let its = s.slot == slot && s.record.peer == end.peer;
            let its = its && version.is_none_or(|v| s.record.version == v);
            its && s.record.op == Op::Acquire && s.record.start <= end.start
        })?;
        Some(open.remove(at).record)
    }

    pub(crate) fn is_waiting(&self, ap: ApId) -> bool {
        !self.processes[ap.index()].waiting.is_empty()
    }

    /// A step waits, behind those of its process that do.
    pub(crate) fn wait(&mut self, step: Step) {
        let ap = step.record.ap;
        if !self.is_waiting(ap) {
            self.waiting.push(ap);
        }
        if let Some(version) = step.released() {
            let versions = self.waiting_releases.entry(step.slot).or_default();
            *versions.entry(version).or_default() += 1;
        }
        self.processes[ap.index()].waiting.push_back(step);
        self.waiting_records += 1;
    }

    /// Whether what must come before the end of an operation is still waited for.
    pub(crate) fn is_patient(&self, record: &Record) -> bool {
        self.now <= record.end() + SLACK && self.waiting_records < MOST_WAITING
    }

    /// The processes that wait: each goes on, or waits again.
    pub(crate) fn take_waiting(&mut self) -> Vec<ApId> {
        mem::take(&mut self.waiting)
    }

    pub(crate) fn wait_again(&mut self, ap: ApId) {
        self.waiting.push(ap);
    }

    pub(crate) fn first_waiting(&self, ap: ApId) -> Option<Step> {
        self.processes[ap.index()].waiting.front().copied()
    }

    /// The first step of a process that waits goes on.
    pub(crate) fn go_on(&mut self, ap: ApId) {
        let Some(step) = self.processes[ap.index()].waiting.pop_front() else {
            return;
        };
        self.waiting_records -= 1;
        if let Some(version) = step.released()
            && let Some(versions) = self.waiting_releases.get_mut(&step.slot)
            && let Some(count) = versions.get_mut(&version)
        {
            *count -= 1;
            if *count == 0 {
                versions.remove(&version);
            }
        }
    }

    /// Whether a release that made what a grant starts from, or an older version, waits.
    pub(crate) fn waits_before(&self, Step { slot, record }: &Step) -> bool {
        let versions = self.waiting_releases.get(slot);
        let oldest = versions.and_then(|v| v.first_key_value());
        oldest.is_some_and(|(version, _)| *version <= record.version)
    }

    /// Time passes until something is waited for no longer, at most until `now`; false: it is `now`.
    pub(crate) fn pass_time(&mut self, now: Nanos) -> bool {
        let timeout = self.first_waited_for().map(|end| end + SLACK + Nanos(1));
        match timeout.filter(|timeout| *timeout <= now) {
            Some(timeout) => self.now = self.now.max(timeout),
            None => self.now = now,
        }
        timeout.is_some_and(|timeout| timeout <= now)
    }

    /// The end, of those that processes wait for, that comes first.
    fn first_waited_for(&self) -> Option<Nanos> {
        let waiting = self.waiting.iter().map(|ap| &self.processes[ap.index()]);
        let open = waiting.flat_map(|p| p.open.iter());
        open.map(|s| s.record.end()).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::of_test;

    fn step() -> Step {
        let record = Record {
            start: Nanos(100),
            duration: Nanos(5),
            op: Op::Acquire,
            ap: ApId(1),
            ..of_test()
        };
        Step { slot: 0, record }
    }

    #[test]
    fn a_process_waits_once_however_many_of_its_steps_do() {
        let mut steps = Steps::new(2);
        (0..3).for_each(|_| steps.wait(step()));
        assert_eq!(steps.take_waiting(), [ApId(1)]);
        (0..3).for_each(|_| steps.go_on(ApId(1)));
        assert!(steps.first_waiting(ApId(1)).is_none());
    }

    #[test]
    fn a_release_waits_until_it_goes_on() {
        let release = |version| {
            let mut step = step();
            (step.record.op, step.record.version) = (Op::Release, version);
            step
        };
        let mut grant = step();
        grant.record.version = 5;
        let mut steps = Steps::new(2);
        for version in [7, 5, 5] {
            steps.wait(release(version));
        }
        let waits = |steps: &Steps| steps.waits_before(&grant);
        assert!(waits(&steps));
        // The newer one, then one of two alike, then the other.
        for more in [true, true, false] {
            steps.go_on(ApId(1));
            assert_eq!(waits(&steps), more);
        }
        // Of another object, and one that failed.
        steps.wait(Step {
            slot: 1,
            ..release(1)
        });
        let mut failed = release(1);
        failed.record.flags.failed = true;
        steps.wait(failed);
        assert!(!waits(&steps));
    }

    #[test]
    fn so_many_records_wait_at_a_time_and_what_went_on_does_not_count() {
        let mut steps = Steps::new(2);
        for _ in 0..MOST_WAITING + 1 {
            steps.wait(step());
            steps.go_on(ApId(1));
        }
        assert!(steps.is_patient(&step().record));
        (1..MOST_WAITING).for_each(|_| steps.wait(step()));
        assert!(steps.is_patient(&step().record));
        steps.wait(step());
        assert!(!steps.is_patient(&step().record));
    }

    #[test]
    fn what_must_come_before_the_end_of_a_step_is_waited_for_so_long() {
        let mut steps = Steps::new(2);
        let until = step().record.end() + SLACK;
        steps.pass_time(until);
        assert!(steps.is_patient(&step().record));
        steps.pass_time(until + Nanos(1));
        assert!(!steps.is_patient(&step().record));
    }
}
