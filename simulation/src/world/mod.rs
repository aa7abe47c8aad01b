//! The scheduler: all processes of a cluster, what happens to them when, and their connections.
//!
//! What happens next is the event with the least time; between events nothing passes, so long quiet stretches cost nothing.
//! Everything is drawn from one random source, and programs run one at a time: a seed determines a run.

mod connections;
mod events;
mod processes;
mod steps;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::btree_map::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use dosmos_proto::{Incarnation, MpId, Nanos};
use rand::RngExt;
use rand::rngs::StdRng;

use crate::clock::Clock;
use crate::coroutine::Coroutine;
use crate::manager::{Disk, EventManager};
use crate::memory::Memory;
use crate::network::{ConnId, Message, Network, Pid};
use crate::plan::Plan;
use crate::program::{Common, Part};
use crate::trail::Trail;

const MS: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MS;

/// Deadlines are looked at this often while something happens.
const TICK: u64 = 20 * MS;
/// And this often when nothing has for long.
const SELDOM: u64 = 500 * MS;
/// While leases are renewed, deadlines are looked at at least this often, so that no renewal comes late.
const RENEWING: u64 = 100 * MS;
/// Something happened not long ago.
const RECENT: u64 = 5 * SECOND;
const BATCH_AGE: u64 = 50 * MS;
const PROBE: u64 = SECOND;
const GATHER: u64 = 100 * MS;
const RETRY: u64 = 500 * MS;

/// Something that happens.
#[derive(Debug)]
pub(crate) enum Event {
    /// A message arrives at an end of a connection.
    Arrive(ConnId, usize, Message),
    /// A program goes on.
    Wake(Pid),
    /// A session looks at its deadlines.
    Look(Pid),
    Tick(usize),
    Pack(usize),
    Probe(usize),
    /// A process dials another.
    Dial(Pid, Pid),
    /// An event manager writes what is pending.
    Write(usize),
    /// That is on disk.
    Written(usize),
    Fault,
    /// A memory process is lost for a while.
    Lose(Pid),
    /// A process is started again.
    Restart(Pid),
    /// A stopped process goes on.
    Continue(Pid),
    /// One end notices that its connection is cut.
    Notice(ConnId, usize),
    /// There is room on a disk again.
    Room(usize),
}

/// An event in the queue: of those at one time the first that was put there.
struct Queued(u64, u64, u32, Event);

impl PartialEq for Queued {
    fn eq(&self, other: &Self) -> bool {
        (self.0, self.1) == (other.0, other.1)
    }
}
impl Eq for Queued {}
impl PartialOrd for Queued {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Queued {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.0, self.1).cmp(&(other.0, other.1))
    }
}

/// What is the same of all processes.
#[derive(Debug, Default)]
pub(crate) struct Process {
    /// Which start it is; 0: it never ran.
    pub(crate) start: u32,
    pub(crate) up: bool,
    pub(crate) stopped: bool,
    /// What happened to it while it was stopped.
    held: Vec<Event>,
    pub(crate) clock: Option<Clock>,
}

/// The session of a program.
#[derive(Clone, Copy, Debug)]
struct Line {
    conn: ConnId,
    /// When it looks at its deadlines next.
    look_at: u64,
    /// When its program did something or something arrived for it last.
    active: u64,
}

/// What each memory process made, start by start, and what of it was dropped.
#[derive(Clone, Copy, Debug)]
#[allow(dead_code)] // who it was is said if something does not hold
pub(crate) struct Account {
    mp: MpId,
    incarnation: Incarnation,
    pub(crate) made: u64,
    pub(crate) dropped: u64,
    /// It ended well.
    pub(crate) whole: bool,
}

/// A simulated cluster.
pub(crate) struct World {
    pub(crate) now: u64,
    queue: BinaryHeap<Reverse<Queued>>,
    order: u64,
    pub(crate) rng: StdRng,
    pub(crate) plan: Plan,
    pub(crate) common: Arc<Common>,
    pub(crate) trail: Trail,
    pub(crate) network: Network,
    pub(crate) processes: BTreeMap<Pid, Process>,
    programs: BTreeMap<Pid, Coroutine>,
    lines: BTreeMap<Pid, Line>,
    pub(crate) memories: Vec<Option<Memory>>,
    /// When something happened to a memory process last.
    active: Vec<u64>,
    /// When it was last asked to renew a lease, or one of its own was renewed.
    renewed: Vec<u64>,
    packing: Vec<bool>,
    pub(crate) managers: Vec<Option<EventManager>>,
    writing: Vec<bool>,
    pub(crate) disks: Vec<Disk>,
    pub(crate) accounts: Vec<Account>,
    pub(crate) faults: bool,
    /// Since when nothing is wrong, as far as it is decided already.
    pub(crate) calm_from: u64,
    part: Part,
    scratch: Vec<u8>,
    /// What the simulation itself could not do.
    pub(crate) trouble: Option<String>,
}

impl World {
    pub(crate) fn new(
        plan: Plan,
        common: Arc<Common>,
        rng: StdRng,
        trail: Trail,
        dir: &Path,
    ) -> Self {
        let topology = &plan.topology;
        let (mps, emps) = (
            topology.memory_processes().len(),
            topology.event_managers().len(),
        );
        let disks = (0..emps).map(|e| Disk::new(&dir.join(format!("emp{e}"))));
        let mut world = Self {
            now: SECOND,
            queue: BinaryHeap::new(),
            order: 0,
            rng,
            common,
            trail,
            network: Network::default(),
            processes: BTreeMap::new(),
            programs: BTreeMap::new(),
            lines: BTreeMap::new(),
            memories: (0..mps).map(|_| None).collect(),
            active: vec![0; mps],
            renewed: vec![0; mps],
            packing: vec![false; mps],
            managers: (0..emps).map(|_| None).collect(),
            writing: vec![false; emps],
            disks: disks.collect(),
            accounts: Vec::new(),
            faults: false,
            calm_from: 0,
            part: Part::Rounds,
            scratch: Vec::new(),
            trouble: None,
            plan,
        };
        for e in 0..emps {
            world.start(Pid::Emp(e));
        }
        for m in 0..mps {
            world.start(Pid::Mp(m));
        }
        world
    }

    pub(crate) fn at(&mut self, at: u64, event: Event) {
        self.order += 1;
        let start = self.start_of(&event);
        self.queue
            .push(Reverse(Queued(at.max(self.now), self.order, start, event)));
    }

    /// Which start of a process an event is for; those for an earlier one are dropped.
    fn start_of(&self, event: &Event) -> u32 {
        let start = |pid| self.processes.get(&pid).map_or(0, |p: &Process| p.start);
        match event {
            Event::Wake(pid) | Event::Look(pid) | Event::Dial(pid, _) => start(*pid),
            Event::Tick(m) | Event::Pack(m) | Event::Probe(m) => start(Pid::Mp(*m)),
            Event::Write(e) | Event::Written(e) => start(Pid::Emp(*e)),
            _ => 0,
        }
    }

    pub(crate) fn say(&mut self, words: impl FnOnce() -> String) {
        self.trail.say(self.now, words);
    }

    pub(crate) fn is_up(&self, pid: Pid) -> bool {
        self.processes.get(&pid).is_some_and(|p| p.up)
    }

    pub(crate) fn is_stopped(&self, pid: Pid) -> bool {
        self.processes.get(&pid).is_some_and(|p| p.stopped)
    }

    /// The time to the next look at deadlines: `least` while something happened recently, then longer and longer, up to `most`.
    fn pause(&self, active: u64, least: u64, most: u64) -> u64 {
        match self.now - active {
            0..RECENT => least,
            idle => (idle / 64).clamp(least, most),
        }
    }

    /// What a process's clock says.
    fn clock(&self, pid: Pid) -> Nanos {
        let clock = self.processes.get(&pid).and_then(|p| p.clock);
        clock.map_or(Nanos::ZERO, |c| c.says(self.now))
    }

    /// How long a message takes to an end of a connection.
    fn delay_to(&mut self, conn: ConnId, to: usize) -> u64 {
        /// How many times as long as most messages take some.
        const LATE: u64 = 12;
        let most = self.plan.delay_ns;
        let delay = self.rng.random_range(most / 8..most);
        let late = self.rng.random_range(0..64) == 0;
        let ends = self.network.conn(conn).map(|c| (c.pid(1 - to), c.pid(to)));
        let slow = self.plan.slow.map(|(a, b)| (Pid::Mp(a), Pid::Mp(b)));
        match late || (slow.is_some() && ends == slow) {
            true => delay * LATE,
            false => delay,
        }
    }
}
