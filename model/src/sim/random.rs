//! The simulator's randomness: one seeded ChaCha8 stream, and choice by weight in O(1).

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// A reproducible stream of random numbers.
pub(super) struct Random(ChaCha8Rng);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self(ChaCha8Rng::seed_from_u64(seed))
    }

    /// Uniform in [0, 1), 53 bits.
    pub(super) fn uniform(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Exponential with mean 1. Never infinite: 1 − u > 0.
    pub(super) fn exponential(&mut self) -> f64 {
        -(1.0 - self.uniform()).ln()
    }
}

/// Choice among indices with given weights (Walker's alias method, Vose's construction).
#[derive(Debug, Clone)]
pub(super) struct Weighted {
    /// Probability of staying at the slot drawn, and where to go otherwise.
    slots: Vec<(f64, u32)>,
}

impl Weighted {
    /// `None` if no weight is positive.
    pub(super) fn new(weights: &[f64]) -> Option<Self> {
        let total: f64 = weights.iter().sum();
        if total <= 0.0 {
            return None;
        }
        let n = weights.len();
        let mut scaled: Vec<f64> = weights.iter().map(|w| w / total * n as f64).collect();
        let (mut small, mut large): (Vec<usize>, Vec<usize>) =
            (0..n).partition(|&i| scaled[i] < 1.0);
        let mut slots: Vec<(f64, u32)> = (0..n).map(|i| (1.0, i as u32)).collect();
        while let (Some(&s), Some(&l)) = (small.last(), large.last()) {
            small.pop();
            slots[s] = (scaled[s], l as u32);
            scaled[l] -= 1.0 - scaled[s];
            if scaled[l] < 1.0 {
                large.pop();
                small.push(l);
            }
        }
        // Rounding can leave a slot of weight 0 unpaired; it must not be drawn.
        if let Some(heaviest) = (0..n).max_by(|&a, &b| weights[a].total_cmp(&weights[b])) {
            for s in small {
                if weights[s] == 0.0 {
                    slots[s] = (0.0, heaviest as u32);
                }
            }
        }
        Some(Self { slots })
    }

    pub(super) fn draw(&self, random: &mut Random) -> usize {
        let position = random.uniform() * self.slots.len() as f64;
        let slot = (position as usize).min(self.slots.len() - 1);
        let (stay, other) = self.slots[slot];
        if position - (slot as f64) < stay {
            slot
        } else {
            other as usize
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Random, Weighted};

    #[test]
    fn weighted_choice_has_the_given_shares_and_never_draws_weight_zero() {
        let weights = [0.0, 1.0, 2.0, 0.0, 5.0];
        let choice = Weighted::new(&weights).unwrap();
        let mut random = Random::new(7);
        let mut counts = [0u32; 5];
        for _ in 0..80_000 {
            counts[choice.draw(&mut random)] += 1;
        }
        for (count, weight) in counts.iter().zip(&weights) {
            let wanted = weight * 10_000.0;
            // Five standard deviations of a binomial count.
            assert!(
                (f64::from(*count) - wanted).abs() <= 5.0 * wanted.sqrt(),
                "{counts:?}"
            );
        }
    }

    #[test]
    fn nothing_to_choose_from_is_none() {
        assert!(Weighted::new(&[0.0, 0.0]).is_none());
        assert!(Weighted::new(&[]).is_none());
    }
}
