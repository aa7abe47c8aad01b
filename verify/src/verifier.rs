//! Follows every process through the records of a run, and hands each of its steps to the rules that it matters to.
//!
//! Records come in order of their start. A step takes place at its start; what it ends (a grant, an opening, a write) counts
//! for its process before the next step that starts after its end. If what must come before such an end (the release
//! before a grant, the arrivals at a barrier) is not there yet, because clocks differ, the process waits for it, but not
//! for ever.

use std::mem;

use dosmos_proto::{ApId, Nanos, ObjectId};
use dosmos_trace::query::{Catalog, Completeness};
use dosmos_trace::{Op, Record, Side};
use rustc_hash::FxHashMap;

use crate::barriers::Barriers;
use crate::context::Context;
use crate::found::Found;
use crate::locks::Locks;
use crate::names::Names;
use crate::order::Order;
use crate::owners::Owners;
use crate::publications::Publications;
use crate::races::Races;
use crate::reads::Reads;
use crate::records::is_void;
use crate::shadow::Wanted;
use crate::steps::{Step, Steps};
use crate::verdict::{Doubt, Looked, State, Verdict, Violation};

/// What to look for.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Look for data races too.
    pub races: bool,
    /// Of these, also reads outside sections of what others write in sections only: they see what was released last, as a
    /// whole, but nothing orders them.
    pub unlocked_reads: bool,
    /// How far clocks that one event manager corrects may be apart; none: what the stores say of the two clocks, and
    /// 10 ms where they say nothing.
    pub clock_error: Option<Nanos>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            races: true,
            unlocked_reads: true,
            clock_error: None,
        }
    }
}

/// Takes the records of a run, all of them, in order of their start.
///
/// Each group of rules has its own state; this hands them the records.
#[derive(Debug)]
pub struct Verifier {
    context: Context,
    looked: Looked,
    steps: Steps,
    barriers: Barriers,
    locks: Locks,
    publications: Publications,
    reads: Reads,
    races: Races,
    owners: Owners,
    /// The objects that were accessed, and the place of each among them.
    objects: Vec<ObjectId>,
    slots: FxHashMap<ObjectId, usize>,
    /// Records that start together: what is written in a section and leaves with its release starts with it.
    together: Vec<Record>,
    processes: usize,
    /// Some records stand for others.
    sampled: bool,
}

impl Verifier {
    /// For the records of the run that `catalog` describes.
    pub fn new(catalog: Catalog, options: Options) -> Self {
        let names = Names::new(catalog, options.clock_error);
        let processes = names.processes();
        Self {
            context: Context {
                order: Order::new(processes),
                found: Found::new(names),
            },
            looked: Looked::default(),
            steps: Steps::new(processes),
            barriers: Barriers::new(processes),
            locks: Locks::new(processes),
            publications: Publications::new(processes),
            reads: Reads::default(),
            races: Races::new(match options {
                Options { races: false, .. } => Wanted::Nothing,
                _ if processes < 2 => Wanted::Nothing,
                Options { unlocked_reads, .. } if unlocked_reads => Wanted::All,
                _ => Wanted::NotOfReleased,
            }),
            owners: Owners::new(processes),
            objects: Vec::new(),
            slots: FxHashMap::default(),
            together: Vec::new(),
            processes,
            sampled: false,
        }
    }

    /// The next record, of either side, failed or not.
    pub fn add(&mut self, record: &Record) {
        if self
            .together
            .first()
            .is_some_and(|r| r.start != record.start)
        {
            self.take_together();
        }
        self.together.push(*record);
    }

    fn take_together(&mut self) {
        let mut group = mem::take(&mut self.together);
        // A section's writes, then its release; who arrives at a barrier has done the rest.
        group.sort_by_key(|r| match r.op {
            Op::Read | Op::Write => 0,
            Op::Acquire | Op::Release => 1,
            Op::Barrier => 2,
        });
        for record in group.drain(..) {
            self.take(record);
        }
        self.together = group;
    }

    fn take(&mut self, record: Record) {
        self.looked.records += 1;
        self.pass_time(record.start);
        self.sampled |= record.flags.sampled;
        if record.ap.index() >= self.processes {
            return;
        }
        let slot = match record.op {
            Op::Barrier => usize::MAX,
            _ => self.slot(record.object),
        };
        if record.op != Op::Barrier && !record.flags.waiting {
            self.owners.take(slot, &record, &mut self.context.found);
        }
        let ends_section = record.op == Op::Release && record.flags.failed;
        if record.flags.waiting || record.side == Side::Owner && !ends_section {
            return;
        }
        if record.side == Side::Requester {
            self.looked.accesses += record.accesses();
        } else if let Some(version) = self.owners.ended(slot, &record)
            && !self.context.found.names().has_replicas(record.object.var)
        {
            self.locks.granted_from(slot, &record, version);
        }
        let step = Step { slot, record };
        // What ended before it must count, or else it waits too.
        if !self.steps.is_waiting(record.ap) && self.settle(record.ap, record.start) {
            self.begin(step);
        } else {
            self.steps.wait(step);
        }
    }

    fn slot(&mut self, object: ObjectId) -> usize {
        *self.slots.entry(object).or_insert_with(|| {
            self.locks.add_object();
            self.publications.add_object();
            self.reads.add_object();
            self.races.add_object();
            self.owners.add_object();
            self.objects.push(object);
            self.objects.len() - 1
        })
    }

    /// What a process did up to `until` counts; false if some of it must wait.
    fn settle(&mut self, ap: ApId, until: Nanos) -> bool {
        while let Some((at, next)) = self.steps.over(ap, until) {
            if !self.is_ready(&next) {
                return false;
            }
            self.steps.close(ap, at);
            self.end(&next);
        }
        true
    }

    /// Whether what must come before the end of an operation is there, or is waited for no longer.
    fn is_ready(&mut self, step: &Step) -> bool {
        let there = match step.record.op {
            Op::Acquire => self.is_made(step),
            Op::Barrier => self.barriers.have_arrived(&step.record),
            _ => true,
        };
        if there {
            return true;
        }
        let patient = self.steps.is_patient(&step.record);
        if !patient && step.record.op == Op::Acquire {
            self.locks.give_up(step.slot, &step.record);
        }
        !patient
    }

    /// Whether all that can have made what a grant starts from is there: the release that did, or as many versions as it is the
    /// last of. What was published outside sections may be counted too early, so no release before it may wait.
    fn is_made(&mut self, step: &Step) -> bool {
        let (slot, grant) = (step.slot, &step.record);
        if self.locks.is_released(slot, grant) {
            return true;
        }
        let made = self.locks.releases(slot) + self.publications.all_published(slot);
        if grant.version > made || self.steps.waits_before(step) {
            return false;
        }
        let published = self.publications.published(slot, grant);
        self.locks.is_accounted_for(slot, grant, published)
    }

    /// It is `now`. Who waits longest goes on first, also after a time in which nothing was recorded: what it does next is what
    /// others wait for.
    fn pass_time(&mut self, now: Nanos) {
        while self.steps.pass_time(now) {
            self.wake();
        }
        self.wake();
    }

    /// Processes that wait go on as far as they can.
    fn wake(&mut self) {
        loop {
            let mut moved = false;
            for ap in self.steps.take_waiting() {
                while let Some(step) = self.steps.first_waiting(ap) {
                    if !self.settle(ap, step.record.start) {
                        self.steps.wait_again(ap);
                        break;
                    }
                    moved = true;
                    self.steps.go_on(ap);
                    self.begin(step);
                }
            }
            if !moved {
                return;
            }
        }
    }

    /// The next step of a process, which waits for nothing.
    fn begin(&mut self, step: Step) {
        let (slot, record) = (step.slot, &step.record);
        if record.side == Side::Owner {
            if self.context.found.names().has_replicas(record.object.var) {
                return self.locks.a_grant_ended(record);
            }
            let steps = &mut self.steps;
            let pending = |of: Option<u64>| steps.take_back_grant(slot, record, of);
            return self.locks.ended_by_owner(slot, record, pending);
        }
        if record.flags.first {
            self.publications.started_again(record.ap);
            self.reads.started_again(record.ap);
            self.context.order.starts_again(record.ap);
        }
        if record.flags.failed {
            return self.failed(&step);
        }
        match record.op {
            Op::Read => self.read(&step),
            Op::Write => self.write(&step),
            Op::Acquire if record.flags.in_process => {
                return self.locks.begin_in_process(&step, &mut self.context.order);
            }
            Op::Acquire => {}
            Op::Release => return self.release(&step),
            Op::Barrier => self.arrive(record),
        }
        self.steps.open(step);
    }

    fn read(&mut self, step: &Step) {
        let (slot, read) = (step.slot, &step.record);
        self.looked.reads += 1;
        let last_of_copy = self.reads.read(slot, read);
        let in_section = self.locks.read(slot, read, &mut self.context.found);
        if !in_section && !self.locks.is_unversioned(slot) {
            let (publications, context) = (&self.publications, &mut self.context);
            self.reads.check(step, last_of_copy, publications, context);
        }
        self.races.access(step, in_section, &mut self.context);
    }

    fn write(&mut self, step: &Step) {
        let (slot, write) = (step.slot, &step.record);
        let in_section = self.locks.write(slot, write, &mut self.context.found);
        if !in_section {
            self.publications.write(slot, write);
        }
        self.races.access(step, in_section, &mut self.context);
    }

    fn release(&mut self, step: &Step) {
        self.looked.sections += step.record.accesses();
        let last_read = self.reads.last_read(step.slot, step.record.ap);
        let (publications, context) = (&mut self.publications, &mut self.context);
        self.locks.release(step, last_read, publications, context);
    }

    /// A process comes to a barrier: everything that it did before is published.
    fn arrive(&mut self, record: &Record) {
        let Context { order, found } = &self.context;
        self.publications
            .publish_writes(record, found.names(), order);
        let last = self.barriers.arrive(record, &mut self.context);
        self.looked.barriers += u64::from(last);
    }

    fn failed(&mut self, step: &Step) {
        let (record, found) = (&step.record, &mut self.context.found);
        self.owners.failed(record.ap);
        self.publications.failed(step, found);
        match record.op {
            Op::Release => self.locks.release_failed(record),
            Op::Acquire => self.locks.acquire_failed(step.slot, record),
            Op::Barrier => self.barriers.failed(record, found.names()),
            Op::Read | Op::Write => {}
        }
    }

    /// An operation is over before what its process does next.
    fn end(&mut self, step: &Step) {
        let (slot, record, context) = (step.slot, &step.record, &mut self.context);
        match record.op {
            Op::Read => self.reads.has_read(slot, record),
            Op::Write => {
                let found = &mut context.found;
                if !is_void(record) && !self.locks.was_in_section(slot, record, found.names()) {
                    self.publications.has_written(step, found);
                    self.reads.has_written(slot, record);
                }
            }
            Op::Acquire => self.locks.granted(step, &self.publications, context),
            Op::Barrier => self.barriers.passed(record, &mut context.order),
            Op::Release => {}
        }
    }

    /// What is said of the run, of which `completeness` says what its records lack and `troubles` why else they are not
    /// those of a whole run.
    pub fn finish(
        mut self,
        completeness: &Completeness,
        live: bool,
        troubles: &[String],
    ) -> Verdict {
        self.take_together();
        // Nothing more comes: who waits longest goes on first.
        self.pass_time(Nanos::MAX);
        for i in 0..self.processes {
            self.settle(ApId(i as u32), Nanos::MAX);
        }
        let mut found = self.context.found;
        let (ids, locks) = (&self.objects, &self.locks);
        self.barriers.close(&mut found);
        self.races.close(ids, &mut found);
        self.reads.close(ids, locks, &self.publications, &mut found);
        self.owners.close(ids, locks, &mut found);
        self.looked.objects = ids.len() as u64;
        let mut lacking = missing(completeness, troubles);
        if live {
            lacking.push(("the run is still recorded".to_owned(), "its end"));
        }
        if self.looked.records == 0 {
            lacking.push(("nothing was recorded".to_owned(), "a run with records"));
        }
        if self.sampled && completeness.sampling >= 1.0 {
            lacking.push((
                "records stand for others that were not recorded".to_owned(),
                "a run that records every access",
            ));
        }
        if !completeness.silent.is_empty() && self.barriers.may_be_counted_anew() {
            found.may_count_anew();
        }
        let (mut violations, mut doubts) = found.finish(lacking.is_empty());
        violations.sort_by_key(|v| v.kind);
        let missing = lacking.into_iter().map(|(why, decided_by)| Doubt {
            question: "the whole run".to_owned(),
            why,
            decided_by: decided_by.to_owned(),
            count: 1,
            of_races: true,
        });
        doubts.splice(0..0, missing);
        Verdict {
            state: state(&violations, &doubts),
            violations,
            doubts,
            looked: self.looked,
        }
    }
}

fn state(violations: &[Violation], doubts: &[Doubt]) -> State {
    match (violations.is_empty(), doubts.is_empty()) {
        (false, _) => State::Violated,
        (true, false) => State::Undecided,
        (true, true) => State::Consistent,
    }
}

/// Why the records are not all there are, and what would be.
fn missing(completeness: &Completeness, troubles: &[String]) -> Vec<(String, &'static str)> {
    let mut lacking: Vec<(String, &'static str)> = Vec::new();
    let c = completeness;
    let incomplete = !c.is_complete();
    let decided_by = match () {
        () if !c.missing.is_empty() => "an answer of the event managers that are missing",
        () if !c.missing_stores.is_empty() => {
            "the stores that are missing (--store, or --run-dir for all)"
        }
        () if c.dropped > 0 => {
            "a run with a larger buffer (`buffer_bytes`), or with `overflow = block`"
        }
        () if c.removed > 0 => "a run without retention",
        () if c.sampling < 1.0 || c.unselected > 0 || !c.selections.is_empty() => {
            "a run that records every access (`mode = events`, no selection, no sampling)"
        }
        () if !c.silent.is_empty() => "a run whose processes all end in order",
        () => "an undamaged copy of the store",
    };
    if incomplete {
        lacking.extend(c.reasons().into_iter().map(|why| (why, decided_by)));
    }
    lacking.extend(
        troubles
            .iter()
            .map(|why| (why.clone(), "a run that ends in order")),
    );
    lacking
}
