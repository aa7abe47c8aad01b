//! κ, the correction for handler times that vary.

/// κ = (C² − 1)/2: how much the residual life of the handler in service differs from a whole one.
pub(super) fn kappa(c2: f64) -> f64 {
    (c2 - 1.0) / 2.0
}
