//! The questions a visualization process asks, and their answers.
//!
//! [`TraceSource`] is answered alike by a live event manager (over gRPC), by a store directory, and by
//! a fusion of many of either; so everything above it works live and post-mortem.

mod breakdown;
pub mod causality;
pub mod gather;
pub mod page;
pub mod table;

pub use breakdown::{Breakdown, ProcessTimes};

use async_trait::async_trait;
use dosmos_proto::{ApId, GroupId, MpId, Nanos, ObjectId, Topology, VarId, Variable};
use serde::{Deserialize, Serialize};

use crate::meta::{OpCounts, PrimaryMeta, SecondaryMeta};
use crate::record::{Op, Origin, Record};
use crate::selection::Selection;
use table::{RankQuery, Ranking, Table, TableQuery, VariableTable};

/// A time range `[from, to)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimeRange {
    /// First instant.
    pub from: Nanos,
    /// The instant after the last.
    pub to: Nanos,
}

impl TimeRange {
    /// All of time.
    pub const ALL: Self = Self {
        from: Nanos::ZERO,
        to: Nanos::MAX,
    };

    /// Whether `at` lies in it.
    pub fn contains(&self, at: Nanos) -> bool {
        self.from <= at && at < self.to
    }

    /// Its length.
    pub fn length(&self) -> Nanos {
        self.to - self.from
    }
}

/// Which records a question is about. Empty lists mean "all". By default only requesters' records
/// count, each access once; failed ones and waiting notices are never matched unless `everything`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Filter {
    /// Of these variables (or barriers).
    pub variables: Vec<VarId>,
    /// Only this object, an index into the one variable named.
    pub object: Option<u32>,
    /// By these application processes.
    pub aps: Vec<ApId>,
    /// These operations.
    pub ops: Vec<Op>,
    /// From so far.
    pub origins: Vec<Origin>,
    /// Started in this range; none means all.
    pub range: Option<TimeRange>,
    /// Also owners' records, failed operations and waiting notices.
    pub everything: bool,
}

impl Filter {
    /// Whether `record` is asked for.
    pub fn matches(&self, record: &Record) -> bool {
        fn among<T: PartialEq>(list: &[T], item: &T) -> bool {
            list.is_empty() || list.contains(item)
        }
        (self.everything || record.is_access())
            && among(&self.variables, &record.object.var)
            && self.object.is_none_or(|o| o == record.object.index)
            && among(&self.aps, &record.ap)
            && among(&self.ops, &record.op)
            && among(&self.origins, &record.origin)
            && self.range.is_none_or(|r| r.contains(record.start))
    }
}

/// How much of the truth an answer holds. Merged by fusion, shown by every view.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Completeness {
    /// Records made.
    pub recorded: u64,
    /// Records that were made but lost to a full buffer or store.
    pub dropped: u64,
    /// Records that retention removed, being too old or too many.
    pub removed: u64,
    /// Fraction of accesses recorded (the smallest of the sources'): 1 = all.
    pub sampling: f64,
    /// Event managers that did not answer.
    pub missing: Vec<String>,
    /// Chunks that could not be read.
    pub corrupt_chunks: u64,
    /// Anything else a reader must know.
    pub notes: Vec<String>,
}

impl Default for Completeness {
    fn default() -> Self {
        Self {
            recorded: 0,
            dropped: 0,
            removed: 0,
            sampling: 1.0,
            missing: Vec::new(),
            corrupt_chunks: 0,
            notes: Vec::new(),
        }
    }
}

impl Completeness {
    /// Nothing is known to be lacking.
    pub fn is_complete(&self) -> bool {
        self.dropped == 0
            && self.removed == 0
            && self.sampling >= 1.0
            && self.missing.is_empty()
            && self.corrupt_chunks == 0
    }

    /// What a reader must know, one line a reason; none if nothing is lacking.
    pub fn reasons(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if self.dropped > 0 {
            lines.push(format!(
                "{} of {} records were dropped",
                self.dropped, self.recorded
            ));
        }
        if self.removed > 0 {
            lines.push(format!(
                "{} of {} records were removed, being too old or too many to keep",
                self.removed, self.recorded
            ));
        }
        if self.sampling < 1.0 {
            lines.push(format!(
                "one access in {:.0} was recorded",
                1.0 / self.sampling
            ));
        }
        for name in &self.missing {
            lines.push(format!("{name} did not answer"));
        }
        if self.corrupt_chunks > 0 {
            lines.push(format!("{} chunks cannot be read", self.corrupt_chunks));
        }
        lines.extend(self.notes.iter().cloned());
        lines
    }

    /// Adds what another source says.
    pub fn merge(&mut self, other: &Self) {
        self.recorded += other.recorded;
        self.dropped += other.dropped;
        self.removed += other.removed;
        self.sampling = self.sampling.min(other.sampling);
        self.missing.extend(other.missing.iter().cloned());
        self.corrupt_chunks += other.corrupt_chunks;
        for note in &other.notes {
            if !self.notes.contains(note) {
                self.notes.push(note.clone());
            }
        }
    }
}

/// A barrier's entry in the dictionary.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BarrierName {
    /// The number that stands for it in `Record::object.var`.
    pub id: VarId,
    /// The group it is of; none: of all.
    pub group: Option<GroupId>,
    /// Its name; may be empty.
    pub name: String,
}

/// What there is: processes, variables, extent in time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Catalog {
    /// The event managers behind it.
    pub event_managers: Vec<String>,
    /// The processes.
    pub topology: Topology,
    /// The variables seen, by number.
    pub variables: Vec<Variable>,
    /// The barriers seen.
    pub barriers: Vec<BarrierName>,
    /// Start of the first and end of the last record; none if there is no record.
    pub extent: Option<TimeRange>,
    /// Number of records.
    pub records: u64,
    /// What is lacking.
    pub completeness: Completeness,
    /// Answered by a running event manager: more may come.
    pub live: bool,
}

impl Catalog {
    /// The variable called `name`.
    pub fn variable(&self, name: &str) -> Option<&Variable> {
        self.variables.iter().find(|v| v.spec.name == name)
    }

    /// Name of a variable or barrier, or its number if unknown.
    pub fn name_of(&self, id: VarId) -> String {
        if let Some(v) = self.variables.iter().find(|v| v.id == id) {
            return v.spec.name.clone();
        }
        match self.barriers.iter().find(|b| b.id == id) {
            Some(b) if b.name.is_empty() => "barrier".to_owned(),
            Some(b) => format!("barrier {}", b.name),
            None => id.to_string(),
        }
    }
}

/// Which meta-objects. Empty lists mean "all".
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MetaQuery {
    /// Of these variables.
    pub variables: Vec<VarId>,
    /// Only these objects.
    pub objects: Vec<ObjectId>,
}

/// Meta-objects, in order of object.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MetaObjects {
    /// One an object.
    pub primaries: Vec<PrimaryMeta>,
    /// One a copy.
    pub secondaries: Vec<SecondaryMeta>,
    /// What is lacking.
    pub completeness: Completeness,
}

/// Access counts over time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistogramQuery {
    /// Of what. A missing range means the source's extent.
    pub filter: Filter,
    /// Number of buckets, 1 to [`MAX_BUCKETS`].
    pub buckets: u32,
}

/// Most buckets a histogram may have.
pub const MAX_BUCKETS: u32 = 10_000;

/// Counts by origin, of one bucket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OriginCounts {
    /// Local accesses.
    pub local: u64,
    /// Intra-group accesses.
    pub intra: u64,
    /// Inter-group accesses.
    pub inter: u64,
    /// Of the local ones, reads served from a copy.
    pub optimized: u64,
}

impl OriginCounts {
    /// All accesses.
    pub fn total(&self) -> u64 {
        self.local + self.intra + self.inter
    }
    /// Counts one access.
    pub fn count(&mut self, origin: Origin, optimized: bool) {
        match origin {
            Origin::Local => self.local += 1,
            Origin::Intra => self.intra += 1,
            Origin::Inter => self.inter += 1,
        }
        self.optimized += u64::from(optimized);
    }
    /// Adds another's counts.
    pub fn add(&mut self, other: &Self) {
        self.local += other.local;
        self.intra += other.intra;
        self.inter += other.inter;
        self.optimized += other.optimized;
    }
}

/// Access counts in equal buckets over `range`. A record counts in the bucket of its start; the
/// last bucket also takes what starts at the range's end rounding.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Histogram {
    /// What the buckets cover together.
    pub range: TimeRange,
    /// In order of time.
    pub buckets: Vec<OriginCounts>,
    /// What is lacking.
    pub completeness: Completeness,
}

/// What happened, one by one or, where there is too much of it, gathered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistoryQuery {
    /// Of what. A missing range means the source's extent.
    pub filter: Filter,
    /// At most so many points; like neighbours are gathered into one to keep to it.
    pub max_points: u32,
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
    /// By whom.
    pub ap: ApId,
    /// To what.
    pub object: ObjectId,
    /// Version of the (last) access.
    pub version: u64,
    /// How many accesses.
    pub count: u64,
}

impl HistoryPoint {
    /// The point that stands for one record.
    pub fn of(record: &Record) -> Self {
        Self {
            start: record.start,
            duration: record.duration,
            wait: record.wait,
            op: record.op,
            origin: record.origin,
            optimized: record.flags.optimized,
            ap: record.ap,
            object: record.object,
            version: record.version,
            count: 1,
        }
    }
}

/// Records in order of their start. Reads as the list of them; says what it lacks.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Records {
    /// The records.
    pub records: Vec<Record>,
    /// What is lacking.
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
    /// What is lacking.
    pub completeness: Completeness,
}

/// State of one memory or link process, as its event manager knows it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ProcessStatus {
    /// Which.
    pub mp: MpId,
    /// Its stream to the event manager is up.
    pub connected: bool,
    /// Requests served for its own application processes.
    pub requests: u64,
    /// Requests served for other memory processes.
    pub served: u64,
    /// Messages passed on (link processes).
    pub forwarded: u64,
    /// Records made.
    pub recorded: u64,
    /// Records lost to a full buffer.
    pub dropped: u64,
    /// Records waiting to be acknowledged, in bytes.
    pub buffered_bytes: u64,
    /// Processor time used.
    pub cpu: Nanos,
    /// Copies held.
    pub copies: u64,
    /// Objects owned.
    pub objects: u64,
    /// Cluster time minus the process's clock, in nanoseconds.
    pub clock_offset_ns: i64,
    /// Half the round trip of the best clock sample: the offset's error bound.
    pub clock_error: Nanos,
    /// Accesses by its application processes, by origin (local, intra, inter).
    pub by_origin: [OpCounts; 3],
    /// End of its last record.
    pub last_record: Nanos,
    /// Of the processor time used, what went into making and encoding records (the push of a record is
    /// timed for one in many, and scaled).
    pub monitor: Nanos,
    /// Accesses of each of its application processes.
    pub aps: Vec<ApOrigins>,
}

/// Accesses of one application process.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApOrigins {
    /// Which.
    pub ap: ApId,
    /// Its accesses by origin (local, intra, inter).
    pub by_origin: [OpCounts; 3],
}

/// State of one event manager.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EmpStatus {
    /// Its name.
    pub name: String,
    /// Its clock (cluster time).
    pub now: Nanos,
    /// Its memory processes.
    pub processes: Vec<ProcessStatus>,
    /// Records on disk.
    pub records: u64,
    /// Records received and not yet on disk.
    pub pending: u64,
    /// Size of the store.
    pub stored_bytes: u64,
    /// Number of chunks.
    pub chunks: u64,
    /// Processor time used.
    pub cpu: Nanos,
    /// Where its store is.
    pub store: String,
    /// What is wrong with it; empty if nothing.
    pub trouble: String,
    /// Secondary meta-objects handed to other event managers.
    pub exchanged_out: u64,
    /// Secondary meta-objects received from others.
    pub exchanged_in: u64,
    /// What its memory processes were last told to record; none: what their cluster file says.
    pub selection: Option<Selection>,
}

/// State of all event managers asked, and what is lacking.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// One an event manager that answered. Empty for a store nobody serves.
    pub event_managers: Vec<EmpStatus>,
    /// What is lacking.
    pub completeness: Completeness,
}

/// Why a question has no answer at all.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum QueryError {
    /// The question makes no sense; says which part and what would.
    #[error("{0}")]
    BadQuery(String),
    /// The event manager or the store cannot be asked.
    #[error("{source_name}: {why}")]
    Unavailable {
        /// Who was asked.
        source_name: String,
        /// What went wrong.
        why: String,
    },
}

/// Something that answers questions about a trace: a live event manager, a store, or many of them.
#[async_trait]
pub trait TraceSource: Send + Sync {
    /// What to call it in messages.
    fn name(&self) -> String;
    /// Processes, variables, extent.
    async fn catalog(&self) -> Result<Catalog, QueryError>;
    /// Meta-objects.
    async fn meta_objects(&self, query: &MetaQuery) -> Result<MetaObjects, QueryError>;
    /// Access counts over time.
    async fn histogram(&self, query: &HistogramQuery) -> Result<Histogram, QueryError>;
    /// What happened.
    async fn history(&self, query: &HistoryQuery) -> Result<History, QueryError>;
    /// Records in order of their start, at most `limit` (0: no limit). [`page::page`] goes on from there.
    async fn records(&self, filter: &Filter, limit: u64) -> Result<Records, QueryError>;
    /// Where the application processes' time went. A source that was never told says nothing.
    async fn breakdown(&self) -> Result<Breakdown, QueryError> {
        Ok(Breakdown::default())
    }
    /// State of the processes.
    async fn status(&self) -> Result<Status, QueryError>;

    /// The catalog without its variables; without the topology either unless `topology`. What is
    /// asked again and again while a program runs.
    async fn outline(&self, topology: bool) -> Result<Catalog, QueryError> {
        let mut catalog = self.catalog().await?;
        catalog.variables.clear();
        if !topology {
            catalog.topology = Topology::default();
        }
        Ok(catalog)
    }

    /// A part of the order of variables.
    async fn rank(&self, query: &RankQuery) -> Result<Ranking, QueryError> {
        let (catalog, metas) = (
            self.catalog().await?,
            self.meta_objects(&MetaQuery::default()).await?,
        );
        table::rank(&catalog, &metas, query)
    }

    /// The figures of some variables, in no particular order; those unknown here are left out.
    async fn describe(&self, variables: &[VarId]) -> Result<VariableTable, QueryError> {
        let query = MetaQuery {
            variables: variables.to_vec(),
            objects: Vec::new(),
        };
        let (catalog, metas) = (self.catalog().await?, self.meta_objects(&query).await?);
        Ok(table::describe(&catalog, &metas, variables))
    }

    /// A page of the table of variables.
    async fn table(&self, query: &TableQuery) -> Result<Table, QueryError> {
        let ranking = self.rank(&query.rank()).await?;
        let wanted: Vec<VarId> = ranking.entries.iter().map(|e| e.variable).collect();
        let described = self.describe(&wanted).await?;
        Ok(table::page(query.offset, &wanted, ranking, described))
    }

    /// Changes what is recorded from now on. Answers how many memory processes were told.
    async fn select(&self, selection: &Selection) -> Result<u32, QueryError> {
        let _ = selection;
        Err(QueryError::BadQuery(format!(
            "{} is a finished run: nothing is recorded any more",
            self.name()
        )))
    }

    /// Bytes of the answers received over a network so far; 0 if none is used.
    fn received_bytes(&self) -> u64 {
        0
    }
}
