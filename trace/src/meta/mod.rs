//! Meta-objects: the monitoring state of an object (primary) and of one copy of it (secondary),
//! with the fields of docs/design/monitoring.md#meta-objects and the counts by origin and by application process beyond it.

#[cfg(test)]
mod counted_tests;
#[cfg(test)]
mod figures_tests;
#[cfg(test)]
mod interleaving_tests;
mod objects;
mod ordered;
mod sketch;
mod state;
#[cfg(test)]
mod tests;
mod times;

pub use objects::{
    Access, HandOver, LAST_ACCESSES, OpCounts, PrimaryMeta, SecondaryContent, SecondaryMeta,
};
pub use sketch::Sketch;
pub use state::MetaState;
pub use times::{OperationTimes, Times};
