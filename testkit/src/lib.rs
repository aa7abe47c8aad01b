//! What tests and benchmarks share, and no product binary links.
//!
//! * [`reference`]: a seeded stream of records that tests and benchmarks of the trace store agree on.
//! * [`labelled`]: traces with known pathologies, to score the detectors by.
//! * [`Memory`]: a source over records at hand, answered by brute force.
//! * [`recorded`]: traces of real runs with pathologies, and of their cures.
//! * [`SlowLink`]: a link between processes that takes a given time.
//!
//! Invariant: the same seed gives the same records on every machine.

pub mod labelled;
mod memory;
pub mod recorded;
pub mod reference;
mod slow_link;

pub use memory::Memory;
pub use slow_link::SlowLink;
