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

mod barriers;
mod checks;
mod end;
mod faults;
mod library;
mod programs;

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};

use bytes::{Bytes, BytesMut};
use dosmos_memproc::core::messages::{
    Delegated, ElementRange, LocalAccesses, LocalKind, Opening, Reply, Request, Return, Wanted,
};
use dosmos_proto::{ApId, Cache, CopyPolicy, ErrorCode, MpId, Nanos, ObjectId, VarId};
use dosmos_trace::meta::OpCounts;
use dosmos_verify::State;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::common::{
    Cluster, Told, acquire, barrier, fetch_add, number, read, read_range, read_to_have,
    read_to_keep, release_with, vector, write, write_bytes, written,
};
use super::held::{self, Answer, Back, Entered, Held, Made};
use super::monitoring;

/// What goes wrong in a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// Application processes die, and some come back.
    pub deaths: bool,
    /// Links break and come back.
    pub cuts: bool,
    /// Links break, and one end does not notice.
    pub one_sided: bool,
    /// It does not notice for longer than the lease of a copy runs.
    pub lasting: bool,
    /// Requests have short timeouts.
    pub timeouts: bool,
    /// Memory and link processes end and are started again with nothing of what they knew.
    pub restarts: bool,
    /// Processes are stopped, and continued later.
    pub stops: bool,
    /// Not a fault: application processes keep no copies.
    pub plain: bool,
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
    /// But from copies until then, if nobody noticed.
    copies_until: Nanos,
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
        epoch: u64,
        number: Option<u64>,
        /// Its last write travels with it.
        writes: bool,
    },
    Add {
        object: usize,
    },
    Barrier {
        round: u64,
        call: usize,
    },
    Publish,
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
            Self::Barrier { .. } | Self::Publish => None,
        }
    }
}

struct Pending {
    doing: Doing,
    /// Writes and releases that its process had sent, with this.
    sent: u64,
    /// What it publishes when it returns: what its process had written when it asked.
    written: Vec<(usize, u64)>,
    awaited: bool,
    /// The object was lost when this was asked.
    lost: bool,
}

struct Holding {
    object: usize,
    epoch: u64,
    working: [u64; 4],
    wrote: Option<u64>,
    /// Lost, as far as the rest of the world may know.
    zombie: bool,
    /// The process began it itself.
    entered: Option<Entered>,
}

/// What held when something was written to a stream.
#[derive(Clone)]
struct Then {
    /// What had been published of each object.
    floors: Vec<u64>,
    at: Nanos,
}

#[derive(Default)]
struct Ap {
    alive: bool,
    /// Up to which write of each object it was told that it cannot be published.
    told: HashMap<usize, u64>,
    /// It does nothing and takes nothing until it is continued.
    stopped: bool,
    /// Requests under way: at most one that is waited for.
    pending: HashMap<u64, Pending>,
    /// A link broke while its acquire was under way: the grant may be void when it comes.
    doubtful: bool,
    holding: Option<Holding>,
    actions: u32,
    round: u64,
    /// Calls of the barrier that failed.
    failures: u32,
    /// At the end: which objects it can use.
    knows: Vec<bool>,
    seen: HashMap<usize, u64>,
    /// What it released or added itself, by object.
    own: HashMap<usize, u64>,
    versions: HashMap<usize, u64>,
    /// What it released itself and others need not know of, by object.
    quiet: HashMap<usize, u64>,
    /// Writes and releases that it sent, and how many of them are published for certain.
    sent: u64,
    published: u64,
    /// What it is told and has not taken, each with what had been published by then, by object.
    stream: VecDeque<(Told, Then)>,
    held: HashMap<usize, Held<Bytes>>,
    /// Accesses that the memory process did not see and was not told of.
    collected: Vec<LocalAccesses>,
    /// Until when accesses were collected.
    collected_at: Nanos,
    /// What it edits: objects, the numbers of their delegations, and what they will be.
    edits: Vec<(usize, u64, Bytes)>,
    /// What had been published when the last message that it has taken was written, by object.
    floors: Vec<u64>,
    /// When what it was told last was written to its stream.
    told_at: Nanos,
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
    /// A memory process was started again: barriers may count anew.
    restarted: bool,
    /// Calls of the barrier, by application process.
    arrivals: Vec<Vec<barriers::Arrival>>,
    steps: u64,
    /// The last step before which the cluster was quiet.
    quiet: u64,
    down: Vec<(MpId, MpId)>,
    next_number: u64,
    refusals: u64,
    /// Requests outside the programs, and the last reply to one.
    lookups: HashSet<(ApId, u64)>,
    looked: Option<Reply>,
    /// The variables by their numbers.
    numbers: HashMap<VarId, String>,
    done: HashMap<ObjectId, OpCounts>,
    /// Writes that came with a release that failed.
    unsure: HashMap<ObjectId, u64>,
}

impl Sim {
    /// The run of this seed; a silent one does not say what happens.
    pub fn new(seed: u64, faults: Faults, silent: bool) -> Self {
        let mut rng = StdRng::seed_from_u64(seed);
        let shapes: [(&[&str], u32, u32); 5] = [
            (&["/a"], 2, 1),
            (&["/a"], 3, 2),
            (&["/a", "/b"], 2, 1),
            (&["/a", "/a/x", "/b"], 2, 1),
            (&["/a", "/b"], 1, 2),
        ];
        let (groups, mps, aps) = shapes[rng.random_range(0..shapes.len())];
        let mut c = Cluster::new(groups, mps, aps);
        c.silent = silent;
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
            restarted: false,
            arrivals: vec![Vec::new(); aps],
            steps: 0,
            quiet: 0,
            down: Vec::new(),
            next_number: 1,
            refusals: 0,
            lookups: HashSet::new(),
            looked: None,
            numbers: HashMap::new(),
            done: HashMap::new(),
            unsure: HashMap::new(),
        };
        sim.style = match sim.rng.random_range(0..4) {
            _ if faults.plain => Style::Mixed,
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
                    let cached = self.rng.random_bool(0.5) && !self.faults.plain;
                    (policy, owner, cached)
                }
            };
            let owner_name = self.c.topology.mp_name(owner);
            let name = format!("v{i}");
            let cache = if cached { Cache::Ap } else { Cache::Mp };
            let spec = vector(&name, ELEMENTS, 1, &[&owner_name], policy).with_cache(cache);
            let id = ObjectId::new(self.c.declare(0, spec).id(), 0);
            self.numbers.insert(id.var, name.clone());
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
                copies_until: Nanos::ZERO,
            });
        }
        self.c.replies.clear();
        self.c.told.clear();
    }

    /// Runs to the end and checks everything; the cluster then, with what happened.
    pub fn run(mut self) -> Cluster {
        for _ in 0..100_000 {
            self.take_some_replies();
            if !self.step() && !self.take_replies() {
                break;
            }
        }
        // What still waits does so for somebody who is lost: its deadline ends it.
        let waits = self.aps.iter().any(|ap| !ap.pending.is_empty());
        self.must(!waits || self.disturbed, "somebody waits for ever");
        self.end();
        let done = (&self.done, &self.unsure);
        monitoring::check(&self.c.topology, &self.c.items, done, self.disturbed);
        let verdict = monitoring::verify(&self.c.topology, &self.c.items, self.disturbed);
        // Without a fault nothing is in doubt.
        let decided = self.disturbed || verdict.state == State::Consistent;
        let accepted = decided && verdict.violations.is_empty();
        self.must(accepted, &format!("{verdict:#?}"));
        self.c
    }

    /// One message, one action or one fault; false when nothing can happen any more.
    fn step(&mut self) -> bool {
        // So that records tell what came first.
        self.c.now += Nanos(1);
        let busy = self.c.busy();
        let ready: Vec<usize> = (0..self.aps.len()).filter(|a| self.may_act(*a)).collect();
        self.note_quiet(!busy.is_empty());
        if busy.is_empty() && ready.is_empty() {
            return self.go_on();
        }
        if self.faults.deaths && self.rng.random_bool(0.004) {
            self.death();
        } else if self.faults.restarts && self.rng.random_bool(0.004) {
            self.restart();
        } else if (self.faults.cuts || self.faults.one_sided)
            && self
                .rng
                .random_bool(if self.faults.lasting { 0.02 } else { 0.01 })
        {
            self.cut();
        } else if self.faults.stops && self.rng.random_bool(0.01) {
            self.stop();
        } else if self.faults.timeouts && self.rng.random_bool(0.01) {
            self.cancel();
        } else if self.time_matters()
            && self
                .rng
                .random_bool(if self.faults.lasting { 0.03 } else { 0.02 })
        {
            let millis = if self.faults.lasting {
                1_000..4_000
            } else {
                1..1_500
            };
            let time = Nanos::from_millis(self.rng.random_range(millis));
            self.c.pass(time);
        } else if self.disturbed && self.rng.random_bool(0.005) {
            // So that what failed is known everywhere before more happens.
            self.run_out();
        } else if !busy.is_empty() && (ready.is_empty() || self.rng.random_bool(0.6)) {
            let pair = busy[self.rng.random_range(0..busy.len())];
            self.c.deliver(pair);
        } else if !ready.is_empty() {
            let a = ready[self.rng.random_range(0..ready.len())];
            self.act(a);
        }
        true
    }

    fn say(&mut self, what: impl FnOnce() -> String) {
        if !self.c.silent {
            self.c.log.push(what());
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
