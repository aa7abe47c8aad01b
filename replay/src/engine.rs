//! The events of a replay, in order of time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use dosmos_proto::{MpId, Nanos, ObjectId, spin};
use dosmos_trace::record::{Op, PerOrigin};
use rustc_hash::FxHashSet;

use crate::balance::Balance;
use crate::barriers::Barriers;
use crate::change::Change;
use crate::copies::Copies;
use crate::costs::Costs;
use crate::counters::Counters;
use crate::host::{At, Host};
use crate::ids::{OpId, Opening, Process, PublicationId, Time};
use crate::locks::Locks;
use crate::places::{Places, Way};
use crate::polls::Versions;
use crate::queues::Queues;
use crate::script::{Mean, Script};
use crate::thread::{Step, Thinking};

/// A process waits awake for about so long for the next message.
const AWAKE_NS: Time = spin::LIMIT.as_nanos() as Time;

/// The same for a memory process whose application processes all wait for it.
const WAITED_FOR_AWAKE_NS: Time = spin::WAITED_FOR_LIMIT.as_nanos() as Time;

/// For how long nobody waits awake, over how long others needed the processors, about (`dosmos_proto::spin`).
const MISTRUST: f64 = 2.0;

/// Reads that are made once more, as nothing has changed, in all.
const MOST_READS: usize = 1_000_000;

/// What arrives with a message.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Arrived {
    /// At the memory process of the application process.
    Request(OpId),
    /// At the owner.
    Owner(OpId),
    /// The owner's response at the requester.
    Response(OpId),
    /// The reply at the application process.
    Reply(OpId),
    /// What a process wrote at this owner is to be published.
    Flush(OpId, MpId),
    /// It is.
    Flushed(OpId),
    /// A copy changed or is void.
    News(PublicationId, MpId),
    /// Acknowledged.
    Acknowledged(PublicationId),
    /// All participants of a memory process are at a barrier.
    Complete(Opening),
    /// The barrier is open.
    Open(Opening, MpId),
    /// At an application process that has an object to itself: another one needs it.
    Recall(ObjectId, MpId),
    /// The object is back at its owner.
    Returned(ObjectId),
}

impl Arrived {
    /// Between an application process and its memory process.
    fn is_near(self) -> bool {
        matches!(
            self,
            Self::Request(_) | Self::Reply(_) | Self::Recall(..) | Self::Returned(_)
        )
    }
}

#[derive(Clone, Copy, Debug)]
struct Message {
    way: Way,
    at: u8,
    bytes: u32,
    what: Arrived,
}

/// What a process did with its processor time.
#[derive(Clone, Copy, Debug)]
enum Job {
    Computed(u32),
    Sent(u32),
    Received(u32),
    /// What lies between two processes has passed a message on.
    Carried(u32),
}

/// What happens at an instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// A process begins.
    Begin(u32),
    /// A process has slept.
    Awake(u32),
    /// A message reaches the next process on its way.
    Reaches(u32),
}

/// Where an application process is.
#[derive(Debug, Default)]
pub(crate) struct Runner {
    /// Whose steps it takes: its own, but for work that another process took in the run.
    thread: usize,
    next: usize,
    /// The next step takes work, and it is known which.
    dealt: bool,
    thinking: bool,
    under_way: u32,
    ended: Option<Time>,
    /// Objects of which it asked for something ahead that is under way.
    asked: Vec<ObjectId>,
    /// It has come to one of these, and waits.
    joins: bool,
    /// What it waits for without reading it.
    waits_for: Option<ObjectId>,
    /// What it wrote outside sections and has not published.
    pub(crate) unpublished: FxHashSet<ObjectId>,
}

/// An operation under way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Running {
    pub(crate) ap: u32,
    pub(crate) step: Step,
    /// Owners that have not published yet what the process wrote.
    pub(crate) flushes: u32,
    /// When its memory process received it.
    pub(crate) received: Time,
    /// What a read has seen: sections of the object that had ended.
    pub(crate) seen: u64,
}

/// A publication under way at an owner.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Publication {
    pub(crate) op: OpId,
    pub(crate) owner: MpId,
    pub(crate) unacknowledged: u32,
    /// Of what was written outside sections; else the release of a section.
    pub(crate) flush: bool,
}

/// Numbered things that come and go.
#[derive(Debug)]
pub(crate) struct Slab<T> {
    all: Vec<T>,
    free: Vec<u32>,
}

impl<T: Copy> Slab<T> {
    fn new() -> Self {
        Self {
            all: Vec::new(),
            free: Vec::new(),
        }
    }

    pub(crate) fn put(&mut self, item: T) -> u32 {
        match self.free.pop() {
            Some(at) => {
                self.all[at as usize] = item;
                at
            }
            None => {
                self.all.push(item);
                (self.all.len() - 1) as u32
            }
        }
    }

    pub(crate) fn get(&self, at: u32) -> T {
        self.all[at as usize]
    }

    pub(crate) fn change(&mut self, at: u32) -> &mut T {
        &mut self.all[at as usize]
    }

    pub(crate) fn take(&mut self, at: u32) -> T {
        self.free.push(at);
        self.all[at as usize]
    }
}

/// How a replay went.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// From the begin of the last process to the end of all.
    pub length: Nanos,
    /// When each application process ended, from the begin of the first one; none: it never did, as what it waited for
    /// was not recorded.
    pub ended: Vec<Option<Nanos>>,
    /// Messages between processes.
    pub messages: u64,
    /// Processor time of all processes together.
    pub processor: Nanos,
    /// Of that, the memory processes.
    pub(crate) serving: Time,
    /// For how long each application process had no processor while it computed.
    pub(crate) without: Vec<Time>,
    /// How long reads and writes took, at the memory process that received them.
    pub(crate) data: PerOrigin<Mean>,
}

/// A replay under way.
pub(crate) struct Engine<'a> {
    pub(crate) script: &'a Script,
    pub(crate) costs: Costs,
    pub(crate) places: Places<'a>,
    pub(crate) runners: Vec<Runner>,
    pub(crate) ops: Slab<Running>,
    pub(crate) publications: Slab<Publication>,
    pub(crate) locks: Locks,
    pub(crate) copies: Copies,
    pub(crate) barriers: Barriers,
    host: Host<Job>,
    /// For how long each application process had no processor while it computed.
    without: Vec<Time>,
    /// When each process that was woken last was awake.
    awake_at: Vec<Time>,
    events: BinaryHeap<Reverse<(At, u64, Event)>>,
    numbered: u64,
    pub(crate) now: Time,
    messages: Slab<Message>,
    sent: u64,
    pub(crate) data: PerOrigin<Mean>,
    balance: Balance,
    queues: Queues,
    pub(crate) counters: Counters,
    pub(crate) versions: Versions,
    /// Reads that may still be made once more, as nothing has changed.
    reads_left: usize,
}

impl Script {
    /// Replays it with `change`, messages costing what `costs` say.
    pub fn replay(&self, costs: &Costs, change: &Change) -> Outcome {
        Engine::new(self, costs, change).run()
    }
}

impl<'a> Engine<'a> {
    fn new(script: &'a Script, costs: &Costs, change: &'a Change) -> Self {
        let catalog = &script.catalog;
        let places = Places::new(&catalog.topology, &catalog.variables, change);
        let processors = change.processors.unwrap_or(costs.processors);
        Self {
            script,
            costs: *costs,
            runners: (0..script.threads.len())
                .map(|thread| Runner {
                    thread,
                    ..Runner::default()
                })
                .collect(),
            queues: Queues::of(&script.threads),
            counters: Counters::default(),
            ops: Slab::new(),
            publications: Slab::new(),
            locks: Locks::default(),
            copies: Copies::default(),
            barriers: Barriers::default(),
            // Behind the processes what lies before each.
            host: Host::new(processors, costs.shared, 2 * places.processes()),
            without: vec![0.0; script.threads.len()],
            awake_at: vec![Time::NEG_INFINITY; places.processes()],
            places,
            events: BinaryHeap::new(),
            numbered: 0,
            now: 0.0,
            messages: Slab::new(),
            sent: 0,
            data: PerOrigin::default(),
            balance: Balance::of(script, change),
            versions: Versions::default(),
            reads_left: MOST_READS,
        }
    }

    fn run(mut self) -> Outcome {
        for (ap, thread) in (0u32..).zip(&self.script.threads) {
            self.at(thread.begin, Event::Begin(ap));
        }
        loop {
            let event = self.events.peek().map(|Reverse((At(at), _, _))| *at);
            let job = self.host.next_end();
            match (event, job) {
                (None, None) => break,
                (Some(at), job) if job.is_none_or(|end| at <= end) => {
                    self.pass(at);
                    if let Some(Reverse((_, _, event))) = self.events.pop() {
                        self.happens(event);
                    }
                }
                (_, Some(end)) => {
                    self.pass(end);
                    if let Some((job, without)) = self.host.end_next() {
                        if let Job::Computed(ap) = job {
                            self.without[ap as usize] += without;
                        }
                        self.done(job);
                    }
                }
                (Some(_), None) => break, // cannot be: the second arm took it
            }
        }
        self.outcome()
    }

    fn pass(&mut self, to: Time) {
        self.host.advance(to);
        self.now = self.now.max(to);
    }

    fn at(&mut self, at: Time, event: Event) {
        self.numbered += 1;
        self.events.push(Reverse((At(at), self.numbered, event)));
    }

    fn happens(&mut self, event: Event) {
        match event {
            Event::Begin(ap) => self.proceed(ap),
            Event::Awake(ap) => self.issue(ap),
            Event::Reaches(message) => {
                let m = self.messages.get(message);
                let Some(process) = m.way.get(usize::from(m.at)) else {
                    return;
                };
                if let Some(at) = self.wakes(process) {
                    return self.at(at, event);
                }
                let woken = self.asleep(process) * self.costs.woken_ns;
                let last = usize::from(m.at) + 1 == m.way.len();
                let end = self.end(m.what, m.bytes);
                let needs = match (last, m.what) {
                    // What is passed on is neither served nor made anew: both ends take as much as one.
                    (false, _) => end,
                    (true, Arrived::Request(_) | Arrived::Owner(_)) => end + self.costs.serve_ns,
                    (true, _) => end,
                };
                self.host
                    .give(process, needs + woken, Job::Received(message));
            }
        }
    }

    fn done(&mut self, job: Job) {
        match job {
            Job::Computed(ap) => {
                let thinking = self.thinking(ap);
                match thinking.asleep > 0.0 {
                    true => self.at(self.now + thinking.asleep, Event::Awake(ap)),
                    false => self.issue(ap),
                }
            }
            Job::Sent(message) => self.carried(message),
            Job::Carried(message) => self.under_way(message),
            Job::Received(message) => {
                let m = self.messages.change(message);
                m.at += 1;
                if usize::from(m.at) < m.way.len() {
                    return self.carried(message);
                }
                let what = self.messages.take(message).what;
                match what {
                    Arrived::Reply(op) => self.complete(op),
                    what => self.arrived(what),
                }
            }
        }
    }

    /// A message leaves a process: what lies before the next one, if there is something, hands it on.
    fn carried(&mut self, message: u32) {
        let m = self.messages.get(message);
        let all = self.places.processes() as Process;
        match m.way.get(usize::from(m.at)) {
            Some(to) if self.costs.carried(m.bytes) > 0.0 => {
                let needs = self.costs.carried(m.bytes);
                self.host.give(all + to, needs, Job::Carried(message));
            }
            _ => self.under_way(message),
        }
    }

    fn under_way(&mut self, message: u32) {
        let m = self.messages.get(message);
        let last = usize::from(m.at) + 1 == m.way.len();
        let content = if last { f64::from(m.bytes) } else { 0.0 };
        let network = content * self.costs.network_ns_per_byte;
        let way = match (m.what, m.way.len()) {
            (what, _) if what.is_near() => self.costs.near_ns,
            (_, 1) => self.costs.far_ns + network,
            _ => self.costs.link_ns + network,
        };
        let takes = (way + content * self.costs.way_ns_per_byte).max(0.0);
        self.at(self.now + takes, Event::Reaches(message));
    }

    /// How likely a process has to be woken for a message, 0 to 1. When it sleeps is not the same each time, and a process
    /// that sleeps makes others wait for longer, which then sleep too: a threshold would make the length of a replay jump.
    fn asleep(&self, process: Process) -> f64 {
        let awake = match self.is_waited_for(process) {
            true => WAITED_FOR_AWAKE_NS,
            false => AWAKE_NS,
        };
        let idle = self.host.idle(process);
        let long = (idle / awake - 0.5).clamp(0.0, 1.0);
        // Who has to give its processor away waits awake for a while no more, longer than that took.
        let crowded = (MISTRUST * self.host.crowded()).min(1.0);
        match idle > 0.0 {
            true => long.max(crowded),
            false => 0.0,
        }
    }

    /// Whether all application processes of a memory process wait for it.
    fn is_waited_for(&self, process: Process) -> bool {
        let its = self.places.its(process);
        let waits = |ap: &u32| {
            let runner = &self.runners[*ap as usize];
            runner.under_way > 0 || runner.joins
        };
        !its.is_empty() && its.iter().all(waits)
    }

    /// When a process that a message reaches now will be awake, if that takes until then.
    fn wakes(&mut self, process: Process) -> Option<Time> {
        let asleep = match self.host.has_idle_processor() {
            true => self.asleep(process),
            false => 0.0,
        };
        let awake_at = &mut self.awake_at[process as usize];
        if asleep > 0.0 && *awake_at < self.now {
            *awake_at = self.now + asleep * self.costs.wake_ns;
        }
        (*awake_at > self.now).then_some(*awake_at)
    }

    /// Sends a message.
    pub(crate) fn send(&mut self, from: Process, way: Way, bytes: u32, what: Arrived) {
        self.sent += 1;
        let message = self.messages.put(Message {
            way,
            at: 0,
            bytes,
            what,
        });
        let needs = self.end(what, bytes);
        self.host.give(from, needs, Job::Sent(message));
    }

    /// Processor time of one end of a message.
    fn end(&self, what: Arrived, bytes: u32) -> Time {
        match what.is_near() {
            true => self.costs.end(bytes),
            false => self.costs.end_between(bytes),
        }
    }

    fn thinking(&self, ap: u32) -> Thinking {
        let Runner {
            thread: of, next, ..
        } = self.runners[ap as usize];
        let thread = &self.script.threads[of];
        let step = thread.steps.get(next);
        let thinking = step.map_or(thread.tail, |s| s.thinking);
        let phase = step.map_or_else(|| thread.last_phase(), |s| s.phase);
        self.balance.of_phase(of as u32, phase, thinking)
    }

    /// A process goes on, if nothing that it waits for is under way.
    fn proceed(&mut self, ap: u32) {
        let runner = &mut self.runners[ap as usize];
        let steps = &self.script.threads[runner.thread].steps;
        let ahead = steps.get(runner.next).map_or(0, |s| s.ahead);
        let waits = runner.joins || runner.under_way > ahead;
        if runner.thinking || runner.ended.is_some() || waits {
            return;
        }
        runner.thinking = true;
        let computing = self.thinking(ap).computing;
        self.host.give(ap, computing, Job::Computed(ap));
    }

    /// A process begins its next operation, or ends.
    fn issue(&mut self, ap: u32) {
        let runner = &mut self.runners[ap as usize];
        runner.thinking = false;
        runner.waits_for = None;
        if !runner.dealt
            && let Some(step) = self.script.threads[runner.thread].steps.get(runner.next)
            && let Some(queue) = step.takes_from
        {
            (runner.thread, runner.next) = self.queues.next(queue, ap as usize);
            runner.dealt = true;
        }
        let next = self.script.threads[runner.thread].steps.get(runner.next);
        runner.joins = match next {
            Some(step) if step.op != Op::Barrier => runner.asked.contains(&step.object),
            _ => !runner.asked.is_empty(),
        };
        if runner.joins {
            return;
        }
        let Some(step) = next else {
            runner.ended = Some(self.now);
            return;
        };
        let awaited = step.until > 0 && self.places.is_awaited(step.object);
        if awaited && self.versions.of(step.object) < step.until {
            runner.waits_for = Some(step.object);
            return;
        }
        runner.next += 1;
        runner.dealt = false;
        if awaited {
            return self.proceed(ap);
        }
        if self.is_silent(ap, step)
            || step.takes_from.is_some() && self.counters.take_here(step.object, ap)
        {
            return self.proceed(ap);
        }
        let runner = &mut self.runners[ap as usize];
        match (step.asked_ahead, step.op) {
            // What follows a write on its way is served after it.
            (true, Op::Write) => {}
            (true, _) => runner.asked.push(step.object),
            (false, _) => runner.under_way += 1,
        }
        let mut step = *step;
        if step.op == Op::Acquire && self.places.is_unlocked(step.object, ap) {
            step.op = Op::Read;
            step.bytes = self.places.bytes(step.object);
        }
        if step.in_process {
            // What was read is not there: all of it is fetched.
            step.bytes = self.places.bytes(step.object);
        } else if self.places.are_together(step.object.var, step.op) {
            step.bytes = step.together;
        }
        let op = self.ops.put(Running {
            ap,
            step,
            flushes: 0,
            received: self.now,
            seen: 0,
        });
        if step.op == Op::Barrier && self.places.is_free(step.object.var) {
            return self.publish(op);
        }
        let home = self.places.process_of(self.places.home(ap));
        let bytes = if step.op == Op::Write { step.bytes } else { 0 };
        self.send(ap, Way::to(home), bytes, Arrived::Request(op));
        self.proceed(ap);
    }

    /// Whether an operation sends nothing.
    fn is_silent(&self, ap: u32, step: &Step) -> bool {
        let (object, home) = (step.object, self.places.home(ap));
        if step.goes_on && self.places.are_together(object.var, step.op) {
            return true;
        }
        if step.op != Op::Barrier && self.places.is_private(object) {
            return true;
        }
        if step.op == Op::Release && self.places.is_unlocked(object, ap) {
            return true;
        }
        let here = || {
            let owner = self.places.owner(object, home, step.owner);
            let differs = self.places.copies_differ(object, ap, step.owner);
            !differs || owner == home || self.copies.has(home, object)
        };
        step.in_process && here()
    }

    /// Whether the object of the operation may be delegated to the process.
    fn may_have(&self, ap: u32, step: &Step) -> bool {
        let home = self.places.home(ap);
        let owner = self.places.owner(step.object, home, step.owner);
        owner == home && self.places.may_be_delegated(step.object.var)
    }

    pub(crate) fn complete(&mut self, op: OpId) {
        let Running { ap, step, seen, .. } = self.ops.take(op);
        let runner = &mut self.runners[ap as usize];
        if step.asked_ahead {
            if let Some(at) = runner.asked.iter().position(|o| *o == step.object) {
                runner.asked.swap_remove(at);
            }
            if runner.joins {
                self.issue(ap);
            }
            return;
        }
        runner.under_way -= 1;
        if step.takes_from.is_some() && self.may_have(ap, &step) {
            self.counters.taken(step.object, ap);
        }
        let runner = &mut self.runners[ap as usize];
        if seen < step.until {
            // It reads again. If nothing changes any more, because records are missing, it does not go on for ever.
            let Some(left) = self.reads_left.checked_sub(1) else {
                return;
            };
            self.reads_left = left;
            runner.next -= 1;
        }
        self.proceed(ap);
    }

    /// A section of the object has ended: who waits for that goes on.
    pub(crate) fn changed(&mut self, object: ObjectId, version: u64) {
        self.versions.rise(object, version);
        if !self.places.is_awaited(object) {
            return;
        }
        for ap in 0..self.runners.len() as u32 {
            if self.runners[ap as usize].waits_for == Some(object) {
                self.issue(ap);
            }
        }
    }

    fn outcome(self) -> Outcome {
        let ends = self.runners.iter().filter_map(|r| r.ended);
        let end = ends.fold(0.0, Time::max);
        let begins = self.script.threads.iter().map(|t| t.begin);
        let begin = begins.fold(0.0, Time::max);
        Outcome {
            length: Nanos((end - begin).max(0.0) as u64),
            ended: self
                .runners
                .iter()
                .map(|r| r.ended.map(|at| Nanos(at as u64)))
                .collect(),
            messages: self.sent,
            data: self.data,
            without: self.without,
            processor: Nanos(self.host.used().iter().sum::<Time>() as u64),
            serving: self.host.used()[self.runners.len()..self.places.processes()]
                .iter()
                .sum(),
        }
    }
}

impl Outcome {
    /// Whether all processes came to their end.
    pub fn is_whole(&self) -> bool {
        self.ended.iter().all(Option::is_some)
    }
}
