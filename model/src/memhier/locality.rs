//! The locality law: the share of references whose stack distance is at least x.

use serde::{Deserialize, Serialize};

use crate::error::{ModelError, finite_result, invalid, positive};

/// Locality of a program, α and β of its stack distances.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Locality {
    /// α > 1: the larger, the faster the tail falls.
    pub alpha: f64,
    /// β > 0, bytes: the scale on which it falls (the paper says β > 1; any positive value is sound).
    pub beta: f64,
}

impl Locality {
    /// Checks both fields; `at` is put before their names.
    ///
    /// # Errors
    /// [`ModelError::Invalid`] naming the field.
    pub fn validate(&self, at: &str) -> Result<(), ModelError> {
        if !(self.alpha.is_finite() && self.alpha > 1.0) {
            return Err(invalid(
                format!("{at}alpha"),
                self.alpha,
                "finite and greater than 1",
            ));
        }
        positive(&format!("{at}beta"), self.beta)
    }

    /// t(x) = (1 + q x/β)^−(α−1), the share of references that a store of `x` ≥ 0 bytes misses when
    /// the program is spread over q = `processors` (1).
    #[must_use]
    pub fn tail(&self, x: f64, processors: f64) -> f64 {
        (-(self.alpha - 1.0) * (processors * x / self.beta).ln_1p()).exp()
    }

    /// P(x) = 1 − t(x), without loss of digits where it is small.
    #[must_use]
    pub fn cdf(&self, x: f64, processors: f64) -> f64 {
        -(-(self.alpha - 1.0) * (processors * x / self.beta).ln_1p()).exp_m1()
    }

    /// Density (α−1)/b (1 + x/b)^−α with b = β/q (2).
    #[must_use]
    pub fn pdf(&self, x: f64, processors: f64) -> f64 {
        let b = self.beta / processors;
        (self.alpha - 1.0) / b * (-self.alpha * (x / b).ln_1p()).exp()
    }

    /// The tail of a program whose data end at `x_max` bytes on one processor:
    /// (t(x) − t(x_max))/(1 − t(x_max)), and 0 from there on. Without the cut the heavy tail sends
    /// references to disk though the data fit into memory.
    #[must_use]
    pub fn cut_tail(&self, x: f64, processors: f64, x_max: f64) -> f64 {
        let spread = processors * x;
        if spread >= x_max {
            return 0.0;
        }
        // t(x) − t(x_max) as a product: the difference would lose its digits.
        let ratio = ((x_max - spread) / (self.beta + spread)).ln_1p();
        let before = -(-(self.alpha - 1.0) * ratio).exp_m1();
        (self.tail(x, processors) * before / self.cdf(x_max, 1.0)).clamp(0.0, 1.0)
    }
}

/// Response of a level with service time `tau` when others send it `lambda` references per second:
/// τ + (1+C²) Λτ²/(2(1−Λτ)).
///
/// The paper calls it M/G/1; with C² = 0, constant service, it is M/D/1 and exactly the printed form.
///
/// # Errors
/// [`ModelError::Invalid`] naming the field; [`ModelError::Overflow`]; [`ModelError::Saturated`] if Λτ ≥ 1, past the pole of the
/// formula.
pub fn response(tau: f64, lambda: f64, c2: f64) -> Result<f64, ModelError> {
    positive("tau", tau)?;
    crate::error::non_negative("Lam", lambda)?;
    crate::error::non_negative("C2", c2)?;
    let utilisation = lambda * tau;
    if utilisation >= 1.0 {
        return Err(ModelError::Saturated {
            resource: "tau".to_owned(),
            utilisation,
        });
    }
    finite_result("t", queued(tau, utilisation, c2))
}

/// The formula itself, evaluated blindly.
pub(super) fn queued(tau: f64, utilisation: f64, c2: f64) -> f64 {
    tau + (1.0 + c2) * utilisation * tau / (2.0 * (1.0 - utilisation))
}

/// H = 1/2 + 1/3 + … + 1/q, the barrier term of `q` processors in units of a phase: the expected
/// maximum of q exponential phases, less one phase. 0 for one processor.
#[must_use]
pub fn harmonic_tail(q: u32) -> f64 {
    /// Up to here the sum is cheap; beyond, its asymptotic series is exact to rounding.
    const SUMMED: u32 = 10_000;
    const EULER: f64 = 0.577_215_664_901_532_9;
    if q <= SUMMED {
        // Smallest terms first.
        return (2..=q).rev().map(|i| 1.0 / f64::from(i)).sum();
    }
    let q = f64::from(q);
    q.ln() + EULER + 1.0 / (2.0 * q) - 1.0 / (12.0 * q * q) - 1.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_harmonic_sum_joins_its_series_without_a_step() {
        let step = harmonic_tail(10_001) - harmonic_tail(10_000);
        assert!((step - 1.0 / 10_001.0).abs() < 1e-13, "{step}");
        assert_eq!(harmonic_tail(0), 0.0);
    }

    #[test]
    fn past_the_pole_there_is_no_answer() {
        let saturated = response(2.0, 0.5, 0.0).unwrap_err();
        assert!(
            matches!(saturated, ModelError::Saturated { utilisation, .. } if utilisation == 1.0)
        );
        assert!(response(2.0, f64::NAN, 0.0).is_err());
    }
}
