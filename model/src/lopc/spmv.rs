//! The worked example: sparse matrix–vector multiplication with remote vector elements.
//!
//! Rows and vector elements are dealt to the nodes at random, so that a fraction (P−1)/P of the
//! elements a node needs is remote, each fetched by one request.

use serde::{Deserialize, Serialize};

use super::homogeneous::{self, HomogeneousInput, HomogeneousOutput};
use crate::error::{ModelError, invalid, positive};

/// Inputs of the example; times in cycles.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SpmvInput {
    /// P ≥ 2, nodes.
    #[serde(rename = "P")]
    pub processors: u32,
    /// Rows of the matrix.
    pub rows: f64,
    /// Non-zero elements of the matrix.
    pub nonzeros: f64,
    /// Cycles of one multiply-add.
    pub multiply_add_cycles: f64,
    /// S_o, handler time.
    #[serde(rename = "So")]
    pub handler: f64,
    /// S_l, one-way latency.
    #[serde(rename = "Sl")]
    pub latency: f64,
    /// C² of the handler time.
    #[serde(rename = "C2", default)]
    pub c2: f64,
}

impl SpmvInput {
    /// The published example (Alewife, 13,000 rows, 654,800 non-zeros) on `processors` nodes.
    #[must_use]
    pub fn alewife(processors: u32) -> Self {
        Self {
            processors,
            rows: 13_000.0,
            nonzeros: 654_800.0,
            multiply_add_cycles: 59.0,
            handler: 145.0,
            latency: 6.0,
            c2: 0.0,
        }
    }
}

/// Results of the example.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct SpmvOutput {
    /// P, nodes.
    #[serde(rename = "P")]
    pub processors: u32,
    /// W = t_madd P/(P−1), work between requests.
    #[serde(rename = "W")]
    pub work: f64,
    /// n = nnz (P−1)/P², requests of each node.
    pub n: f64,
    /// R, one cycle.
    #[serde(rename = "R")]
    pub cycle: f64,
    /// One cycle without contention.
    #[serde(rename = "R_logp")]
    pub logp_cycle: f64,
    /// n R, the whole multiplication.
    pub total: f64,
    /// n R_logp.
    pub total_logp: f64,
    /// R (P−1)/P: time for one non-zero of a node.
    pub per_nonzero: f64,
    /// Rows of each node.
    pub rows_per_node: f64,
    /// Where the cycle goes.
    pub components: HomogeneousOutput,
}

/// Run time of the multiplication: W, n and the homogeneous model.
///
/// # Errors
/// [`ModelError::Invalid`] naming the field that is out of range.
pub fn solve(input: &SpmvInput) -> Result<SpmvOutput, ModelError> {
    if input.processors < 2 {
        return Err(invalid("P", f64::from(input.processors), "at least 2"));
    }
    positive("rows", input.rows)?;
    positive("nonzeros", input.nonzeros)?;
    positive("multiply_add_cycles", input.multiply_add_cycles)?;
    let p = f64::from(input.processors);
    let work = input.multiply_add_cycles * p / (p - 1.0);
    let components = homogeneous::solve(&HomogeneousInput {
        processors: input.processors,
        work,
        handler: input.handler,
        latency: input.latency,
        c2: input.c2,
        protocol_processor: false,
    })?;
    let n = input.nonzeros * (p - 1.0) / (p * p);
    Ok(SpmvOutput {
        processors: input.processors,
        work,
        n,
        cycle: components.cycle,
        logp_cycle: components.logp_cycle,
        total: n * components.cycle,
        total_logp: n * components.logp_cycle,
        per_nonzero: components.cycle * (p - 1.0) / p,
        rows_per_node: input.rows / p,
        components,
    })
}
