//! The scheduler: all processes of a cluster, what happens to them when, and their connections.
//!
//! What happens next is the event with the least time; between events nothing passes, so long quiet stretches cost nothing.
//! Everything is drawn from one random source, and programs run one at a time: a seed determines a run.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::btree_map::{BTreeMap, Entry};
use std::path::Path;
use std::sync::Arc;

use dosmos_memproc::recorder::Recording;
use dosmos_proto::wire::peer_message;
use dosmos_proto::{EmpId, Incarnation, MpId, Nanos};
use rand::RngExt;
use rand::rngs::StdRng;

use crate::clock::Clock;
use crate::manager::{Disk, EventManager};
use crate::memory::{Memory, Sent, To};
use crate::network::{ConnId, Message, Network, Pid};
use crate::plan::{Kind, Plan};
use crate::program::{Common, Part, Program};
use crate::thread::{Thread, Wish};
use crate::trail::Trail;

const MS: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MS;

/// Deadlines are looked at this often while something happens.
const TICK: u64 = 20 * MS;
/// And this often when nothing has for long.
const SELDOM: u64 = 500 * MS;
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
    clock: Option<Clock>,
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
    threads: BTreeMap<Pid, Thread>,
    /// The connection of each program, and when its session looks at its deadlines next.
    lines: BTreeMap<Pid, (ConnId, u64)>,
    pub(crate) memories: Vec<Option<Memory>>,
    /// When something happened to a memory process last.
    active: Vec<u64>,
    packing: Vec<bool>,
    pub(crate) managers: Vec<Option<EventManager>>,
    writing: Vec<bool>,
    pub(crate) disks: Vec<Disk>,
    pub(crate) accounts: Vec<Account>,
    pub(crate) faults: bool,
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
            threads: BTreeMap::new(),
            lines: BTreeMap::new(),
            memories: (0..mps).map(|_| None).collect(),
            active: vec![0; mps],
            packing: vec![false; mps],
            managers: (0..emps).map(|_| None).collect(),
            writing: vec![false; emps],
            disks: disks.collect(),
            accounts: Vec::new(),
            faults: false,
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

    /// What a process's clock says.
    fn clock(&self, pid: Pid) -> Nanos {
        let clock = self.processes.get(&pid).and_then(|p| p.clock);
        clock.map_or(Nanos::ZERO, |c| c.says(self.now))
    }

    fn delay(&mut self) -> u64 {
        let most = self.plan.delay_ns;
        let delay = self.rng.random_range(most / 8..most);
        match self.rng.random_range(0..64) {
            0 => delay * 12,
            _ => delay,
        }
    }

    // ---------------------------------------------------------------- processes

    /// Starts a process.
    pub(crate) fn start(&mut self, pid: Pid) {
        // Of clocks that nothing relates `verify` cannot decide.
        let skewed = self.rng.random_bool(0.5) && self.plan.kind != Kind::Plain;
        // The wall clock is right, wrong, or was stepped since the last start.
        let (ahead, ppm) = match skewed {
            true => (
                self.rng.random_range(-2_000_000_000..2_000_000_000_i64),
                self.rng.random_range(-200..200),
            ),
            false => (0, 0),
        };
        let mut clock = Clock::new(self.now, ahead, ppm);
        // An application process is on the machine of its memory process.
        if let Pid::Ap(a) | Pid::Intruder(a) = pid {
            let home = self.plan.topology.application_processes()[a].memory_process;
            let its = self.processes.get(&Pid::Mp(home.index()));
            clock = its.and_then(|p| p.clock).unwrap_or(clock);
        }
        let process = self.processes.entry(pid).or_default();
        process.start += 1;
        process.up = true;
        process.stopped = false;
        process.clock = Some(clock);
        let start = process.start;
        self.trail.add(self.now, &[0xf0, start as u8]);
        self.say(|| format!("{pid:?} starts, {start}"));
        match pid {
            Pid::Emp(e) => self.start_manager(e, clock),
            Pid::Mp(m) => self.start_memory(m, start),
            Pid::Ap(_) | Pid::Intruder(_) => self.start_program(pid),
        }
    }

    fn start_manager(&mut self, e: usize, clock: Clock) {
        let me = EmpId(e as u32);
        let topology = Arc::clone(&self.plan.topology);
        match EventManager::start(&topology, me, clock, &mut self.disks[e]) {
            Ok(manager) => {
                self.managers[e] = Some(manager);
                self.writing[e] = false;
                self.after_manager(e);
            }
            // A full disk: it is tried again.
            Err(_) => {
                self.processes.entry(Pid::Emp(e)).or_default().up = false;
                self.at(self.now + SECOND, Event::Restart(Pid::Emp(e)));
            }
        }
    }

    fn start_memory(&mut self, m: usize, start: u32) {
        let me = MpId(m as u32);
        let incarnation = Incarnation::new(start, self.rng.random());
        let recording = Recording {
            buffer_bytes: match self.plan.fault_every {
                Some(_) if self.rng.random_bool(0.2) => 20_000,
                _ => 64 << 20,
            },
            ..Recording::default()
        };
        let memory = Memory::new(&self.plan.topology, me, incarnation, recording);
        let dials = memory.dials();
        self.memories[m] = Some(memory);
        self.active[m] = self.now;
        self.packing[m] = false;
        for peer in dials {
            self.dial_soon(Pid::Mp(m), Pid::Mp(peer.index()), MS);
        }
        // And those that dial it try again soon.
        self.dial_soon(Pid::Mp(m), self.manager_of(m), MS);
        self.at(self.now + TICK, Event::Tick(m));
        self.at(self.now + PROBE, Event::Probe(m));
    }

    fn manager_of(&self, m: usize) -> Pid {
        let process = &self.plan.topology.memory_processes()[m];
        Pid::Emp(process.event_manager.index())
    }

    fn start_program(&mut self, pid: Pid) {
        let (a, part) = match pid {
            Pid::Intruder(a) => (a, Part::Intruder),
            Pid::Ap(a) => (a, self.part),
            _ => return,
        };
        let (common, seed) = (Arc::clone(&self.common), self.rng.random());
        let thread = Thread::new(&format!("ap{a}"), move |seat| {
            Program::run(common, seat, a, seed, part);
        });
        match thread {
            Ok(thread) => {
                self.threads.insert(pid, thread);
                self.at(self.now, Event::Wake(pid));
            }
            Err(e) => self.trouble = Some(format!("no thread for a program: {e}")),
        }
    }

    /// All application processes begin a part of the program.
    pub(crate) fn begin(&mut self, part: Part) {
        self.part = part;
        for a in 0..self.plan.topology.application_processes().len() {
            self.start(Pid::Ap(a));
        }
    }

    /// Whether no program runs.
    pub(crate) fn programs_are_over(&self) -> bool {
        self.threads.is_empty()
    }

    /// A process ends at once, as by `kill -9`.
    pub(crate) fn kill(&mut self, pid: Pid) {
        if !self.is_up(pid) {
            return;
        }
        self.trail.add(self.now, &[0xf1]);
        self.say(|| format!("{pid:?} is killed"));
        let process = self.processes.entry(pid).or_default();
        process.up = false;
        process.stopped = false;
        for event in std::mem::take(&mut process.held) {
            // Who dialled it learns that nobody is there.
            if let Event::Arrive(conn, end, Message::Open) = event {
                self.send(conn, 1 - end, Message::Closed);
            }
        }
        match pid {
            Pid::Ap(a) => {
                if let Some(mut thread) = self.threads.remove(&pid) {
                    thread.kill();
                    self.common.history().died(a, self.now);
                }
                self.lines.remove(&pid);
            }
            Pid::Intruder(_) => {
                self.threads.remove(&pid);
                self.lines.remove(&pid);
            }
            Pid::Mp(m) => {
                let name = self.plan.topology.mp_name(MpId(m as u32));
                let group = self.plan.group_of(&name);
                self.common.history().owner_lost(&name, group, self.now);
                if let Some(memory) = self.memories[m].take() {
                    self.account(m, &memory, false);
                }
            }
            Pid::Emp(e) => self.managers[e] = None,
        }
        for (conn, end) in self.network.open_ends(pid) {
            self.network.close(conn, end);
            self.send(conn, 1 - end, Message::Closed);
        }
    }

    pub(crate) fn account(&mut self, m: usize, memory: &Memory, whole: bool) {
        let (made, dropped) = memory.accounts();
        self.accounts.push(Account {
            mp: MpId(m as u32),
            incarnation: memory.incarnation(),
            made,
            dropped,
            whole,
        });
    }

    /// A process does nothing until it is continued.
    pub(crate) fn stop(&mut self, pid: Pid, time: u64) {
        self.trail.add(self.now, &[0xf2]);
        self.say(|| format!("{pid:?} is stopped for {} ms", time / MS));
        self.processes.entry(pid).or_default().stopped = true;
        self.at(self.now + time, Event::Continue(pid));
    }

    pub(crate) fn go_on(&mut self, pid: Pid) {
        let process = self.processes.entry(pid).or_default();
        if !process.stopped {
            return;
        }
        process.stopped = false;
        let held = std::mem::take(&mut process.held);
        self.say(|| format!("{pid:?} goes on"));
        held.into_iter().for_each(|event| self.happen(event));
    }

    // -------------------------------------------------------------- connections

    /// Sends something to an end of a connection.
    fn send(&mut self, conn: ConnId, to: usize, message: Message) {
        let delay = self.delay();
        if let Some(at) = self.network.arrival(conn, to, self.now, delay) {
            self.at(at, Event::Arrive(conn, to, message));
        }
    }

    fn send_all(&mut self, me: Pid, sent: Sent) {
        for (to, message) in sent {
            match to {
                To::Conn(conn) => {
                    let Some(end) = self.end_of(conn, me) else {
                        continue;
                    };
                    self.send(conn, 1 - end, message);
                }
                To::End(conn) => {
                    if let Some(end) = self.end_of(conn, me) {
                        self.hang_up(conn, end);
                    }
                }
            }
        }
    }

    /// Which end of an open connection is a process's.
    fn end_of(&self, conn: ConnId, me: Pid) -> Option<usize> {
        let conn = self.network.conn(conn)?;
        (0..2).find(|end| conn.pid(*end) == me && conn.is_open(*end))
    }

    /// An end is closed by its process; the other learns of it.
    pub(crate) fn hang_up(&mut self, conn: ConnId, end: usize) {
        if self.network.close(conn, end) {
            self.send(conn, 1 - end, Message::Closed);
            self.ended(conn, end);
        }
    }

    fn dial_soon(&mut self, from: Pid, to: Pid, most: u64) {
        let pause = self.rng.random_range(most / 4..=most);
        self.at(self.now + pause, Event::Dial(from, to));
    }

    fn dial(&mut self, from: Pid, to: Pid) {
        if self.network.is_blocked(from, to, self.now) {
            return self.dial_soon(from, to, 500 * MS);
        }
        let mut sent = Sent::new();
        match (from, to) {
            (Pid::Mp(m), Pid::Mp(p)) => {
                let Some(memory) = &self.memories[m] else {
                    return;
                };
                let peer = MpId(p as u32);
                if memory.is_linked(peer) {
                    return;
                }
                let hello = memory.greeting(peer);
                let conn = self.network.dial(from, to);
                self.send(conn, 1, Message::Open);
                sent.push((To::Conn(conn), Message::Peer(Box::new(hello))));
            }
            (Pid::Mp(m), Pid::Emp(_)) => {
                if self.memories[m].as_ref().is_none_or(Memory::has_manager) {
                    return;
                }
                let conn = self.network.dial(from, to);
                self.send(conn, 1, Message::Open);
                if let Some(memory) = &mut self.memories[m] {
                    memory.greet_manager(conn, &mut sent);
                }
            }
            (Pid::Emp(e), Pid::Emp(o)) => {
                let other = EmpId(o as u32);
                let wants = |m: &EventManager| m.wants_to_dial().contains(&other);
                if !self.managers[e].as_ref().is_some_and(wants) {
                    return;
                }
                let conn = self.network.dial(from, to);
                self.send(conn, 1, Message::Open);
                if let Some(manager) = &mut self.managers[e] {
                    manager.greet(other, conn, &mut sent);
                }
            }
            (Pid::Ap(_) | Pid::Intruder(_), _) => {
                let conn = self.network.dial(from, to);
                self.send(conn, 1, Message::Open);
                self.lines.insert(from, (conn, u64::MAX));
                return self.after_program(from);
            }
            _ => {}
        }
        self.send_all(from, sent);
    }

    fn arrive(&mut self, id: ConnId, end: usize, message: Message) {
        let Some(conn) = self.network.conn(id).copied() else {
            return;
        };
        let (me, other) = (conn.pid(end), conn.pid(1 - end));
        if let Message::Open = message {
            if self.is_up(me) {
                self.network.accept(id);
            } else {
                self.send(id, 1 - end, Message::Closed);
            }
            return;
        }
        if !conn.is_open(end) {
            return self.network.forget(id, self.now);
        }
        if let Message::Closed = message {
            if self.network.close(id, end) {
                self.ended(id, end);
            }
            return self.network.forget(id, self.now);
        }
        let now = self.clock(me);
        let mut sent = Sent::new();
        match (me, message) {
            (Pid::Ap(_) | Pid::Intruder(_), Message::Reply(reply)) => {
                let received = self.threads.get(&me);
                received.map(|t| t.on_line(now, |line| line.receive(*reply)));
                return self.program_may_go_on(me);
            }
            (Pid::Mp(m), message) => self.arrive_at_memory(m, id, other, message, &mut sent),
            (Pid::Emp(e), message) => {
                if let Some(manager) = &mut self.managers[e] {
                    match message {
                        Message::Ingest(request) => {
                            manager.ingest(self.now, id, *request, &mut sent);
                        }
                        Message::Exchange(request) => manager.exchange(id, *request, &mut sent),
                        Message::ExchangeReply(reply) => manager.exchanged(id, &reply, &mut sent),
                        _ => {}
                    }
                }
            }
            _ => {}
        }
        self.send_all(me, sent);
        self.after(me);
    }

    fn arrive_at_memory(
        &mut self,
        m: usize,
        id: ConnId,
        other: Pid,
        message: Message,
        sent: &mut Sent,
    ) {
        let now = self.clock(Pid::Mp(m));
        let quiet = matches!(message, Message::IngestReply(_));
        let Some(memory) = &mut self.memories[m] else {
            return;
        };
        match (message, other) {
            (Message::Request(request), _) => memory.request(now, id, *request, sent),
            (Message::IngestReply(reply), _) => memory.told(now, id, &reply, sent),
            (Message::Peer(message), Pid::Mp(p)) => {
                let peer = MpId(p as u32);
                if let Some(peer_message::Body::Hello(_)) = message.body {
                    if peer < MpId(m as u32) {
                        let hello = memory.greeting(peer);
                        sent.push((To::Conn(id), Message::Peer(Box::new(hello))));
                    }
                    memory.attach_peer(now, peer, id, sent);
                } else {
                    memory.peer(now, peer, *message, sent);
                }
            }
            _ => {}
        }
        if !quiet {
            self.active[m] = self.now;
        }
    }

    /// An end is closed: its process does what follows.
    fn ended(&mut self, id: ConnId, end: usize) {
        let Some(conn) = self.network.conn(id).copied() else {
            return;
        };
        let (me, other) = (conn.pid(end), conn.pid(1 - end));
        let (now, mut sent) = (self.clock(me), Sent::new());
        self.say(|| format!("{me:?} loses its connection to {other:?}"));
        match me {
            Pid::Ap(_) | Pid::Intruder(_) => {
                let thread = self.threads.get(&me);
                thread.map(|t| t.on_line(now, |line| line.lose("the memory process is gone")));
                self.lines.remove(&me);
                return self.program_may_go_on(me);
            }
            Pid::Mp(m) => {
                self.active[m] = self.now;
                let Some(memory) = &mut self.memories[m] else {
                    return;
                };
                match other {
                    Pid::Ap(_) | Pid::Intruder(_) => memory.ap_gone(now, id, &mut sent),
                    Pid::Mp(p) => {
                        memory.peer_gone(now, MpId(p as u32), id, &mut sent);
                        if end == 0 {
                            self.dial_soon(me, other, 500 * MS);
                        }
                    }
                    Pid::Emp(_) => {
                        if memory.manager_gone(id) {
                            self.dial_soon(me, other, SECOND);
                        }
                    }
                }
            }
            Pid::Emp(e) => {
                if let Some(manager) = &mut self.managers[e] {
                    manager.gone(id);
                }
                if end == 0 {
                    self.dial_soon(me, other, 2 * SECOND);
                }
            }
        }
        self.send_all(me, sent);
        self.after(me);
    }

    // ------------------------------------------------------------------- events

    /// The process that an event happens to, which may be stopped.
    fn subject(&self, event: &Event) -> Option<Pid> {
        match event {
            Event::Arrive(conn, end, _) => Some(self.network.conn(*conn)?.pid(*end)),
            Event::Wake(pid) | Event::Look(pid) | Event::Dial(pid, _) => Some(*pid),
            Event::Tick(m) | Event::Pack(m) | Event::Probe(m) => Some(Pid::Mp(*m)),
            Event::Write(e) | Event::Written(e) => Some(Pid::Emp(*e)),
            Event::Notice(conn, end) => self.network.conn(*conn).map(|c| c.pid(*end)),
            Event::Fault | Event::Restart(_) | Event::Continue(_) | Event::Room(_) => None,
        }
    }

    /// Until when the next event is; none if there is none.
    pub(crate) fn next_at(&self) -> Option<u64> {
        self.queue.peek().map(|Reverse(next)| next.0)
    }

    /// Lets the next event happen.
    pub(crate) fn step(&mut self) {
        let Some(Reverse(Queued(at, _, start, event))) = self.queue.pop() else {
            return;
        };
        self.now = at;
        if start != self.start_of(&event) {
            return;
        }
        self.note(&event);
        if let Some(pid) = self.subject(&event)
            && let Some(process) = self.processes.get_mut(&pid)
        {
            if process.stopped {
                return process.held.push(event);
            }
            if !process.up && !matches!(event, Event::Arrive(_, _, Message::Open)) {
                return;
            }
        }
        self.happen(event);
    }

    fn note(&mut self, event: &Event) {
        self.scratch.clear();
        match event {
            Event::Arrive(conn, end, message) => {
                self.scratch.extend(conn.to_le_bytes());
                self.scratch.push(*end as u8);
                message.encode(&mut self.scratch);
                if let Some(conn) = self.network.conn(*conn).copied() {
                    let (from, to) = (conn.pid(1 - end), conn.pid(*end));
                    self.trail.say(self.now, || {
                        format!("{from:?} -> {to:?}: {}", message.words())
                    });
                }
            }
            Event::Wake(Pid::Ap(a)) => self.scratch.extend([0xe1, *a as u8]),
            Event::Written(e) => self.scratch.extend([0xe2, *e as u8]),
            _ => self.scratch.push(0xe0),
        }
        self.trail.add(self.now, &self.scratch);
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Arrive(conn, end, message) => self.arrive(conn, end, message),
            Event::Wake(pid) => self.run_program(pid),
            Event::Look(pid) => {
                if self.lines.get(&pid).is_some_and(|l| l.1 <= self.now) {
                    if let Some(line) = self.lines.get_mut(&pid) {
                        line.1 = u64::MAX;
                    }
                    self.program_may_go_on(pid);
                }
            }
            Event::Tick(m) => self.tick(m),
            Event::Pack(m) => {
                self.packing[m] = false;
                self.on_memory(m, |memory, _, sent| memory.pack(false, sent));
            }
            Event::Probe(m) => {
                self.on_memory(m, |memory, now, sent| {
                    memory.probe(now, sent);
                    memory.pack(true, sent);
                });
                self.at(self.now + PROBE, Event::Probe(m));
            }
            Event::Dial(from, to) => self.dial(from, to),
            Event::Write(e) => self.write(e),
            Event::Written(e) => {
                let now = self.clock(Pid::Emp(e));
                let mut sent = Sent::new();
                self.writing[e] = false;
                if let Some(manager) = &mut self.managers[e] {
                    manager.written(now, &mut self.disks[e], &mut sent);
                }
                self.send_all(Pid::Emp(e), sent);
                self.after_manager(e);
            }
            Event::Fault => self.fault(),
            Event::Restart(pid) => {
                // Programs that ended for good begin together.
                let program = matches!(pid, Pid::Ap(_));
                if !self.is_up(pid) && (self.faults || !program) {
                    self.start(pid);
                }
            }
            Event::Continue(pid) => self.go_on(pid),
            Event::Notice(conn, end) => self.hang_up(conn, end),
            Event::Room(e) => self.disks[e].set_full(false),
        }
    }

    pub(crate) fn on_memory(&mut self, m: usize, work: impl FnOnce(&mut Memory, Nanos, &mut Sent)) {
        let now = self.clock(Pid::Mp(m));
        let mut sent = Sent::new();
        if let Some(memory) = &mut self.memories[m] {
            work(memory, now, &mut sent);
        }
        self.send_all(Pid::Mp(m), sent);
        self.after(Pid::Mp(m));
    }

    fn tick(&mut self, m: usize) {
        self.on_memory(m, super::memory::Memory::tick);
        let idle = self.now - self.active[m];
        let next = match idle {
            0..RECENT => TICK,
            _ => (idle / 64).clamp(TICK, SELDOM),
        };
        self.at(self.now + next, Event::Tick(m));
    }

    fn write(&mut self, e: usize) {
        let took = self.rng.random_range(10_000..2 * MS);
        let Some(manager) = &mut self.managers[e] else {
            return;
        };
        match manager.write(&mut self.disks[e]) {
            true => self.at(self.now + took, Event::Written(e)),
            false => self.at(self.now + RETRY, Event::Write(e)),
        }
    }

    // ------------------------------------------------------ what follows a step

    fn after(&mut self, pid: Pid) {
        match pid {
            Pid::Mp(m) => {
                if let Some(ap) = self.memories[m].as_ref().and_then(Memory::twice) {
                    let mut history = self.common.history();
                    history.must(false, || {
                        format!("a second process of the name of {ap} was let in")
                    });
                }
                let recorded = self.memories[m].as_mut().is_some_and(Memory::take_recorded);
                if recorded && !self.packing[m] {
                    self.packing[m] = true;
                    self.at(self.now + BATCH_AGE, Event::Pack(m));
                }
            }
            Pid::Emp(e) => self.after_manager(e),
            Pid::Ap(_) | Pid::Intruder(_) => {}
        }
    }

    fn after_manager(&mut self, e: usize) {
        let Some(manager) = &self.managers[e] else {
            return;
        };
        let dials = manager.wants_to_dial();
        if manager.is_to_write() && !self.writing[e] {
            self.writing[e] = true;
            self.at(self.now + GATHER, Event::Write(e));
        }
        for to in dials {
            let (me, to) = (Pid::Emp(e), Pid::Emp(to.index()));
            self.dial_soon(me, to, 50 * MS);
        }
    }

    /// A program runs until it waits.
    fn run_program(&mut self, pid: Pid) {
        let now = self.clock(pid);
        let Some(thread) = self.threads.get_mut(&pid) else {
            return;
        };
        let wish = match thread.run(now, self.now) {
            Ok(wish) => wish,
            Err(panic) => {
                let mut history = self.common.history();
                history.must(false, || {
                    format!("the program of {pid:?} panicked: {panic}")
                });
                Wish::Nothing
            }
        };
        let notes = self.common.history().take_notes();
        for note in notes {
            self.say(|| note);
        }
        self.after_program(pid);
        match wish {
            Wish::Reply => {}
            Wish::Time(time) => self.at(self.now + time, Event::Wake(pid)),
            Wish::Nothing => self.program_is_over(pid),
        }
    }

    /// Something happened to a program's session.
    fn program_may_go_on(&mut self, pid: Pid) {
        self.after_program(pid);
        if self.threads.get(&pid).map(Thread::wish) == Some(Wish::Reply) {
            self.run_program(pid);
        }
    }

    /// Sends what the session of a program has to send, and looks at its deadlines.
    fn after_program(&mut self, pid: Pid) {
        let now = self.clock(pid);
        let Some(thread) = self.threads.get(&pid) else {
            return;
        };
        let (mut requests, mut look) = (Vec::new(), None);
        let begun = thread.on_line(now, |line| {
            look = line.look();
            requests.extend(std::iter::from_fn(|| line.next()));
        });
        if begun.is_none() {
            return;
        }
        let (Pid::Ap(a) | Pid::Intruder(a)) = pid else {
            return;
        };
        let conn = match self.lines.entry(pid) {
            Entry::Occupied(line) => line.get().0,
            Entry::Vacant(line) => {
                let home = &self.plan.topology.application_processes()[a].memory_process;
                let conn = self.network.dial(pid, Pid::Mp(home.index()));
                line.insert((conn, u64::MAX));
                self.send(conn, 1, Message::Open);
                conn
            }
        };
        for request in requests {
            self.send(conn, 1, Message::Request(Box::new(request)));
        }
        let clock = self.processes.get(&pid).and_then(|p| p.clock);
        let (Some(look), Some(clock)) = (look, clock) else {
            return;
        };
        let at = clock.when(look, self.now);
        if let Some(line) = self.lines.get_mut(&pid)
            && at < line.1
        {
            line.1 = at;
            self.at(at, Event::Look(pid));
        }
    }

    fn program_is_over(&mut self, pid: Pid) {
        self.say(|| format!("the program of {pid:?} is over"));
        self.threads.remove(&pid);
        self.lines.remove(&pid);
        if let Some(process) = self.processes.get_mut(&pid) {
            process.up = false;
        }
        for (conn, end) in self.network.open_ends(pid) {
            self.network.close(conn, end);
            self.send(conn, 1 - end, Message::Closed);
        }
    }
}
