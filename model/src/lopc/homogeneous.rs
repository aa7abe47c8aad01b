//! The homogeneous all-to-any model: every thread alike, requests spread evenly.
//!
//! Guarantees: the root is unique, bracketed and found to rounding for every C² ≥ 0; P only scales
//! the throughput. About ten evaluations of one rational function.

use serde::{Deserialize, Serialize};

use super::kappa::kappa;
use crate::error::{ModelError, finite_result, invalid, non_negative};
use crate::numeric::bracketed_root;

/// Inputs of the homogeneous model; times in any one unit.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HomogeneousInput {
    /// P ≥ 2, nodes.
    #[serde(rename = "P")]
    pub processors: u32,
    /// W ≥ 0, mean local work between requests.
    #[serde(rename = "W")]
    pub work: f64,
    /// S_o ≥ 0, mean handler time.
    #[serde(rename = "So")]
    pub handler: f64,
    /// S_l ≥ 0, mean one-way latency.
    #[serde(rename = "Sl")]
    pub latency: f64,
    /// C² ≥ 0 of the handler time.
    #[serde(rename = "C2", default)]
    pub c2: f64,
    /// Handlers run beside the compute thread instead of interrupting it.
    #[serde(default)]
    pub protocol_processor: bool,
}

/// Results of the homogeneous model: the cycle and all its components.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct HomogeneousOutput {
    /// R, mean length of a cycle.
    #[serde(rename = "R")]
    pub cycle: f64,
    /// R_w, compute time including interruptions.
    #[serde(rename = "Rw")]
    pub compute: f64,
    /// R_q, queueing and service of a request.
    #[serde(rename = "Rq")]
    pub request: f64,
    /// R_y, queueing and service of a reply.
    #[serde(rename = "Ry")]
    pub reply: f64,
    /// Q_q, mean requests at a node.
    #[serde(rename = "Qq")]
    pub request_queue: f64,
    /// Q_y, mean replies at a node.
    #[serde(rename = "Qy")]
    pub reply_queue: f64,
    /// U_q, share of time a node handles requests.
    #[serde(rename = "Uq")]
    pub request_utilisation: f64,
    /// U_y, share of time a node handles replies.
    #[serde(rename = "Uy")]
    pub reply_utilisation: f64,
    /// X = P/R, cycles per time over all threads.
    #[serde(rename = "X")]
    pub throughput: f64,
    /// Cycle without contention: W + 2 S_l + 2 S_o.
    #[serde(rename = "R_logp")]
    pub logp_cycle: f64,
    /// R − R_logp.
    pub contention: f64,
    /// Contention in units of S_o (0 where S_o = 0); bounded by [`contention_bound_handlers`] − 2.
    pub contention_in_handlers: f64,
}

impl HomogeneousInput {
    /// Checks every field.
    ///
    /// # Errors
    /// [`ModelError::Invalid`] naming the first field that is out of range; a cycle of length zero
    /// (W = S_o = S_l = 0) is refused under `W`.
    pub fn validate(&self) -> Result<(), ModelError> {
        if self.processors < 2 {
            return Err(invalid("P", f64::from(self.processors), "at least 2"));
        }
        non_negative("W", self.work)?;
        non_negative("So", self.handler)?;
        non_negative("Sl", self.latency)?;
        non_negative("C2", self.c2)?;
        if self.logp_cycle() == 0.0 {
            return Err(invalid("W", 0.0, "positive where So and Sl are 0"));
        }
        finite_result(
            "R_logp",
            self.logp_cycle() + 4.0 * self.handler * (1.0 + self.c2),
        )?;
        Ok(())
    }

    /// The contention-free cycle of LogP, L = W + 2 S_l + 2 S_o.
    #[must_use]
    pub fn logp_cycle(&self) -> f64 {
        self.work + 2.0 * self.latency + 2.0 * self.handler
    }

    /// What contention adds at an assumed cycle length.
    ///
    /// Written in u = S_o/R, so that no power of R can overflow, and without differences, so that small
    /// contention keeps its digits beside long work.
    fn delays(&self, cycle: f64) -> Delays {
        let so = self.handler;
        let u = so / cycle;
        let g = kappa(self.c2) + 1.0;
        let waiting = so * g * u / (1.0 - u - u * u);
        let request = waiting * (2.0 + u);
        let reply = waiting * (1.0 + u);
        let compute = if self.protocol_processor {
            0.0
        } else {
            u * (self.work + so + request) / (1.0 - u)
        };
        Delays {
            compute,
            request,
            reply,
        }
    }

    /// Completes the output once the delays are known.
    pub(super) fn output(&self, delays: Delays) -> Result<HomogeneousOutput, ModelError> {
        let so = self.handler;
        let contention = delays.total();
        let cycle = finite_result("R", self.logp_cycle() + contention)?;
        let throughput = finite_result("X", f64::from(self.processors) / cycle)?;
        let (request, reply) = (so + delays.request, so + delays.reply);
        Ok(HomogeneousOutput {
            cycle,
            compute: self.work + delays.compute,
            request,
            reply,
            request_queue: request / cycle,
            reply_queue: reply / cycle,
            request_utilisation: so / cycle,
            reply_utilisation: so / cycle,
            throughput,
            logp_cycle: self.logp_cycle(),
            contention,
            contention_in_handlers: if so > 0.0 { contention / so } else { 0.0 },
        })
    }
}

/// What contention adds to the parts of a cycle.
#[derive(Debug, Clone, Copy)]
pub(super) struct Delays {
    /// R_w − W.
    pub(super) compute: f64,
    /// R_q − S_o.
    pub(super) request: f64,
    /// R_y − S_o.
    pub(super) reply: f64,
}

impl Delays {
    /// R − L. Nothing but rounding makes it negative.
    pub(super) fn total(&self) -> f64 {
        (self.compute + self.request + self.reply).max(0.0)
    }
}

/// The right-hand side F\[R\] of the fixed point R = F\[R\]: equations (1)–(7) with the queues
/// eliminated, for any C² ((5′), (6′)); for C² = 0 and interrupts it is the printed (8).
///
/// `cycle` must be at least the contention-free cycle, where every term is finite and falls.
///
/// # Errors
/// [`ModelError::Invalid`] for a bad input, or `R` where `cycle` is below 2 S_o.
pub fn cycle_rhs(input: &HomogeneousInput, cycle: f64) -> Result<f64, ModelError> {
    input.validate()?;
    if !(cycle.is_finite() && cycle > 0.0 && cycle >= 2.0 * input.handler) {
        return Err(invalid("R", cycle, "finite and at least 2 So"));
    }
    Ok(input.logp_cycle() + input.delays(cycle).total())
}

/// Solves R = F\[R\] on (L, ∞), where R − F\[R\] rises strictly from below zero: exactly one root.
///
/// Both machine variants and any C² ≥ 0. Equations (1)–(7), (5′), (6′).
///
/// # Errors
/// [`ModelError::Invalid`] naming the field that is out of range.
pub fn solve(input: &HomogeneousInput) -> Result<HomogeneousOutput, ModelError> {
    input.validate()?;
    let delays = at_equilibrium(|cycle| input.delays(cycle), input)?;
    input.output(delays)
}

/// The delays at the cycle that they cause. The unknown is the contention R − L, not R: beside long work
/// it would lose its digits.
pub(super) fn at_equilibrium(
    delays: impl Fn(f64) -> Delays,
    input: &HomogeneousInput,
) -> Result<Delays, ModelError> {
    let free = input.logp_cycle();
    let excess = |contention: f64| contention - delays(free + contention).total();
    // Contention is at most K(C²) − 2 handlers, which grows as √(1.5 C²).
    let mut hi = 2.0 * input.handler * (1.0 + (1.0 + input.c2).sqrt());
    while excess(hi) < 0.0 {
        hi = finite_result("R", 2.0 * hi)?;
    }
    let contention = bracketed_root(excess, 0.0, hi);
    Ok(delays(free + contention))
}

/// K(C²) of the bound (9): L < R < W + 2 S_l + K S_o, for all W, S_l and S_o > 0.
///
/// K is the cycle at W = S_l = 0 in units of S_o. K(0) is 3.4517 with interrupts (the paper rounds
/// it up to 3.46) and 3.0565 with a protocol processor.
///
/// # Errors
/// [`ModelError::Invalid`] if C² is negative or not finite.
pub fn contention_bound_handlers(c2: f64, protocol_processor: bool) -> Result<f64, ModelError> {
    let worst = HomogeneousInput {
        processors: 2,
        work: 0.0,
        handler: 1.0,
        latency: 0.0,
        c2,
        protocol_processor,
    };
    solve(&worst).map(|output| output.cycle)
}
