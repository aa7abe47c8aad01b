//! A trace, and what is known to be wrong with its program.

use dosmos_analysis::Kind;
use dosmos_trace::query::{Breakdown, Catalog};
use dosmos_trace::record::Record;

/// A pathology in a trace.
#[derive(Clone, Debug, PartialEq)]
pub struct Label {
    /// Which.
    pub kind: Kind,
    /// Names of the variables it is about; empty: of none in particular.
    pub variables: Vec<String>,
    /// Fraction of the time that its cure saves: of the processes concerned, and of all.
    pub gain: (f64, f64),
}

/// A trace, and what is wrong with the program.
#[derive(Clone, Debug)]
pub struct Labelled {
    /// What it was generated from.
    pub seed: u64,
    /// Names and processes.
    pub catalog: Catalog,
    /// In order of their start.
    pub records: Vec<Record>,
    /// Mean round trip of an access by its origin: own memory process, same group, another group. Nanoseconds.
    pub trips: [f64; 3],
    /// Where the time of its processes went.
    pub times: Breakdown,
    /// What is wrong.
    pub planted: Vec<Label>,
    /// What is there and hardly matters.
    pub slight: Vec<Label>,
}
