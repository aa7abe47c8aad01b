//! The builder: the order of events, and what they do to the chains of processes.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use dosmos_proto::{ApId, GroupId, Nanos, ObjectId};
use dosmos_trace::query::Catalog;
use dosmos_trace::record::{Op, Origin, Record, Side};
use rustc_hash::FxHashMap;

use super::barriers::{Barriers, Opening};
use super::chains::{Chains, Sums};
use super::delays::{At, Delays, Key};
use super::locks::{Locks, Release};
use super::process::Process;
use super::tally::Doing;

/// What happens at the end of an operation. At the same instant, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// An object is released.
    Released(ObjectId),
    /// It is granted to a process that waited.
    Granted(ObjectId, usize),
    /// A process leaves a barrier.
    Left(Opening, usize),
}

/// Gathers the critical path and the delays. Feed it every record of the window, in order of start.
#[derive(Clone, Debug)]
pub struct PathBuilder {
    /// Begin of the first record.
    begin: Option<Nanos>,
    processes: Vec<Process>,
    numbers: FxHashMap<ApId, usize>,
    /// For each process the groups whose barriers it passes.
    groups: FxHashMap<ApId, Vec<Option<GroupId>>>,
    chains: Chains,
    locks: Locks,
    barriers: Barriers,
    delays: Delays,
    events: BinaryHeap<Reverse<(Nanos, Event)>>,
    /// Waits for locks of which nobody knows who held them, nanoseconds.
    unexplained: u64,
}

/// What was gathered.
#[derive(Debug)]
pub(super) struct Gathered<'a> {
    /// What the longest chain consists of, and its length.
    pub(super) path: Sums,
    pub(super) length: u64,
    pub(super) delays: &'a Delays,
    /// By number.
    pub(super) processes: Vec<ApId>,
    pub(super) unexplained: u64,
}

impl PathBuilder {
    /// Begins, for a run with these processes and barriers.
    pub fn new(catalog: &Catalog) -> Self {
        let mut groups: FxHashMap<ApId, Vec<Option<GroupId>>> = FxHashMap::default();
        for barrier in &catalog.barriers {
            for ap in catalog.topology.aps_in(barrier.group) {
                let of_it = groups.entry(ap).or_default();
                if !of_it.contains(&barrier.group) {
                    of_it.push(barrier.group);
                }
            }
        }
        Self {
            begin: None,
            processes: Vec::new(),
            numbers: FxHashMap::default(),
            groups,
            chains: Chains::default(),
            locks: Locks::default(),
            barriers: Barriers::new(&catalog.barriers),
            delays: Delays::default(),
            events: BinaryHeap::new(),
            unexplained: 0,
        }
    }

    /// Takes one record into account.
    pub fn add(&mut self, record: &Record) {
        if record.side != Side::Requester || record.flags.waiting {
            return;
        }
        while let Some(Reverse((at, event))) = self.events.peek().copied()
            && at <= record.start
        {
            self.events.pop();
            self.happens(at, event);
        }
        let number = self.number(record);
        let process = &mut self.processes[number];
        process.last = process.last.max(record.end());
        // What a process does in itself takes no time that anybody measured.
        if record.flags.in_process {
            return;
        }
        process.until(record.start);
        let end = record.start + record.spent();
        let variable = record.object.var;
        let one = record.is_access() && record.count <= 1;
        match record.op {
            Op::Read | Op::Write if record.origin == Origin::Local => {
                process.begins(Doing::Access(variable), end);
            }
            Op::Read | Op::Write => process.begins(Doing::Remote(variable), end),
            Op::Barrier => {
                process.begins(Doing::Barrier(variable), end);
                if one {
                    self.arrives(number, record);
                }
            }
            Op::Acquire => {
                process.begins(Doing::Lock(variable), end);
                if one {
                    self.acquires(number, record);
                }
            }
            Op::Release if one => self.releases(number, record),
            Op::Release => process.begins(Doing::Lock(variable), end),
        }
    }

    fn number(&mut self, record: &Record) -> usize {
        let begin = *self.begin.get_or_insert(record.start);
        if let Some(number) = self.numbers.get(&record.ap) {
            return *number;
        }
        let number = self.processes.len();
        let mut process = Process::new(record.ap, self.chains.begin(), begin);
        let groups = self.groups.get(&record.ap).into_iter().flatten();
        groups.for_each(|group| process.begin_phase(*group, begin));
        self.processes.push(process);
        self.numbers.insert(record.ap, number);
        number
    }

    fn later(&mut self, at: Nanos, event: Event) {
        self.events.push(Reverse((at, event)));
    }

    fn happens(&mut self, now: Nanos, event: Event) {
        match event {
            Event::Released(object) => self.released(object, now),
            Event::Granted(object, number) => self.granted(object, number, now),
            Event::Left(opening, number) => self.leaves(opening, number, now),
        }
    }

    fn acquires(&mut self, number: usize, record: &Record) {
        let object = record.object;
        self.processes[number].begin_section(object, record.end());
        if record.wait.0 > 0 {
            if let Some(end) = self.locks.waits(number, record) {
                self.later(end, Event::Released(object));
            }
            self.later(record.end(), Event::Granted(object, number));
        }
    }

    fn releases(&mut self, number: usize, record: &Record) {
        let (object, var) = (record.object, record.object.var);
        let process = &mut self.processes[number];
        let acknowledged = 2 * record.wait.0 > record.duration.0;
        let releasing = match acknowledged {
            true => Doing::Copies(var),
            false => Doing::Lock(var),
        };
        let section = process.end_section(object);
        let longest = section.and_then(|did| did.longest());
        let because = match longest {
            Some((doing, time)) if time >= record.duration.0 => doing,
            _ => releasing,
        };
        process.begins(releasing, record.end());
        if self.locks.releases(number, record, because) {
            self.later(record.end(), Event::Released(object));
        }
        let key = Key {
            process: None,
            at: At::Copies(var),
            because: Doing::Copies(var),
        };
        self.delays.add(key, record.wait.0, std::iter::once(number));
    }

    /// Those that wait have waited for the one that releases; the next will go on with its chain.
    fn released(&mut self, object: ObjectId, now: Nanos) {
        if let Some(release) = self.locks.released(object, now) {
            self.hands_over(object, release, now);
        }
    }

    fn hands_over(&mut self, object: ObjectId, release: Release, now: Nanos) {
        self.charge(object, (release.by, release.because), now);
        let holder = &mut self.processes[release.by];
        holder.until(now);
        let (chain, at) = (holder.share(&mut self.chains), holder.known);
        if let Some(old) = self.locks.next_follows(object, release.by, (chain, at)) {
            self.chains.end(old);
        }
    }

    fn charge(&mut self, object: ObjectId, (by, because): (usize, Doing), now: Nanos) {
        let key = Key {
            process: Some(self.processes[by].ap),
            at: At::Lock(object),
            because,
        };
        let time = self.locks.charge(object, by, now);
        self.delays.add(key, time, self.locks.waiting(object, by));
    }

    fn granted(&mut self, object: ObjectId, number: usize, now: Nanos) {
        // The grant may be known before the holder knows that its release is over.
        if let Some(release) = self.locks.released_early(object, now) {
            self.hands_over(object, release, now);
        }
        let (wait, follows) = self.locks.granted(object, number);
        let mostly = wait.mostly.map(|(by, time)| (self.processes[by].ap, time));
        self.processes[number].waited_for(object, mostly, wait.explained);
        match follows {
            Some((by, followed)) if by != number => {
                let doing = Doing::Lock(object.var);
                self.processes[number].follow(&mut self.chains, followed, doing, now);
            }
            Some((_, (chain, _))) => self.chains.end(chain),
            None => self.unexplained += wait.left,
        }
    }

    fn arrives(&mut self, number: usize, record: &Record) {
        let opening = (record.object.var, record.object.index);
        self.barriers.arrives(opening, number, record.start);
        self.later(record.end(), Event::Left(opening, number));
    }

    fn leaves(&mut self, opening: Opening, number: usize, now: Nanos) {
        let (var, _) = opening;
        let group = self.barriers.group(var);
        if let Some(arrived) = self.barriers.opens(opening) {
            self.opens(opening, &arrived, group, now);
        }
        let Some(opened) = self.barriers.leaves(opening) else {
            return;
        };
        if number == opened.last {
            self.processes[number].until(now);
        } else {
            let last = self.processes[opened.last].ap;
            let (is, was) = (Doing::Barrier(var), Doing::Late(var, Some(last)));
            let process = &mut self.processes[number];
            process.until_as(now, is, was);
            let (chain, at) = opened.chain;
            let followed = (self.chains.share(chain), at);
            process.follow(&mut self.chains, followed, is, now);
        }
        self.processes[number].begin_phase(group, now);
        if opened.was_the_last {
            self.chains.end(opened.chain.0);
        }
    }

    /// Everybody goes on with the chain of the one that arrived last; what the others waited is charged to it.
    fn opens(
        &mut self,
        opening: Opening,
        arrived: &[(usize, Nanos)],
        group: Option<GroupId>,
        now: Nanos,
    ) {
        let Some(&(last, came)) = arrived.iter().max_by_key(|(_, at)| *at) else {
            return;
        };
        let phases = arrived.iter().filter(|(n, _)| *n != last);
        let phases: Vec<_> = phases
            .filter_map(|(n, _)| self.processes[*n].phase(group))
            .collect();
        let phase = self.processes[last].phase(group);
        let because = phase.and_then(|did| did.beyond(&phases));
        let waits = arrived.iter().filter(|(n, at)| *n != last && *at < came);
        let time = waits.clone().map(|(_, at)| (came - *at).0).sum();
        let key = Key {
            process: Some(self.processes[last].ap),
            at: At::Barrier(opening.0),
            because: because.unwrap_or(Doing::Other),
        };
        self.delays.add(key, time, waits.map(|(n, _)| *n));
        let process = &mut self.processes[last];
        process.until(now);
        let at = process.known;
        let chain = process.share(&mut self.chains);
        self.barriers.opened(opening, last, (chain, at));
    }

    /// What was gathered, of a run whose processes ended at `ends`, or with their last records.
    pub(super) fn gather(&mut self, ends: &FxHashMap<ApId, Nanos>) -> Option<Gathered<'_>> {
        while let Some(Reverse((at, event))) = self.events.pop() {
            self.happens(at, event);
        }
        for process in &mut self.processes {
            let end = ends.get(&process.ap).copied().unwrap_or_default();
            process.until(process.last.max(end));
        }
        let begin = self.begin?;
        let last = self.processes.iter_mut().max_by_key(|p| p.known)?;
        let length = (last.known - begin).0;
        let chain = last.share(&mut self.chains);
        let path = self.chains.sums(chain);
        self.chains.end(chain);
        Some(Gathered {
            path,
            length,
            delays: &self.delays,
            processes: self.processes.iter().map(|p| p.ap).collect(),
            unexplained: self.unexplained,
        })
    }
}
