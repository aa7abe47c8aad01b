//! LoPC's inputs from a run: n, W, V, S_o, C², S_l (docs/design/models.md#lopc-inputs), µs.
//!
//! How this system maps onto that model: a node is a memory process with its application process as the
//! thread; a request is an access that another memory process serves. Handlers run beside the thread
//! (protocol processor). The handler of a request receives it, serves it, and sends the reply; the
//! handler of a reply is taken to be alike, as the model has it. The way between a thread and its own
//! memory process, which nobody else uses, counts as latency. S_l is what the records of both sides leave: the mean
//! of what requesters saw beyond what owners did, less the handlers' receiving and sending (which the network record
//! says, since nothing in a run can tell it from waiting). On a machine with fewer processors than processes it
//! therefore has the waiting for a processor in it, which is contention that LoPC, with a processor for each node,
//! does not model. A link process is visited twice, by the
//! request and by the reply. Waiting for locks and at barriers is the program's and in no input.

use std::collections::BTreeMap;

use dosmos_proto::{Component, MpId};
use dosmos_trace::record::Op;
use serde::Serialize;

use super::measured::Measured;
use super::place::Places;
use crate::dvsm::{Costs, Technology};
use crate::error::ModelError;
use crate::lopc::{GeneralInput, HomogeneousInput, general};

/// What the contention model needs, and what it is to be compared with. Times in µs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Contention {
    /// n, requests of a thread, mean.
    pub n: f64,
    /// The requests of each thread.
    pub requests: Vec<f64>,
    /// R as measured, of each thread: its time without start-up, barriers and waiting for locks, over n.
    #[serde(rename = "R_measured")]
    pub cycle_us: Vec<f64>,
    /// At the owner, without messages: mean, and C² of the whole handler.
    pub service_us: f64,
    /// Waiting at the owner before the service.
    pub queueing_us: f64,
    /// One way, as measured: half of what the requester's memory process saw beyond what the owner did. Both are
    /// lengths of time on one clock each, so that no difference of clocks is in it.
    pub transit_us: f64,
    /// Between a thread and its own memory process, both ways, as measured: what threads saw of requests beyond what
    /// their memory processes did. Below 0 where requests overlap: a thread waits once for several.
    pub hop_us: f64,
    /// S_l as the network record has it, which knows nothing of the run; in `homogeneous` and `general` it is
    /// from the transit measured in the run.
    pub latency_from_costs_us: f64,
    /// All threads alike; none for a single one.
    pub homogeneous: Option<HomogeneousInput>,
    /// Each thread as it is. The nodes are those of `nodes`.
    pub general: GeneralInput,
    /// Names of the nodes: memory processes, and threads beyond the first of theirs.
    pub nodes: Vec<String>,
    /// The node of each thread.
    pub threads_at: Vec<usize>,
    /// What a cycle of each thread needs of processors, others' work for it included.
    pub cpu_us: Vec<f64>,
}

/// What the general model says of a run. Thread time in µs: cycles of all threads together.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ContentionTimes {
    /// As measured.
    pub measured_us: f64,
    /// Of it, what threads do by themselves: Σ n W.
    pub work_us: f64,
    /// Modelled, S_o, C² and S_l measured in the run.
    pub modelled_us: f64,
    /// Modelled, S_l as the network record has it, with a processor for each thread and each memory process.
    pub from_costs_us: f64,
    /// Without contention.
    pub logp_us: f64,
    /// The same, stretched where threads and handlers want more processors than there are.
    pub stretched_us: f64,
}

impl Contention {
    /// The general model against the measured cycles, on a machine of this many processors.
    ///
    /// # Errors
    /// [`ModelError`] as the general model's.
    pub fn times(&self, processors: usize) -> Result<ContentionTimes, ModelError> {
        let output = general::solve(&self.general)?;
        let unmeasured = general::solve(&GeneralInput {
            latency: self.latency_from_costs_us,
            ..self.general.clone()
        })?;
        let mut times = ContentionTimes {
            measured_us: 0.0,
            work_us: 0.0,
            modelled_us: 0.0,
            from_costs_us: 0.0,
            logp_us: 0.0,
            stretched_us: 0.0,
        };
        let mut demand = 0.0;
        for (i, n) in self.requests.iter().enumerate() {
            let at = self.threads_at[i];
            let modelled = (
                output.cycle[at],
                output.logp_cycle[at],
                unmeasured.cycle[at],
            );
            let (Some(cycle), Some(logp), Some(from_costs)) = modelled else {
                continue;
            };
            times.measured_us += n * self.cycle_us[i];
            times.modelled_us += n * cycle;
            times.work_us += n * self.general.work[at].unwrap_or(0.0);
            times.logp_us += n * logp;
            times.from_costs_us += n * from_costs;
            demand += self.cpu_us[i] / from_costs;
        }
        let stretch = (demand / processors.max(1) as f64).max(1.0);
        times.stretched_us = times.from_costs_us * stretch;
        Ok(times)
    }
}

/// A thread's sums.
#[derive(Clone, Debug, Default)]
struct Thread {
    requests: f64,
    bytes: f64,
    lock_wait_us: f64,
    /// Locks of the own memory process: how many, and what it took for them, waiting excluded.
    near_locks: f64,
    near_locks_us: f64,
    visits: BTreeMap<MpId, f64>,
}

impl Measured {
    /// LoPC's inputs. None if no access left its memory process: there is no contention to model.
    ///
    /// # Errors
    /// [`ModelError`] if the network record makes no costs.
    pub fn contention(&self) -> Result<Option<Contention>, ModelError> {
        let threads = self.threads();
        let total: f64 = threads.iter().map(|t| t.requests).sum();
        if total <= 0.0 {
            return Ok(None);
        }
        let costs = Costs::new(self.network.network.clone(), Technology::default())?;
        let bytes = threads.iter().map(|t| t.bytes).sum::<f64>() / total;
        let service = self.tally.served.mean();
        let handler = service + costs.soft(0.0) + costs.soft(bytes);
        // Sending and receiving do not vary in the model.
        let c2 = self.tally.served.variance() / (handler * handler).max(f64::MIN_POSITIVE);
        let hop = self.network.hop_us(0.0, bytes);
        let both_ways = 2.0 * costs.latency(1.0) + costs.wire(0.0) + costs.wire(bytes) + hop;
        let visited: f64 = threads.iter().flat_map(|t| t.visits.values()).sum();
        let ways = 1.0 + visited / total;
        // A cycle without work and without contention is the way to the own memory process and from there to the
        // owner, and its service; what of that handlers do is no latency.
        let measured_hop = self.hop_us();
        let measured = measured_hop + self.tally.under_way.mean() + service;
        let latency = (measured / ways - handler).max(0.0);
        let busy: Vec<f64> = (0..self.aps.len())
            .map(|i| {
                let near = &threads[i];
                let locks = near.near_locks_us + near.near_locks * measured_hop.max(0.0);
                self.own_us(i) + locks
            })
            .collect();
        let work = |i: usize| busy[i] / threads[i].requests.max(1.0);
        let all_busy: f64 = busy.iter().sum();
        let homogeneous = (threads.len() >= 2).then(|| HomogeneousInput {
            processors: threads.len() as u32,
            work: all_busy / total,
            handler,
            latency,
            c2,
            protocol_processor: true,
        });
        let (nodes, at) = self.nodes();
        let mut visits = vec![vec![0.0; nodes.len()]; nodes.len()];
        let mut works = vec![None; nodes.len()];
        for (i, thread) in threads.iter().enumerate().filter(|(_, t)| t.requests > 0.0) {
            works[at[i]] = Some(work(i));
            for (mp, count) in &thread.visits {
                if let Some(cell) = visits[at[i]].get_mut(mp.index()) {
                    *cell += count / thread.requests;
                }
            }
        }
        Ok(Some(Contention {
            n: total / threads.len() as f64,
            requests: threads.iter().map(|t| t.requests).collect(),
            cycle_us: (0..threads.len())
                .map(|i| self.cycle_us(i, &threads[i]))
                .collect(),
            service_us: service,
            queueing_us: self.tally.queued.mean(),
            transit_us: self.tally.under_way.mean() / 2.0,
            hop_us: measured_hop,
            latency_from_costs_us: both_ways / 2.0,
            homogeneous,
            general: GeneralInput {
                visits,
                work: works,
                handler,
                latency,
                c2,
                protocol_processor: true,
            },
            nodes,
            cpu_us: (0..threads.len())
                .map(|i| self.processor_us(i) / threads[i].requests.max(1.0) + hop + 2.0 * handler)
                .collect(),
            threads_at: at,
        }))
    }

    /// What remote accesses of threads took beyond what their memory processes recorded of them, mean. Locks of
    /// the own memory process are among them: their times are not told apart from those of others.
    fn hop_us(&self) -> f64 {
        let kinds = [Component::Fault, Component::Cold, Component::Lock];
        let threads = 0..self.aps.len();
        let seen: f64 = threads
            .flat_map(|i| kinds.map(|of| self.spent(i, of).0 as f64 / 1e3))
            .sum();
        let (mut count, mut recorded) = (0.0, 0.0);
        for (key, sum) in &self.tally.sums {
            let asked = match key.op {
                Op::Barrier => continue,
                Op::Acquire | Op::Release => sum.count,
                _ => sum.remote,
            };
            let scale = self.scale * self.source().kept(key);
            // Copies are served at once: what a key's accesses took, the remote ones took.
            count += scale * asked as f64;
            if asked > 0 {
                recorded += scale * sum.duration_ns as f64 / 1e3;
            }
        }
        (seen - recorded) / f64::max(count, 1.0)
    }

    /// What a thread does by itself: computing, and accesses that its memory process serves alone.
    fn own_us(&self, i: usize) -> f64 {
        let parts = [Component::Busy, Component::Service, Component::Local];
        parts
            .map(|of| self.spent(i, of).0 as f64 / 1e3)
            .iter()
            .sum()
    }

    /// What of that needs a processor.
    fn processor_us(&self, i: usize) -> f64 {
        let calls = |p: &dosmos_proto::PhaseTimes| p.spent.calls(Component::Local) as f64;
        let local = self.processes.get(i).map_or(0.0, calls) * self.network.hop_us(0.0, 0.0);
        self.spent(i, Component::Busy).0 as f64 / 1e3 + local
    }

    fn cycle_us(&self, i: usize, thread: &Thread) -> f64 {
        let parts = [Component::Fault, Component::Cold, Component::Lock];
        let calls: f64 = parts
            .map(|of| self.spent(i, of).0 as f64 / 1e3)
            .iter()
            .sum();
        let time = self.own_us(i) + calls - thread.lock_wait_us;
        time.max(0.0) / thread.requests.max(1.0)
    }

    fn threads(&self) -> Vec<Thread> {
        let places = Places::today(&self.catalog.topology);
        let source = self.source();
        let mut threads = vec![Thread::default(); self.aps.len()];
        for (key, sum) in &self.tally.sums {
            let Some(i) = self.aps.iter().position(|a| *a == key.ap) else {
                continue;
            };
            if key.op == Op::Barrier {
                continue;
            }
            let scale = self.scale * source.kept(key);
            let thread = &mut threads[i];
            if matches!(key.op, Op::Acquire | Op::Release) {
                thread.lock_wait_us += scale * sum.wait_ns as f64 / 1e3;
                if sum.remote == 0 {
                    let took = sum.duration_ns.saturating_sub(sum.wait_ns);
                    thread.near_locks += scale * sum.count as f64;
                    thread.near_locks_us += scale * took as f64 / 1e3;
                }
            }
            let remote = scale * sum.remote as f64;
            if remote <= 0.0 {
                continue;
            }
            thread.requests += remote;
            thread.bytes += remote * sum.bytes as f64 / sum.count.max(1) as f64;
            *thread.visits.entry(key.owner).or_default() += remote;
            for link in places.links(self.home(key.ap), key.owner) {
                *thread.visits.entry(link).or_default() += 2.0 * remote;
            }
        }
        threads
    }

    /// The nodes, and which of them each thread is at: its memory process's if it is the first there.
    fn nodes(&self) -> (Vec<String>, Vec<usize>) {
        let topology = &self.catalog.topology;
        let mps = topology.memory_processes().iter();
        let mut names: Vec<String> = mps.map(|mp| mp.name.clone()).collect();
        let mut taken = vec![false; names.len()];
        let mut at = Vec::new();
        for ap in &self.aps {
            let home = self.home(*ap).index();
            match taken.get_mut(home) {
                Some(taken) if !*taken => {
                    *taken = true;
                    at.push(home);
                }
                _ => {
                    at.push(names.len());
                    names.push(topology.ap_name(*ap));
                }
            }
        }
        (names, at)
    }
}
