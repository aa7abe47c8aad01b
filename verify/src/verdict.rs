//! What is said of a run.

use dosmos_trace::Record;
use serde::Serialize;

use crate::kind::Kind;

/// Whether a run kept the contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// Every record was looked at, and they keep the contract.
    Consistent,
    /// The records refute it.
    Violated,
    /// Nothing refutes it, but what the records lack could.
    Undecided,
}

impl State {
    /// As in every answer.
    pub fn name(self) -> &'static str {
        match self {
            Self::Consistent => "consistent",
            Self::Violated => "violated",
            Self::Undecided => "undecided",
        }
    }
}

/// One way in which the records refute the contract.
#[derive(Clone, Debug, PartialEq)]
pub struct Violation {
    /// Which rule is broken how.
    pub kind: Kind,
    /// Of what: an object or a barrier.
    pub target: String,
    /// Which records contradict which.
    pub why: String,
    /// The counter-example: these records alone refute the contract. At most [`MOST_RECORDS`].
    pub records: Vec<Record>,
    /// Of a data race, whether each of the two accesses was in a section of the object.
    pub in_sections: Option<[bool; 2]>,
    /// How many more like it there are, of the same variable.
    pub more: u64,
}

/// Most records of a counter-example.
pub const MOST_RECORDS: usize = 10;

/// Something that the records do not decide.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Doubt {
    /// What is not decided.
    pub question: String,
    /// Why not.
    pub why: String,
    /// What would decide it.
    pub decided_by: String,
    /// How often.
    pub count: u64,
    /// It leaves open whether the program races.
    #[serde(skip)]
    pub of_races: bool,
}

/// How much was looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Looked {
    /// Records.
    pub records: u64,
    /// Accesses that the records of application processes stand for.
    pub accesses: u64,
    /// Reads compared with what had to be seen.
    pub reads: u64,
    /// Exclusive sections, by their releases.
    pub sections: u64,
    /// Openings of barriers, by all participants.
    pub barriers: u64,
    /// Objects.
    pub objects: u64,
}

/// What is said of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// In one word.
    pub state: State,
    /// What refutes the contract, by kind.
    pub violations: Vec<Violation>,
    /// What could not be decided.
    pub doubts: Vec<Doubt>,
    /// How much was looked at.
    pub looked: Looked,
}
