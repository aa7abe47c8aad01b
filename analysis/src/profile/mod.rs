//! What the detectors know of a run: sums and states gathered in one pass over its records.

mod arrivals;
mod builder;
mod costs;
mod gathered;
mod object;
mod phases;
mod processor;
mod spread;
mod waits;

pub use builder::ProfileBuilder;
pub use costs::Costs;
pub use gathered::Profile;
pub use object::{ApUse, HandOvers, MpUse, ObjectProfile, Waiting};
pub use phases::Phases;
pub use processor::OnProcessor;
pub use spread::Spread;
pub use waits::{Broken, Wait};
