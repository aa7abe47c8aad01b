//! What the sweeps measure.

use dosmos_examples::kernels::Outcome;

/// One outcome, with its place in its sweep.
pub(crate) struct Figure {
    pub(crate) sweep: &'static str,
    pub(crate) series: String,
    pub(crate) x: f64,
    pub(crate) outcome: Outcome,
}
