//! From records to what each process does.

use std::collections::{BTreeMap, BTreeSet};

use dosmos_proto::{ApId, Component, MpId, Nanos, ObjectId, PhaseTimes, Topology, VarId};
use dosmos_trace::query::{Breakdown, Catalog};
use dosmos_trace::record::{Op, Origin, PerOrigin, Record};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::asked;
use crate::gaps;
use crate::ids::{Opening, Time};
use crate::neighbours;
use crate::polls;
use crate::queues;
use crate::think;
use crate::thread::{Step, Thinking, Thread};

/// Operations that a script holds at most, so that a replay takes a fraction of a second.
pub(crate) const MOST_STEPS: usize = 300_000;

/// A geometric mean: a few that took long count little.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Mean {
    sum: Time,
    count: f64,
}

impl Mean {
    pub(crate) fn add(&mut self, time: Time) {
        self.sum += time.max(1.0).ln();
        self.count += 1.0;
    }

    pub(crate) fn count(self) -> f64 {
        self.count
    }

    /// None of nothing.
    pub(crate) fn get(self) -> Option<Time> {
        (self.count > 0.0).then(|| (self.sum / self.count).exp())
    }
}

/// What the processes of a run do.
#[derive(Clone, Debug)]
pub struct Script {
    pub(crate) catalog: Catalog,
    pub(crate) threads: Vec<Thread>,
    /// Who passed each opening of each barrier.
    pub(crate) openings: FxHashMap<Opening, BTreeSet<u32>>,
    pub(crate) coordinators: FxHashMap<VarId, MpId>,
    /// How long reads and writes of other memory processes' objects took.
    pub(crate) remote: PerOrigin<Mean>,
    /// Bytes of those in the group.
    pub(crate) content: Mean,
    /// Processor time that all memory processes together took; none: not all of them told.
    pub(crate) serving: Option<Time>,
    pub(crate) measured: Time,
    pub(crate) part: f64,
}

/// A process as its records are read.
#[derive(Debug, Default)]
struct Reading {
    thread: Thread,
    passed: u32,
    /// Objects that it has acquired.
    sections: FxHashSet<ObjectId>,
    /// The access before, if others may go on where it ended; in which direction they did; and where that began.
    neighbours: Option<(Record, Option<bool>, usize)>,
}

/// Gathers a script from records.
#[derive(Debug)]
pub struct ScriptBuilder {
    catalog: Catalog,
    reading: BTreeMap<ApId, Reading>,
    openings: FxHashMap<Opening, BTreeSet<u32>>,
    coordinators: FxHashMap<VarId, MpId>,
    remote: PerOrigin<Mean>,
    content: Mean,
    steps: usize,
    /// Records from then on were not taken.
    full: Option<Nanos>,
    last: Nanos,
}

impl ScriptBuilder {
    /// Begins, for a run with this catalog.
    pub fn new(catalog: Catalog) -> Self {
        Self {
            catalog,
            reading: BTreeMap::new(),
            openings: FxHashMap::default(),
            coordinators: FxHashMap::default(),
            remote: PerOrigin::default(),
            content: Mean::default(),
            steps: 0,
            full: None,
            last: Nanos::ZERO,
        }
    }

    /// Takes a record: of everything (`Filter { everything: true, .. }`), in order of their start.
    pub fn add(&mut self, record: &Record) {
        self.last = self.last.max(record.end());
        if !record.is_access() || self.full.is_some() {
            return;
        }
        if self.steps >= MOST_STEPS {
            self.full = Some(record.start);
            return;
        }
        let reading = self.reading.entry(record.ap).or_default();
        // In a section the content came with the grant; outside it is that of a copy.
        let copied = record.op == Op::Read && record.flags.optimized && record.flags.in_process;
        let copied = copied && !reading.sections.contains(&record.object);
        if !copied && (record.flags.in_process || record.count > 1) {
            reading.in_process(record);
            return;
        }
        reading.step(record);
        if matches!(record.op, Op::Read | Op::Write) && !record.flags.in_process {
            self.remote[record.origin].add(record.duration.0 as Time);
            if record.origin == Origin::Intra {
                self.content.add(record.bytes as Time);
            }
        }
        self.steps += 1;
        if record.op == Op::Barrier {
            let opening = (record.object.var, record.object.index);
            let passed = self.openings.entry(opening).or_default();
            passed.insert(record.ap.0);
            self.coordinators.insert(record.object.var, record.peer);
        }
    }

    /// The script; none if the processes did not say where their time went.
    pub fn finish(mut self, times: &Breakdown) -> Option<Script> {
        let processes = times.by_process();
        let zero = processes.iter().map(began).min()?;
        let last_begin = processes.iter().map(began).max()?;
        let end = processes.iter().map(PhaseTimes::end).max()?;
        let until = self.full.unwrap_or(end).min(end);
        let count = self.catalog.topology.application_processes().len();
        let mut threads = vec![Thread::default(); count];
        for process in &processes {
            let Some(thread) = threads.get_mut(process.ap.index()) else {
                continue;
            };
            let reading = self.reading.remove(&process.ap).unwrap_or_default();
            *thread = reading.thread;
            thread.begin = (began(process) - zero).0 as Time;
        }
        asked::find(&mut threads, times, until);
        for process in &processes {
            if let Some(thread) = threads.get_mut(process.ap.index()) {
                gaps::measure(thread, began(process), process.end().min(until));
            }
        }
        let length = (until - last_begin).0 as Time;
        let whole = (end - last_begin).0.max(1) as Time;
        let memory_processes = self.catalog.topology.memory_processes().len();
        let serving = times
            .processor
            .values()
            .map(|time| time.0 as Time)
            .sum::<Time>();
        let told = times.processor.len() == memory_processes && serving > 0.0;
        think::divide(&mut threads, times);
        polls::find(&mut threads);
        queues::find(&mut threads);
        (length > 0.0).then_some(Script {
            catalog: self.catalog,
            threads,
            openings: self.openings,
            coordinators: self.coordinators,
            remote: self.remote,
            content: self.content,
            serving: told.then_some(serving * length / whole),
            measured: length,
            part: length / whole,
        })
    }
}

/// When a process was there, and had declared what it uses.
fn began(process: &PhaseTimes) -> Nanos {
    process.start + process.spent.time(Component::Other)
}

impl Reading {
    fn step(&mut self, record: &Record) {
        let goes_on = self.goes_on(record);
        let bytes = u32::try_from(record.bytes).unwrap_or(u32::MAX);
        self.thread.steps.push(Step {
            // These three are known when all records are.
            thinking: Thinking::default(),
            ahead: 0,
            asked_ahead: record.flags.posted && matches!(record.op, Op::Read | Op::Write),
            began: record.start,
            took: record.duration.0 as Time,
            remote: record.origin != Origin::Local,
            op: record.op,
            cached: record.flags.optimized,
            in_process: record.flags.in_process,
            stored: record.op == Op::Write && record.bytes > 0,
            atomic: record.flags.atomic,
            takes_from: None,
            object: record.object,
            owner: record.peer,
            bytes,
            goes_on,
            together: bytes,
            version: record.version,
            until: 0,
            phase: self.passed,
        });
        match record.op {
            Op::Barrier => self.passed += 1,
            Op::Acquire => drop(self.sections.insert(record.object)),
            Op::Release => drop(self.sections.remove(&record.object)),
            Op::Read | Op::Write => {}
        }
    }

    /// Whether one call could have made this access and the one before; then those from which it goes on are told so.
    fn goes_on(&mut self, record: &Record) -> bool {
        let at = self.thread.steps.len();
        let before = self.neighbours.take();
        if !neighbours::is_single(record) {
            return false;
        }
        let goes_on = before.and_then(|(before, direction, first)| {
            let upwards = neighbours::upwards(&before, record)?;
            let same = direction.is_none_or(|d| d == upwards);
            let follows = neighbours::follows(&before, record, neighbours::LONGEST_HOP);
            (same && follows).then_some((upwards, first))
        });
        let (direction, first) = goes_on.map_or((None, at), |(d, first)| (Some(d), first));
        self.neighbours = Some((*record, direction, first));
        if let Some(first) = self.thread.steps.get_mut(first) {
            let bytes = u32::try_from(record.bytes).unwrap_or(u32::MAX);
            first.together = first.together.saturating_add(bytes);
        }
        goes_on.is_some()
    }

    /// Of other accesses without a message only one thing matters: a section that wrote has something to publish.
    fn in_process(&mut self, record: &Record) {
        if record.op != Op::Write {
            return;
        }
        let mut steps = self.thread.steps.iter_mut().rev();
        let of_section =
            |s: &&mut Step| s.object == record.object && matches!(s.op, Op::Acquire | Op::Release);
        if let Some(step) = steps.find(of_section) {
            step.stored = true;
        }
    }
}

impl Script {
    /// Length of the recorded run, from the begin of its last process to the end of all.
    pub fn measured(&self) -> Nanos {
        Nanos(self.measured as u64)
    }

    /// The part of the run that the script covers, 0 to 1: a long one is replayed from its begin as far as memory goes.
    pub fn part(&self) -> f64 {
        self.part
    }

    /// The processes of the run.
    pub fn topology(&self) -> &Topology {
        &self.catalog.topology
    }

    /// Operations in it.
    pub fn operations(&self) -> usize {
        self.threads.iter().map(|t| t.steps.len()).sum()
    }

    /// The participants of an opening of a barrier.
    pub(crate) fn participants(&self, var: VarId, generation: u32) -> Option<&BTreeSet<u32>> {
        self.openings.get(&(var, generation))
    }
}
