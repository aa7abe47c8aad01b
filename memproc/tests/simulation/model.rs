//! Programs of application processes, and what they may see.
//!
//! Three kinds of objects:
//! * *locked*: written in sections only, four elements that each section makes equal (in two writes)
//!   to a number never used before. Checked: one holder at a time; rising epochs; a section starts
//!   from the last release and sees its own writes; a reader sees one release, whole, at least as
//!   new as every release that had returned when it asked and as what it saw before.
//! * *owned*: written by one application process outside sections, counting up. Checked: a reader
//!   sees at least what had been published (by a release or barrier that had returned), what it
//!   wrote itself, and what it saw before.
//! * *counters*: fetch-add by everyone. Checked: every previous value is handed out once; readers as
//!   of owned objects.
//!
//! Of half of the variables, application processes keep copies: by the library's own state machine
//! (`dsm-lib/src/cache/held.rs`), told by a stream that they read late. Checked of a read from such a copy:
//! it is at least as new as every release that had returned when the memory process wrote the last message
//! that the reader has taken, and as what anybody wrote before a barrier that the reader has passed.
//!
//! Writes to owned objects and releases are sometimes not waited for before the next request.
//!
//! What a lost section wrote may or may not be released (its release may have been on its way); an
//! object that had one is *uncertain*: order is not checked there any more, wholeness is.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};

use bytes::{Bytes, BytesMut};
use dosmos_memproc::core::messages::{ElementRange, LocalAccesses, Reply, Request, Return, Wanted};
use dosmos_proto::{ApId, Cache, CopyPolicy, MpId, Nanos, ObjectId};
use dosmos_trace::meta::OpCounts;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::common::{
    Cluster, Told, acquire, barrier, fetch_add, number, read, read_range, read_to_have,
    read_to_keep, release_with, vector, write, write_bytes, written,
};
use super::held::{self, Answer, Back, Held, Made};
use super::monitoring;

/// What goes wrong in a run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Faults {
    /// Application processes die, and some come back.
    pub deaths: bool,
    /// Links break and come back.
    pub cuts: bool,
    /// Links break, and one end does not notice.
    pub one_sided: bool,
    /// Requests have short timeouts.
    pub timeouts: bool,
    /// Memory and link processes end and are started again with nothing of what they knew.
    pub restarts: bool,
}

impl Faults {
    fn any_cuts(self) -> bool {
        self.cuts || self.one_sided || self.restarts
    }
}

const ELEMENTS: u64 = 4;

/// Elements that are read of an object where not all are.
const HALF: ElementRange = ElementRange {
    first: 0,
    end: Some(2),
};

enum Kind {
    Locked {
        /// Released numbers in order; position 0 is the initial zero.
        history: Vec<u64>,
        /// Position of the last release that returned.
        returned: usize,
        holder: Option<usize>,
        epoch: u64,
        uncertain: bool,
    },
    Owned {
        writer: usize,
        issued: u64,
        /// Those whose writes were answered.
        written: BTreeSet<u64>,
        published: u64,
    },
    Counter {
        handed_out: HashSet<u64>,
        issued: u64,
        published: u64,
    },
}

struct Object {
    id: ObjectId,
    name: String,
    kind: Kind,
    owner: MpId,
    /// Application processes keep copies of it.
    cached: bool,
    /// An application process that had it to itself ended, or it was taken from it: what nobody else had seen
    /// is lost, so what was published may be too.
    fell_back: bool,
    /// Its owner was started again: nobody may be told a value of it.
    lost: bool,
}

#[derive(Clone, Copy, Debug)]
enum Doing {
    /// `overlaps`: it was not waited for before the next request.
    Read {
        object: usize,
        floor: u64,
        overlaps: bool,
    },
    SectionWrite {
        object: usize,
    },
    OwnedWrite {
        object: usize,
        seq: u64,
    },
    Acquire {
        object: usize,
    },
    Release {
        object: usize,
        number: Option<u64>,
        /// Its last write travels with it.
        writes: bool,
    },
    Add {
        object: usize,
    },
    Barrier {
        round: u64,
    },
}

impl Doing {
    fn object(self) -> Option<usize> {
        match self {
            Self::Read { object, .. }
            | Self::SectionWrite { object }
            | Self::OwnedWrite { object, .. }
            | Self::Acquire { object }
            | Self::Release { object, .. }
            | Self::Add { object } => Some(object),
            Self::Barrier { .. } => None,
        }
    }
}

struct Pending {
    doing: Doing,
    /// What it publishes when it returns: what its process had written when it asked.
    written: Vec<(usize, u64)>,
    awaited: bool,
    /// The object was lost when this was asked.
    lost: bool,
}

struct Holding {
    object: usize,
    working: [u64; 4],
    wrote: Option<u64>,
    /// Lost, as far as the rest of the world may know.
    zombie: bool,
}

#[derive(Default)]
struct Ap {
    alive: bool,
    /// Requests under way: at most one that is waited for.
    pending: HashMap<u64, Pending>,
    /// A link broke while its acquire was under way: the grant may be void when it comes.
    doubtful: bool,
    holding: Option<Holding>,
    actions: u32,
    round: u64,
    seen: HashMap<usize, u64>,
    /// What it released or added itself, by object.
    own: HashMap<usize, u64>,
    versions: HashMap<usize, u64>,
    /// What it is told and has not taken, each with what had been published by then, by object.
    stream: VecDeque<(Told, Vec<u64>)>,
    held: HashMap<usize, Held<Bytes>>,
    /// What it edits: objects, the numbers of their delegations, and what they will be.
    edits: Vec<(usize, u64, Bytes)>,
    /// What had been published when the last message that it has taken was written, by object.
    floors: Vec<u64>,
    /// What had been written before the last barrier that it passed, by object.
    passed: HashMap<usize, u64>,
}

/// Who is near an object, and how it is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Style {
    /// Anybody, anyhow.
    Mixed,
    /// Its writer, who keeps it; the others read it in part.
    Parts,
    /// Another than its writer, who takes it to read it.
    Taken,
}

/// A simulated cluster with its programs.
pub struct Sim {
    rng: StdRng,
    c: Cluster,
    objects: Vec<Object>,
    aps: Vec<Ap>,
    faults: Faults,
    rounds: u64,
    style: Style,
    arrived: HashMap<u64, HashSet<usize>>,
    /// What those who arrived had written, by round.
    before: HashMap<u64, HashMap<usize, u64>>,
    /// Somebody died or was cut off: barriers may fail, requests be refused.
    disturbed: bool,
    down: Vec<(MpId, MpId)>,
    next_number: u64,
    /// Look-ups after a restart, whose replies say nothing.
    lookups: HashSet<(ApId, u64)>,
    done: HashMap<ObjectId, OpCounts>,
}

impl Sim {
    /// The run of this seed.
    pub fn new(seed: u64, faults: Faults) -> Self {
        let mut rng = StdRng::seed_from_u64(seed);
        let shapes: [(&[&str], u32, u32); 5] = [
            (&["/a"], 2, 1),
            (&["/a"], 3, 2),
            (&["/a", "/b"], 2, 1),
            (&["/a", "/a/x", "/b"], 2, 1),
            (&["/a", "/b"], 1, 2),
        ];
        let (groups, mps, aps) = shapes[rng.random_range(0..shapes.len())];
        let c = Cluster::new(groups, mps, aps);
        let aps = c.topology.application_processes().len();
        let mut sim = Self {
            rng,
            c,
            objects: Vec::new(),
            aps: (0..aps).map(|_| Ap::default()).collect(),
            faults,
            rounds: 3,
            style: Style::Mixed,
            arrived: HashMap::new(),
            before: HashMap::new(),
            disturbed: false,
            down: Vec::new(),
            next_number: 1,
            lookups: HashSet::new(),
            done: HashMap::new(),
        };
        sim.style = match sim.rng.random_range(0..4) {
            0 => Style::Taken,
            1 => Style::Parts,
            _ => Style::Mixed,
        };
        sim.declare();
        for ap in &mut sim.aps {
            ap.alive = true;
            ap.actions = sim.rng.random_range(2..10);
        }
        sim
    }

    fn declare(&mut self) {
        let owners = self.c.topology.owners_in(None).count() as u32;
        let count = self.rng.random_range(2..5);
        for i in 0..count {
            let writer = self.rng.random_range(0..self.aps.len());
            let home = |of: usize| {
                let ap = ApId((of % self.aps.len()) as u32);
                (CopyPolicy::Invalidate, self.c.mp_of(ap), true)
            };
            let (policy, owner, cached) = match self.style {
                Style::Parts => home(writer),
                Style::Taken => home(writer + 1),
                Style::Mixed => {
                    let policy = match self.rng.random_bool(0.5) {
                        true => CopyPolicy::Invalidate,
                        false => CopyPolicy::Update,
                    };
                    let owner = MpId(self.rng.random_range(0..owners));
                    (policy, owner, self.rng.random_bool(0.5))
                }
            };
            let owner_name = self.c.topology.mp_name(owner);
            let name = format!("v{i}");
            let cache = if cached { Cache::Ap } else { Cache::Mp };
            let spec = vector(&name, ELEMENTS, 1, &[&owner_name], policy).with_cache(cache);
            let id = ObjectId::new(self.c.declare(0, spec).id(), 0);
            for ap in 1..self.aps.len() as u32 {
                self.c.call(ap, Request::Open(name.clone()));
            }
            let locked = if self.style == Style::Mixed { 3 } else { 1 };
            let kind = match self.rng.random_range(0..5) {
                n if n < locked => Kind::Locked {
                    history: vec![0],
                    returned: 0,
                    holder: None,
                    epoch: 0,
                    uncertain: false,
                },
                n if n < 4 => Kind::Owned {
                    writer,
                    issued: 0,
                    written: BTreeSet::new(),
                    published: 0,
                },
                _ => Kind::Counter {
                    handed_out: HashSet::new(),
                    issued: 0,
                    published: 0,
                },
            };
            self.objects.push(Object {
                id,
                name,
                kind,
                owner,
                cached,
                fell_back: false,
                lost: false,
            });
        }
        self.c.replies.clear();
        self.c.told.clear();
    }

    /// Runs to the end and checks everything.
    pub fn run(mut self) {
        for _ in 0..100_000 {
            self.take_some_replies();
            if !self.step() && !self.take_replies() {
                break;
            }
        }
        // What still waits does so for somebody who is lost: its deadline ends it.
        let waits = self.aps.iter().any(|ap| !ap.pending.is_empty());
        self.must(!waits || self.disturbed, "somebody waits for ever");
        if self.faults.any_cuts() {
            self.heal();
        }
        let waits = self.aps.iter().any(|ap| !ap.pending.is_empty());
        if waits {
            self.c.pass(Nanos::from_millis(120_000));
            self.settle();
        }
        let open: Vec<usize> = (0..self.aps.len())
            .filter(|a| !self.aps[*a].pending.is_empty())
            .collect();
        self.must(open.is_empty(), &format!("{open:?} were never answered"));
        if !self.disturbed {
            self.check_the_end();
            (0..self.aps.len()).for_each(|a| self.report(a));
            monitoring::check(&self.c.topology, &self.c.items, &self.done);
        }
    }

    /// One message, one action or one fault; false when nothing can happen any more.
    fn step(&mut self) -> bool {
        let busy = self.c.busy();
        let ready: Vec<usize> = (0..self.aps.len()).filter(|a| self.may_act(*a)).collect();
        if busy.is_empty() && ready.is_empty() {
            return false;
        }
        if self.faults.deaths && self.rng.random_bool(0.004) {
            self.death();
        } else if self.faults.restarts && self.rng.random_bool(0.004) {
            self.restart();
        } else if (self.faults.cuts || self.faults.one_sided) && self.rng.random_bool(0.01) {
            self.cut();
        } else if (self.faults.timeouts || !self.down.is_empty()) && self.rng.random_bool(0.02) {
            let time = Nanos::from_millis(self.rng.random_range(1..1_500));
            self.c.pass(time);
        } else if !busy.is_empty() && (ready.is_empty() || self.rng.random_bool(0.6)) {
            let pair = busy[self.rng.random_range(0..busy.len())];
            self.c.deliver(pair);
        } else if !ready.is_empty() {
            let a = ready[self.rng.random_range(0..ready.len())];
            self.act(a);
        }
        true
    }

    fn may_act(&self, a: usize) -> bool {
        let ap = &self.aps[a];
        let waits = ap.pending.values().any(|p| p.awaited);
        let busy = ap.holding.is_some() || !ap.edits.is_empty();
        ap.alive && !waits && (ap.round < self.rounds || busy)
    }

    fn act(&mut self, a: usize) {
        if self.finish_edit(a) {
            return;
        }
        if let Some(h) = &self.aps[a].holding {
            let object = h.object;
            match self.rng.random_range(0..4) {
                0 => self.ask_read(a, object),
                1 | 2 => self.section_write(a, object),
                _ => self.release(a, object),
            }
            return;
        }
        if self.aps[a].actions == 0 {
            return self.end_round(a);
        }
        self.aps[a].actions -= 1;
        let object = self.rng.random_range(0..self.objects.len());
        let id = self.objects[object].id;
        let writes = self.rng.random_bool(0.5);
        if writes && self.has_to_itself(a, object) {
            return self.change_here(a, object);
        }
        match &mut self.objects[object].kind {
            Kind::Locked { .. } if writes => {
                self.ask(a, acquire(id), Doing::Acquire { object });
            }
            Kind::Owned { writer, issued, .. } if *writer == a && writes => {
                *issued += 1;
                let seq = *issued;
                self.ask(a, write(id, seq), Doing::OwnedWrite { object, seq });
            }
            Kind::Counter { issued, .. } if writes => {
                *issued += 1;
                self.ask(a, fetch_add(id, 1), Doing::Add { object });
            }
            _ => self.ask_read(a, object),
        }
    }

    fn end_round(&mut self, a: usize) {
        let round = self.aps[a].round;
        self.aps[a].round += 1;
        self.aps[a].actions = self.rng.random_range(2..10);
        if self.disturbed {
            return;
        }
        self.arrived.entry(round).or_default().insert(a);
        self.ask(a, barrier("all"), Doing::Barrier { round });
    }

    fn ask(&mut self, a: usize, request: Request, doing: Doing) {
        // What the process has written so far: published when this returns, if it is a release or
        // a barrier.
        let written: Vec<(usize, u64)> = match doing {
            Doing::Release { .. } | Doing::Barrier { .. } => self.written_by(a),
            _ => Vec::new(),
        };
        if let Doing::Barrier { round } = doing {
            let before = self.before.entry(round).or_default();
            for (object, seq) in &written {
                let most = before.entry(*object).or_default();
                *most = (*most).max(*seq);
            }
        }
        let awaited = match doing {
            Doing::OwnedWrite { .. } => self.rng.random_bool(0.3),
            Doing::Release { .. } => self.rng.random_bool(0.6),
            Doing::Read { overlaps, .. } => !overlaps,
            _ => true,
        };
        let timeout = (self.faults.timeouts && self.rng.random_bool(0.3))
            .then(|| Nanos::from_millis(self.rng.random_range(1..3_000)));
        self.disturbed |= timeout.is_some();
        if matches!(doing, Doing::Release { .. } | Doing::Barrier { .. }) {
            self.report(a);
        }
        if !matches!(doing, Doing::Read { .. } | Doing::Acquire { .. }) {
            self.publish(a);
        }
        let id = self.c.ask_within(a as u32, timeout, request);
        if let Doing::SectionWrite { object }
        | Doing::OwnedWrite { object, .. }
        | Doing::Release {
            object,
            writes: true,
            ..
        }
        | Doing::Add { object } = doing
        {
            self.aps[a].held.entry(object).or_default().wrote(id);
        }
        let pending = Pending {
            doing,
            written,
            awaited,
            lost: doing.object().is_some_and(|o| self.objects[o].lost),
        };
        self.aps[a].pending.insert(id, pending);
    }

    fn written_by(&self, a: usize) -> Vec<(usize, u64)> {
        let objects = self.objects.iter().enumerate();
        objects
            .filter_map(|(i, o)| match o.kind {
                Kind::Owned { writer, issued, .. } if writer == a => Some((i, issued)),
                Kind::Counter { .. } => self.aps[a].own.get(&i).map(|own| (i, *own)),
                _ => None,
            })
            .collect()
    }

    fn ask_read(&mut self, a: usize, object: usize) {
        let in_section = self.aps[a].holding.as_ref().map(|h| h.object) == Some(object);
        let keeps = self.objects[object].cached && !in_section;
        if keeps && self.read_held(a, object) {
            return;
        }
        let floor = self.floor(a, object, self.published(object));
        let id = self.objects[object].id;
        let writer = match self.objects[object].kind {
            Kind::Owned { writer, .. } => writer == a,
            Kind::Counter { .. } | Kind::Locked { .. } => true,
        };
        let request = match (keeps, self.rng.random_range(0..4)) {
            (false, _) => read(id),
            (true, _) if self.style == Style::Parts => match writer {
                true => read_to_have(id),
                false => read_range(id, HALF),
            },
            (true, _) if self.style == Style::Taken => match writer {
                true => read(id),
                false => read_to_have(id),
            },
            (true, 0) => read_range(id, HALF),
            (true, 1) => read_to_keep(id),
            (true, _) => read_to_have(id),
        };
        let overlaps = keeps && self.rng.random_bool(0.3);
        let doing = Doing::Read {
            object,
            floor,
            overlaps,
        };
        self.ask(a, request, doing);
    }

    /// What a reader sees at least, if so much had been published as far as it may know.
    fn floor(&self, a: usize, object: usize, published: u64) -> u64 {
        let own = self.aps[a].own.get(&object).copied().unwrap_or(0);
        match &self.objects[object].kind {
            Kind::Owned {
                writer, written, ..
            } if *writer == a => written.last().copied().unwrap_or(0),
            _ => own.max(published),
        }
    }

    fn published(&self, object: usize) -> u64 {
        match &self.objects[object].kind {
            Kind::Locked { returned, .. } => *returned as u64,
            Kind::Owned { published, .. } | Kind::Counter { published, .. } => *published,
        }
    }

    /// A read of a copy that the process has itself, if it has one.
    fn read_held(&mut self, a: usize, object: usize) -> bool {
        let bytes = ELEMENTS * 8;
        let held = self.aps[a].held.entry(object).or_default().read(bytes);
        let Some((data, version, _)) = held.map(|(d, v, f)| (d.clone(), v, f)) else {
            return false;
        };
        let known = self.aps[a].floors.get(object).copied().unwrap_or(0);
        let passed = self.aps[a].passed.get(&object).copied().unwrap_or(0);
        let known = known.max(passed);
        let floor = self.floor(a, object, known);
        self.c.log.push(format!(
            "ap{a} reads its copy of v{object}: {} v{version}",
            number(&data)
        ));
        self.count(Doing::Read {
            object,
            floor,
            overlaps: false,
        });
        self.check_version(a, object, version);
        self.check_read(a, object, floor, &data);
        true
    }

    /// Tells the memory process of reads that it did not see.
    fn report(&mut self, a: usize) {
        let mut reads = Vec::new();
        for (object, held) in &mut self.aps[a].held {
            let (read, written) = held.take_hits();
            for (hits, writes) in [(read, false), (written, true)] {
                reads.extend(hits.map(|hits| LocalAccesses {
                    object: self.objects[*object].id,
                    writes,
                    count: hits.count,
                    first: self.c.now,
                    last: self.c.now,
                    bytes: hits.bytes,
                    version: hits.version,
                }));
            }
        }
        if !reads.is_empty() {
            reads.sort_unstable_by_key(|r| r.object);
            self.c.ask(a as u32, Request::Report(reads));
        }
    }

    /// Whether the process has an object to itself that it may write outside sections.
    fn has_to_itself(&self, a: usize, object: usize) -> bool {
        let may = match self.objects[object].kind {
            Kind::Owned { writer, .. } => writer == a,
            Kind::Counter { .. } => true,
            Kind::Locked { .. } => false,
        };
        let held = self.aps[a].held.get(&object);
        may && held.is_some_and(|h| h.is_exclusive() && h.get().is_some())
    }

    /// A write or fetch-add of an object that the process has to itself: at once, or in an edit that it
    /// finishes later.
    fn change_here(&mut self, a: usize, object: usize) {
        let edits = self.rng.random_bool(0.3);
        let bytes = ELEMENTS * 8;
        let new = match &mut self.objects[object].kind {
            Kind::Owned { issued, .. } => {
                *issued += 1;
                Some(*issued)
            }
            Kind::Counter { issued, .. } => {
                *issued += 1;
                None
            }
            Kind::Locked { .. } => return,
        };
        let next = |before: u64| new.unwrap_or(before + 1);
        let held = self.aps[a].held.entry(object).or_default();
        let before = if edits {
            let Some((content, delegation, _)) = held.take(bytes, false) else {
                return;
            };
            let before = number(&content);
            let content = with_first(&content, next(before));
            self.aps[a].edits.push((object, delegation, content));
            self.count(Doing::Read {
                object,
                floor: 0,
                overlaps: false,
            });
            before
        } else {
            let changed = held.change(bytes, |content| {
                let before = number(content);
                *content = with_first(content, next(before));
                before
            });
            let Some((before, ..)) = changed else {
                return;
            };
            before
        };
        self.c.log.push(format!(
            "ap{a} {} v{object} itself: {before} becomes {}",
            if edits { "edits" } else { "changes" },
            next(before)
        ));
        self.count(Doing::Add { object });
        let fell_back = self.objects[object].fell_back;
        match &mut self.objects[object].kind {
            Kind::Owned { written, .. } => drop(written.insert(next(before))),
            Kind::Counter { handed_out, .. } => {
                let new = handed_out.insert(before) || fell_back;
                self.aps[a].own.insert(object, before + 1);
                self.must(new, &format!("{before} was handed out twice"));
            }
            Kind::Locked { .. } => {}
        }
    }

    /// Ends the oldest edit of a process, if it has one open.
    fn finish_edit(&mut self, a: usize) -> bool {
        if self.aps[a].edits.is_empty() {
            return false;
        }
        let (object, delegation, content) = self.aps[a].edits.remove(0);
        let held = self.aps[a].held.entry(object).or_default();
        held.put(delegation, content);
        let answers = held.answers();
        self.c.log.push(format!("ap{a} has edited v{object}"));
        answers
            .into_iter()
            .for_each(|back| self.send_back(a, object, back));
        true
    }

    /// Publishes what the process changed of what others read.
    fn publish(&mut self, a: usize) {
        for object in 0..self.objects.len() {
            let held = self.aps[a].held.get_mut(&object);
            if let Some(back) = held.and_then(Held::publish) {
                self.send_back(a, object, back);
            }
        }
    }

    /// Sends what goes back to an owner, after what was counted.
    fn send_back(&mut self, a: usize, object: usize, back: Back<Bytes>) {
        self.report(a);
        let part = |content: &Bytes, (first, end): (u32, u32)| {
            let range = first as usize * 8..end as usize * 8;
            (first, content.slice(range))
        };
        let (kept, parts) = match back.made {
            Made::Nothing => (false, Vec::new()),
            Made::All(content) => (false, vec![part(&content, (0, ELEMENTS as u32))]),
            Made::Parts(content, ranges) => {
                let ranges = ranges.into_iter();
                (true, ranges.map(|range| part(&content, range)).collect())
            }
        };
        let back = Return {
            object: self.objects[object].id,
            delegation: back.delegation,
            version: back.version,
            kept,
            parts,
            served: back.served,
        };
        self.c.ask(a as u32, Request::Return(vec![back]));
    }

    /// An object is taken from a process that had it to itself.
    fn fall_back(&mut self, a: usize, object: usize) {
        self.disturbed = true;
        self.objects[object].fell_back = true;
        let ap = &mut self.aps[a];
        for list in [&mut ap.seen, &mut ap.own, &mut ap.versions] {
            list.remove(&object);
        }
    }

    /// Half of the object, with the section's number; the other half comes with the next write.
    fn section_write(&mut self, a: usize, object: usize) {
        let id = self.objects[object].id;
        let next = self.next_number;
        let Some(h) = &mut self.aps[a].holding else {
            return;
        };
        let number = *h.wrote.get_or_insert(next);
        if number == next {
            self.next_number += 1;
        }
        let first = if h.working[0] == number { 2 } else { 0 };
        h.working[first..first + 2].fill(number);
        let request = write_bytes(id, first as u32, elements(&[number; 2]), None);
        self.ask(a, request, Doing::SectionWrite { object });
    }

    fn release(&mut self, a: usize, object: usize) {
        let id = self.objects[object].id;
        let Some(h) = &self.aps[a].holding else {
            return;
        };
        // A section writes its number everywhere before it ends, or as it ends.
        let number = h.wrote;
        let mut rest = None;
        if let Some(n) = number.filter(|n| h.working != [*n; 4]) {
            if self.rng.random_bool(0.5) {
                return self.section_write(a, object);
            }
            let first = if h.working[0] == n { 2 } else { 0 };
            rest = Some(written(first, elements(&[n; 2]), 1));
        }
        let writes = rest.is_some();
        let zombie = h.zombie;
        self.aps[a].holding = None;
        if let Kind::Locked {
            history, holder, ..
        } = &mut self.objects[object].kind
        {
            history.extend(number);
            if number.is_some() {
                self.aps[a].own.insert(object, history.len() as u64 - 1);
            }
            if !zombie {
                *holder = None;
            }
        }
        let request = release_with(id, None, rest);
        let doing = Doing::Release {
            object,
            number,
            writes,
        };
        self.ask(a, request, doing);
    }

    /// Everybody has taken everything: what was published is known to all.
    fn all_is_told(&mut self) {
        self.take_replies();
        let floors: Vec<u64> = (0..self.objects.len()).map(|o| self.published(o)).collect();
        for ap in &mut self.aps {
            ap.floors.clone_from(&floors);
        }
    }

    /// What was written to the streams since the last time, with what had been published by then.
    fn fill_streams(&mut self) {
        if self.c.told.is_empty() {
            return;
        }
        let floors: Vec<u64> = (0..self.objects.len()).map(|o| self.published(o)).collect();
        for (ap, told) in self.c.told.drain(..) {
            self.aps[ap.index()]
                .stream
                .push_back((told, floors.clone()));
        }
    }

    /// Application processes take what they are told, some of it late.
    fn take_some_replies(&mut self) {
        self.fill_streams();
        for a in 0..self.aps.len() {
            let waiting = self.aps[a].stream.len();
            let taken = match self.rng.random_range(0..4) {
                0 => 0,
                1 => self.rng.random_range(0..=waiting),
                _ => waiting,
            };
            (0..taken).for_each(|_| self.take_one(a));
        }
    }

    /// Until nothing is on its way.
    fn settle(&mut self) {
        loop {
            self.c.run();
            if !self.take_replies() {
                return;
            }
        }
    }

    /// They take all; whether there was something.
    fn take_replies(&mut self) -> bool {
        self.fill_streams();
        let mut some = false;
        for a in 0..self.aps.len() {
            while !self.aps[a].stream.is_empty() {
                some = true;
                self.take_one(a);
            }
        }
        some
    }

    fn take_one(&mut self, a: usize) {
        let Some((told, floors)) = self.aps[a].stream.pop_front() else {
            return;
        };
        self.aps[a].floors = floors;
        match told {
            Told::Invalidate(id) => {
                let object = self.objects.iter().position(|o| o.id == id);
                let held = object.and_then(|o| self.aps[a].held.get_mut(&o));
                held.into_iter().for_each(Held::invalidate);
            }
            Told::Recall(id, delegation, wanted) => self.recalled(a, id, delegation, wanted),
            Told::Reply(id) => {
                let ap = ApId(a as u32);
                if let Some(reply) = self.c.replies.remove(&(ap, id)) {
                    self.take_reply(ap, id, reply);
                }
            }
        }
    }

    /// What the library does when others need an object that is delegated to its process.
    fn recalled(&mut self, a: usize, id: ObjectId, delegation: u64, wanted: Wanted) {
        let Some(object) = self.objects.iter().position(|o| o.id == id) else {
            return;
        };
        let held = self.aps[a].held.entry(object).or_default();
        let wanted = match wanted {
            Wanted::Elements(first, end) => held::Wanted::Elements(first, end),
            Wanted::Everything => held::Wanted::Everything,
            Wanted::Lost => {
                if held.delegation() == Some(delegation) {
                    held.lose();
                    self.fall_back(a, object);
                }
                return;
            }
        };
        if let Answer::Now(back) = held.recall(delegation, wanted) {
            self.send_back(a, object, back);
        }
    }

    /// What the library does with a reply before anybody learns of it.
    fn hear(&mut self, a: usize, doing: Doing, id: u64, reply: &Reply) {
        let Some(object) = doing.object() else {
            return;
        };
        let held = self.aps[a].held.entry(object).or_default();
        match reply {
            Reply::Read {
                version,
                data,
                delegation: Some(delegation),
                unchanged,
                ..
            } => {
                let content = (!unchanged).then(|| data.clone());
                if !held.entrust(id, content, *version, *delegation) {
                    self.send_back(a, object, Back::nothing(*delegation));
                }
            }
            Reply::Granted { version, .. } | Reply::Released { version } => held.confirm(*version),
            Reply::Read {
                version,
                data,
                keep: true,
                ..
            } => held.keep(id, data.clone(), *version),
            Reply::Read { version, .. } => held.confirm(*version),
            _ => {}
        }
    }

    fn take_reply(&mut self, ap: ApId, id: u64, reply: Reply) {
        let a = ap.index();
        if self.lookups.remove(&(ap, id)) {
            return;
        }
        let Some(Pending {
            doing,
            written,
            lost,
            ..
        }) = self.aps[a].pending.remove(&id)
        else {
            self.must(false, &format!("{ap} got an answer it did not wait for"));
            return;
        };
        self.hear(a, doing, id, &reply);
        let reply = match reply {
            // What it has already, unless it wrote meanwhile.
            Reply::Read {
                unchanged: true, ..
            } => match doing.object().and_then(|o| self.aps[a].held.get(&o)?.get()) {
                Some((data, version)) => Reply::Read {
                    version,
                    data: data.clone(),
                    keep: true,
                    delegation: None,
                    unchanged: false,
                },
                None => return self.count(doing),
            },
            reply => reply,
        };
        match reply {
            Reply::Refused(refusal) => {
                self.must(self.disturbed, &format!("refused: {refusal}"));
                self.failed(a, doing);
            }
            reply => {
                self.must(!lost, &format!("{doing:?} on a lost object gave {reply:?}"));
                self.count(doing);
                for (object, seq) in written {
                    match &mut self.objects[object].kind {
                        Kind::Owned {
                            published, written, ..
                        } => {
                            // Answered or not: nothing can have failed, unless something was disturbed.
                            let last = match self.disturbed {
                                true => written.range(..=seq).last().copied().unwrap_or(0),
                                false => seq,
                            };
                            *published = (*published).max(last);
                        }
                        Kind::Counter { published, .. } => *published = (*published).max(seq),
                        Kind::Locked { .. } => {}
                    }
                }
                self.succeeded(a, doing, &reply);
            }
        }
    }

    fn count(&mut self, doing: Doing) {
        use dosmos_trace::Op;
        let (object, op) = match doing {
            Doing::Read { object, .. } => (object, Op::Read),
            Doing::SectionWrite { object }
            | Doing::Add { object }
            | Doing::OwnedWrite { object, .. } => (object, Op::Write),
            Doing::Acquire { object } => (object, Op::Acquire),
            Doing::Release { object, .. } => (object, Op::Release),
            Doing::Barrier { .. } => return,
        };
        let id = self.objects[object].id;
        self.done.entry(id).or_default().count(op, 1);
    }

    /// A refusal, after a fault. One whose section is in doubt starts again.
    fn failed(&mut self, a: usize, doing: Doing) {
        match doing {
            Doing::Release { object, .. } => self.make_uncertain(object),
            Doing::SectionWrite { object }
            | Doing::Read {
                object,
                overlaps: false,
                ..
            } => {
                let holds = self.aps[a].holding.as_ref();
                if holds.is_some_and(|h| h.object == object) {
                    self.kill(a);
                    self.revive(a);
                }
            }
            _ => {}
        }
    }

    fn succeeded(&mut self, a: usize, doing: Doing, reply: &Reply) {
        match (doing, reply) {
            (
                Doing::Read {
                    object,
                    floor,
                    overlaps: true,
                },
                Reply::Read { data, .. },
            ) => {
                // In no order with what else the process does; only as new as what it knew then.
                let holds = self.aps[a].holding.as_ref().map(|h| h.object) == Some(object);
                if !holds {
                    let before = self.aps[a].seen.remove(&object).unwrap_or(0);
                    self.check_read(a, object, floor, data);
                    let seen = self.aps[a].seen.entry(object).or_default();
                    *seen = before.max(*seen);
                }
            }
            (Doing::Read { object, floor, .. }, Reply::Read { version, data, .. }) => {
                self.check_version(a, object, *version);
                self.check_read(a, object, floor, data);
            }
            (
                Doing::Acquire { object },
                Reply::Granted {
                    epoch,
                    version,
                    value: _,
                },
            ) => {
                self.check_version(a, object, *version);
                self.granted(a, object, *epoch);
            }
            (
                Doing::Release {
                    object,
                    number,
                    writes,
                },
                Reply::Released { version },
            ) => {
                self.check_version(a, object, *version);
                if writes {
                    self.count(Doing::SectionWrite { object });
                }
                if let (
                    Some(number),
                    Kind::Locked {
                        history, returned, ..
                    },
                ) = (number, &mut self.objects[object].kind)
                {
                    let at = history.iter().position(|n| *n == number).unwrap_or(0);
                    *returned = (*returned).max(at);
                }
            }
            (Doing::Add { object }, Reply::Atomic { previous, .. }) => {
                let fell_back = self.objects[object].fell_back;
                let Kind::Counter { handed_out, .. } = &mut self.objects[object].kind else {
                    return;
                };
                let new = handed_out.insert(*previous);
                self.aps[a].own.insert(object, previous + 1);
                self.must(
                    new || fell_back,
                    &format!("{previous} was handed out twice"),
                );
            }
            (Doing::Barrier { round }, Reply::Passed { generation }) => {
                self.must(*generation == round + 1, "generations out of step");
                let all = self.arrived.get(&round).map_or(0, HashSet::len) == self.aps.len();
                self.must(all, "a barrier opened before everybody arrived");
                if !self.disturbed {
                    self.aps[a].passed = self.before[&round].clone();
                }
            }
            (Doing::OwnedWrite { object, seq }, Reply::Written { .. }) => {
                if let Kind::Owned { written, .. } = &mut self.objects[object].kind {
                    written.insert(seq);
                }
            }
            (Doing::SectionWrite { .. }, Reply::Written { .. }) => {}
            (doing, reply) => self.must(false, &format!("{reply:?} answers {doing:?}")),
        }
    }

    fn check_version(&mut self, a: usize, object: usize, version: u64) {
        let last = self.aps[a].versions.insert(object, version).unwrap_or(0);
        let text = format!("ap{a} saw version {version} of v{object} after {last}");
        self.must(version >= last, &text);
    }

    fn granted(&mut self, a: usize, object: usize, epoch: u64) {
        let Kind::Locked {
            history,
            holder,
            epoch: last,
            ..
        } = &mut self.objects[object].kind
        else {
            return;
        };
        let doubtful = std::mem::take(&mut self.aps[a].doubtful);
        if doubtful {
            self.aps[a].holding = Some(Holding {
                object,
                working: [0; 4],
                wrote: None,
                zombie: true,
            });
            return;
        }
        let other = holder.replace(a);
        let rising = epoch > std::mem::replace(last, epoch);
        let now = history.last().copied().unwrap_or(0);
        self.aps[a].holding = Some(Holding {
            object,
            working: [now; 4],
            wrote: None,
            zombie: false,
        });
        self.must(
            other.is_none(),
            &format!("v{object} is held by {other:?} and ap{a}"),
        );
        self.must(rising, "an epoch did not rise");
    }

    fn check_read(&mut self, a: usize, object: usize, floor: u64, data: &Bytes) {
        let values: Vec<u64> = data
            .chunks(8)
            .map(|c| number(&Bytes::copy_from_slice(c)))
            .collect();
        let seen = self.aps[a].seen.get(&object).copied().unwrap_or(0);
        let holding = self.aps[a].holding.as_ref().filter(|h| h.object == object);
        let what = format!("ap{a} read {values:?} of v{object} (floor {floor}, saw {seen})");
        let position = match &self.objects[object].kind {
            Kind::Locked {
                history, uncertain, ..
            } => {
                if let Some(h) = holding.filter(|h| !h.zombie) {
                    let working = h.working;
                    let own = values
                        .iter()
                        .zip(&working)
                        .all(|(v, w)| v == w || (*uncertain && Some(*w) != h.wrote));
                    return self.must(own, &format!("{what}, its section is {working:?}"));
                }
                if holding.is_some() {
                    return;
                }
                let whole = values.iter().all(|v| *v == values[0]);
                let position = history.iter().position(|n| *n == values[0]);
                let uncertain = *uncertain;
                self.must(whole, &format!("{what}: a mixture"));
                self.must(position.is_some(), &format!("{what}: never released"));
                if uncertain {
                    return;
                }
                position.unwrap_or(0) as u64
            }
            Kind::Owned { issued, .. } | Kind::Counter { issued, .. } => {
                let issued = *issued;
                self.must(values[0] <= issued, &format!("{what}: never written"));
                values[0]
            }
        };
        let fell_back = self.objects[object].fell_back;
        self.must(position >= floor || fell_back, &format!("{what}: too old"));
        self.must(position >= seen, &format!("{what}: older than before"));
        self.aps[a].seen.insert(object, position);
    }

    fn death(&mut self) {
        let a = self.rng.random_range(0..self.aps.len());
        if !self.aps[a].alive {
            return self.revive(a);
        }
        self.disturbed = true;
        self.kill(a);
    }

    fn kill(&mut self, a: usize) {
        self.forget(a);
        self.c.gone(ApId(a as u32));
    }

    /// An application process ended; what it did last is in doubt.
    fn forget(&mut self, a: usize) {
        self.lose_section(a);
        self.fill_streams();
        for (told, _) in std::mem::take(&mut self.aps[a].stream) {
            if let Told::Reply(id) = told {
                self.c.replies.remove(&(ApId(a as u32), id));
                self.lookups.remove(&(ApId(a as u32), id));
            }
        }
        let had: Vec<usize> = (0..self.objects.len())
            .filter(|o| self.aps[a].held.get(o).is_some_and(Held::is_exclusive))
            .collect();
        had.into_iter().for_each(|o| self.fall_back(a, o));
        self.aps[a].held.clear();
        self.aps[a].edits.clear();
        self.aps[a].holding = None;
        let pending = std::mem::take(&mut self.aps[a].pending);
        for pending in pending.into_values() {
            // The release may be on its way.
            if let Doing::Release { object, .. } = pending.doing {
                self.make_uncertain(object);
            }
        }
        self.aps[a].alive = false;
        self.aps[a].doubtful = false;
    }

    fn revive(&mut self, a: usize) {
        let connected = self.c.connect(ApId(a as u32));
        self.must(connected.is_ok(), "a process could not come back");
        self.aps[a].alive = true;
    }

    /// The section of `a` is lost without a release: nobody will see what it wrote.
    fn lose_section(&mut self, a: usize) {
        let Some(h) = &mut self.aps[a].holding else {
            return;
        };
        if let Kind::Locked { holder, .. } = &mut self.objects[h.object].kind
            && *holder == Some(a)
        {
            *holder = None;
        }
        h.zombie = true;
    }

    fn make_uncertain(&mut self, object: usize) {
        if let Kind::Locked { uncertain, .. } = &mut self.objects[object].kind {
            *uncertain = true;
        }
    }

    /// A memory or link process ends and is started again with nothing of what it knew.
    fn restart(&mut self) {
        self.disturbed = true;
        let count = self.c.topology.memory_processes().len() as u32;
        let mp = MpId(self.rng.random_range(0..count));
        // Whoever is in a section, or about to be, may be cut off from its owner.
        self.put_in_doubt();
        for object in &mut self.objects {
            object.lost |= object.owner == mp;
        }
        let aps = 0..self.aps.len();
        let its: Vec<usize> = aps
            .filter(|a| self.c.mp_of(ApId(*a as u32)) == mp)
            .collect();
        for a in &its {
            self.forget(*a);
        }
        self.c.restart(mp);
        for a in its {
            self.revive(a);
            for object in 0..self.objects.len() {
                let open = Request::Open(self.objects[object].name.clone());
                let id = self.c.ask(a as u32, open);
                self.lookups.insert((ApId(a as u32), id));
            }
        }
    }

    /// All links come back; what goes on after the faults is checked as before.
    fn heal(&mut self) {
        for (a, b) in std::mem::take(&mut self.down) {
            self.c.up(a, b);
        }
        for _ in 0..10_000 {
            self.take_some_replies();
            if !self.step_without_faults() && !self.take_replies() {
                break;
            }
        }
        // Leases end.
        self.c.pass(Nanos::from_millis(5_000));
        self.c.run();
        self.all_is_told();
        for object in 0..self.objects.len() {
            for a in 0..self.aps.len() {
                if self.aps[a].alive && self.aps[a].holding.is_none() {
                    self.ask_read(a, object);
                    self.settle();
                }
            }
        }
    }

    fn step_without_faults(&mut self) -> bool {
        let faults = std::mem::take(&mut self.faults);
        let went_on = self.step();
        self.faults = faults;
        went_on
    }

    /// A link breaks, or one comes back, or an end notices.
    fn cut(&mut self) {
        let unaware = self.c.unaware();
        if !unaware.is_empty() && self.rng.random_bool(0.3) {
            let (mp, neighbour) = unaware[self.rng.random_range(0..unaware.len())];
            return self.c.notice(mp, neighbour);
        }
        if !self.down.is_empty() && self.rng.random_bool(0.6) {
            let (a, b) = self
                .down
                .swap_remove(self.rng.random_range(0..self.down.len()));
            return self.c.up(a, b);
        }
        let pairs: Vec<_> = self.c.pairs();
        let pair = pairs[self.rng.random_range(0..pairs.len())];
        if self.down.contains(&pair) {
            return;
        }
        self.disturbed = true;
        self.down.push(pair);
        self.put_in_doubt();
        if !self.faults.one_sided || (self.faults.cuts && self.rng.random_bool(0.3)) {
            self.c.down(pair.0, pair.1);
        } else if self.rng.random_bool(0.5) {
            self.c.cut_at(pair.0, pair.1);
        } else {
            self.c.cut_at(pair.1, pair.0);
        }
    }

    /// Whoever is in a section, or about to be, may be cut off from its owner.
    fn put_in_doubt(&mut self) {
        for a in 0..self.aps.len() {
            self.lose_section(a);
            let ap = &mut self.aps[a];
            let acquires = |p: &Pending| matches!(p.doing, Doing::Acquire { .. });
            ap.doubtful = ap.pending.values().any(acquires);
        }
        for object in 0..self.objects.len() {
            self.make_uncertain(object);
            if let Kind::Locked { holder, .. } = &mut self.objects[object].kind {
                *holder = None;
            }
        }
    }

    /// Everything came to rest: counters are complete, and everybody sees the last releases.
    fn check_the_end(&mut self) {
        self.all_is_told();
        for object in 0..self.objects.len() {
            if let Kind::Counter {
                handed_out, issued, ..
            } = &self.objects[object].kind
            {
                let all = (0..*issued).all(|n| handed_out.contains(&n));
                self.must(all, "a fetch-add was lost");
            }
            for a in 0..self.aps.len() {
                self.ask_read(a, object);
                self.settle();
            }
        }
    }

    #[track_caller]
    fn must(&self, holds: bool, what: &str) {
        if !holds {
            let log = &self.c.log;
            let tail = log[log
                .len()
                .saturating_sub(std::env::var("DOSMOS_LOG").map_or(60, |n| n.parse().unwrap()))..]
                .join("\n");
            panic!("{what}\n--- what happened last ---\n{tail}");
        }
    }
}

/// The same with another first element.
fn with_first(content: &Bytes, value: u64) -> Bytes {
    let mut all = BytesMut::from(&content[..]);
    all[..8].copy_from_slice(&value.to_le_bytes());
    all.freeze()
}

fn elements(values: &[u64]) -> Bytes {
    let mut data = BytesMut::new();
    for v in values {
        data.extend_from_slice(&v.to_le_bytes());
    }
    data.freeze()
}
