//! Where records go first: a vector of fixed capacity. Pushing is a store and a compare; a full
//! vector is set aside and another, emptied before, takes its place.

use std::collections::VecDeque;
use std::sync::Arc;

use dosmos_proto::{PhaseTimes, Variable};
use dosmos_trace::Record;
use dosmos_trace::meta::HandOver;
use dosmos_trace::query::BarrierName;

/// Records in a full batch.
pub(crate) const BATCH_RECORDS: usize = 8192;

/// Records that leave together.
#[derive(Debug, Default)]
pub struct Raw {
    pub(crate) records: Vec<Record>,
    /// Each before the record of this index.
    pub(crate) hand_overs: Vec<(u32, HandOver)>,
    pub(crate) names: Names,
}

/// Dictionary entries.
#[derive(Debug, Default)]
pub(crate) struct Names {
    pub(crate) variables: Vec<Arc<Variable>>,
    pub(crate) barriers: Vec<BarrierName>,
    /// Not names, but as few and never lost either: where application processes' time went.
    pub(crate) times: Vec<PhaseTimes>,
}

impl Names {
    pub(crate) fn is_empty(&self) -> bool {
        self.variables.is_empty() && self.barriers.is_empty() && self.times.is_empty()
    }

    fn append(&mut self, mut other: Self) {
        self.variables.append(&mut other.variables);
        self.barriers.append(&mut other.barriers);
        self.times.append(&mut other.times);
    }
}

impl Raw {
    fn with_capacity() -> Self {
        Self {
            records: Vec::with_capacity(BATCH_RECORDS),
            ..Self::default()
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.records.is_empty() && self.hand_overs.is_empty() && self.names.is_empty()
    }

    /// Memory it takes.
    fn bytes(&self) -> usize {
        self.records.len() * size_of::<Record>()
            + self.hand_overs.len() * size_of::<(u32, HandOver)>()
    }

    fn clear(&mut self) {
        self.records.clear();
        self.hand_overs.clear();
        self.names = Names::default();
    }
}

/// What was dropped.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Discarded {
    pub(crate) records: u64,
    /// Accesses that they stood for, beyond one each.
    pub(crate) extra: u64,
    pub(crate) hand_overs: u64,
}

/// The current batch, and full ones that wait to be packed.
#[derive(Debug)]
pub(crate) struct Buffer {
    current: Raw,
    full: VecDeque<Raw>,
    full_bytes: usize,
    spare: Option<Raw>,
}

impl Buffer {
    pub(crate) fn new() -> Self {
        Self {
            current: Raw::with_capacity(),
            full: VecDeque::new(),
            full_bytes: 0,
            spare: Some(Raw::with_capacity()),
        }
    }

    /// Adds a record; whether the batch is full now.
    pub(crate) fn push(&mut self, record: Record) -> bool {
        self.current.records.push(record);
        self.current.records.len() >= BATCH_RECORDS
    }

    /// Adds a hand-over, in order with the records; whether the batch is full now.
    pub(crate) fn hand_over(&mut self, hand_over: HandOver) -> bool {
        let position = self.current.records.len() as u32;
        self.current.hand_overs.push((position, hand_over));
        self.current.hand_overs.len() >= BATCH_RECORDS
    }

    /// Dictionary entries of the current batch. They are never lost.
    pub(crate) fn names(&mut self) -> &mut Names {
        &mut self.current.names
    }

    /// Whether the current batch has dictionary entries.
    pub(crate) fn has_names(&self) -> bool {
        !self.current.names.is_empty()
    }

    /// Sets the current batch aside if there is anything in it.
    pub(crate) fn set_aside(&mut self) {
        if self.current.is_empty() {
            return;
        }
        let next = self.spare.take().unwrap_or_else(Raw::with_capacity);
        let full = std::mem::replace(&mut self.current, next);
        self.full_bytes += full.bytes();
        self.full.push_back(full);
    }

    /// Drops the records and hand-overs of the current batch.
    pub(crate) fn discard(&mut self) -> Discarded {
        let records = &self.current.records;
        let dropped = Discarded {
            records: records.len() as u64,
            extra: records.iter().map(|r| r.accesses() - 1).sum(),
            hand_overs: self.current.hand_overs.len() as u64,
        };
        let names = std::mem::take(&mut self.current.names);
        self.current.clear();
        self.current.names.append(names);
        dropped
    }

    /// The oldest batch set aside.
    pub(crate) fn take(&mut self) -> Option<Raw> {
        let raw = self.full.pop_front()?;
        self.full_bytes -= raw.bytes();
        Some(raw)
    }

    /// Gives a packed batch back, to be used again.
    pub(crate) fn give_back(&mut self, mut raw: Raw) {
        raw.clear();
        self.spare = Some(raw);
    }

    /// Memory taken by what is set aside.
    pub(crate) fn bytes(&self) -> usize {
        self.full_bytes
    }
}
