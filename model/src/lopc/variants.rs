//! The homogeneous model with a sharper arrival theorem.
//!
//! Plain LoPC lets an arriving message see the queues of the whole system, its own thread included
//! (Bard). [`bard_schweitzer`] removes the thread's own share; [`mva`] builds the population up one
//! thread at a time, and is exact for protocol processors with exponential handlers (product form).

use super::homogeneous::{Delays, HomogeneousInput, HomogeneousOutput, at_equilibrium};
use super::kappa::kappa;
use crate::error::{ModelError, invalid};

/// Above this many threads the recursion is refused: it costs one step per thread.
pub(super) const MAX_MVA_THREADS: u32 = 10_000_000;

/// Bard–Schweitzer: a request never queues behind its own thread, so that it sees
/// c = (P−2)/(P−1) of Q_q and U_q, and all of Q_y and U_y; replies still see all of Q_q.
///
/// With u = S_o/R: Q_q = u (1 + κ(1+c)u + u(1+κu)) / (1 − c u − u²), then R as in
/// [`super::homogeneous::solve`].
///
/// # Errors
/// [`ModelError::Invalid`] naming the field that is out of range.
pub fn bard_schweitzer(input: &HomogeneousInput) -> Result<HomogeneousOutput, ModelError> {
    input.validate()?;
    let delays = at_equilibrium(|cycle| schweitzer_delays(input, cycle), input)?;
    input.output(delays)
}

fn schweitzer_delays(input: &HomogeneousInput, cycle: f64) -> Delays {
    let so = input.handler;
    let k = kappa(input.c2);
    let others = f64::from(input.processors - 2) / f64::from(input.processors - 1);
    let u = so / cycle;
    let room = 1.0 - others * u - u * u;
    // Q_q/u − 1, without the difference.
    let waiting = u * (k * (1.0 + others) + others + (1.0 + k * u) + u) / room;
    let queue = u * (1.0 + waiting);
    Delays {
        request: so * waiting,
        reply: so * (queue + k * u),
        compute: if input.protocol_processor {
            0.0
        } else {
            (input.work * u + so * queue) / (1.0 - u)
        },
    }
}

/// The MVA recursion over m = 1..P active threads.
///
/// Nodes are of type *a* (their thread is active) or *b*. Exact for protocol processors with C² = 1.
///
/// # Errors
/// [`ModelError::Invalid`] for a bad field or more than ten million threads;
/// [`ModelError::Unphysical`] where the recursion leaves its range (extreme C²).
pub fn mva(input: &HomogeneousInput) -> Result<HomogeneousOutput, ModelError> {
    input.validate()?;
    if input.processors > MAX_MVA_THREADS {
        return Err(invalid(
            "P",
            f64::from(input.processors),
            "at most 10,000,000 for MVA",
        ));
    }
    let (so, k) = (input.handler, kappa(input.c2));
    let p = f64::from(input.processors);
    let (mut qa, mut qb, mut ua, mut ub) = (0.0, 0.0, 0.0, 0.0);
    let mut last = None;
    for step in 1..=input.processors {
        let m = f64::from(step);
        let at_active = so * (1.0 + qa + k * ua);
        let at_idle = so * (1.0 + qb + k * ub);
        let request = ((m - 1.0) * at_active + (p - m) * at_idle) / (p - 1.0);
        let reply = at_idle;
        let compute = if input.protocol_processor {
            input.work
        } else {
            (input.work + so * qb) / (1.0 - ub)
        };
        let cycle = compute + 2.0 * input.latency + request + reply;
        if !(cycle.is_finite() && cycle > 0.0 && compute >= 0.0) {
            return Err(ModelError::Unphysical {
                field: "R".to_owned(),
                value: cycle,
            });
        }
        let x = 1.0 / cycle;
        let v = x / (p - 1.0);
        qa = x * reply + (m - 1.0) * v * at_active;
        qb = m * v * at_idle;
        ua = so * (x + (m - 1.0) * v);
        ub = so * m * v;
        last = Some((compute, request, reply));
    }
    // P ≥ 2, so there was a last step.
    let (compute, request, reply) = last.unwrap_or((input.work, so, so));
    input.output(Delays {
        compute: compute - input.work,
        request: request - so,
        reply: reply - so,
    })
}
