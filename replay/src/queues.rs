//! Work that processes take from a shared counter: who takes how much of it depends on how soon each comes back for more, so in a replay
//! it is dealt out anew. What a process did from one time it took something to the next, another one does that takes it.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

use dosmos_proto::{Nanos, VarId};
use dosmos_trace::record::Op;
use rustc_hash::FxHashMap;

use crate::thread::{Step, Thread};

/// The times that each process takes something between two barriers, on average, at least: fewer are not a loop.
const FEWEST: f64 = 8.0;

/// The part of the accesses of the variable that take something, at least: who keeps more than a counter there looks at it otherwise.
const MOSTLY: f64 = 0.9;

/// What one process does over what another does, at least: less is what was divided evenly.
const UNEVEN: f64 = 1.05;

/// How much more often one process takes something than another, in standard deviations of what comes about by chance, at least:
/// processes that take something now and then, as often as each other in the long run, do not take it from a queue.
const BEYOND_CHANCE: f64 = 4.0;

/// How often a process takes something, of all that it does, over the same of another, at most: work is as much each time, on
/// average; a counter of what happens by chance is not.
const ALIKE: f64 = 1.1;

/// What a process does between two barriers.
#[derive(Clone, Copy, Debug, Default)]
struct Done {
    steps: usize,
    takes: usize,
}

/// Accesses of a variable between two barriers.
#[derive(Debug, Default)]
struct Accesses {
    all: usize,
    takes: BTreeMap<usize, usize>,
}

/// An atomic operation that changed something, and that the process waited for.
fn could_take(step: &Step) -> bool {
    let waited_for = step.ahead == 0 && !step.asked_ahead && !step.in_process;
    step.op == Op::Write && step.atomic && step.stored && waited_for
}

/// Marks the steps that take work: those of variables that are used for little else, by several processes, of which one does more than
/// another because it takes something more often.
pub(crate) fn find(threads: &mut [Thread]) {
    let mut accesses: BTreeMap<(u32, VarId), Accesses> = BTreeMap::new();
    let mut steps: BTreeMap<(u32, usize), usize> = BTreeMap::new();
    for (ap, thread) in threads.iter().enumerate() {
        for step in &thread.steps {
            *steps.entry((step.phase, ap)).or_default() += 1;
            if step.op != Op::Barrier && !step.in_process {
                let of = accesses.entry((step.phase, step.object.var)).or_default();
                of.all += 1;
                *of.takes.entry(ap).or_default() += usize::from(could_take(step));
            }
        }
    }
    let queues = accesses.iter().filter(|((phase, _), of)| {
        let takers = of.takes.iter().filter(|(_, takes)| **takes > 0);
        let done = takers.map(|(ap, takes)| Done {
            steps: steps[&(*phase, *ap)],
            takes: *takes,
        });
        of.are_a_queue(&done.collect::<Vec<_>>())
    });
    let numbers: BTreeMap<(u32, VarId), u32> = queues.map(|(place, _)| *place).zip(0..).collect();
    for thread in &mut *threads {
        for step in &mut thread.steps {
            let queue = numbers.get(&(step.phase, step.object.var));
            step.takes_from = queue.copied().filter(|_| could_take(step));
        }
    }
    let broken: Vec<u32> = threads.iter().flat_map(|t| broken(&t.steps)).collect();
    for step in threads.iter_mut().flat_map(|t| &mut t.steps) {
        step.takes_from = step.takes_from.filter(|queue| !broken.contains(queue));
    }
}

impl Accesses {
    fn are_a_queue(&self, takers: &[Done]) -> bool {
        let takes: usize = takers.iter().map(|d| d.takes).sum();
        let ends = |of: &dyn Fn(&Done) -> f64| {
            let of = takers.iter().map(of);
            (
                of.clone().fold(f64::INFINITY, f64::min),
                of.fold(0.0, f64::max),
            )
        };
        let spread = |of: &dyn Fn(&Done) -> f64| {
            let (least, most) = ends(of);
            most / least
        };
        let (least, most) = ends(&|d| d.takes as f64);
        let mean = takes as f64 / takers.len() as f64;
        takers.len() > 1
            && mean >= FEWEST
            && takes as f64 >= MOSTLY * self.all as f64
            && most - least > BEYOND_CHANCE * mean.sqrt()
            && spread(&|d| d.steps as f64) > UNEVEN
            && spread(&|d| d.takes as f64 / d.steps as f64) < ALIKE
    }
}

/// Queues whose work is not whole: a section begins in it and ends elsewhere, or it is taken from two at once.
fn broken(steps: &[Step]) -> Vec<u32> {
    let mut broken = Vec::new();
    let mut before: Option<u32> = None;
    let mut sections = 0;
    for step in steps {
        match step.op {
            Op::Acquire => sections += 1,
            Op::Release => sections -= 1,
            Op::Barrier => before = None,
            Op::Write | Op::Read => {}
        }
        if let Some(queue) = step.takes_from {
            if sections != 0 {
                broken.push(queue);
            }
            if let Some(other) = before.filter(|other| *other != queue) {
                broken.extend([other, queue]);
            }
            before = Some(queue);
        }
    }
    broken
}

/// The steps of each work of a process: from where it takes it up to where it takes more. Nothing follows the last time that it takes
/// something: there is no more work then.
pub(crate) fn works(steps: &[Step]) -> impl Iterator<Item = Range<usize>> {
    let mut takes = steps
        .iter()
        .enumerate()
        .filter(|(_, s)| s.takes_from.is_some());
    let mut before = takes.next();
    takes.filter_map(move |(at, step)| {
        let (from, first) = before.replace((at, step))?;
        (first.takes_from == step.takes_from).then_some(from..at)
    })
}

/// Where processes take work.
#[derive(Debug, Default)]
struct Queue {
    /// The process that took it in the run, and its step, in order of time.
    work: VecDeque<(usize, usize)>,
    /// The last time that each process takes something.
    last: BTreeMap<usize, usize>,
}

/// The work that nobody has taken yet, by the numbers of queues.
#[derive(Debug, Default)]
pub(crate) struct Queues(FxHashMap<u32, Queue>);

impl Queues {
    pub(crate) fn of(threads: &[Thread]) -> Self {
        let mut work: Vec<(Nanos, usize, usize)> = Vec::new();
        let mut queues: FxHashMap<u32, Queue> = FxHashMap::default();
        for (process, thread) in threads.iter().enumerate() {
            for range in works(&thread.steps) {
                let step = &thread.steps[range.start];
                work.push((step.began + Nanos(step.took as u64), process, range.start));
            }
            for (at, step) in thread.steps.iter().enumerate() {
                if let Some(queue) = step.takes_from {
                    queues.entry(queue).or_default().last.insert(process, at);
                }
            }
        }
        work.sort_unstable();
        for (_, process, at) in work {
            let queue = threads[process].steps[at].takes_from;
            if let Some(queue) = queue.and_then(|number| queues.get_mut(&number)) {
                queue.work.push_back((process, at));
            }
        }
        Self(queues)
    }

    /// The step with which process `own` takes the next work of a queue, and the process that did it in the run. Where there is no
    /// more it goes on with its own steps.
    pub(crate) fn next(&mut self, queue: u32, own: usize) -> (usize, usize) {
        let queue = self.0.entry(queue).or_default();
        let taken = queue.work.pop_front();
        // Each that takes something does it for the last time.
        taken.unwrap_or_else(|| (own, queue.last.get(&own).copied().unwrap_or(usize::MAX)))
    }
}
