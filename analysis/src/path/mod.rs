//! The critical path of a run, and what waits for others cost: docs/design/models.md#critical-path.
//!
//! [`PathBuilder`] takes the records once, in order of their start. Every process carries the longest chain of dependences that
//! leads to where it is (`chains`), and what it did since its last barrier and in the sections it is in (`process`). Where it
//! waited for another, at a barrier or for a lock, it goes on with the chain of that one, and the wait is charged to it, with
//! what it did meanwhile (`delays`). Memory grows with processes, objects that are locked and variables, not with records.

mod answer;
mod barriers;
mod builder;
mod chains;
mod delays;
mod locks;
mod process;
mod tally;
#[cfg(test)]
mod tests;

pub use answer::{CriticalPath, Delay, PathKind, PathPart};
pub use builder::PathBuilder;
