//! A run as the DVSM model sees it: per phase and process, busy time and operations.
//!
//! How this system maps onto that model (docs/design/models.md#dvsm-inputs):
//!
//! | there | here |
//! |---|---|
//! | page fault, one part | a read or write that another memory process served |
//! | cold fault | the first such access of the process to the object |
//! | lock | an acquire or a release that another memory process served |
//! | DSM code at the processor | the way to the own memory process and back, once an access |
//! | SIGIO | the own memory process serving others |
//! | write notices merged at a barrier | flushing writes to owners and copies before the arrival |
//!
//! A message through a link process is received and sent once more; that is extra system call time.
//! Signals are none.

use std::collections::BTreeMap;

use dosmos_proto::{ApId, Component, MpId, Nanos, PhaseTimes, Spent};
use dosmos_trace::record::Op;

use super::network::NetworkRecord;
use super::place::Places;
use super::sharing::Sharing;
use super::tally::{Key, MOST_PHASES, Sum, Tally};
use crate::dvsm::{Application, Barrier, Costs, Empty, Fault, Lock, Phase, Processor, Technology};
use crate::error::ModelError;

/// Kinds of operations that have a delay of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Local,
    Fault,
    Cold,
    Lock,
}

impl Kind {
    const ALL: [Self; 4] = [Self::Local, Self::Fault, Self::Cold, Self::Lock];

    fn component(self) -> Component {
        match self {
            Self::Local => Component::Local,
            Self::Fault => Component::Fault,
            Self::Cold => Component::Cold,
            Self::Lock => Component::Lock,
        }
    }
}

/// What one process does in one phase.
#[derive(Clone, Debug, Default)]
pub(super) struct Work {
    pub(super) busy_us: f64,
    /// Accesses that the own memory process serves alone.
    pub(super) local: Near,
    /// The same of acquires and releases.
    pub(super) local_locks: Near,
    pub(super) faults: Vec<(f64, Fault)>,
    pub(super) cold: Vec<(f64, Empty)>,
    pub(super) locks: Vec<(f64, Lock)>,
    pub(super) served: Vec<(f64, Fault)>,
    /// Beyond what serving explains: the processor was given to others.
    pub(super) preempted_us: f64,
}

/// What the own memory process serves alone: how often, the way there and back, and what it took more.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Near {
    pub(super) count: f64,
    pub(super) hop_us: f64,
    pub(super) delay_us: f64,
}

impl Near {
    fn add(&mut self, count: f64, hop_us: f64, delay_us: f64) {
        self.count += count;
        self.hop_us += count * hop_us;
        self.delay_us += count * delay_us;
    }

    fn time_us(&self) -> f64 {
        self.hop_us + self.delay_us
    }
}

/// What operations took beyond what messages and service explain, µs each.
#[derive(Clone, Debug, Default)]
pub(super) struct Delays {
    /// By phase, process and kind.
    operations: BTreeMap<(usize, ApId), [f64; 4]>,
    /// By phase and process: the share of its memory process's serving that kept the process from
    /// computing (the rest happened beside it, or while it waited anyway), and the time beyond it that it
    /// had no processor between operations.
    service: BTreeMap<(usize, ApId), (f64, f64)>,
    /// By phase.
    barriers: BTreeMap<usize, f64>,
}

/// The run, by phase and process, and the barrier that ends each phase.
#[derive(Clone, Debug, Default)]
pub(super) struct Run {
    pub(super) phases: Vec<(Vec<Work>, Barrier)>,
}

/// What of a run the pictures are made from.
pub(super) struct Source<'a> {
    pub(super) tally: &'a Tally,
    /// As measured, by phase of the trace and process.
    pub(super) times: &'a BTreeMap<(u64, ApId), PhaseTimes>,
    pub(super) aps: &'a [ApId],
    pub(super) network: &'a NetworkRecord,
    /// Accesses that stand behind one recorded.
    pub(super) scale: f64,
    /// All processes passed the same barriers: phases can be compared.
    pub(super) aligned: bool,
    /// Of what processes did before their first barrier, the share that counts; 1 unless named.
    pub(super) kept: &'a BTreeMap<ApId, f64>,
}

impl Source<'_> {
    /// Number of phases.
    pub(super) fn phases(&self) -> usize {
        let last = self.times.keys().map(|(phase, _)| self.phase(*phase)).max();
        let recorded = self.tally.sums.keys().map(|k| self.phase(k.phase)).max();
        1 + last.max(recorded).unwrap_or(0)
    }

    /// The share of the accesses of `key` that belongs to the run.
    pub(super) fn kept(&self, key: &Key) -> f64 {
        match key.phase {
            0 => self.kept.get(&key.ap).copied().unwrap_or(1.0),
            _ => 1.0,
        }
    }

    /// Where a phase of the trace belongs.
    fn phase(&self, phase: u64) -> usize {
        match self.aligned {
            true => phase.min(MOST_PHASES - 1) as usize,
            false => 0,
        }
    }

    /// Measured times of each process in each phase.
    fn measured(&self) -> BTreeMap<(usize, ApId), Spent> {
        let mut all: BTreeMap<(usize, ApId), Spent> = BTreeMap::new();
        for ((phase, ap), times) in self.times {
            let spent = all.entry((self.phase(*phase), *ap)).or_default();
            spent.join(&times.spent);
        }
        all
    }

    /// The run at `places`, with the operations' `delays`, and objects shared as `sharing` has it.
    pub(super) fn run(
        &self,
        places: &Places<'_>,
        delays: &Delays,
        sharing: &Sharing,
    ) -> Result<Run, ModelError> {
        let costs = Costs::new(self.network.network.clone(), Technology::default())?;
        let empty = vec![Work::default(); self.aps.len()];
        let mut phases: Vec<Vec<Work>> = vec![empty; self.phases()];
        let mut servers: BTreeMap<(usize, MpId), Vec<(f64, Fault)>> = BTreeMap::new();
        for ((phase, ap), spent) in self.measured() {
            if let Some(i) = self.aps.iter().position(|a| *a == ap) {
                phases[phase][i].busy_us = micros(spent.time(Component::Busy));
            }
        }
        for (key, sum) in &self.tally.sums {
            let Some(i) = self.aps.iter().position(|a| *a == key.ap) else {
                continue;
            };
            if key.op == Op::Barrier {
                continue;
            }
            let phase = self.phase(key.phase);
            let of_process = delays.operations.get(&(phase, key.ap));
            let of_key = (key.ap, key.op, key.var, key.owner);
            let objects = self.tally.objects.get(&of_key);
            let shares = sharing.shares(key, objects);
            let mut owners = places.owners(key.var, key.owner, objects);
            owners.iter_mut().for_each(|(_, of)| *of *= shares.stay);
            let stay = owners.into_iter().map(|at| (at, shares.waiting));
            let own = (shares.split > 0.0).then(|| ((places.home(key.ap), shares.split), 0.0));
            for ((owner, share), waiting) in stay.chain(own).filter(|((_, of), _)| *of > 0.0) {
                let access = Access {
                    source: self,
                    places,
                    costs: &costs,
                    key,
                    sum,
                    owner,
                    share: self.scale * self.kept(key) * share,
                    waiting,
                    delays: of_process.copied().unwrap_or_default(),
                };
                if let Some(served) = access.add_to(&mut phases[phase][i]) {
                    servers.entry((phase, owner)).or_default().push(served);
                }
            }
        }
        self.share_service(places, servers, &mut phases);
        for (i, ap) in self.aps.iter().enumerate() {
            for (phase, works) in phases.iter_mut().enumerate() {
                let Some((share, more)) = delays.service.get(&(phase, *ap)) else {
                    continue;
                };
                let served = works[i].served.iter_mut();
                served.for_each(|(count, _)| *count *= share);
                works[i].preempted_us = *more;
            }
        }
        let mut barriers = self.barriers(phases.len());
        for (phase, delay) in &delays.barriers {
            if let Some(barrier) = barriers.get_mut(*phase) {
                barrier.post = vec![*delay];
            }
        }
        Ok(Run {
            phases: phases.into_iter().zip(barriers).collect(),
        })
    }

    /// What a memory process serves for others is a burden of its own application processes.
    fn share_service(
        &self,
        places: &Places<'_>,
        servers: BTreeMap<(usize, MpId), Vec<(f64, Fault)>>,
        phases: &mut [Vec<Work>],
    ) {
        for ((phase, mp), served) in servers {
            let clients: Vec<usize> = (0..self.aps.len())
                .filter(|&i| places.home(self.aps[i]) == mp)
                .collect();
            for &i in &clients {
                let part = 1.0 / clients.len() as f64;
                let mine = served.iter().map(|(count, op)| (count * part, *op));
                phases[phase][i].served.extend(mine);
            }
        }
    }

    /// The barriers at the ends of phases: what their messages cost, and as merging what the processes did
    /// on their way there: telling owners and copies of their writes.
    fn barriers(&self, phases: usize) -> Vec<Barrier> {
        let mut before = vec![(0u64, 0u64); phases];
        for (key, sum) in self.tally.sums.iter().filter(|(k, _)| k.op == Op::Barrier) {
            let (count, time_ns) = &mut before[self.phase(key.phase)];
            *count += sum.count;
            *time_ns += sum.duration_ns.saturating_sub(sum.wait_ns);
        }
        let hop = self.network.hop_us(0.0, 0.0);
        let barrier = |(count, time_ns): &(u64, u64)| Barrier {
            arrive_bytes: 0.0,
            release_bytes: 0.0,
            extra_arrive: 0.0,
            extra_release: 0.0,
            merge: match count {
                0 => 0.0,
                count => hop + *time_ns as f64 / 1e3 / *count as f64,
            },
            post: Vec::new(),
            signal: 0.0,
        };
        before.iter().map(barrier).collect()
    }

    /// What operations took beyond their messages and their service, from the times measured; and barriers,
    /// as the process that came last saw them, who waited for nobody.
    pub(super) fn delays(&self, today: &Run) -> Result<Delays, ModelError> {
        let costs = Costs::new(self.network.network.clone(), Technology::default())?;
        let mut delays = Delays::default();
        let measured = self.measured();
        for (phase, (works, barrier)) in today.phases.iter().enumerate() {
            let mut last: Option<f64> = None;
            for (work, ap) in works.iter().zip(self.aps) {
                let spent = measured.get(&(phase, *ap)).copied().unwrap_or_default();
                let each = Kind::ALL.map(|kind| {
                    let (count, time) = work.total(kind, &costs);
                    let took = micros(spent.time(kind.component()));
                    if count > 0.0 {
                        ((took - time) / count).max(0.0)
                    } else {
                        0.0
                    }
                });
                delays.operations.insert((phase, *ap), each);
                let served = work.processor().parts(&costs).served_us;
                let away = micros(spent.time(Component::Service));
                let share = if served > away { away / served } else { 1.0 };
                let service = (share, (away - served).max(0.0));
                delays.service.insert((phase, *ap), service);
                if self.aligned && spent.calls(Component::Barrier) == 1 {
                    let waited = micros(spent.time(Component::Barrier));
                    last = Some(last.map_or(waited, |least| least.min(waited)));
                }
            }
            if let Some(last) = last {
                let modelled = barrier.cost(self.aps.len(), &costs)?.total;
                delays.barriers.insert(phase, (last - modelled).max(0.0));
            }
        }
        Ok(delays)
    }
}

fn micros(time: Nanos) -> f64 {
    time.0 as f64 / 1e3
}

/// Like accesses of one process in one phase, to what one memory process owns.
struct Access<'a> {
    source: &'a Source<'a>,
    places: &'a Places<'a>,
    costs: &'a Costs,
    key: &'a Key,
    sum: &'a Sum,
    owner: MpId,
    share: f64,
    /// Of the waiting that was measured, what there is.
    waiting: f64,
    delays: [f64; 4],
}

impl Access<'_> {
    /// Adds the accesses to what the process does; gives what the owner has to serve.
    fn add_to(&self, work: &mut Work) -> Option<(f64, Fault)> {
        let (sum, op) = (self.sum, self.key.op);
        let count = sum.count as f64;
        let remote = self.remote();
        let bytes = sum.bytes as f64 / count.max(1.0);
        let (up, down) = match op {
            Op::Read => (0.0, bytes),
            _ => (bytes, 0.0),
        };
        let lock = matches!(op, Op::Acquire | Op::Release);
        let hop = self.source.network.hop_us(up, down);
        let delay = |kind: Kind| self.delays[kind as usize];
        let near = (count - remote) * self.share;
        // Waiting for a lock or for acknowledgements is the program's, not the machine's.
        let wait = self.waiting * sum.wait_ns as f64 / 1e3 / count.max(1.0);
        if lock {
            // What was asked of another memory process, and is no more, has the delays of what is near.
            let was_near = count > sum.remote as f64;
            let kind = if was_near { Kind::Lock } else { Kind::Local };
            work.local_locks.add(near, hop, wait + delay(kind));
        } else {
            work.local.add(near, hop, delay(Kind::Local));
        }
        if remote <= 0.0 {
            return None;
        }
        let service = sum.service_ns as f64 / 1e3 / count.max(1.0);
        let extra = self.extra(up, down);
        let fault = Fault {
            parts: 1,
            request: up,
            reply: down,
            extra_send: 0.0,
            extra_recv: 0.0,
            handler: hop,
            signal: 0.0,
            remote_compute: service,
            extra_dest: extra,
            delay: delay(Kind::Fault),
        };
        let remote_shared = remote * self.share;
        if lock {
            let op = Lock {
                messages: 2,
                request: up,
                reply: down,
                extra,
                compute: hop,
                signal: 0.0,
                remote_compute: service,
                delay: wait + delay(Kind::Lock),
            };
            work.locks.push((remote_shared, op));
        } else {
            let cold = remote_shared * (sum.cold as f64 / sum.remote.max(1) as f64).min(1.0);
            let empty = Empty {
                request: up,
                reply: down,
                extra,
                handler: hop,
                signal: 0.0,
                remote_compute: service,
                delay: delay(Kind::Cold),
            };
            if cold > 0.0 {
                work.cold.push((cold, empty));
            }
            if remote_shared > cold {
                work.faults.push((remote_shared - cold, fault));
            }
        }
        let at_owner = Fault {
            extra_dest: 0.0,
            ..fault
        };
        Some((remote_shared, at_owner))
    }

    /// How many of the accesses another memory process serves.
    fn remote(&self) -> f64 {
        let (sum, key) = (self.sum, self.key);
        let today = self.places.before();
        let was = today.distance(today.home(key.ap), key.owner);
        match self.places.distance(self.places.home(key.ap), self.owner) {
            0 => 0.0,
            now if now.min(2) == was.min(2) => sum.remote as f64,
            // In the owner's group the first read of each state makes a copy.
            1 if key.op == Op::Read => sum.fresh as f64,
            _ => sum.count as f64,
        }
    }

    /// Link processes receive and send both messages.
    fn extra(&self, up: f64, down: f64) -> f64 {
        let links = self.places.links(self.places.home(self.key.ap), self.owner);
        links.len() as f64 * 2.0 * (self.costs.soft(up) + self.costs.soft(down))
    }
}

fn sum<T: Copy>(list: &[(f64, T)], cost: impl Fn(T) -> Result<f64, ModelError>) -> (f64, f64) {
    list.iter().fold((0.0, 0.0), |(count, time), (n, op)| {
        // Made here, of values that were checked.
        (count + n, time + n * cost(*op).unwrap_or(0.0))
    })
}

impl Work {
    /// Operations of a kind, and their time.
    pub(super) fn total(&self, kind: Kind, costs: &Costs) -> (f64, f64) {
        match kind {
            Kind::Local => (self.local.count, costs.dsm(self.local.time_us())),
            Kind::Fault => sum(&self.faults, |op| Ok(op.cost(costs)?.total)),
            Kind::Cold => sum(&self.cold, |op| Ok(op.cost(costs)?.total)),
            Kind::Lock => {
                let (count, time) = sum(&self.locks, |op| Ok(op.cost(costs)?.total));
                let near = &self.local_locks;
                (count + near.count, time + costs.dsm(near.time_us()))
            }
        }
    }

    /// Without anything that is not work of a processor: waiting and delays.
    /// The way to the own memory process takes a processor no longer than the software of its four ends does
    /// (`most_us`); the rest of its time a process sleeps.
    pub(super) fn without_delays(&self, most_us: f64) -> Self {
        let mut work = self.clone();
        for near in [&mut work.local, &mut work.local_locks] {
            near.hop_us = near.hop_us.min(near.count * most_us);
        }
        let shorter = |us: &mut f64| *us = us.min(most_us);
        work.faults
            .iter_mut()
            .for_each(|(_, op)| shorter(&mut op.handler));
        work.cold
            .iter_mut()
            .for_each(|(_, op)| shorter(&mut op.handler));
        work.locks
            .iter_mut()
            .for_each(|(_, op)| shorter(&mut op.compute));
        work.local.delay_us = 0.0;
        work.local_locks.delay_us = 0.0;
        work.faults.iter_mut().for_each(|(_, op)| op.delay = 0.0);
        work.cold.iter_mut().for_each(|(_, op)| op.delay = 0.0);
        work.locks.iter_mut().for_each(|(_, op)| op.delay = 0.0);
        // Whoever asks has the whole way in his account.
        work.served.clear();
        work.preempted_us = 0.0;
        work
    }

    /// In the terms of the DVSM model.
    pub(super) fn processor(&self) -> Processor {
        Processor {
            busy: self.busy_us,
            faults: self.faults.clone(),
            empties: self.cold.clone(),
            locks: self.locks.clone(),
            served: self.served.clone(),
            gc: Vec::new(),
            release: self.local.time_us() + self.local_locks.time_us() + self.preempted_us,
        }
    }
}

impl Run {
    /// In the terms of the DVSM model.
    pub(super) fn application(&self, name: &str) -> Application {
        let phases = self.phases.iter().map(|(works, barrier)| Phase {
            procs: works.iter().map(Work::processor).collect(),
            barrier: barrier.clone(),
        });
        let works = self.phases.iter().flat_map(|(works, _)| works);
        Application {
            name: name.to_owned(),
            sequential_us: works.map(|w| w.busy_us).sum(),
            phases: phases.collect(),
        }
    }
}
