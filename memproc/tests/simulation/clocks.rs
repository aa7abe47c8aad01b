//! Whole clusters whose processes have clocks of their own, ahead or behind by up to 50 ms and drifting by up to 200 ppm, with one
//! event manager, in simulated time. The cores, the clock exchanges and the correction are the real ones; how long messages
//! take is random, one way and the other.
//!
//! Checked of every record: its corrected time is within the bound that is stored with it of when it happened by the
//! event manager's clock. Checked of every operation that another process served: it was not served before it was asked for,
//! nor after it was answered, by more than the two clocks may be apart. Checked of a merged history: no section begins before the
//! release of the one before it.

use std::collections::{HashMap, VecDeque};

use dosmos_memproc::core::messages::{Item, Reply, Request};
use dosmos_node::clock::ClockEstimator;
use dosmos_node::correction::Corrector;
use dosmos_proto::{ApId, CopyPolicy, MpId, Nanos, ObjectId};
use dosmos_trace::clock::{Apart, Correction, ProcessClock, apart};
use dosmos_trace::query::HistoryPoint;
use dosmos_trace::query::causality::respect_sections;
use dosmos_trace::{Op, Origin, Record, Side};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::common::{Cluster, Skewed, acquire, read, release, write};

const START: Nanos = Nanos(1_700_000_000_000_000_000);
const SECOND: Nanos = Nanos::from_millis(1_000);
const PROCESSES: u32 = 4;
/// Probes at the beginning of a connection, as the shell of a memory process sends them.
const FIRST_PROBES: u32 = 4;

/// A memory process's side of its stream to the event manager.
#[derive(Default)]
struct Stream {
    estimator: ClockEstimator,
    /// Records that were not sent, and which start made them.
    waiting: VecDeque<Record>,
    up: bool,
}

/// Records as they are stored, with the time when they began and ended by the event manager's clock.
struct Stored {
    record: Record,
    truth: (Nanos, Nanos),
    /// What was said before it.
    said: Correction,
}

/// Whose clock the times of a record are of.
fn made_by(record: &Record) -> MpId {
    match record.side {
        Side::Requester => record.mp,
        Side::Owner => record.peer,
    }
}

struct Run {
    rng: StdRng,
    c: Cluster,
    streams: Vec<Stream>,
    correctors: Vec<Corrector>,
    said: Vec<Option<Correction>>,
    /// What a reader of the store knows, as the index of a store folds it.
    clocks: HashMap<MpId, ProcessClock>,
    stored: Vec<Stored>,
    taken: usize,
    objects: Vec<ObjectId>,
    pending: HashMap<u32, u64>,
    holding: HashMap<u32, ObjectId>,
}

impl Run {
    fn new(seed: u64) -> Self {
        let mut rng = StdRng::seed_from_u64(seed);
        let mut c = Cluster::new(&["/a"], PROCESSES, 1);
        c.now = START;
        let mut skew = |ahead_ns: i64, ppm: i64| Skewed {
            epoch: START,
            ahead_ns: ahead_ns + rng.random_range(-1_000..1_000),
            ppm,
        };
        c.clocks = vec![
            skew(50_000_000, 200),
            skew(-50_000_000, -200),
            // Within what exchanges can tell: not corrected, and wrong all the same.
            skew(60_000, 1),
            skew(-20_000_000, 80),
        ];
        c.pass(Nanos::ZERO);
        let objects = (0..PROCESSES)
            .map(|mp| c.scalar(&format!("x{mp}"), mp, CopyPolicy::Invalidate))
            .collect();
        for ap in 1..PROCESSES {
            for mp in 0..PROCESSES {
                c.call(ap, Request::Open(format!("x{mp}")));
            }
        }
        let taken = c.items.len();
        c.log.clear();
        let processes = PROCESSES as usize;
        Self {
            rng,
            c,
            streams: (0..processes).map(|_| Stream::default()).collect(),
            correctors: vec![Corrector::default(); processes],
            said: vec![None; processes],
            clocks: HashMap::new(),
            stored: Vec::new(),
            taken,
            objects,
            pending: HashMap::new(),
            holding: HashMap::new(),
        }
    }

    /// How long a message takes; one way often is quick and the other slow.
    fn delay(&mut self) -> Nanos {
        let most = match self.rng.random_bool(0.5) {
            true => 30_000,
            false => 400_000,
        };
        Nanos(self.rng.random_range(10_000..most))
    }

    /// A probe goes to the event manager and comes back, while nothing else happens.
    fn exchange(&mut self, mp: usize) {
        let clock = self.c.clocks[mp];
        let sent = clock.says(self.c.now);
        let estimate = self.streams[mp].estimator.estimate(sent);
        let received = self.c.now + self.delay();
        if let Some(estimate) = estimate {
            self.correctors[mp].learn(estimate);
        }
        let replied = received + Nanos(3_000);
        let back = replied + self.delay();
        let estimator = &mut self.streams[mp].estimator;
        estimator.with_clock(1);
        estimator.sample(sent, received, replied, clock.says(back));
    }

    fn connect(&mut self, mp: usize) {
        self.streams[mp].up = true;
        (0..FIRST_PROBES).for_each(|_| self.exchange(mp));
        self.exchange(mp);
    }

    /// A memory process ends when it has sent everything, and is started again: with another clock.
    fn restart(&mut self, mp: usize) {
        // What can be answered is.
        self.c.run();
        self.send(mp);
        self.streams[mp] = Stream::default();
        self.correctors[mp] = Corrector::default();
        self.said[mp] = None;
        self.c.clocks[mp] = Skewed {
            epoch: self.c.now,
            ahead_ns: 35_000_000,
            ppm: -150,
        };
        let (its, ap) = (MpId(mp as u32), mp as u32);
        let lost = self.objects.remove(mp);
        self.holding.retain(|_, held| *held != lost);
        self.holding.remove(&ap);
        self.pending.remove(&ap);
        self.c.restart(its);
        self.c.connect(ApId(ap)).unwrap();
        for other in (0..PROCESSES).filter(|other| *other != ap) {
            self.c.call(ap, Request::Open(format!("x{other}")));
        }
        self.connect(mp);
    }

    /// Takes what the cores recorded since the last time.
    fn gather(&mut self) {
        for (mp, item) in &self.c.items[self.taken..] {
            if let Item::Record(record) = item {
                self.streams[mp.index()].waiting.push_back(*record);
            }
        }
        self.taken = self.c.items.len();
    }

    /// What waits at a memory process goes to the event manager, which corrects it.
    fn send(&mut self, mp: usize) {
        self.gather();
        let mut batch: Vec<Record> = self.streams[mp].waiting.drain(..).collect();
        let clock = self.c.clocks[mp];
        let truth = |r: &Record| (clock.true_time(r.start), clock.true_time(r.end()));
        let truths: Vec<(Nanos, Nanos)> = batch.iter().map(truth).collect();
        if let Some(news) = self.correctors[mp].correct(&mut batch, &mut []) {
            self.said[mp] = Some(news);
            let id = MpId(mp as u32);
            let its = ProcessClock::new(id, &news);
            let its = self.clocks.get(&id).map_or(its, |before| its.after(before));
            self.clocks.insert(id, its);
        }
        for (record, truth) in batch.into_iter().zip(truths) {
            let said = self.said[mp].expect("what is done to a record is said before it");
            self.stored.push(Stored {
                record,
                truth,
                said,
            });
        }
    }

    /// One message arrives, or one application process asks for something.
    fn step(&mut self) {
        let delay = self.delay();
        self.c.now += delay;
        let busy = self.c.busy();
        if !busy.is_empty() && self.rng.random_bool(0.8) {
            let pair = busy[self.rng.random_range(0..busy.len())];
            self.c.deliver(pair);
        } else {
            let ap = self.rng.random_range(0..PROCESSES);
            self.act(ap);
        }
    }

    fn act(&mut self, ap: u32) {
        if let Some(&id) = self.pending.get(&ap) {
            let Some(reply) = self.c.reply(ap, id) else {
                return;
            };
            self.pending.remove(&ap);
            if matches!(reply, Reply::Refused(_)) {
                self.holding.remove(&ap);
            }
        }
        let object = self.objects[self.rng.random_range(0..self.objects.len())];
        let request = match (self.holding.get(&ap).copied(), self.rng.random_range(0..4)) {
            (Some(held), 0 | 1) => {
                self.holding.remove(&ap);
                release(held)
            }
            (None, 0) => {
                self.holding.insert(ap, object);
                acquire(object)
            }
            (_, 3) => write(object, 1),
            _ => read(object),
        };
        let id = self.c.ask(ap, request);
        self.pending.insert(ap, id);
    }

    /// Lets the programs run until `end`, with a probe each second and batches in between.
    fn until(&mut self, end: Nanos) {
        while self.c.now < end {
            let second = self.c.now + SECOND;
            while self.c.now < second {
                (0..40).for_each(|_| self.step());
                // Nothing happens for a while.
                let pause = Nanos(self.rng.random_range(0..200_000_000));
                self.c.pass(pause);
                for mp in 0..PROCESSES as usize {
                    if self.streams[mp].up {
                        self.send(mp);
                    }
                }
            }
            for mp in 0..PROCESSES as usize {
                if self.streams[mp].up {
                    self.exchange(mp);
                }
            }
        }
    }

    /// How far the times of two processes may be apart, by what a reader knows.
    fn apart(&self, a: MpId, b: MpId) -> Nanos {
        let clocks: Vec<ProcessClock> = self.clocks.values().copied().collect();
        match apart(&clocks, &self.c.topology, a, b) {
            Apart::AtMost(error) => error,
            other => panic!("{a} and {b}: {other:?}"),
        }
    }

    fn check_bounds(&self) {
        let mut bounds = Vec::new();
        for stored in &self.stored {
            let r = &stored.record;
            let known = self.clocks[&made_by(r)].error.unwrap();
            let off = |is: Nanos, was: Nanos| Nanos(is.0.abs_diff(was.0));
            let off = off(r.start, stored.truth.0).max(off(r.end(), stored.truth.1));
            assert!(
                off <= stored.said.error && stored.said.error <= known,
                "off by {off}, said {:?}, known {known}: {r:?}",
                stored.said
            );
            bounds.push(known);
        }
        // A bound that says nothing would be right as well. Single ones may be wide: all exchanges of a process can be slow.
        bounds.sort_unstable();
        if let Some(median) = bounds.get(bounds.len() / 2) {
            assert!(*median < Nanos::from_millis(5), "{median}");
        }
    }

    /// Pairs of records of one operation, at the process that asked and at the one that served.
    fn check_causality(&self) {
        let mut asked: HashMap<(ApId, ObjectId, Op), VecDeque<&Record>> = HashMap::new();
        let whole = |r: &&Record| !r.flags.failed && !r.flags.waiting && r.op != Op::Barrier;
        let all = || self.stored.iter().map(|s| &s.record).filter(whole);
        let key = |r: &Record| (r.ap, r.object, r.op);
        for r in all().filter(|r| r.side == Side::Requester && r.origin != Origin::Local) {
            asked.entry(key(r)).or_default().push_back(r);
        }
        let mut pairs = 0;
        for served in all().filter(|r| r.side == Side::Owner) {
            let Some(asked) = asked.get_mut(&key(served)).and_then(VecDeque::pop_front) else {
                // The run ended before it was answered.
                continue;
            };
            let apart = self.apart(made_by(asked), made_by(served));
            assert!(
                served.start + apart >= asked.start,
                "served before it was asked for: {served:?}, {asked:?}"
            );
            assert!(
                served.start <= asked.end() + apart,
                "served after it was answered: {served:?}, {asked:?}"
            );
            pairs += 1;
        }
        assert!(
            pairs > 200,
            "only {pairs} operations were served by another process"
        );
    }

    fn check_history(&self) {
        let records = self.stored.iter().map(|s| &s.record);
        let records = records.filter(|r| r.is_access() && !r.flags.waiting);
        let mut points: Vec<HistoryPoint> = records.map(HistoryPoint::of).collect();
        points.sort_by_key(|p| p.start);
        respect_sections(&mut points);
        let released: HashMap<(ObjectId, u64), Nanos> = points
            .iter()
            .filter(|p| p.op == Op::Release)
            .map(|p| ((p.object, p.version), p.start))
            .collect();
        let mut sections = 0;
        for grant in points.iter().filter(|p| p.op == Op::Acquire) {
            if let Some(&release) = released.get(&(grant.object, grant.version)) {
                assert!(release <= grant.start + grant.duration, "{grant:?}");
                sections += 1;
            }
        }
        assert!(sections > 20, "only {sections} sections followed another");
    }
}

#[test]
fn corrected_times_are_within_their_stored_bound_and_respect_causality() {
    let first = dosmos_testseeds::seed();
    for i in 0..dosmos_testseeds::cases(8) {
        let seed = first.wrapping_add(i.into());
        let mut run = Run::new(seed);
        (0..PROCESSES as usize).for_each(|mp| run.connect(mp));
        run.until(START + Nanos(20 * SECOND.0));
        // The event manager cannot be reached: records wait, and nobody compares clocks.
        run.streams[1].up = false;
        run.until(START + Nanos(30 * SECOND.0));
        run.connect(1);
        run.until(START + Nanos(80 * SECOND.0));
        run.restart(3);
        run.until(START + Nanos(95 * SECOND.0));
        run.check_bounds();
        run.check_causality();
        run.check_history();
    }
}
