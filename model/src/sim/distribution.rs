//! Distributions of work and service times, given by their mean and C².

use serde::{Deserialize, Serialize};

use super::random::Random;
use crate::error::{ModelError, non_negative};

/// Shape of a distribution; the mean is given where it is used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Distribution {
    /// Always the mean (C² = 0).
    #[default]
    Constant,
    /// Exponential (C² = 1).
    Exponential,
    /// Any C² ≥ 0: constant at 0, a mixture of two Erlang distributions below 1, exponential at 1,
    /// a balanced hyperexponential above (Tijms, *Stochastic Models*, 1994, appendix B).
    C2(f64),
}

impl Distribution {
    /// Checks C².
    pub(super) fn validate(self, field: &str) -> Result<(), ModelError> {
        match self {
            Self::C2(c2) => non_negative(field, c2),
            Self::Constant | Self::Exponential => Ok(()),
        }
    }

    /// The distribution with this shape and the given mean.
    pub(super) fn sampler(self, mean: f64) -> Sampler {
        let kind = match self {
            Self::Constant => Kind::Constant,
            Self::Exponential => Kind::Exponential,
            Self::C2(0.0) => Kind::Constant,
            Self::C2(1.0) => Kind::Exponential,
            Self::C2(c2) if c2 < 1.0 => erlang_mixture(c2),
            Self::C2(c2) => {
                let first = 0.5 * (1.0 + ((c2 - 1.0) / (c2 + 1.0)).sqrt());
                Kind::Hyperexponential { first }
            }
        };
        Sampler { mean, kind }
    }
}

/// k−1 stages with probability `fewer`, else k, for 1/k ≤ C² < 1/(k−1).
fn erlang_mixture(c2: f64) -> Kind {
    let k = (1.0 / c2).ceil();
    let fewer = (k * c2 - (k * (1.0 + c2) - k * k * c2).sqrt()) / (1.0 + c2);
    if k > MAX_STAGES {
        return Kind::Constant;
    }
    Kind::Erlang {
        stages: k as u32,
        fewer,
        rate: k - fewer,
    }
}

/// Beyond this, C² < 0.001 is taken as constant: the stages would cost more than they show.
const MAX_STAGES: f64 = 1000.0;

/// A distribution ready to be drawn from.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sampler {
    mean: f64,
    kind: Kind,
}

#[derive(Debug, Clone, Copy)]
enum Kind {
    Constant,
    Exponential,
    Erlang { stages: u32, fewer: f64, rate: f64 },
    Hyperexponential { first: f64 },
}

impl Sampler {
    pub(super) fn draw(&self, random: &mut Random) -> f64 {
        self.mean
            * match self.kind {
                Kind::Constant => 1.0,
                Kind::Exponential => random.exponential(),
                Kind::Erlang {
                    stages,
                    fewer,
                    rate,
                } => {
                    let stages = if random.uniform() < fewer {
                        stages - 1
                    } else {
                        stages
                    };
                    (0..stages).map(|_| random.exponential()).sum::<f64>() / rate
                }
                // Balanced means: each branch carries half of the total.
                Kind::Hyperexponential { first } => {
                    let share = if random.uniform() < first {
                        first
                    } else {
                        1.0 - first
                    };
                    random.exponential() / (2.0 * share)
                }
            }
    }
}

#[cfg(test)]
mod tests {
    use super::{Distribution, Random};

    #[test]
    fn mean_and_variation_are_those_asked_for() {
        let mut random = Random::new(11);
        for c2 in [0.0, 0.05, 0.3, 0.5, 0.9, 1.0, 2.0, 6.0] {
            let sampler = Distribution::C2(c2).sampler(3.0);
            let n = 200_000;
            let draws: Vec<f64> = (0..n).map(|_| sampler.draw(&mut random)).collect();
            let mean = draws.iter().sum::<f64>() / f64::from(n);
            let variance = draws.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / f64::from(n);
            let found = variance / (mean * mean);
            assert!((mean / 3.0 - 1.0).abs() < 0.03, "C2 {c2}: mean {mean}");
            assert!(
                (found - c2).abs() < 0.06 * (c2 + 0.1),
                "C2 {c2}: found {found}"
            );
        }
    }
}
