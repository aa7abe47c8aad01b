//! What the detectors know of a run: sums and states gathered in one pass over its records.

mod arrivals;
mod builder;
mod costs;
mod gathered;
mod holders;
mod object;
mod phases;
mod processor;
mod read_only;
mod sequences;
mod spread;
mod waits;
mod windows;

pub use builder::ProfileBuilder;
pub use costs::Costs;
pub use gathered::Profile;
pub use holders::HandOvers;
pub use object::{ApUse, MpUse, ObjectProfile, Waiting};
pub use phases::Phases;
pub use processor::{Beginnings, OnProcessor};
pub use read_only::ReadOnly;
pub use sequences::{Polls, Runs, Sequences};
pub use spread::Spread;
pub use waits::{Broken, Wait};
pub(crate) use windows::joined;
