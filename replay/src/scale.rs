//! A run of another number of processes, or on more data. What each process would do is not in the recording, so laws say
//! it, and where a program follows others the prediction is wrong:
//!
//! * *Work is divided*: what all processes compute together stays the same, times [`Scale::work`] for more data. Not divided is
//!   what comes before the first barrier and after the last one (starting, and verifying the result), and a phase between
//!   barriers in which one process computes nearly all.
//! * *Operations per process* stay the same otherwise. A process does what the recorded one at the same place among all does; with
//!   [`Scale::content`] times the bytes.
//! * *Work queues*: what processes take from a [queue](crate::queues) is as much altogether, and taken by whoever comes first.
//! * *Everyone*: where each process accesses what [everyone](crate::exchange) owns, each has as many more to access as there are more processes:
//!   a visit of another process's object, or a section there, becomes one of each process in its place. Parts of what is divided are
//!   smaller.
//! * *Neighbours*: another object that only its owner writes belongs to the process that is as far away as in the run, so each
//!   process has such objects of its own. One that others write too (a counter, a queue, a lock) is one for all, at the same
//!   place among all.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use dosmos_proto::topology::{ApplicationProcess, MemoryProcess};
use dosmos_proto::{ApId, GroupId, MpId, ObjectId, Topology, TopologyBuilder, VarId, Variable};
use dosmos_trace::record::Op;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::balance::sums;
use crate::exchange::{self, Exchange};
use crate::ids::Time;
use crate::queues;
use crate::script::{MOST_STEPS, Script};
use crate::thread::{Step, Thinking, Thread};

/// A process that computes more than this part of a phase does it alone.
const NEARLY_ALL: f64 = 0.8;

/// Operations that a run of more processes has at most.
const MOST_SCALED: usize = 4 * MOST_STEPS;

/// How a run differs from the recorded one in size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale {
    /// Application processes, each with a memory process of its own; none: as many as there were.
    pub processes: Option<usize>,
    /// What all compute together, over what it was.
    pub work: f64,
    /// Bytes of an access, over what they were.
    pub content: f64,
}

impl Default for Scale {
    fn default() -> Self {
        Self {
            processes: None,
            work: 1.0,
            content: 1.0,
        }
    }
}

/// Who does the work of a phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Work {
    /// All, each a part.
    Divided,
    /// Each does it.
    OfEach,
    /// This process.
    Alone(usize),
}

/// What a process does, of what recorded ones did.
struct Share {
    /// The recorded process that it does as.
    like: usize,
    /// Which of as many processes that do as that one it is: what that one took from a queue is divided among them.
    copy: usize,
    copies: usize,
    /// Those from the one after `like` up to this one no process does as: it takes what they took from a queue.
    before: usize,
    /// What is computed of it, as all that a process computes is changed by the number of processes, and the work of a queue is not.
    times: f64,
}

/// Processes and variables of the other run, as they are needed.
struct Places {
    recorded: usize,
    processes: usize,
    /// Objects that others than their owners write.
    central: FxHashSet<ObjectId>,
    /// Variables whose parts everyone accesses, by their numbers in the recording.
    exchanged: FxHashMap<VarId, Exchange>,
    /// Each variable is one variable for each owner, since objects of one number are different ones there.
    variables: BTreeMap<(VarId, MpId), VarId>,
    free: u32,
    /// Visits of objects that processes access at random.
    visits: usize,
}

impl Script {
    /// The run with `scale`; none if the places of its processes leave open where those of another number are: several groups, or
    /// memory processes without one application process each; or if it would have too many operations.
    pub(crate) fn scaled(&self, scale: &Scale) -> Option<Self> {
        let recorded = self.threads.len();
        let processes = scale.processes.unwrap_or(recorded);
        let mut script = self.clone();
        if scale.processes.is_some() {
            script.with_processes(processes)?;
        }
        let ratio = recorded as f64 / processes as f64;
        let phases = self.phases();
        let like = |process: usize| like(process, recorded, processes);
        for (process, thread) in script.threads.iter_mut().enumerate() {
            // Of those that do what one process did, one does what that did alone.
            let is_first = process == 0 || like(process - 1) != like(process);
            let factor = |phase: u32| match phases.get(&phase) {
                Some(Work::Divided) => scale.work * ratio,
                Some(Work::Alone(by)) if !is_first && *by == like(process) => 0.0,
                _ => scale.work,
            };
            for step in &mut thread.steps {
                *step = Step {
                    thinking: step.thinking.times(factor(step.phase)),
                    ..step.with_content(scale.content)
                };
            }
            thread.tail = thread.tail.times(factor(thread.last_phase()));
        }
        Some(script)
    }

    /// The run on processors that many times as fast. Who sleeps does so as long.
    pub(crate) fn faster(&self, speed: f64) -> Self {
        let mut script = self.clone();
        for thread in &mut script.threads {
            let steps = thread.steps.iter_mut().map(|s| &mut s.thinking);
            for thinking in steps.chain([&mut thread.tail]) {
                thinking.computing /= speed;
            }
        }
        script
    }

    /// Who does the work of each phase.
    fn phases(&self) -> BTreeMap<u32, Work> {
        let all = (0u32..).take(self.threads.len()).map(ApId).collect();
        let phases = sums(self, &all, |t| t.computing);
        // Without barriers it is one phase.
        let last = phases.keys().next_back().copied().filter(|last| *last > 0);
        let work = |phase: u32, by: &BTreeMap<u32, Time>| {
            let sum: Time = by.values().sum();
            let alone = by.iter().find(|(_, own)| **own > NEARLY_ALL * sum);
            match alone.filter(|_| self.threads.len() > 1) {
                Some((ap, _)) => Work::Alone(*ap as usize),
                None if last.is_some() && (phase == 0 || Some(phase) == last) => Work::OfEach,
                None => Work::Divided,
            }
        };
        phases.iter().map(|(p, by)| (*p, work(*p, by))).collect()
    }

    fn with_processes(&mut self, processes: usize) -> Option<()> {
        let topology = &self.catalog.topology;
        if processes == 0 || processes > MOST_SCALED || !has_one_each(topology) {
            return None;
        }
        let all = self.threads.iter().flat_map(|t| &t.steps);
        let numbers = all.map(|s| s.object.var.0);
        let declared = self.catalog.variables.iter().map(|v| v.id().0);
        let last = numbers.chain(declared).max().unwrap_or(0);
        let mut places = Places {
            recorded: self.threads.len(),
            processes,
            central: self.central(),
            exchanged: exchange::find(&self.catalog.variables, &self.threads),
            variables: BTreeMap::new(),
            free: last.checked_add(1)?,
            visits: 0,
        };
        let mut steps = 0;
        let threads = (0..processes).map(|i| {
            steps += 1;
            let like = places.like(i);
            let recorded = self.threads.get(like)?;
            let mut thread = Thread {
                steps: Vec::with_capacity(recorded.steps.len()),
                ..*recorded
            };
            let mut carried = Thinking::default();
            let dealt = places.share(i).dealt(&self.threads);
            let visits = dealt
                .iter()
                .flat_map(|(of, steps)| visits(steps).map(|v| (*of, v)));
            for (of, visit) in visits {
                let first = thread.steps.len();
                places.visit(visit, of, i, &mut thread.steps)?;
                steps += thread.steps.len() - first;
                if steps > MOST_SCALED {
                    return None;
                }
                match thread.steps.get_mut(first) {
                    Some(step) => step.thinking = step.thinking.and(std::mem::take(&mut carried)),
                    None => {
                        carried = visit
                            .iter()
                            .fold(carried, |all, step| all.and(step.thinking));
                    }
                }
            }
            thread.tail = thread.tail.and(carried);
            Some(thread)
        });
        self.threads = threads.collect::<Option<_>>()?;
        for passed in self.openings.values_mut() {
            let here = (0..processes).filter(|i| passed.contains(&(places.like(*i) as u32)));
            *passed = here.map(|i| i as u32).collect::<BTreeSet<_>>();
        }
        for coordinator in self.coordinators.values_mut() {
            *coordinator = places.same_place(*coordinator);
        }
        let declared: FxHashMap<VarId, Variable> = std::mem::take(&mut self.catalog.variables)
            .into_iter()
            .map(|v| (v.id(), v))
            .collect();
        for ((var, owner), number) in places.variables {
            if let Some(variable) = declared.get(&var) {
                let exchange = places.exchanged.get(&var);
                let there = exchange.and_then(|e| e.spec(variable.spec(), processes as u32));
                let spec = there.unwrap_or_else(|| variable.spec().clone());
                let variable = Variable::new(number, spec, vec![owner], GroupId(0)).ok()?;
                self.catalog.variables.push(variable);
            }
        }
        self.catalog.topology = with_processes(&self.catalog.topology, processes)?;
        Some(())
    }

    fn central(&self) -> FxHashSet<ObjectId> {
        let mut central = FxHashSet::default();
        for (ap, thread) in (0u32..).zip(&self.threads) {
            let written = thread
                .steps
                .iter()
                .filter(|s| matches!(s.op, Op::Write | Op::Acquire) && s.owner.0 != ap);
            central.extend(written.map(|s| s.object));
        }
        central
    }
}

/// The recorded process that is where this one is among all.
fn like(process: usize, recorded: usize, processes: usize) -> usize {
    process * recorded / processes
}

/// Whether there is one group, and a memory process for each application process.
fn has_one_each(recorded: &Topology) -> bool {
    let one_each = |(i, ap): (usize, &ApplicationProcess)| ap.memory_process.index() == i;
    let aps = recorded.application_processes();
    let alike = aps.len() == recorded.memory_processes().len() && recorded.groups().len() == 1;
    alike && aps.iter().enumerate().all(one_each)
}

/// The same with another number of processes in its one group.
fn with_processes(recorded: &Topology, processes: usize) -> Option<Topology> {
    let first: MemoryProcess = recorded.memory_processes().first()?.clone();
    let mut builder = TopologyBuilder::from(recorded.clone());
    let numbers = 0..u32::try_from(processes).ok()?;
    builder.memory_processes = numbers
        .clone()
        .map(|i| MemoryProcess {
            name: format!("memory process {i}"),
            ..first.clone()
        })
        .collect();
    builder.application_processes = numbers
        .map(|i| ApplicationProcess {
            name: format!("application process {i}"),
            memory_process: MpId(i),
        })
        .collect();
    builder.build().ok()
}

impl Places {
    fn like(&self, process: usize) -> usize {
        like(process, self.recorded, self.processes)
    }

    fn share(&self, process: usize) -> Share {
        let like = self.like(process);
        let first = |like: usize| (like * self.processes).div_ceil(self.recorded);
        Share {
            like,
            copy: process - first(like),
            copies: first(like + 1) - first(like),
            before: self.like(process + 1),
            times: self.processes as f64 / self.recorded as f64,
        }
    }

    /// Where a recorded memory process is among all.
    fn same_place(&self, recorded: MpId) -> MpId {
        MpId((recorded.index() * self.processes / self.recorded) as u32)
    }

    /// What process `here` does in place of a visit of process `there`.
    fn visit(
        &mut self,
        visit: &[Step],
        there: usize,
        here: usize,
        steps: &mut Vec<Step>,
    ) -> Option<()> {
        let exchanged = |s: &Step| self.exchanged.get(&s.object.var).copied();
        let first = visit.first().filter(|_| is_of_one(visit));
        let Some((first, exchange)) = first.and_then(|s| Some((s, exchanged(s)?))) else {
            for step in visit {
                steps.push(self.step(step, there, here)?);
            }
            return Some(());
        };
        let (owner, slot) = (first.owner.index(), exchange.slot(first));
        let distance = |to: usize| (to + self.recorded - there) % self.recorded;
        // Whose object it is, and which of the objects of that one.
        let other = match exchange.pairs && owner == there {
            true => distance(slot as usize),
            false => distance(owner),
        };
        let others: Vec<usize> = match other {
            _ if exchange.at_random => {
                self.visits += 1;
                vec![(here + self.visits) % self.processes]
            }
            0 => vec![here],
            other => exchange
                .distances(other, self.processes)
                .map(|d| (here + d) % self.processes)
                .collect(),
        };
        if others.len().saturating_mul(visit.len()) > MOST_SCALED {
            return None;
        }
        let part = 1.0 / others.len().max(1) as f64;
        for other in others {
            let (owner, slot) = match exchange.pairs {
                true if owner == there => (here, other as u32),
                true => (other, here as u32),
                false => (other, slot),
            };
            let owner = MpId(owner as u32);
            let object = ObjectId::new(self.variable(first.object.var, owner)?, slot);
            steps.extend(visit.iter().map(|step| {
                let content = exchange.content(step, self.processes);
                Step {
                    thinking: step.thinking.times(part),
                    owner,
                    object,
                    ..step.with_content(content)
                }
            }));
        }
        Some(())
    }

    /// The variable for the objects of this owner.
    fn variable(&mut self, recorded: VarId, owner: MpId) -> Option<VarId> {
        if let Some(var) = self.variables.get(&(recorded, owner)) {
            return Some(*var);
        }
        let var = VarId(self.free);
        self.free = self.free.checked_add(1)?;
        self.variables.insert((recorded, owner), var);
        Some(var)
    }

    /// What process `here` does in place of a step of process `there`.
    fn step(&mut self, step: &Step, there: usize, here: usize) -> Option<Step> {
        if step.op == Op::Barrier {
            let owner = self.same_place(step.owner);
            return Some(Step { owner, ..*step });
        }
        let owner = match self.central.contains(&step.object) {
            true => self.same_place(step.owner),
            false => {
                let away = step.owner.index() as i64 - there as i64;
                let owner = (here as i64 + away).rem_euclid(self.processes as i64);
                MpId(owner as u32)
            }
        };
        let var = self.variable(step.object.var, owner)?;
        Some(Step {
            owner,
            object: ObjectId::new(var, step.object.index),
            ..*step
        })
    }
}

/// What a process of another number of processes does, of what recorded ones did.
#[derive(Debug, Default)]
struct Dealt {
    /// Steps one after another, and the recorded process that did them.
    parts: Vec<(usize, Vec<Step>)>,
    /// What lies before a step that is left out lies before the next one.
    before: Option<Thinking>,
}

impl Dealt {
    fn push(&mut self, of: usize, step: &Step, times: f64) {
        let thinking = self.before.take();
        let thinking = thinking.unwrap_or_else(|| step.thinking.times(times));
        let step = Step { thinking, ..*step };
        match self.parts.last_mut() {
            Some((last, steps)) if *last == of => steps.push(step),
            _ => self.parts.push((of, vec![step])),
        }
    }

    /// Work that a process took from a queue, up to where it took more.
    fn work(&mut self, of: usize, steps: &[Step], work: &Range<usize>, times: f64) {
        self.push(of, &steps[work.start], times);
        for step in &steps[work.start + 1..work.end] {
            self.push(of, step, times);
        }
        // What is done last lies before the step with which it takes more.
        let last = steps.get(work.end).map(|s| s.thinking);
        self.before = last.map(|thinking| thinking.times(times));
    }
}

impl Share {
    /// The steps of the process.
    fn dealt(&self, threads: &[Thread]) -> Vec<(usize, Vec<Step>)> {
        let mut dealt = Dealt::default();
        let steps = threads.get(self.like).map_or(&[][..], |t| &t.steps);
        let mut works = queues::works(steps).enumerate().peekable();
        let mut at = 0;
        while let Some(step) = steps.get(at) {
            let Some((number, work)) = works.next_if(|(_, work)| work.start == at) else {
                if let Some(queue) = step.takes_from {
                    self.take_of_others(queue, threads, &mut dealt);
                }
                dealt.push(self.like, step, 1.0);
                at += 1;
                continue;
            };
            at = work.end;
            if number % self.copies == self.copy {
                dealt.work(self.like, steps, &work, self.times);
            } else {
                dealt.before.get_or_insert(step.thinking);
            }
        }
        dealt.parts
    }

    /// The work of those that no process is like, before the process takes from the queue for the last time.
    fn take_of_others(&self, queue: u32, threads: &[Thread], dealt: &mut Dealt) {
        for other in self.like + 1..self.before {
            let steps = threads.get(other).map_or(&[][..], |t| &t.steps);
            let is_of_it = |work: &Range<usize>| steps[work.start].takes_from == Some(queue);
            for work in queues::works(steps).filter(is_of_it) {
                dealt.work(other, steps, &work, self.times);
            }
        }
    }
}

/// The steps of a process, those that belong together in one: what it does at one object before it goes on to another, and a section as
/// a whole.
fn visits(steps: &[Step]) -> impl Iterator<Item = &[Step]> {
    let mut rest = steps;
    std::iter::from_fn(move || {
        let first = rest.first()?;
        let mut sections = 0;
        let goes_on = |s: &&Step| {
            let goes_on = s.op != Op::Barrier && (sections > 0 || s.object == first.object);
            match s.op {
                Op::Acquire => sections += 1,
                Op::Release => sections = i32::max(sections - 1, 0),
                _ => {}
            }
            goes_on
        };
        let count = rest.iter().take_while(goes_on).count().max(1);
        let (visit, others) = rest.split_at(count);
        rest = others;
        Some(visit)
    })
}

/// Whether all are at one object.
fn is_of_one(visit: &[Step]) -> bool {
    visit
        .windows(2)
        .all(|pair| pair[0].object == pair[1].object)
}

impl Step {
    /// The same with that many times its bytes.
    fn with_content(&self, times: f64) -> Self {
        let scaled = |bytes: u32| (f64::from(bytes) * times) as u32;
        Self {
            bytes: scaled(self.bytes),
            together: scaled(self.together),
            ..*self
        }
    }
}

impl Thinking {
    fn and(self, other: Self) -> Self {
        Self {
            computing: self.computing + other.computing,
            asleep: self.asleep + other.asleep,
            without: self.without + other.without,
        }
    }

    fn times(self, factor: f64) -> Self {
        Self {
            computing: self.computing * factor,
            asleep: self.asleep * factor,
            without: self.without * factor,
        }
    }
}
