//! How far the models are from the simulation.

use serde::{Deserialize, Serialize};

use super::engine::simulate;
use super::input::SimInput;
use super::measure::SimOutput;
use crate::error::ModelError;
use crate::lopc::{ClientServerInput, HomogeneousOutput, client_server};

/// Errors of the homogeneous model against a simulation, in per cent.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// Of R.
    pub total_over_percent: f64,
    /// Of R − R_logp.
    pub contention_over_percent: f64,
    /// Of the queueing of replies, R_y − S_o.
    pub reply_over_percent: f64,
    /// How far LogP, which ignores contention, falls short of the simulated R.
    pub logp_under_percent: f64,
}

/// Compares the model with a simulation of the same machine; `handler` is S_o.
///
/// Ratios with nothing to compare (no simulated contention) are infinite or NaN, as divisions are.
#[must_use]
pub fn compare(model: &HomogeneousOutput, handler: f64, simulated: &SimOutput) -> Comparison {
    let over = |model: f64, simulated: f64| 100.0 * (model / simulated - 1.0);
    Comparison {
        total_over_percent: over(model.cycle, simulated.cycle),
        contention_over_percent: over(model.contention, simulated.cycle - model.logp_cycle),
        reply_over_percent: over(model.reply - handler, simulated.reply - handler),
        logp_under_percent: 100.0 * (1.0 - model.logp_cycle / simulated.cycle),
    }
}

/// The best number of servers by simulation, beside the model's.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct WorkPile {
    /// The highest simulated throughput.
    #[serde(rename = "sim_best_X")]
    pub sim_best_x: f64,
    /// The number of servers that gave it.
    #[serde(rename = "sim_best_Ps")]
    pub sim_best_servers: u32,
    /// X* of the model.
    #[serde(rename = "X_opt")]
    pub model_x: f64,
    /// P_s* of the model.
    #[serde(rename = "Ps_opt")]
    pub model_servers: f64,
    /// 100 (X*/X_sim − 1).
    pub error_percent: f64,
}

/// Simulates every number of servers in `range` and compares the best with the model's optimum.
///
/// `configure` sets what the model does not know: distributions, seed, length.
///
/// # Errors
/// As [`client_server::optimum`] and [`simulate`]; an empty range is [`ModelError::Shape`].
pub fn work_pile(
    input: &ClientServerInput,
    range: std::ops::RangeInclusive<u32>,
    configure: impl Fn(SimInput) -> SimInput,
) -> Result<WorkPile, ModelError> {
    let optimum = client_server::optimum(input)?;
    let mut best: Option<(f64, u32)> = None;
    for servers in range {
        ClientServerInput {
            servers: f64::from(servers),
            ..*input
        }
        .validate()?;
        let x = simulate(&configure(SimInput::client_server(input, servers)))?.throughput;
        if best.is_none_or(|(best_x, _)| x > best_x) {
            best = Some((x, servers));
        }
    }
    let (sim_best_x, sim_best_servers) = best.ok_or(ModelError::Shape {
        field: "Ps".to_owned(),
        found: 0,
        expected: 1,
    })?;
    Ok(WorkPile {
        sim_best_x,
        sim_best_servers,
        model_x: optimum.throughput,
        model_servers: optimum.servers,
        error_percent: 100.0 * (optimum.throughput / sim_best_x - 1.0),
    })
}
