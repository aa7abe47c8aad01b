//! Random numbers that depend on the seed and on the thing they are for, and on nothing else: so an
//! input is the same however many processes make it, each its part.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// A source of random numbers.
pub(crate) type Dice = ChaCha8Rng;

/// The random numbers of item `item`.
pub(crate) fn dice(seed: u64, item: usize) -> Dice {
    let mut dice = ChaCha8Rng::seed_from_u64(seed);
    dice.set_stream(item as u64);
    dice
}

/// A number of [0, 1).
pub(crate) fn unit(dice: &mut Dice) -> f64 {
    dice.random()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_have_numbers_of_their_own_and_always_the_same() {
        let draw = |seed, item| -> u64 { dice(seed, item).random() };
        assert_eq!(draw(1, 7), draw(1, 7));
        assert_ne!(draw(1, 7), draw(1, 8));
        assert_ne!(draw(1, 7), draw(2, 7));
        assert!((0..100).all(|i| (0.0..1.0).contains(&unit(&mut dice(3, i)))));
    }
}
