//! What the applications have in common: how long they run, whose part is whose, what neighbours tell
//! each other, reproducible random numbers, and the comparison with a sequential run.

mod dice;
mod edges;
mod pace;
mod shares;
mod verify;

pub(crate) use dice::{Dice, dice, dice_from, unit};
pub(crate) use edges::Edges;
pub(crate) use pace::{Clock, Pace, seconds};
pub(crate) use shares::{enough, share};
pub(crate) use verify::{first_difference, same_bits};
