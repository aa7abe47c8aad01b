//! A simulated cluster: application processes run scripts of steps against owners, copies, queues for
//! locks and barriers, with latencies and noise, and everything they do is recorded as memory processes
//! record it.
//!
//! Guarantees: deterministic for a seed; knows nothing of the detectors. What it knows and a monitor does
//! not (how long each object was held, who was blocked for good) is in [`Outcome`].

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, VecDeque};

use dosmos_proto::{
    ApId, Component, CopyPolicy, MpId, Nanos, ObjectId, PhaseTimes, Topology, VarId, Variable,
};
use dosmos_trace::query::Breakdown;
use dosmos_trace::record::{Flags, Op, Origin, Record, Side};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

/// What a process does next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Step {
    /// Compute for this many nanoseconds.
    Compute(f64),
    /// Begin this much later.
    Late(f64),
    /// Be without a processor for as many.
    Stand(f64),
    Read(ObjectId, (u32, u32)),
    /// Read them again and again until the object has this version.
    Await(ObjectId, (u32, u32), u64),
    Write(ObjectId, (u32, u32)),
    Acquire(ObjectId),
    Release(ObjectId),
    /// Wait for all.
    Barrier,
}

/// How fast things are, and how even.
#[derive(Clone, Copy, Debug)]
pub(super) struct Speed {
    /// Mean round trip by origin, nanoseconds.
    pub(super) trip: [f64; 3],
    /// Standard deviation of the logarithm of a round trip, and of a computation.
    pub(super) noise: (f64, f64),
    /// Chance that a computation is interrupted, and for how long at most, nanoseconds.
    pub(super) hiccup: (f64, f64),
    /// Largest error of a memory process's clock, nanoseconds.
    pub(super) skew: u64,
}

/// The number all barriers have.
pub(super) const BARRIER: VarId = VarId(1 << 31);

/// When a run starts, nanoseconds: not at zero, so that clocks may err both ways.
pub(super) const START: u64 = 1_000_000_000;

#[derive(Debug, Default)]
struct Shared {
    version: u64,
    holder: Option<usize>,
    /// Who waits, since when it asked, and since when its request is at the owner.
    queue: VecDeque<(usize, u64, u64)>,
    copies: BTreeSet<MpId>,
    written: bool,
    granted: u64,
    held: u64,
    last: Option<usize>,
    turns: u64,
    changes: u64,
}

impl Shared {
    fn grant(&mut self, ap: usize, at: u64) {
        self.holder = Some(ap);
        self.granted = at;
        self.turns += 1;
        self.changes += u64::from(self.last.replace(ap) != Some(ap));
    }
}

/// Where the time of a process went, phase by phase.
#[derive(Debug)]
struct Clocked {
    now: PhaseTimes,
    phases: Vec<PhaseTimes>,
}

impl Clocked {
    fn new(ap: u32) -> Self {
        let now = PhaseTimes {
            ap: ApId(ap),
            start: Nanos(START),
            ..PhaseTimes::default()
        };
        Self {
            now,
            phases: Vec::new(),
        }
    }

    fn add(&mut self, to: Component, time: u64) {
        self.now.spent.add(to, Nanos(time), 0);
    }

    /// A call that ends now.
    fn calls(&mut self, record: &Record, now: u64) {
        let component = match (record.op, record.origin) {
            (Op::Barrier, _) => Component::Barrier,
            (Op::Acquire | Op::Release, _) => Component::Lock,
            (Op::Read | Op::Write, Origin::Local) => Component::Local,
            (Op::Read | Op::Write, _) => Component::Fault,
        };
        self.now.spent.add(component, record.duration, 1);
        if record.op == Op::Barrier {
            self.ends(now);
        }
    }

    /// The phase ends, and the next one begins.
    fn ends(&mut self, now: u64) {
        self.now.wall = Nanos(now - self.now.start.0);
        self.phases.push(self.now);
        self.now = PhaseTimes {
            ap: self.now.ap,
            phase: self.now.phase + 1,
            start: Nanos(now),
            ..PhaseTimes::default()
        };
    }
}

/// What became of a run.
#[derive(Debug)]
pub(super) struct Outcome {
    /// In order of their start.
    pub(super) records: Vec<Record>,
    /// When each process had done its script, nanoseconds; none: it never did.
    pub(super) finished: Vec<Option<u64>>,
    /// Time each object was held, nanoseconds.
    pub(super) held: BTreeMap<ObjectId, u64>,
    /// How often each object was granted, and how often to another process than before.
    pub(super) turns: BTreeMap<ObjectId, (u64, u64)>,
    /// Nanoseconds from start to the last event.
    pub(super) length: u64,
    /// Where the time of each process went, as the processes say it.
    pub(super) times: Breakdown,
}

pub(super) struct Machine<'a> {
    topology: &'a Topology,
    variables: BTreeMap<VarId, &'a Variable>,
    speed: Speed,
    random: StdRng,
    scripts: Vec<VecDeque<Step>>,
    objects: BTreeMap<ObjectId, Shared>,
    dirty: Vec<BTreeSet<ObjectId>>,
    /// When each arrived and had published its writes.
    at_barrier: Vec<Option<(u64, u64)>>,
    generation: u32,
    next: BinaryHeap<Reverse<(u64, usize)>>,
    finished: Vec<Option<u64>>,
    records: Vec<Record>,
    skews: Vec<u64>,
    spent: Vec<Clocked>,
}

impl<'a> Machine<'a> {
    pub(super) fn new(
        topology: &'a Topology,
        variables: &'a [Variable],
        speed: Speed,
        scripts: Vec<VecDeque<Step>>,
        seed: u64,
    ) -> Self {
        let n = scripts.len();
        let mut random = StdRng::seed_from_u64(seed);
        // Link processes record nothing here.
        let mps = topology.memory_processes().iter().filter(|mp| !mp.link);
        let skews = mps.map(|_| random.random_range(0..=speed.skew)).collect();
        Self {
            topology,
            variables: variables.iter().map(|v| (v.id(), v)).collect(),
            speed,
            random,
            scripts,
            objects: BTreeMap::new(),
            dirty: vec![BTreeSet::new(); n],
            at_barrier: vec![None; n],
            generation: 0,
            next: (0..n).map(|ap| Reverse((START, ap))).collect(),
            finished: vec![None; n],
            records: Vec::new(),
            skews,
            spent: (0..n).map(|ap| Clocked::new(ap as u32)).collect(),
        }
    }

    /// Runs every script to its end, or until nobody can go on.
    pub(super) fn run(mut self) -> Outcome {
        let mut last = START;
        while let Some(Reverse((now, ap))) = self.next.pop() {
            last = last.max(now);
            match self.scripts[ap].pop_front() {
                Some(step) => self.step(ap, now, step),
                None => {
                    self.spent[ap].ends(now);
                    self.finished[ap] = Some(now);
                }
            }
        }
        self.records.sort_by_key(|r| r.start);
        Outcome {
            records: self.records,
            finished: self.finished,
            held: self.objects.iter().map(|(id, o)| (*id, o.held)).collect(),
            turns: self
                .objects
                .iter()
                .map(|(id, o)| (*id, (o.turns, o.changes)))
                .collect(),
            length: last - START,
            times: Breakdown {
                phases: self.spent.into_iter().flat_map(|s| s.phases).collect(),
                ..Breakdown::default()
            },
        }
    }

    fn step(&mut self, ap: usize, now: u64, step: Step) {
        match step {
            Step::Compute(time) => {
                let mut time = time * self.noise(self.speed.noise.1);
                if self.random.random_bool(self.speed.hiccup.0) {
                    let without = self.random.random_range(0.0..=self.speed.hiccup.1);
                    self.spent[ap].add(Component::Service, without as u64);
                    time += without;
                    self.spent[ap].add(Component::Busy, (time - without) as u64);
                } else {
                    self.spent[ap].add(Component::Busy, time as u64);
                }
                self.resume(ap, now + time as u64);
            }
            Step::Late(time) => {
                self.spent[ap].now.start = Nanos(now + time as u64);
                self.resume(ap, now + time as u64);
            }
            Step::Stand(time) => {
                self.spent[ap].add(Component::Service, time as u64);
                self.resume(ap, now + time as u64);
            }
            Step::Read(object, range) => self.read(ap, now, object, range),
            Step::Await(object, range, version) => {
                if self.shared(object).version < version {
                    self.scripts[ap].push_front(step);
                }
                self.read(ap, now, object, range);
            }
            Step::Write(object, range) => self.write(ap, now, object, range),
            Step::Acquire(object) => self.acquire(ap, now, object),
            Step::Release(object) => self.release(ap, now, object),
            Step::Barrier => self.barrier(ap, now),
        }
    }

    fn resume(&mut self, ap: usize, at: u64) {
        self.next.push(Reverse((at, ap)));
    }

    /// A factor around 1.
    fn noise(&mut self, sigma: f64) -> f64 {
        let (a, b): (f64, f64) = (self.random.random(), self.random.random());
        let normal = (-2.0 * (1.0 - a).ln()).sqrt() * (std::f64::consts::TAU * b).cos();
        (sigma * normal).exp()
    }

    fn trip(&mut self, origin: Origin) -> u64 {
        let mean = self.speed.trip[origin as usize - 1];
        (mean * self.noise(self.speed.noise.0)) as u64
    }

    fn mp_of(&self, ap: usize) -> MpId {
        self.topology.application_processes()[ap].memory_process
    }

    fn owner(&self, object: ObjectId) -> MpId {
        self.variables[&object.var].owner(object.index)
    }

    fn origin(&self, from: MpId, to: MpId) -> Origin {
        let group = |mp: MpId| self.topology.memory_processes()[mp.index()].group;
        match (from == to, group(from) == group(to)) {
            (true, _) => Origin::Local,
            (_, true) => Origin::Intra,
            _ => Origin::Inter,
        }
    }

    fn shared(&mut self, object: ObjectId) -> &mut Shared {
        self.objects.entry(object).or_default()
    }

    /// The record of an access that began at `start` and ends at `end`; the caller changes what differs.
    fn record(&self, ap: usize, op: Op, object: ObjectId, (start, end): (u64, u64)) -> Record {
        let mp = self.mp_of(ap);
        let owner = match op {
            Op::Barrier => MpId(0),
            _ => self.owner(object),
        };
        let origin = self.origin(mp, owner);
        Record {
            start: Nanos(start + self.skews[mp.index()]),
            duration: Nanos(end - start),
            wait: Nanos(0),
            service: Nanos(0),
            op,
            side: Side::Requester,
            origin,
            flags: Flags::default(),
            object,
            ap: ApId(ap as u32),
            mp,
            peer: owner,
            count: 1,
            bytes: 8,
            version: self.objects.get(&object).map_or(0, |o| o.version),
            range: (0, 0),
        }
    }

    /// The access is over: it is recorded, also by the owner if that is another process.
    fn done(&mut self, ap: usize, record: Record) {
        if record.origin != Origin::Local && record.op != Op::Barrier {
            let mut theirs = record;
            theirs.side = Side::Owner;
            theirs.start = record.start + Nanos(record.duration.0 / 2);
            theirs.duration = Nanos(record.duration.0 / 4);
            theirs.wait = Nanos(0);
            self.records.push(theirs);
        }
        let skew = self.skews[record.mp.index()];
        let end = record.end().0 - skew;
        self.spent[ap].calls(&record, end);
        self.resume(ap, end);
        self.records.push(record);
    }

    fn read(&mut self, ap: usize, now: u64, object: ObjectId, range: (u32, u32)) {
        let (mp, owner) = (self.mp_of(ap), self.owner(object));
        let origin = self.origin(mp, owner);
        let copied = self.shared(object).copies.contains(&mp);
        let trip = self.trip(if copied { Origin::Local } else { origin });
        let mut record = self.record(ap, Op::Read, object, (now, now + trip));
        record.range = range;
        if copied {
            record.origin = Origin::Local;
            record.flags.optimized = true;
        } else if origin == Origin::Intra {
            self.shared(object).copies.insert(mp);
        }
        self.done(ap, record);
    }

    fn write(&mut self, ap: usize, now: u64, object: ObjectId, range: (u32, u32)) {
        let mp = self.mp_of(ap);
        let origin = self.origin(mp, self.owner(object));
        let trip = self.trip(origin);
        let shared = self.shared(object);
        shared.copies.remove(&mp);
        if shared.holder == Some(ap) {
            shared.written = true;
        } else {
            self.dirty[ap].insert(object);
        }
        let mut record = self.record(ap, Op::Write, object, (now, now + trip));
        record.range = range;
        self.done(ap, record);
    }

    fn acquire(&mut self, ap: usize, now: u64, object: ObjectId) {
        let origin = self.origin(self.mp_of(ap), self.owner(object));
        let trip = self.trip(origin);
        let arrives = now + trip / 2;
        let shared = self.shared(object);
        if shared.holder.is_none() {
            shared.grant(ap, arrives);
            let record = self.record(ap, Op::Acquire, object, (now, now + trip));
            self.done(ap, record);
            return;
        }
        shared.queue.push_back((ap, now, arrives));
        let owner = self.owner(object);
        let mut notice = self.record(ap, Op::Acquire, object, (arrives, arrives));
        notice.start = Nanos(arrives + self.skews[owner.index()]);
        notice.side = Side::Owner;
        notice.flags.waiting = true;
        self.records.push(notice);
    }

    fn release(&mut self, ap: usize, now: u64, object: ObjectId) {
        let origin = self.origin(self.mp_of(ap), self.owner(object));
        let flushed = self.flush(ap, now);
        let trip = self.trip(origin);
        let at_owner = flushed + trip / 2;
        // Every release makes a version; only one that changed something is told to the copies.
        let told = match std::mem::take(&mut self.shared(object).written) {
            true => self.tell(object),
            false => {
                self.shared(object).version += 1;
                0
            }
        };
        let free = at_owner + told;
        let shared = self.shared(object);
        shared.held += free.saturating_sub(shared.granted);
        shared.holder = None;
        let next = shared.queue.pop_front();
        let mut record = self.record(ap, Op::Release, object, (now, free + trip / 2));
        record.wait = Nanos(told + (flushed - now));
        self.done(ap, record);
        if let Some((next, asked, arrived)) = next {
            let back = self.trip(self.origin(self.mp_of(next), self.owner(object))) / 2;
            let granted = free.max(arrived);
            let shared = self.shared(object);
            shared.grant(next, granted);
            let mut record = self.record(next, Op::Acquire, object, (asked, granted + back));
            record.wait = Nanos(granted - arrived);
            self.done(next, record);
        }
    }

    /// A new version: the copies are dropped or renewed. Nanoseconds until all have acknowledged.
    fn tell(&mut self, object: ObjectId) -> u64 {
        let policy = self.variables[&object.var].spec().policy();
        let shared = self.shared(object);
        shared.version += 1;
        let told = shared.copies.len();
        if policy == CopyPolicy::Invalidate {
            shared.copies.clear();
        }
        (0..told)
            .map(|_| self.trip(Origin::Intra))
            .max()
            .unwrap_or(0)
    }

    /// What was written outside sections is published. The instant at which it has been.
    fn flush(&mut self, ap: usize, now: u64) -> u64 {
        let mut done = now;
        for object in std::mem::take(&mut self.dirty[ap]) {
            let origin = self.origin(self.mp_of(ap), self.owner(object));
            let way = match origin {
                Origin::Local => 0,
                far => self.trip(far),
            };
            done = done.max(now + way + self.tell(object));
        }
        done
    }

    fn barrier(&mut self, ap: usize, now: u64) {
        let published = self.flush(ap, now);
        self.at_barrier[ap] = Some((now, published));
        if self.at_barrier.iter().any(Option::is_none) {
            return;
        }
        let last = self.at_barrier.iter().flatten().map(|a| a.1).max();
        let opens = last.unwrap_or(now) + self.trip(Origin::Inter) / 2;
        self.generation += 1;
        for ap in 0..self.at_barrier.len() {
            let Some((since, _)) = self.at_barrier[ap].take() else {
                continue;
            };
            let end = opens + self.trip(Origin::Inter) / 2;
            let object = ObjectId::new(BARRIER, self.generation);
            let mut record = self.record(ap, Op::Barrier, object, (since, end));
            record.wait = Nanos(end - since);
            self.done(ap, record);
        }
    }
}
