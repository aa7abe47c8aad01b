//! Histories and records: what happened, in order of its start.

use dosmos_proto::{ApId, Nanos, ObjectId};
use serde::{Deserialize, Serialize};

use super::{Completeness, Filter, QueryError, TimeRange};
use crate::record::{Op, Origin, Record};
use crate::spread::{Part, Spread};

/// What happened, one by one or, where there is too much of it, gathered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistoryQuery {
    /// Of what. A missing range means the source's extent.
    pub filter: Filter,
    /// At most this many points, 1 to [`MAX_POINTS`]; like neighbours are gathered into one to keep to it.
    pub max_points: u32,
}

/// Most points a history may have.
pub const MAX_POINTS: u32 = 100_000;

impl HistoryQuery {
    /// Refuses a number of points that no history has.
    ///
    /// # Errors
    /// If it is not 1 to [`MAX_POINTS`].
    pub fn check(&self) -> Result<(), QueryError> {
        match self.max_points {
            1..=MAX_POINTS => Ok(()),
            n => Err(QueryError::BadQuery(format!(
                "{n} points; a history has 1 to {MAX_POINTS}"
            ))),
        }
    }
}

/// One access, or several like ones in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HistoryPoint {
    /// Start of the first.
    pub start: Nanos,
    /// To the end of the last.
    pub duration: Nanos,
    /// Waiting time, summed.
    pub wait: Nanos,
    /// What was done.
    pub op: Op,
    /// How far it went.
    pub origin: Origin,
    /// Served from a copy.
    pub optimized: bool,
    /// Served in the application process.
    #[serde(default)]
    pub in_process: bool,
    /// By whom.
    pub ap: ApId,
    /// To what.
    pub object: ObjectId,
    /// Version of the (last) access.
    pub version: u64,
    /// How many accesses.
    pub count: u64,
    /// What was lost when they were gathered.
    #[serde(default, skip_serializing_if = "Several::none")]
    pub several: Several,
}

/// In what the accesses behind a point differ; the point has that of the first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Several {
    /// Operations.
    pub ops: bool,
    /// Application processes.
    pub aps: bool,
    /// Objects.
    pub objects: bool,
}

impl Several {
    /// They do not differ.
    pub fn none(&self) -> bool {
        *self == Self::default()
    }
}

impl HistoryPoint {
    /// The point that stands for a record.
    pub fn of(record: &Record) -> Self {
        Self {
            start: record.start,
            duration: record.duration,
            wait: record.wait,
            op: record.op,
            origin: record.origin,
            optimized: record.flags.optimized,
            in_process: record.flags.in_process,
            ap: record.ap,
            object: record.object,
            version: record.version,
            count: record.accesses(),
            several: Several::default(),
        }
    }
}

impl HistoryPoint {
    /// When the accesses of the point of a record began.
    fn spread(&self) -> Spread {
        Spread::new(self.start, self.duration, self.count)
    }

    fn of_part(&self, part: &Part) -> Self {
        if part.is_whole() {
            return *self;
        }
        let wait = Nanos(part.share(self.wait.0));
        Self {
            start: part.start(),
            duration: part.length().max(wait),
            wait,
            count: part.count(),
            ..*self
        }
    }

    /// What of the point of a record began in `range`.
    pub fn within(&self, range: TimeRange) -> Option<Self> {
        let part = self.spread().part(range)?;
        Some(self.of_part(&part))
    }

    /// Hands out the point of a record, cut where the equal parts of `range`, of `parts`, meet.
    pub fn cut(&self, range: TimeRange, parts: u32, mut each: impl FnMut(Self)) {
        let spread = self.spread();
        spread.over(range, parts, |_, part| each(self.of_part(&part)));
    }
}

/// Records in order of their start. Reads as the list of them; says what it lacks.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Records {
    /// The records.
    pub records: Vec<Record>,
    /// What is missing.
    pub completeness: Completeness,
}

impl std::ops::Deref for Records {
    type Target = [Record];
    fn deref(&self) -> &[Record] {
        &self.records
    }
}

impl IntoIterator for Records {
    type Item = Record;
    type IntoIter = std::vec::IntoIter<Record>;
    fn into_iter(self) -> Self::IntoIter {
        self.records.into_iter()
    }
}

/// A history: points in order of their start.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct History {
    /// What it covers.
    pub range: TimeRange,
    /// In order of their start.
    pub points: Vec<HistoryPoint>,
    /// Number of accesses behind the points.
    pub matched: u64,
    /// What is missing.
    pub completeness: Completeness,
}
