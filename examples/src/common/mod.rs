//! What the applications have in common: how long they run, whose part is whose, what neighbours tell
//! each other, reproducible random numbers, and the comparison with a sequential run.

mod dice;
mod edges;
mod pace;
mod shares;
mod verify;

pub(crate) use dice::{dice, unit};
pub(crate) use edges::Edges;
pub(crate) use pace::{Pace, seconds};
pub(crate) use shares::{enough, share};
pub(crate) use verify::same_bits;
