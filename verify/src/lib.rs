//! Proves or refutes the consistency contract (`docs/design/consistency.md`) for a recorded run.
//!
//! * [`Verifier`] takes the records of a run in order of their start, whoever made them, and gives a [`Verdict`].
//! * [`Kind`]: the ways in which a run can break the contract. Each [`Violation`] has the records that refute it.
//! * A [`Doubt`] is a question that the records do not decide, why, and what would decide it.
//!
//! How it works: each process is followed in the order of its own clock; acquires, releases and barriers, by the versions and
//! openings in their records, order the phases of different processes (vector clocks). Times of different clocks are
//! compared nowhere but where a barrier was left early. What a read had to see is the newest publication of its object that
//! is ordered before it.
//!
//! Invariants: no I/O, no clock; memory grows with the objects and processes, not with the records; a violation is certain
//! from its records alone, or said only if no record is missing.

mod barriers;
mod clocks;
mod context;
mod found;
mod kind;
mod locks;
mod made;
mod names;
mod order;
mod owners;
mod pairs;
mod publications;
mod races;
mod reads;
mod records;
mod shadow;
mod steps;
mod verdict;
mod verifier;

pub use kind::Kind;
pub use verdict::{Doubt, Looked, MOST_RECORDS, State, Verdict, Violation};
pub use verifier::{Options, Verifier};
