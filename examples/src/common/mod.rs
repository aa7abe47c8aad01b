//! What the applications have in common: how long they run, whose part is whose, reproducible random
//! numbers, and the comparison with a sequential run.

mod dice;
mod pace;
mod shares;
mod verify;

pub(crate) use dice::{dice, unit};
pub(crate) use pace::{Pace, seconds};
pub(crate) use shares::{enough, home, share};
pub(crate) use verify::same_bits;
