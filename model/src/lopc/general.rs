//! The general model: any visit matrix, any work per thread, multi-hop requests.
//!
//! Guarantees: the input is checked entry by entry; the returned point satisfies the unreduced
//! equations to 1e-10 (normally 1e-12) or there is a typed error. Reduces to
//! [`super::homogeneous`] and [`super::client_server`] where they apply.

use serde::{Deserialize, Serialize};

use super::kappa::kappa;
use super::solver::{self, CycleEquations, SolveStats};
use crate::error::{ModelError, finite_result, invalid, length, non_negative};
use crate::numeric::Matrix;

/// Inputs of the general model on n nodes; times in any one unit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GeneralInput {
    /// V\[i\]\[k\] ≥ 0, n×n: mean visits of one request of thread i to node k. A row may sum to more
    /// than 1 (multi-hop); the row of a node without a thread is zero.
    #[serde(rename = "V")]
    pub visits: Vec<Vec<f64>>,
    /// W\[i\] ≥ 0, n entries: mean work between requests; `None` (null) where no thread runs.
    #[serde(rename = "W")]
    pub work: Vec<Option<f64>>,
    /// S_o ≥ 0, mean handler time.
    #[serde(rename = "So")]
    pub handler: f64,
    /// S_l ≥ 0, mean one-way latency of each hop and of the reply.
    #[serde(rename = "Sl")]
    pub latency: f64,
    /// C² ≥ 0 of the handler time.
    #[serde(rename = "C2", default)]
    pub c2: f64,
    /// Handlers run beside the compute thread instead of interrupting it.
    #[serde(default)]
    pub protocol_processor: bool,
}

/// Results of the general model; lists have one entry per node, `None` (null) where the quantity
/// needs a thread and the node has none.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GeneralOutput {
    /// R_i, mean cycle of each thread.
    #[serde(rename = "R")]
    pub cycle: Vec<Option<f64>>,
    /// X_i = 1/R_i; 0 without a thread.
    #[serde(rename = "X")]
    pub throughput: Vec<f64>,
    /// R_w of each thread.
    #[serde(rename = "Rw")]
    pub compute: Vec<Option<f64>>,
    /// R_y of each thread.
    #[serde(rename = "Ry")]
    pub reply: Vec<Option<f64>>,
    /// R_q at each node, of a mean request there.
    #[serde(rename = "Rq")]
    pub request: Vec<f64>,
    /// Q_q, mean requests at each node.
    #[serde(rename = "Qq")]
    pub request_queue: Vec<f64>,
    /// Q_y, mean replies at each node.
    #[serde(rename = "Qy")]
    pub reply_queue: Vec<f64>,
    /// U_q of each node.
    #[serde(rename = "Uq")]
    pub request_utilisation: Vec<f64>,
    /// U_y of each node.
    #[serde(rename = "Uy")]
    pub reply_utilisation: Vec<f64>,
    /// Σ X_i.
    #[serde(rename = "X_total")]
    pub total_throughput: f64,
    /// Cycle of each thread without contention: W_i + S_l + S_o + Σ_k V_ik (S_l + S_o).
    #[serde(rename = "R_logp")]
    pub logp_cycle: Vec<Option<f64>>,
    /// R_i − R_logp,i.
    pub contention: Vec<Option<f64>>,
}

impl GeneralInput {
    /// Number of nodes.
    #[must_use]
    pub fn nodes(&self) -> usize {
        self.visits.len()
    }

    /// Checks every field.
    ///
    /// # Errors
    /// [`ModelError::Shape`] for a V that is not square or a W of another length;
    /// [`ModelError::Invalid`] naming the entry that is out of range.
    pub fn validate(&self) -> Result<(), ModelError> {
        let n = self.nodes();
        if n < 2 {
            return Err(ModelError::Shape {
                field: "V".to_owned(),
                found: n,
                expected: 2,
            });
        }
        length("W", self.work.len(), n)?;
        non_negative("So", self.handler)?;
        non_negative("Sl", self.latency)?;
        non_negative("C2", self.c2)?;
        for (i, (row, work)) in self.visits.iter().zip(&self.work).enumerate() {
            length(&format!("V[{i}]"), row.len(), n)?;
            for (k, &v) in row.iter().enumerate() {
                non_negative(&format!("V[{i}][{k}]"), v)?;
                if work.is_none() && v != 0.0 {
                    return Err(invalid(
                        format!("V[{i}][{k}]"),
                        v,
                        "0, as W of this node is null",
                    ));
                }
            }
            if let Some(work) = *work {
                non_negative(&format!("W[{i}]"), work)?;
                let cycle = finite_result(&format!("R[{i}]"), self.logp_cycle_of(i, work))?;
                if cycle == 0.0 {
                    return Err(invalid(
                        format!("W[{i}]"),
                        0.0,
                        "positive where So and Sl are 0",
                    ));
                }
            }
        }
        if self.work.iter().all(Option::is_none) {
            return Err(ModelError::Shape {
                field: "W".to_owned(),
                found: 0,
                expected: 1,
            });
        }
        Ok(())
    }

    /// Nodes that run a thread, in order.
    pub(super) fn threads(&self) -> Vec<usize> {
        (0..self.nodes())
            .filter(|&i| self.work[i].is_some())
            .collect()
    }

    /// W_i, 0 without a thread.
    pub(crate) fn work_of(&self, i: usize) -> f64 {
        self.work[i].unwrap_or(0.0)
    }

    /// Cycle of thread i without contention.
    pub(crate) fn logp_cycle_of(&self, i: usize, work: f64) -> f64 {
        let hops: f64 = self.visits[i].iter().sum();
        work + (1.0 + hops) * (self.latency + self.handler)
    }

    /// Completes an output from node quantities; lists are by node, `cycle` by node too.
    pub(super) fn output(&self, parts: NodeParts) -> Result<GeneralOutput, ModelError> {
        let n = self.nodes();
        let by_thread = |f: &dyn Fn(usize) -> f64| -> Vec<Option<f64>> {
            (0..n).map(|i| self.work[i].map(|_| f(i))).collect()
        };
        let throughput: Vec<f64> = (0..n)
            .map(|i| self.work[i].map_or(0.0, |_| 1.0 / parts.cycle[i]))
            .collect();
        let logp = by_thread(&|i| self.logp_cycle_of(i, self.work_of(i)));
        let output = GeneralOutput {
            cycle: by_thread(&|i| parts.cycle[i]),
            compute: by_thread(&|i| parts.compute[i]),
            reply: by_thread(&|i| parts.reply[i]),
            // Nothing but rounding makes it negative.
            contention: by_thread(&|i| parts.contention[i].max(0.0)),
            logp_cycle: logp,
            total_throughput: throughput.iter().sum(),
            request: parts.request,
            request_queue: parts.request_queue,
            reply_queue: parts.reply_queue,
            request_utilisation: parts.request_utilisation,
            reply_utilisation: throughput.iter().map(|x| x * self.handler).collect(),
            throughput,
        };
        output.check()?;
        Ok(output)
    }
}

impl GeneralOutput {
    /// Refuses what overflowed.
    fn check(&self) -> Result<(), ModelError> {
        finite_result("X_total", self.total_throughput)?;
        for (name, list) in [
            ("Rq", &self.request),
            ("Qq", &self.request_queue),
            ("Qy", &self.reply_queue),
            ("Uq", &self.request_utilisation),
            ("Uy", &self.reply_utilisation),
        ] {
            for (i, &value) in list.iter().enumerate() {
                finite_result(&format!("{name}[{i}]"), value)?;
            }
        }
        for (name, list) in [
            ("R", &self.cycle),
            ("Rw", &self.compute),
            ("Ry", &self.reply),
            ("contention", &self.contention),
        ] {
            for (i, value) in list.iter().enumerate() {
                finite_result(&format!("{name}[{i}]"), value.unwrap_or(0.0))?;
            }
        }
        Ok(())
    }
}

/// Node quantities from which an output is completed.
#[derive(Debug, Default)]
pub(super) struct NodeParts {
    pub(super) cycle: Vec<f64>,
    pub(super) compute: Vec<f64>,
    pub(super) reply: Vec<f64>,
    pub(super) request: Vec<f64>,
    pub(super) request_queue: Vec<f64>,
    pub(super) reply_queue: Vec<f64>,
    pub(super) request_utilisation: Vec<f64>,
    /// R − R_logp; 0 without a thread.
    pub(super) contention: Vec<f64>,
}

/// Solves the general model for every thread's cycle.
///
/// Equations (20)–(28) with the C² extension, queues eliminated per node, in the unknowns log X_i.
///
/// # Errors
/// [`ModelError::Shape`] or [`ModelError::Invalid`] for a bad input,
/// [`ModelError::NotConverged`] if the solver used up its budget.
pub fn solve(input: &GeneralInput) -> Result<GeneralOutput, ModelError> {
    solve_with_stats(input).map(|(output, _)| output)
}

/// [`solve`], and what it took.
///
/// # Errors
/// As [`solve`].
pub fn solve_with_stats(input: &GeneralInput) -> Result<(GeneralOutput, SolveStats), ModelError> {
    input.validate()?;
    let equations = Bard::new(input);
    let (throughputs, stats) = solver::solve(&equations)?;
    Ok((equations.output(&throughputs)?, stats))
}

/// Queue lengths and response times of one node, given a = U_q and b = U_y there.
#[derive(Debug, Clone, Copy, Default)]
struct NodeState {
    request_queue: f64,
    reply_queue: f64,
    request: f64,
    reply: f64,
}

/// The equations of the general model (Bard's arrival theorem: arrivals see the whole system).
struct Bard<'a> {
    input: &'a GeneralInput,
    threads: Vec<usize>,
}

impl<'a> Bard<'a> {
    fn new(input: &'a GeneralInput) -> Self {
        Self {
            input,
            threads: input.threads(),
        }
    }

    /// (a_k, b_k) of every node.
    fn utilisations(&self, throughputs: &[f64]) -> Vec<(f64, f64)> {
        let mut uses = vec![(0.0, 0.0); self.input.nodes()];
        for (&i, x) in self.threads.iter().zip(throughputs) {
            let load = self.input.handler * x;
            for ((a, _), v) in uses.iter_mut().zip(&self.input.visits[i]) {
                *a += v * load;
            }
            uses[i].1 = load;
        }
        uses
    }

    /// `None` unless a (1 + b) < 1.
    fn node(&self, (a, b): (f64, f64)) -> Option<NodeState> {
        let (so, k) = (self.input.handler, kappa(self.input.c2));
        let room = 1.0 - a - a * b;
        if room <= 0.0 || room.is_nan() {
            return None;
        }
        let request_queue = a * (1.0 + b + k * (a + b + a * b)) / room;
        let reply_queue = b * (1.0 + request_queue + k * a);
        Some(NodeState {
            request_queue,
            reply_queue,
            request: so * (1.0 + request_queue + reply_queue + k * (a + b)),
            reply: so * (1.0 + request_queue + k * a),
        })
    }

    fn compute(&self, i: usize, a: f64, request_queue: f64) -> f64 {
        let work = self.input.work_of(i);
        if self.input.protocol_processor {
            work
        } else {
            (work + self.input.handler * request_queue) / (1.0 - a)
        }
    }

    /// R_i − R_logp,i from what each part adds: the difference would lose its digits beside long work.
    fn contention(&self, i: usize, uses: &[(f64, f64)], states: &[NodeState]) -> f64 {
        let (so, k) = (self.input.handler, kappa(self.input.c2));
        let (own, (a, _)) = (&states[i], uses[i]);
        let compute = if self.input.protocol_processor {
            0.0
        } else {
            (self.input.work_of(i) * a + so * own.request_queue) / (1.0 - a)
        };
        // The time per visit first: visits alone may be too many for a double where their time is not.
        let away: f64 = (self.input.visits[i].iter())
            .zip(states.iter().zip(uses))
            .map(|(v, (s, (a, b)))| v * (so * (s.request_queue + s.reply_queue + k * (a + b))))
            .sum();
        compute + so * (own.request_queue + k * a) + away
    }

    fn output(&self, throughputs: &[f64]) -> Result<GeneralOutput, ModelError> {
        let n = self.input.nodes();
        let uses = self.utilisations(throughputs);
        let states: Vec<NodeState> = uses
            .iter()
            .map(|&u| self.node(u).unwrap_or_default())
            .collect();
        let mut cycle = vec![0.0; n];
        for (&i, x) in self.threads.iter().zip(throughputs) {
            cycle[i] = 1.0 / x;
        }
        self.input.output(NodeParts {
            cycle,
            contention: (0..n).map(|i| self.contention(i, &uses, &states)).collect(),
            compute: (0..n)
                .map(|i| self.compute(i, uses[i].0, states[i].request_queue))
                .collect(),
            reply: states.iter().map(|s| s.reply).collect(),
            request: states.iter().map(|s| s.request).collect(),
            request_queue: states.iter().map(|s| s.request_queue).collect(),
            reply_queue: states.iter().map(|s| s.reply_queue).collect(),
            request_utilisation: uses.iter().map(|u| u.0).collect(),
        })
    }
}

impl CycleEquations for Bard<'_> {
    fn contention_free(&self) -> Vec<f64> {
        self.threads
            .iter()
            .map(|&i| self.input.logp_cycle_of(i, self.input.work_of(i)))
            .collect()
    }

    fn cycles(&self, throughputs: &[f64], cycles: &mut [f64]) -> bool {
        let uses = self.utilisations(throughputs);
        let mut states = Vec::with_capacity(uses.len());
        for &u in &uses {
            match self.node(u) {
                Some(state) => states.push(state),
                None => return false,
            }
        }
        let latency = self.input.latency;
        for (&i, cycle) in self.threads.iter().zip(cycles) {
            let visits = &self.input.visits[i];
            let remote: f64 = visits
                .iter()
                .zip(&states)
                .map(|(v, s)| v * (latency + s.request))
                .sum();
            let own = &states[i];
            *cycle = self.compute(i, uses[i].0, own.request_queue) + latency + own.reply + remote;
        }
        true
    }

    fn jacobian(&self, throughputs: &[f64], cycles: &[f64], jacobian: &mut Matrix) {
        let slopes: Vec<NodeSlopes> = self
            .utilisations(throughputs)
            .into_iter()
            .enumerate()
            .map(|(i, u)| self.slopes(i, u))
            .collect();
        // Row k of `weighted` is V_ik ∂R_qk/∂a_k for the thread at hand, so that the inner sum over
        // nodes is one dot product.
        let mut weighted = vec![0.0; self.input.nodes()];
        for (row, &i) in self.threads.iter().enumerate() {
            let visits = &self.input.visits[i];
            for ((w, v), s) in weighted.iter_mut().zip(visits).zip(&slopes) {
                *w = v * s.request_by_a;
            }
            weighted[i] += slopes[i].own_by_a;
            for (column, &j) in self.threads.iter().enumerate() {
                let load = self.input.handler * throughputs[column];
                let by_a: f64 = weighted
                    .iter()
                    .zip(&self.input.visits[j])
                    .map(|(w, v)| w * v)
                    .sum();
                let mut change = load * (by_a + visits[j] * slopes[j].request_by_b);
                if i == j {
                    change += load * slopes[i].own_by_b;
                }
                jacobian.row_mut(row)[column] =
                    change / cycles[row] + if row == column { 1.0 } else { 0.0 };
            }
        }
    }
}

/// Derivatives of a node's response times by its utilisations a and b.
struct NodeSlopes {
    request_by_a: f64,
    request_by_b: f64,
    /// Of R_y + R_w, which only the node's own thread pays.
    own_by_a: f64,
    own_by_b: f64,
}

impl Bard<'_> {
    fn slopes(&self, i: usize, (a, b): (f64, f64)) -> NodeSlopes {
        let (so, k) = (self.input.handler, kappa(self.input.c2));
        let q = self.node((a, b)).unwrap_or_default().request_queue;
        let room = 1.0 - a - a * b;
        let seen = 1.0 + b + k * (a + b + a * b);
        let q_by_a = (seen + a * k * (1.0 + b) + q * (1.0 + b)) / room;
        let q_by_b = (a * (1.0 + k * (1.0 + a)) + q * a) / room;
        let y_by_a = b * (q_by_a + k);
        let y_by_b = 1.0 + q + k * a + b * q_by_b;
        let (w_by_a, w_by_b) = if self.input.protocol_processor {
            (0.0, 0.0)
        } else {
            let work = self.compute(i, a, q);
            ((so * q_by_a + work) / (1.0 - a), so * q_by_b / (1.0 - a))
        };
        NodeSlopes {
            request_by_a: so * (q_by_a + y_by_a + k),
            request_by_b: so * (q_by_b + y_by_b + k),
            own_by_a: so * (q_by_a + k) + w_by_a,
            own_by_b: so * q_by_b + w_by_b,
        }
    }
}
