//! How much of the processes' time was computing, and where the rest went: the efficiency of a run, in the terms of the POP
//! project (<https://pop-coe.eu/node/69>).
//!
//! *Parallel efficiency* is the mean time that the processes computed, as a fraction of the time from the first start to
//! the last end. It is the product of *load balance* (mean over longest computing time) and *communication efficiency* (longest
//! computing time over the whole). What is missing is told by what the processes did instead.

mod parts;
mod verdict;

pub use parts::{OfPart, Part, of_parts, of_phases};
pub use verdict::{Efficiency, Instead, LostTo, verdict};
