//! What is in a log: commits of records, and the events between them.

use dosmos_proto::{EmpId, MpId, Nanos, PhaseTimes, Variable};
use serde::{Deserialize, Serialize};

use super::imported::Imported;
use crate::clock::{Corrected, Correction};
use crate::meta::{HandOver, SecondaryContent};
use crate::query::BarrierName;
use crate::record::Record;
use crate::selection::Selection;

/// A batch that is in the store: everything up to `sequence` of this incarnation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BatchMark {
    /// The memory process that sent it.
    pub mp: MpId,
    /// Which start of that process.
    pub incarnation: u64,
    /// Number of its last batch stored.
    pub sequence: u64,
    /// The latest time of its records so far. Records that come later are not corrected to a time before it.
    pub until: Corrected,
}

impl BatchMark {
    /// Whether it is of a later start of its memory process, or a later batch of the same.
    pub fn is_after(&self, other: &Self) -> bool {
        (self.incarnation, self.sequence) > (other.incarnation, other.sequence)
    }
}

/// What a memory process said of its own recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RecordingCounters {
    /// Records made since its start.
    pub recorded: u64,
    /// Records lost to a full buffer since its start.
    pub dropped: u64,
    /// Accesses that those lost stand for, beyond one each.
    pub extra_dropped: u64,
    /// Accesses since its start that the selection left out.
    pub unselected: u64,
    /// Fraction of the selected accesses recorded; 0: not said.
    pub sampling: f64,
}

/// Something that changes what the records after it mean, or adds to the dictionary.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Event {
    /// A copy's secondary meta-object is handed over.
    HandOver(HandOver),
    /// Another event manager handed a secondary meta-object over.
    Received {
        /// Who.
        from: EmpId,
        /// What.
        content: SecondaryContent,
    },
    /// A variable appeared.
    Variable(Variable),
    /// A barrier appeared.
    Barrier(BarrierName),
    /// State of a memory process's recording; replaces what its incarnation said before.
    Counters {
        /// The memory process.
        mp: MpId,
        /// Which start of it.
        incarnation: u64,
        /// What it said.
        counters: RecordingCounters,
    },
    /// An application process said where its time went.
    Times(PhaseTimes),
    /// What a memory process records from here on.
    Selection {
        /// The memory process.
        mp: MpId,
        /// Which start of it.
        incarnation: u64,
        /// What it records.
        selection: Selection,
    },
    /// A memory process began to report, or said that it had reported everything.
    Report {
        /// The memory process.
        mp: MpId,
        /// Which start of it.
        incarnation: u64,
        /// It has reported everything.
        ended: bool,
    },
    /// The records come from a file, not from memory processes.
    Imported(Imported),
    /// How the times of a memory process's records are corrected from here on.
    Clock {
        /// The memory process.
        mp: MpId,
        /// Which start of it.
        incarnation: u64,
        /// By what, and how far they may be off.
        correction: Correction,
    },
    /// A memory process said at its end what serving took.
    Processor {
        /// The memory process.
        mp: MpId,
        /// Which start of it.
        incarnation: u64,
        /// Processor time.
        time: Nanos,
    },
}

/// What one commit adds to the log.
#[derive(Clone, Debug, Default)]
pub struct Commit {
    /// The batches it holds.
    pub marks: Vec<BatchMark>,
    /// Their records, in order.
    pub records: Vec<Record>,
    /// Events, each with the number of records (of this commit) before it; in order.
    pub events: Vec<(u32, Event)>,
}

/// One entry of the log.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Item<'a> {
    /// A record.
    Record(&'a Record),
    /// An event.
    Event(&'a Event),
}
