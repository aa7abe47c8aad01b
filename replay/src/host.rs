//! Processes that share processors: each gets an equal share of what there is, and at most one processor.
//!
//! A process does its jobs one after the other. As all that are ready advance at the same rate, a *virtual clock* that
//! advances at this rate says when each will be done: a job ends at the virtual time of its begin plus the processor
//! time that it needs, however many others come and go.

use std::cmp::{Ordering, Reverse};
use std::collections::{BinaryHeap, VecDeque};
use std::mem;

use crate::ids::{Process, Time};

/// A time that can be ordered.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct At(pub(crate) Time);

impl Eq for At {}

impl PartialOrd for At {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for At {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.total_cmp(&other.0)
    }
}

/// How long processes take account of others that needed their processor.
const REMEMBERED_NS: Time = 2e6;

/// A machine and the processes on it. `T` is what a job is for.
#[derive(Debug)]
pub(crate) struct Host<T> {
    processors: f64,
    /// What they do in all while more processes are ready than there are of them, over what they could.
    shared: f64,
    now: Time,
    /// Processor time that each ready process has had since the begin.
    virtual_now: Time,
    /// The current job of each ready process, by the virtual time of its end.
    running: BinaryHeap<Reverse<(At, Process)>>,
    jobs: Vec<VecDeque<(Time, T)>>,
    /// When each process began with its current job.
    began: Vec<Time>,
    /// When each process last ran out of jobs.
    idle_since: Vec<Time>,
    /// Processor time of each process so far.
    used: Vec<Time>,
    /// The part of the last time, the less the longer it is over, in which more processes were ready than there are processors.
    crowded: f64,
}

impl<T> Host<T> {
    /// While more are ready than there are processors, these do `shared` of what they could in all.
    pub(crate) fn new(processors: usize, shared: f64, processes: usize) -> Self {
        Self {
            processors: processors.max(1) as f64,
            // One is not idle while others have two.
            shared: if processors > 1 { shared } else { 1.0 },
            now: 0.0,
            virtual_now: 0.0,
            running: BinaryHeap::new(),
            jobs: (0..processes).map(|_| VecDeque::new()).collect(),
            began: vec![0.0; processes],
            idle_since: vec![0.0; processes],
            used: vec![0.0; processes],
            crowded: 0.0,
        }
    }

    fn rate(&self) -> f64 {
        let ready = self.running.len() as f64;
        match ready > self.processors {
            true => self.processors * self.shared / ready,
            false => 1.0,
        }
    }

    /// Lets time pass; nothing may end before `to` ([`Self::next_end`]).
    pub(crate) fn advance(&mut self, to: Time) {
        let passed = (to - self.now).max(0.0);
        self.virtual_now += passed * self.rate();
        if passed > 0.0 {
            let crowded = f64::from(self.running.len() as f64 > self.processors);
            let kept = (-passed / REMEMBERED_NS).exp();
            self.crowded = kept * self.crowded + (1.0 - kept) * crowded;
        }
        self.now = self.now.max(to);
    }

    /// A job for a process, behind those that it has.
    pub(crate) fn give(&mut self, process: Process, needs: Time, job: T) {
        let jobs = &mut self.jobs[process as usize];
        jobs.push_back((needs, job));
        if jobs.len() == 1 {
            self.began[process as usize] = self.now;
            self.running
                .push(Reverse((At(self.virtual_now + needs), process)));
        }
    }

    /// When the next job ends, if nothing else happens.
    pub(crate) fn next_end(&self) -> Option<Time> {
        let Reverse((At(end), _)) = self.running.peek()?;
        Some(self.now + (end - self.virtual_now).max(0.0) / self.rate())
    }

    /// Ends the job that ends next, and for how long that was without a processor; the process goes on with its next one.
    pub(crate) fn end_next(&mut self) -> Option<(T, Time)> {
        let Reverse((_, process)) = self.running.pop()?;
        let jobs = &mut self.jobs[process as usize];
        let (needed, job) = jobs.pop_front()?;
        self.used[process as usize] += needed;
        let began = mem::replace(&mut self.began[process as usize], self.now);
        let without = (self.now - began - needed).max(0.0);
        match jobs.front() {
            Some((needs, _)) => {
                let end = At(self.virtual_now + needs);
                self.running.push(Reverse((end, process)));
            }
            None => self.idle_since[process as usize] = self.now,
        }
        Some((job, without))
    }

    /// How long a process has had no job.
    pub(crate) fn idle(&self, process: Process) -> Time {
        match self.jobs[process as usize].is_empty() {
            true => self.now - self.idle_since[process as usize],
            false => 0.0,
        }
    }

    /// Whether a processor has nothing to do.
    pub(crate) fn has_idle_processor(&self) -> bool {
        (self.running.len() as f64) < self.processors
    }

    /// The part of the last milliseconds in which processes waited for processors.
    pub(crate) fn crowded(&self) -> f64 {
        self.crowded
    }

    /// Processor time of each process so far.
    pub(crate) fn used(&self) -> &[Time] {
        &self.used
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ends of all jobs, in order, and for how long each had no processor.
    fn ended(host: &mut Host<char>) -> Vec<(char, Time, Time)> {
        let mut ended = Vec::new();
        while let Some(end) = host.next_end() {
            host.advance(end);
            ended.extend(host.end_next().map(|(job, without)| (job, end, without)));
        }
        ended
    }

    fn ends(host: &mut Host<char>) -> Vec<(char, Time)> {
        let ended = ended(host).into_iter();
        ended.map(|(job, end, _)| (job, end)).collect()
    }

    #[test]
    fn three_processes_on_two_processors_share_them() {
        let mut host = Host::new(2, 1.0, 3);
        host.give(0, 10.0, 'a');
        host.give(1, 20.0, 'b');
        host.give(2, 20.0, 'c');
        // Two thirds of a processor each until a is done at 15, then one each.
        assert_eq!(ends(&mut host), [('a', 15.0), ('b', 25.0), ('c', 25.0)]);
        assert_eq!(host.used(), [10.0, 20.0, 20.0]);
    }

    #[test]
    fn shared_processors_do_less_and_it_is_told_how_long_a_job_had_none() {
        let mut host = Host::new(2, 0.5, 3);
        host.give(0, 10.0, 'a');
        host.give(1, 20.0, 'b');
        host.give(2, 20.0, 'c');
        // A third of a processor each, then a whole one.
        let expected = [('a', 30.0, 20.0), ('b', 40.0, 20.0), ('c', 40.0, 20.0)];
        assert_eq!(ended(&mut host), expected);
        // Of one processor nothing is lost.
        let mut one = Host::new(1, 0.5, 2);
        one.give(0, 10.0, 'a');
        one.give(1, 10.0, 'b');
        assert_eq!(ends(&mut one), [('a', 20.0), ('b', 20.0)]);
        assert_eq!(one.used(), [10.0, 10.0]);
    }

    #[test]
    fn a_process_does_one_job_after_the_other() {
        let mut host = Host::new(4, 1.0, 1);
        host.give(0, 1.0, 'a');
        host.give(0, 2.0, 'b');
        assert_eq!(ends(&mut host), [('a', 1.0), ('b', 3.0)]);
    }

    #[test]
    fn who_comes_later_takes_a_share_from_then_on() {
        let mut host = Host::new(1, 1.0, 2);
        host.give(0, 10.0, 'a');
        host.advance(4.0);
        host.give(1, 3.0, 'b');
        assert_eq!(ends(&mut host), [('b', 10.0), ('a', 13.0)]);
    }
}
