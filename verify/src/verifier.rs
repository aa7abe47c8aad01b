//! Follows every process through the records of a run: what is ordered before each of its steps.
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

use crate::clocks::Clock;
use crate::found::{Found, Question};
use crate::kind::Kind;
use crate::names::Names;
use crate::object::{Object, SLACK};
use crate::opening::Barrier;
use crate::pairs::Odd;
use crate::process::{Open, Process};
use crate::verdict::{Doubt, Looked, State, Verdict, Violation};

/// Most records that wait for others; beyond, nothing is waited for.
const MOST_WAITING: usize = 1 << 18;

/// What to look for.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Look for data races too.
    pub races: bool,
    /// How far clocks that one event manager corrects may be apart; none: what the stores say of the two clocks, and
    /// 10 ms where they say nothing.
    pub clock_error: Option<Nanos>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            races: true,
            clock_error: None,
        }
    }
}

/// Takes the records of a run, all of them, in order of their start.
#[derive(Debug)]
pub struct Verifier {
    pub(crate) names: Names,
    pub(crate) options: Options,
    pub(crate) found: Found,
    pub(crate) looked: Looked,
    pub(crate) processes: Vec<Process>,
    pub(crate) objects: Vec<Object>,
    slots: FxHashMap<ObjectId, usize>,
    ids: Vec<ObjectId>,
    pub(crate) barriers: FxHashMap<dosmos_proto::VarId, Barrier>,
    /// What comes before the next step of everybody, as of some time ago.
    pub(crate) floor: Clock,
    /// Phases begun since `floor` was worked out.
    pub(crate) phases: usize,
    /// Records that start together: what is written in a section and leaves with its release starts with it.
    together: Vec<Record>,
    /// Processes that wait.
    waiting: Vec<ApId>,
    waiting_records: usize,
    now: Nanos,
    /// Some order was not what the records say.
    pub(crate) disordered: bool,
    /// There are records of owners.
    pub(crate) owners: bool,
    flagged: bool,
}

impl Verifier {
    /// For the records of the run that `catalog` describes.
    pub fn new(catalog: Catalog, options: Options) -> Self {
        let names = Names::new(catalog);
        let n = names.processes();
        let processes = (0..n).map(|i| Process::new(ApId(i as u32), n)).collect();
        Self {
            names,
            options,
            found: Found::default(),
            looked: Looked::default(),
            processes,
            objects: Vec::new(),
            slots: FxHashMap::default(),
            ids: Vec::new(),
            barriers: FxHashMap::default(),
            floor: Clock::new(n),
            phases: 0,
            together: Vec::new(),
            waiting: Vec::new(),
            waiting_records: 0,
            now: Nanos::ZERO,
            disordered: false,
            owners: false,
            flagged: false,
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
        if group.len() > 1 {
            // A section's writes, then its release; who arrives at a barrier has done the rest.
            group.sort_by_key(|r| match r.op {
                Op::Read | Op::Write => 0,
                Op::Acquire | Op::Release => 1,
                Op::Barrier => 2,
            });
        }
        for record in group.drain(..) {
            self.take(record);
        }
        self.together = group;
    }

    fn take(&mut self, record: Record) {
        self.looked.records += 1;
        self.pass_time(record.start);
        self.flagged |= record.flags.sampled;
        if record.ap.index() >= self.processes.len() {
            return;
        }
        let slot = match record.op {
            Op::Barrier => usize::MAX,
            _ => self.slot(record.object),
        };
        if record.op != Op::Barrier && !record.flags.waiting {
            self.at_owner(slot, &record);
        }
        let ends_section = record.op == Op::Release && record.flags.failed;
        if record.flags.waiting || record.side == Side::Owner && !ends_section {
            return;
        }
        if record.side == Side::Requester {
            self.looked.accesses += record.accesses();
        }
        let process = &mut self.processes[record.ap.index()];
        if process.waiting.is_empty() {
            self.step(record.ap, slot, record);
        } else {
            process.waiting.push_back(record);
            self.waiting_records += 1;
        }
    }

    fn slot(&mut self, object: ObjectId) -> usize {
        *self.slots.entry(object).or_insert_with(|| {
            self.objects.push(Object::default());
            self.ids.push(object);
            self.objects.len() - 1
        })
    }

    /// The next step of a process, unless what ended before it must wait: then it waits too.
    fn step(&mut self, ap: ApId, slot: usize, record: Record) {
        if self.settle(ap, record.start) {
            self.begin(slot, record);
            return;
        }
        let process = &mut self.processes[ap.index()];
        process.waiting.push_back(record);
        self.waiting_records += 1;
        self.waiting.push(ap);
    }

    /// What a process did up to `until` counts; false if some of it must wait.
    fn settle(&mut self, ap: ApId, until: Nanos) -> bool {
        loop {
            let open = &self.processes[ap.index()].open;
            let over = open.iter().enumerate();
            let over = over.filter(|(_, o)| o.record.end() <= until);
            let Some((at, next)) = over.min_by_key(|(_, o)| o.record.end()) else {
                return true;
            };
            let next = *next;
            if !self.is_ready(&next) {
                return false;
            }
            self.processes[ap.index()].open.remove(at);
            self.end(next);
        }
    }

    /// Whether what must come before the end of an operation is there, or is waited for no longer.
    fn is_ready(&mut self, open: &Open) -> bool {
        let record = &open.record;
        let there = match record.op {
            // Or somebody's writes outside sections made this version.
            Op::Acquire => record.version <= self.objects[open.slot].released(),
            Op::Barrier => self.have_arrived(record),
            _ => true,
        };
        if there {
            return true;
        }
        let patient = self.now <= record.end() + SLACK && self.waiting_records < MOST_WAITING;
        if !patient && record.op == Op::Acquire {
            let o = &mut self.objects[open.slot];
            o.given_up = o.given_up.max(record.version);
        }
        !patient
    }

    /// It is `now`. Who waits longest goes on first, also after a time in which nothing was recorded: what it does next is what
    /// others wait for.
    fn pass_time(&mut self, now: Nanos) {
        while let Some(end) = self.first_waited_for() {
            let timeout = end + SLACK + Nanos(1);
            if timeout > now {
                break;
            }
            self.now = self.now.max(timeout);
            self.wake();
        }
        self.now = now;
        if !self.waiting.is_empty() {
            self.wake();
        }
    }

    /// Processes that wait go on as far as they can.
    fn wake(&mut self) {
        loop {
            let mut moved = false;
            for ap in mem::take(&mut self.waiting) {
                while let Some(record) = self.processes[ap.index()].waiting.front().copied() {
                    if !self.settle(ap, record.start) {
                        self.waiting.push(ap);
                        break;
                    }
                    moved = true;
                    self.processes[ap.index()].waiting.pop_front();
                    self.waiting_records -= 1;
                    let slot = match record.op {
                        Op::Barrier => usize::MAX,
                        _ => self.slot(record.object),
                    };
                    self.begin(slot, record);
                }
            }
            if !moved || self.waiting.is_empty() {
                return;
            }
        }
    }

    /// The end, of those that processes wait for, that comes first.
    fn first_waited_for(&self) -> Option<Nanos> {
        let waiting = self.waiting.iter().map(|ap| &self.processes[ap.index()]);
        let open = waiting.flat_map(|p| p.open.iter());
        open.map(|o| o.record.end()).min()
    }

    fn begin(&mut self, slot: usize, record: Record) {
        if record.side == Side::Owner {
            return self.ended_by_owner(slot, &record);
        }
        if record.flags.first {
            self.started_again(record.ap);
        }
        if record.flags.failed {
            return self.failed(slot, &record);
        }
        match record.op {
            Op::Read => self.read(slot, &record),
            Op::Write => self.write(slot, &record),
            // It learned nothing by it: nobody else had the object since its last section.
            Op::Acquire if record.flags.in_process => {
                return self.processes[record.ap.index()].enter(record);
            }
            Op::Acquire => {}
            Op::Release => return self.release(slot, &record),
            Op::Barrier => self.arrive(&record),
        }
        let open = Open { slot, record };
        self.processes[record.ap.index()].open.push(open);
    }

    /// A process of the same name as one before begins. What that one wrote and did not publish is nothing that this one
    /// publishes.
    fn started_again(&mut self, ap: ApId) {
        self.processes[ap.index()].unpublished.clear();
        for object in &mut self.objects {
            object.seen.retain(|s| s.ap != ap);
        }
    }

    fn end(&mut self, open: Open) {
        match open.record.op {
            Op::Read => self.has_read(&open),
            Op::Write => self.has_written(open),
            Op::Acquire => self.granted(&open),
            Op::Barrier => self.passed(&open.record),
            Op::Release => {}
        }
    }

    /// A new phase of a process begins.
    pub(crate) fn next_phase(&mut self, ap: ApId) {
        self.processes[ap.index()].next_phase();
        self.phases += 1;
        if self.phases < 256.max(4 * self.processes.len()) {
            return;
        }
        self.phases = 0;
        let mut clocks = self.processes.iter().map(|p| &p.clock);
        if let Some(first) = clocks.next() {
            let mut floor = first.clone();
            clocks.for_each(|c| floor.meet(c));
            self.floor = floor;
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
        for i in 0..self.processes.len() {
            self.settle(ApId(i as u32), Nanos::MAX);
        }
        self.close_barriers();
        self.close_objects();
        self.looked.objects = self.objects.len() as u64;
        let mut lacking = missing(completeness, troubles);
        if live {
            lacking.push(("the run is still recorded".to_owned(), "its end"));
        }
        if self.looked.records == 0 {
            lacking.push(("nothing was recorded".to_owned(), "a run with records"));
        }
        if self.flagged && completeness.sampling >= 1.0 {
            lacking.push((
                "records stand for others that were not recorded".to_owned(),
                "a run that records every access",
            ));
        }
        if !completeness.silent.is_empty() {
            self.found.may_count_anew();
        }
        if self.disordered {
            self.found.disordered();
        }
        let (mut violations, mut doubts) = self.found.finish(&self.names, lacking.is_empty());
        violations.sort_by_key(|v| v.kind);
        let missing = lacking.into_iter().map(|(why, decided_by)| Doubt {
            question: "the whole run".to_owned(),
            why,
            decided_by: decided_by.to_owned(),
            count: 1,
        });
        doubts.splice(0..0, missing);
        Verdict {
            state: state(&violations, &doubts),
            violations,
            doubts,
            looked: self.looked,
        }
    }

    fn close_objects(&mut self) {
        for slot in 0..self.objects.len() {
            let (o, id) = (&self.objects[slot], self.ids[slot]);
            let ordered = o.releases > 0 && self.names.is_inside_in_sections_only(id.var);
            if o.unsure && !ordered {
                self.found.doubt(Question::Elements, id.var);
            }
            if o.unversioned {
                continue;
            }
            let possible = o.releases + o.writes;
            if let Some(read) = o.highest.filter(|r| r.version > possible) {
                let last = o.sections.last().map(|s| s.release);
                let records: Vec<Record> = last.into_iter().chain([read]).collect();
                let (releases, writes) = (o.releases, o.writes);
                self.found
                    .presumed(&self.names, Kind::UnmadeVersion, id, &records, || {
                        format!(
                            "version {} was read; {releases} releases and {writes} writes outside sections made at most version {possible}",
                            read.version
                        )
                    });
            }
            if !self.owners {
                continue;
            }
            let sound = |ap: ApId| !self.processes[ap.index()].failed;
            for odd in o.pairs.odd(sound) {
                self.odd(id, &odd);
            }
        }
    }

    fn odd(&mut self, id: ObjectId, odd: &Odd) {
        let names = &self.names;
        match odd {
            Odd::Differ(a, b) => {
                let (told, served) = if a.side == Side::Owner {
                    (b, a)
                } else {
                    (a, b)
                };
                self.found
                    .presumed(names, Kind::AnswerDiffers, id, &[*served, *told], || {
                        format!(
                            "the owner served version {} and {} was told version {}",
                            served.version,
                            names.ap(told.ap),
                            told.version
                        )
                    });
            }
            Odd::Alone(record, count) => {
                let record = *record;
                let (kind, what) = match record.side {
                    Side::Owner => (
                        Kind::ServedTwice,
                        "served by the owner more often than requested",
                    ),
                    Side::Requester => {
                        (Kind::NeverServed, "successful and not served by the owner")
                    }
                };
                self.found.presumed(names, kind, id, &[record], || {
                    format!("{count} {}(s) of {} {what}", record.op, names.ap(record.ap))
                });
            }
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
