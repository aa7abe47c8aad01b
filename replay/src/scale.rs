//! A run of another number of processes, or on more data. What each process would do is not in the recording, so laws say
//! it, and where a program follows others the prediction is wrong:
//!
//! * *Work is divided*: what all processes compute together stays the same, times [`Scale::work`] for more data. Not divided is
//!   what comes before the first barrier and after the last one (starting, and verifying the result), and a phase between
//!   barriers in which one process computes nearly all.
//! * *Operations per process* stay the same. A process does what the recorded one at the same place among all does; with
//!   [`Scale::content`] times the bytes.
//! * *Neighbours*: an object that only its owner writes belongs to the process that is as far away as in the run, so each
//!   process has such objects of its own. One that others write too (a counter, a queue, a lock) is one for all, at the same
//!   place among all.

use std::collections::{BTreeMap, BTreeSet};

use dosmos_proto::topology::{ApplicationProcess, MemoryProcess};
use dosmos_proto::{ApId, GroupId, MpId, ObjectId, Topology, TopologyBuilder, VarId, Variable};
use dosmos_trace::record::Op;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::balance::sums;
use crate::ids::Time;
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

/// Processes and variables of the other run, as they are needed.
struct Places {
    recorded: usize,
    processes: usize,
    /// Objects that others than their owners write.
    central: FxHashSet<ObjectId>,
    /// Each variable is one variable for each owner, since objects of one number are different ones there.
    variables: BTreeMap<(VarId, MpId), VarId>,
    free: u32,
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
                step.thinking = step.thinking.times(factor(step.phase));
                step.bytes = (f64::from(step.bytes) * scale.content) as u32;
                step.together = (f64::from(step.together) * scale.content) as u32;
            }
            thread.tail = thread.tail.times(factor(thread.last_phase()));
        }
        Some(script)
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
        let like = |i: usize| like(i, self.threads.len(), processes);
        let mut steps = 0;
        for i in 0..processes {
            steps += 1 + self.threads.get(like(i))?.steps.len();
            if steps > MOST_SCALED {
                return None;
            }
        }
        let topology = with_processes(&self.catalog.topology, processes)?;
        let steps = || self.threads.iter().flat_map(|t| &t.steps);
        let numbers = steps().map(|s| s.object.var.0);
        let declared = self.catalog.variables.iter().map(|v| v.id().0);
        let last = numbers.chain(declared).max().unwrap_or(0);
        let mut places = Places {
            recorded: self.threads.len(),
            processes,
            central: self.central(),
            variables: BTreeMap::new(),
            free: last.checked_add(1)?,
        };
        let threads = (0..processes).map(|i| {
            let like = places.like(i);
            let recorded = self.threads.get(like)?;
            let mut thread = Thread {
                steps: Vec::with_capacity(recorded.steps.len()),
                ..*recorded
            };
            for step in &recorded.steps {
                thread.steps.push(places.step(step, like, i)?);
            }
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
                let spec = variable.spec().clone();
                let variable = Variable::new(number, spec, vec![owner], GroupId(0)).ok()?;
                self.catalog.variables.push(variable);
            }
        }
        self.catalog.topology = topology;
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

/// The same with another number of processes in its one group.
fn with_processes(recorded: &Topology, processes: usize) -> Option<Topology> {
    let one_each = |(i, ap): (usize, &ApplicationProcess)| ap.memory_process.index() == i;
    let aps = recorded.application_processes();
    let alike = aps.len() == recorded.memory_processes().len() && recorded.groups().len() == 1;
    if processes == 0 || !alike || !aps.iter().enumerate().all(one_each) {
        return None;
    }
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

    /// Where a recorded memory process is among all.
    fn same_place(&self, recorded: MpId) -> MpId {
        MpId((recorded.index() * self.processes / self.recorded) as u32)
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
        let var = match self.variables.get(&(step.object.var, owner)) {
            Some(var) => *var,
            None => {
                let var = VarId(self.free);
                self.free = self.free.checked_add(1)?;
                self.variables.insert((step.object.var, owner), var);
                var
            }
        };
        Some(Step {
            owner,
            object: ObjectId::new(var, step.object.index),
            ..*step
        })
    }
}

impl Thinking {
    fn times(self, factor: f64) -> Self {
        Self {
            computing: self.computing * factor,
            asleep: self.asleep * factor,
            without: self.without * factor,
        }
    }
}
