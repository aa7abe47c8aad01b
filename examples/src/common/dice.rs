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

/// The random numbers of item `item` from its 32-bit word `first` on: for items of which each process makes a
/// part, without an initialisation for each number.
pub(crate) fn dice_from(seed: u64, item: usize, first: usize) -> Dice {
    let mut dice = dice(seed, item);
    dice.set_word_pos(first as u128);
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
        let (mut all, mut part) = (dice(1, 7), dice_from(1, 7, 10));
        let all: [u64; 9] = std::array::from_fn(|_| all.random());
        assert_eq!(all[5..], [(); 4].map(|()| -> u64 { part.random() }));
        assert!((0..100).all(|i| (0.0..1.0).contains(&unit(&mut dice(3, i)))));
    }
}
