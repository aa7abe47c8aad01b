//! The general model with a sharper arrival theorem.
//!
//! [`bard_schweitzer`] removes from what an arrival sees the share of its own thread; [`mva`] runs
//! the exact recursion over all subsets of threads, which costs 2^threads and is therefore limited.

use super::general::{GeneralInput, GeneralOutput, NodeParts};
use super::kappa::kappa;
use super::solver::{self, CycleEquations, SolveStats};
use crate::error::{ModelError, invalid};

/// More threads than this are refused by [`mva`]: time and memory double with each.
pub const MAX_MVA_THREADS: usize = 16;

/// Schweitzer's form: the request of thread i at node k sees the requests there except i's own
/// share, and all replies unless k = i; its compute thread and its reply see requests other than
/// its own.
///
/// R_q of the output is the mean over the requests that reach the node.
///
/// For C² < 1 the form can ask a busy node for more than all of its time (ten threads that only ask one
/// node, C² = 0: U = 1.04) and has no solution then; plain [`super::general::solve`] has.
///
/// # Errors
/// [`ModelError::Shape`] or [`ModelError::Invalid`] for a bad input,
/// [`ModelError::NotConverged`] where there is no solution or the solver used up its budget.
pub fn bard_schweitzer(input: &GeneralInput) -> Result<(GeneralOutput, SolveStats), ModelError> {
    input.validate()?;
    let equations = Schweitzer {
        input,
        threads: input.threads(),
    };
    let (throughputs, stats) = solver::solve(&equations)?;
    Ok((equations.output(&throughputs)?, stats))
}

struct Schweitzer<'a> {
    input: &'a GeneralInput,
    threads: Vec<usize>,
}

/// One node as the threads see it.
#[derive(Debug, Clone, Copy, Default)]
struct Seen {
    uq: f64,
    uy: f64,
    request_queue: f64,
    reply_queue: f64,
    /// Requests and utilisation of the node's own thread at itself.
    own_queue: f64,
    own_use: f64,
}

impl Schweitzer<'_> {
    /// Solves the queues of one node, which are linear in Q_q at given throughputs.
    ///
    /// The share of thread i is q_ik = s_ik (1 + Q_q + κ(U_q − u_ik) + \[k≠i\](Q_y + κU_y)) with
    /// s = u/(1+u). `None` if infeasible.
    fn node(&self, k: usize, throughputs: &[f64]) -> Option<Seen> {
        let (so, kap) = (self.input.handler, kappa(self.input.c2));
        let mut seen = Seen::default();
        let mut uses = 0.0;
        for (&i, x) in self.threads.iter().zip(throughputs) {
            let u = so * x * self.input.visits[i][k];
            uses += u;
            if i == k {
                seen.own_use = u;
                seen.uy = so * x;
            }
        }
        seen.uq = uses;
        let (mut shares, mut residuals) = (0.0, 0.0);
        for (&i, x) in self.threads.iter().zip(throughputs) {
            let u = so * x * self.input.visits[i][k];
            let share = u / (1.0 + u);
            shares += share;
            residuals += share * kap * (uses - u);
        }
        let own_share = seen.own_use / (1.0 + seen.own_use);
        let others = shares - own_share;
        let rest = 1.0 + kap * (uses - seen.own_use);
        // Q_y = y0 + y1 Q_q, from the reply that sees requests other than its thread's own.
        let y0 = seen.uy * rest * (1.0 - own_share);
        let y1 = seen.uy * (1.0 - own_share);
        let room = 1.0 - shares - others * y1;
        if room <= 0.0 || room.is_nan() || uses - seen.own_use >= 1.0 {
            return None;
        }
        seen.request_queue = (shares + residuals + others * (y0 + kap * seen.uy)) / room;
        seen.reply_queue = y0 + y1 * seen.request_queue;
        seen.own_queue = own_share * (rest + seen.request_queue);
        Some(seen)
    }

    /// R_q of thread i at node k.
    fn request(&self, i: usize, k: usize, x: f64, seen: &Seen) -> f64 {
        let (so, kap) = (self.input.handler, kappa(self.input.c2));
        let u = so * x * self.input.visits[i][k];
        let replies = if i == k {
            0.0
        } else {
            seen.reply_queue + kap * seen.uy
        };
        so * (1.0 + seen.request_queue + kap * (seen.uq - u) + replies) / (1.0 + u)
    }

    /// R_w and R_y of the thread of a node.
    fn own(&self, i: usize, seen: &Seen) -> (f64, f64) {
        let so = self.input.handler;
        // Nothing but rounding makes them negative, where almost all requests are the thread's own.
        let queue = (seen.request_queue - seen.own_queue).max(0.0);
        let busy = (seen.uq - seen.own_use).max(0.0);
        let reply = so * (1.0 + queue + kappa(self.input.c2) * busy);
        let work = self.input.work_of(i);
        let compute = if self.input.protocol_processor {
            work
        } else {
            (work + so * queue) / (1.0 - busy)
        };
        (compute, reply)
    }

    fn output(&self, throughputs: &[f64]) -> Result<GeneralOutput, ModelError> {
        let (n, so) = (self.input.nodes(), self.input.handler);
        let seen: Vec<Seen> = (0..n)
            .map(|k| self.node(k, throughputs).unwrap_or_default())
            .collect();
        let mut parts = NodeParts {
            cycle: vec![0.0; n],
            ..NodeParts::default()
        };
        parts.contention = vec![0.0; n];
        for (&i, x) in self.threads.iter().zip(throughputs) {
            parts.cycle[i] = 1.0 / x;
            parts.contention[i] = 1.0 / x - self.input.logp_cycle_of(i, self.input.work_of(i));
        }
        for (i, s) in seen.iter().enumerate() {
            let (compute, reply) = self.own(i, s);
            parts.compute.push(compute);
            parts.reply.push(reply);
            // Little's law gives the mean over arrivals; an unvisited node shows what one would see.
            parts.request.push(if s.uq > 0.0 {
                so * s.request_queue / s.uq
            } else {
                so * (1.0 + s.reply_queue + kappa(self.input.c2) * s.uy)
            });
            parts.request_queue.push(s.request_queue);
            parts.reply_queue.push(s.reply_queue);
            parts.request_utilisation.push(s.uq);
        }
        self.input.output(parts)
    }
}

impl CycleEquations for Schweitzer<'_> {
    fn contention_free(&self) -> Vec<f64> {
        self.threads
            .iter()
            .map(|&i| self.input.logp_cycle_of(i, self.input.work_of(i)))
            .collect()
    }

    fn cycles(&self, throughputs: &[f64], cycles: &mut [f64]) -> bool {
        let n = self.input.nodes();
        let mut seen = Vec::with_capacity(n);
        for k in 0..n {
            match self.node(k, throughputs) {
                Some(node) => seen.push(node),
                None => return false,
            }
        }
        for ((&i, &x), cycle) in self.threads.iter().zip(throughputs).zip(cycles) {
            let (compute, reply) = self.own(i, &seen[i]);
            let remote: f64 = self.input.visits[i]
                .iter()
                .enumerate()
                .filter(|(_, v)| **v > 0.0)
                .map(|(k, v)| v * (self.input.latency + self.request(i, k, x, &seen[k])))
                .sum();
            *cycle = compute + self.input.latency + reply + remote;
        }
        true
    }
}

/// The MVA recursion over all subsets of threads.
///
/// A thread's arrivals see the system as it is without that thread. Exact for protocol processors
/// with C² = 1. Multi-hop is allowed, visits to a thread's own node are not. Near saturated nodes
/// the recursion with interrupts overshoots and is refused rather than reported.
///
/// # Errors
/// [`ModelError::Invalid`] or [`ModelError::Shape`] for a bad input, a self visit, or more than
/// [`MAX_MVA_THREADS`] threads; [`ModelError::Unphysical`], with the value, where a final cycle is
/// not positive.
pub fn mva(input: &GeneralInput) -> Result<GeneralOutput, ModelError> {
    input.validate()?;
    let threads = input.threads();
    if threads.len() > MAX_MVA_THREADS {
        return Err(invalid(
            "W",
            threads.len() as f64,
            "at most 16 threads for MVA",
        ));
    }
    for &i in &threads {
        if input.visits[i][i] > 0.0 {
            return Err(invalid(
                format!("V[{i}][{i}]"),
                input.visits[i][i],
                "0 for MVA",
            ));
        }
    }
    let recursion = Subsets::run(input, &threads);
    recursion.output(input, &threads)
}

/// Queue lengths and utilisations of every node for every subset of threads.
struct Subsets {
    nodes: usize,
    queue: Vec<f64>,
    usage: Vec<f64>,
    /// Of the full set, by thread.
    cycles: Vec<f64>,
}

impl Subsets {
    fn run(input: &GeneralInput, threads: &[usize]) -> Self {
        let nodes = input.nodes();
        let sets = 1usize << threads.len();
        let mut all = Self {
            nodes,
            queue: vec![0.0; sets * nodes],
            usage: vec![0.0; sets * nodes],
            cycles: vec![0.0; threads.len()],
        };
        for set in 1..sets {
            for (bit, &i) in threads.iter().enumerate() {
                if set >> bit & 1 == 1 {
                    all.cycles[bit] = all.add_thread(input, i, set, set ^ (1 << bit));
                }
            }
        }
        all
    }

    /// Adds what thread i contributes to `set`, having seen `without`; its cycle.
    fn add_thread(&mut self, input: &GeneralInput, i: usize, set: usize, without: usize) -> f64 {
        let (so, k) = (input.handler, kappa(input.c2));
        let (at, from) = (set * self.nodes, without * self.nodes);
        let response = |all: &Self, node: usize| {
            so * (1.0 + all.queue[from + node] + k * all.usage[from + node])
        };
        let (compute, reply) = self.own(input, i, from);
        let remote: f64 = (0..self.nodes)
            .map(|node| input.visits[i][node] * (input.latency + response(self, node)))
            .sum();
        let cycle = compute + input.latency + reply + remote;
        for node in 0..self.nodes {
            let rate = input.visits[i][node] / cycle;
            self.queue[at + node] += rate * response(self, node);
            self.usage[at + node] += rate * so;
        }
        self.queue[at + i] += reply / cycle;
        self.usage[at + i] += so / cycle;
        cycle
    }

    /// R_w and R_y of thread i, seeing the subset that starts at `from`.
    fn own(&self, input: &GeneralInput, i: usize, from: usize) -> (f64, f64) {
        let so = input.handler;
        let (queue, usage) = (self.queue[from + i], self.usage[from + i]);
        let reply = so * (1.0 + queue + kappa(input.c2) * usage);
        let work = input.work_of(i);
        let compute = if input.protocol_processor {
            work
        } else {
            (work + so * queue) / (1.0 - usage)
        };
        (compute, reply)
    }

    fn output(&self, input: &GeneralInput, threads: &[usize]) -> Result<GeneralOutput, ModelError> {
        let nodes = self.nodes;
        let full = (1usize << threads.len()) - 1;
        let mut parts = NodeParts {
            cycle: vec![0.0; nodes],
            compute: vec![0.0; nodes],
            reply: vec![0.0; nodes],
            request: vec![0.0; nodes],
            request_queue: vec![0.0; nodes],
            reply_queue: vec![0.0; nodes],
            request_utilisation: vec![0.0; nodes],
            contention: vec![0.0; nodes],
        };
        for (bit, &i) in threads.iter().enumerate() {
            let cycle = self.cycles[bit];
            let (compute, reply) = self.own(input, i, (full ^ (1 << bit)) * nodes);
            if !(cycle.is_finite() && cycle > 0.0 && compute >= 0.0) {
                return Err(ModelError::Unphysical {
                    field: format!("R[{i}]"),
                    value: cycle,
                });
            }
            parts.cycle[i] = cycle;
            parts.contention[i] = cycle - input.logp_cycle_of(i, input.work_of(i));
            parts.compute[i] = compute;
            parts.reply[i] = reply;
            parts.reply_queue[i] = reply / cycle;
        }
        for node in 0..nodes {
            let requests: f64 = threads
                .iter()
                .enumerate()
                .map(|(bit, &i)| input.visits[i][node] / self.cycles[bit])
                .sum();
            parts.request_queue[node] = self.queue[full * nodes + node] - parts.reply_queue[node];
            parts.request_utilisation[node] = requests * input.handler;
            parts.request[node] = if requests > 0.0 {
                parts.request_queue[node] / requests
            } else {
                let (queue, usage) = (
                    self.queue[full * nodes + node],
                    self.usage[full * nodes + node],
                );
                input.handler * (1.0 + queue + kappa(input.c2) * usage)
            };
        }
        input.output(parts)
    }
}
