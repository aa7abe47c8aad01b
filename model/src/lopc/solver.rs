//! Solver of X_i R_i(X) = 1 for the throughputs of all threads.
//!
//! Three stages, each covering the failures of the others: damped substitution in logarithms cannot
//! leave the feasible region but crawls near saturation; Newton is fast but can stick at a pole when
//! started far away; so Newton follows once the point is near or substitution has had its share, and
//! if Newton stalls substitution goes on with ten times the budget. Either the result satisfies the
//! equations, or there is a typed error.

use serde::{Deserialize, Serialize};

use crate::error::ModelError;
use crate::numeric::{Matrix, solve_in_place};

/// What the solver did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct SolveStats {
    /// Damped substitution steps, including those to a feasible start.
    pub substitution_steps: usize,
    /// Newton steps.
    pub newton_steps: usize,
    /// Largest |log X_i R_i| at the solution.
    pub residual: f64,
}

/// Largest relative mismatch of X_i R_i = 1 that counts as solved.
const TOLERANCE: f64 = 1e-12;
/// Mismatch accepted when rounding, not the method, stops the descent: near saturation the
/// equations themselves are only this well conditioned.
const ROUNDING_FLOOR: f64 = 1e-10;
/// Mismatch below which Newton takes over in the first round; if it stalls there, later rounds
/// substitute to the end.
const NEWTON_READY: f64 = 1e-3;
/// Steps in a row that win less than a hundredth before Newton gives up: it crawls along a pole then.
const NEWTON_PATIENCE: usize = 5;
/// Substitution steps before Newton takes over regardless.
const FIRST_BUDGET: usize = 100;
/// Rounds of substitution and Newton, each with ten times the substitution budget of the last.
const ROUNDS: usize = 3;

/// The equations: cycle times as functions of throughputs.
pub(super) trait CycleEquations {
    /// Cycle times without contention, all positive: where the search starts.
    fn contention_free(&self) -> Vec<f64>;

    /// Writes R(X) to `cycles`; `false` if X asks more of a node than it can give.
    fn cycles(&self, throughputs: &[f64], cycles: &mut [f64]) -> bool;

    /// Writes ∂(log X_i + log R_i)/∂ log X_j; by differences unless overridden.
    fn jacobian(&self, throughputs: &[f64], cycles: &[f64], jacobian: &mut Matrix) {
        const STEP: f64 = 1e-7;
        let n = throughputs.len();
        let mut moved = throughputs.to_vec();
        let mut moved_cycles = vec![0.0; n];
        for j in 0..n {
            // Downwards: less load is always feasible.
            moved[j] = throughputs[j] * (-STEP).exp();
            self.cycles(&moved, &mut moved_cycles);
            for i in 0..n {
                let slope = (cycles[i] / moved_cycles[i]).ln() / STEP;
                jacobian.row_mut(i)[j] = slope + if i == j { 1.0 } else { 0.0 };
            }
            moved[j] = throughputs[j];
        }
    }
}

/// A feasible point of the search.
struct Point {
    log_x: Vec<f64>,
    cycles: Vec<f64>,
    /// f_i = log X_i + log R_i(X).
    mismatch: Vec<f64>,
    residual: f64,
}

/// Throughputs that satisfy the equations, and how they were found.
pub(super) fn solve(equations: &impl CycleEquations) -> Result<(Vec<f64>, SolveStats), ModelError> {
    let mut stats = SolveStats::default();
    let mut point = start(equations, &mut stats)?;
    let mut budget = FIRST_BUDGET;
    for round in 0..ROUNDS {
        let ready = if round == 0 { NEWTON_READY } else { TOLERANCE };
        point = substitute(equations, point, budget, ready, &mut stats);
        if point.residual >= TOLERANCE {
            point = newton(equations, point, &mut stats);
        }
        stats.residual = point.residual;
        if point.residual < ROUNDING_FLOOR {
            return Ok((point.log_x.iter().map(|y| y.exp()).collect(), stats));
        }
        budget *= 10;
    }
    let steps = stats.substitution_steps + stats.newton_steps;
    Err(ModelError::NotConverged {
        steps,
        residual: stats.residual,
    })
}

/// Evaluates the equations at `log_x`; `None` where infeasible.
fn evaluate(equations: &impl CycleEquations, log_x: Vec<f64>) -> Option<Point> {
    let throughputs: Vec<f64> = log_x.iter().map(|y| y.exp()).collect();
    let mut cycles = vec![0.0; log_x.len()];
    if !equations.cycles(&throughputs, &mut cycles) {
        return None;
    }
    let mismatch: Vec<f64> = log_x.iter().zip(&cycles).map(|(y, r)| y + r.ln()).collect();
    let residual = mismatch
        .iter()
        .fold(0.0, |worst: f64, f| worst.max(f.abs()));
    residual.is_finite().then_some(Point {
        log_x,
        cycles,
        mismatch,
        residual,
    })
}

/// The contention-free point, with all cycles doubled until every node can bear it.
fn start(equations: &impl CycleEquations, stats: &mut SolveStats) -> Result<Point, ModelError> {
    let mut log_x: Vec<f64> = equations
        .contention_free()
        .iter()
        .map(|r| -r.ln())
        .collect();
    // Each doubling halves all loads: a thousand exhaust the exponent of a double.
    for _ in 0..1000 {
        stats.substitution_steps += 1;
        if let Some(point) = evaluate(equations, log_x.clone()) {
            return Ok(point);
        }
        for y in &mut log_x {
            *y -= std::f64::consts::LN_2;
        }
    }
    Err(ModelError::NotConverged {
        steps: stats.substitution_steps,
        residual: f64::INFINITY,
    })
}

/// Damped substitution log R ← log R + w (log F(R) − log R), until `ready` or out of budget.
fn substitute(
    equations: &impl CycleEquations,
    mut point: Point,
    budget: usize,
    ready: f64,
    stats: &mut SolveStats,
) -> Point {
    let mut weight = 0.5;
    for _ in 0..budget {
        if point.residual < ready {
            break;
        }
        stats.substitution_steps += 1;
        let log_x = point
            .log_x
            .iter()
            .zip(&point.mismatch)
            .map(|(y, f)| y - weight * f)
            .collect();
        match evaluate(equations, log_x) {
            None => weight /= 2.0,
            Some(next) => {
                if next.residual > point.residual {
                    weight *= 0.7;
                }
                point = next;
            }
        }
    }
    point
}

/// Newton in log X, each step halved until feasible and the largest mismatch falls.
fn newton(equations: &impl CycleEquations, mut point: Point, stats: &mut SolveStats) -> Point {
    let n = point.log_x.len();
    let mut slow = 0;
    for _ in 0..100 {
        if point.residual < TOLERANCE || slow > NEWTON_PATIENCE {
            break;
        }
        stats.newton_steps += 1;
        let throughputs: Vec<f64> = point.log_x.iter().map(|y| y.exp()).collect();
        let mut jacobian = Matrix::zero(n);
        equations.jacobian(&throughputs, &point.cycles, &mut jacobian);
        let mut step: Vec<f64> = point.mismatch.iter().map(|f| -f).collect();
        if !solve_in_place(&mut jacobian, &mut step) {
            break;
        }
        match shortened(equations, &point, &step) {
            Some(next) => {
                slow = if next.residual > 0.99 * point.residual {
                    slow + 1
                } else {
                    0
                };
                point = next;
            }
            None => break,
        }
    }
    point
}

/// The first of the steps 1, ½, ¼, … that is feasible and lowers the residual.
fn shortened(equations: &impl CycleEquations, point: &Point, step: &[f64]) -> Option<Point> {
    let mut scale = 1.0;
    for _ in 0..40 {
        let log_x = point
            .log_x
            .iter()
            .zip(step)
            .map(|(y, d)| y + scale * d)
            .collect();
        match evaluate(equations, log_x) {
            Some(next) if next.residual < point.residual => return Some(next),
            _ => scale /= 2.0,
        }
    }
    None
}
