//! The scan of `records` as a node of a plan: one partition per source and range of its chunks, so that all processors work.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::common::stats::Precision;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Statistics, internal_err};
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, Partitioning, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::metrics::{ExecutionPlanMetricsSet, MetricBuilder, MetricsSet};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties, ReplaceChildrenOptions,
    StatisticsArgs,
};
use dosmos_proto::Nanos;
use dosmos_trace::chunk::{Chunk, Encoder, MOST_RECORDS};
use dosmos_trace::query::page::{Cursor, page};
use dosmos_trace::query::{Filter, TimeRange, TraceSource};
use dosmos_trace::store::{StoreView, StoredChunk};
use futures::{Stream, StreamExt, TryStreamExt, stream};

use crate::aggregate::{Aggregation, Together};
use crate::codec::WorkerScan;
use crate::columns::Column;
use crate::decode::Failure;
use crate::names::Names;
use crate::predicate::Predicate;
use crate::pushdown;
use crate::scan::Scan;
use crate::source::{Reading, Silent, Source, chunks};

/// Records asked of a running event manager at once.
const PAGE: u64 = 16 * MOST_RECORDS as u64;

/// What one partition reads.
#[derive(Clone)]
enum Piece {
    Chunks(StoreView, Arc<[StoredChunk]>),
    Asked(Arc<dyn TraceSource>, Filter),
    Nothing,
}

impl Piece {
    fn chunks(&self) -> &[StoredChunk] {
        match self {
            Self::Chunks(_, chunks) => chunks,
            Self::Asked(..) | Self::Nothing => &[],
        }
    }
}

#[derive(Clone)]
struct Partition {
    names: Arc<Names>,
    piece: Piece,
}

impl Partition {
    /// A partition of the same source with nothing in it.
    fn emptied(&self) -> Self {
        Self {
            names: self.names.clone(),
            piece: Piece::Nothing,
        }
    }

    fn records(&self) -> Option<u64> {
        let records = self.piece.chunks().iter();
        let records = records.map(|c| u64::from(c.summary().records));
        (!matches!(self.piece, Piece::Asked(..))).then(|| records.sum())
    }
}

/// Workers that can carry a scan out, each on its own store.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Workers {
    /// How many there are.
    pub(crate) number: usize,
    /// The beginning of the run.
    pub(crate) zero: Nanos,
}

/// The scan.
pub(crate) struct RecordsExec {
    scan: Arc<Scan>,
    limit: Option<usize>,
    partitions: Vec<Partition>,
    /// Chunks that the summaries ruled out.
    skipped: usize,
    silent: Silent,
    workers: Option<Workers>,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl RecordsExec {
    /// A scan over `sources`, in about `parallel` partitions.
    pub(crate) fn new(
        sources: &[Source],
        silent: &Silent,
        columns: Vec<Column>,
        predicate: Predicate,
        limit: Option<usize>,
        parallel: usize,
    ) -> Self {
        let scan = Scan::new(columns, predicate);
        let mut skipped = 0;
        let mut found = Vec::new();
        for source in sources {
            let filter = pushdown::filter(scan.predicate().given(), source.names());
            let names = source.names().clone();
            match source.reading() {
                Reading::Chunks(view) => {
                    let chunks = chunks(view, &filter);
                    skipped += view.usage().chunks as usize - chunks.len();
                    found.push((names, Piece::Chunks(view.clone(), chunks.into())));
                }
                Reading::Asking(source, until) => {
                    let filter = before(filter, *until);
                    found.push((names, Piece::Asked(source.clone(), filter)));
                }
            }
        }
        let partitions = divided(found, parallel.max(1));
        let schema = scan.schema().clone();
        Self {
            properties: properties(&schema, partitions.len()),
            scan: Arc::new(scan),
            limit,
            partitions,
            skipped,
            silent: silent.clone(),
            workers: None,
            metrics: ExecutionPlanMetricsSet::new(),
        }
    }

    /// The same scan in exactly this many partitions, of which some may be empty.
    pub(crate) fn with_partitions(mut self, partitions: usize) -> Self {
        while let Some(last) = self.partitions.last().cloned()
            && self.partitions.len() < partitions
        {
            self.partitions.push(last.emptied());
        }
        self.properties = properties(self.scan.schema(), self.partitions.len());
        self
    }

    /// The same scan, whose rows are states of groups of records.
    pub(crate) fn aggregated(&self, aggregation: Aggregation) -> Self {
        let scan = self.scan.aggregated(aggregation);
        Self {
            properties: properties(scan.schema(), self.partitions.len()),
            scan: Arc::new(scan),
            limit: self.limit,
            partitions: self.partitions.clone(),
            skipped: self.skipped,
            silent: self.silent.clone(),
            workers: self.workers,
            metrics: ExecutionPlanMetricsSet::new(),
        }
    }

    /// Whether it ends after some rows.
    pub(crate) fn is_limited(&self) -> bool {
        self.limit.is_some()
    }

    /// The same scan, which workers can carry out instead, each on its store.
    pub(crate) fn of_workers(mut self, workers: Workers) -> Self {
        self.workers = Some(workers);
        self
    }

    pub(crate) fn workers(&self) -> Option<Workers> {
        self.workers
    }

    /// What a worker is sent.
    pub(crate) fn for_worker(&self, zero: Nanos, partitions: usize) -> WorkerScan {
        WorkerScan::new(self.scan.clone(), self.limit, zero, partitions)
    }

    fn chunks(&self) -> usize {
        let chunks = self.partitions.iter().map(|p| p.piece.chunks().len());
        chunks.sum()
    }
}

/// The filter, of what begins before `until`: a source that goes on recording is asked for what it has.
fn before(filter: Filter, until: Nanos) -> Filter {
    let range = filter.range.unwrap_or(TimeRange::ALL);
    Filter {
        range: Some(TimeRange {
            to: range.to.min(until),
            ..range
        }),
        once: true,
        ..filter
    }
}

/// What is to be known of a scan before it runs.
pub(crate) fn properties(schema: &SchemaRef, partitions: usize) -> Arc<PlanProperties> {
    Arc::new(PlanProperties::new(
        EquivalenceProperties::new(schema.clone()),
        Partitioning::UnknownPartitioning(partitions),
        EmissionType::Incremental,
        Boundedness::Bounded,
    ))
}

/// Ranges of chunks, as many as there are to be partitions; at least one partition.
fn divided(found: Vec<(Arc<Names>, Piece)>, parallel: usize) -> Vec<Partition> {
    let all: usize = found.iter().map(|(_, piece)| piece.chunks().len()).sum();
    let each = all.div_ceil(parallel).max(1);
    let mut partitions = Vec::new();
    for (names, piece) in found {
        match piece {
            Piece::Chunks(view, chunks) => {
                if chunks.is_empty() {
                    partitions.push(Partition {
                        names: names.clone(),
                        piece: Piece::Nothing,
                    });
                }
                for range in chunks.chunks(each) {
                    partitions.push(Partition {
                        names: names.clone(),
                        piece: Piece::Chunks(view.clone(), range.into()),
                    });
                }
            }
            piece @ (Piece::Asked(..) | Piece::Nothing) => {
                partitions.push(Partition { names, piece });
            }
        }
    }
    partitions
}

impl fmt::Debug for RecordsExec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.fmt_as(DisplayFormatType::Default, f)
    }
}

impl DisplayAs for RecordsExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (chunks, skipped) = (self.chunks(), self.skipped);
        let partitions = self.partitions.len();
        write!(
            f,
            "RecordsExec: partitions={partitions}, chunks={chunks}, skipped={skipped}, "
        )?;
        write!(f, "{}", self.scan)?;
        self.limit
            .map_or(Ok(()), |limit| write!(f, ", limit={limit}"))
    }
}

impl ExecutionPlan for RecordsExec {
    fn name(&self) -> &'static str {
        "RecordsExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        Vec::new()
    }

    fn apply_expressions(
        &self,
        each: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        self.scan.predicate().each_given(each)
    }

    fn replace_children(
        self: Arc<Self>,
        _: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn with_new_children(
        self: Arc<Self>,
        _: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn execute(&self, partition: usize, _: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let Some(of) = self.partitions.get(partition).cloned() else {
            return internal_err!("the scan has no partition {partition}");
        };
        let scan = self.scan.clone();
        let rows = MetricBuilder::new(&self.metrics).output_rows(partition);
        let batches = match of.piece {
            Piece::Chunks(view, chunks) => {
                let read = MetricBuilder::new(&self.metrics).counter("chunks_read", partition);
                let each = move |chunk: &StoredChunk| {
                    read.add(1);
                    of_chunk(&view, chunk, &scan, &of.names)
                };
                let batches = (0..chunks.len()).filter_map(move |i| each(&chunks[i]).transpose());
                stream::iter(batches).boxed()
            }
            Piece::Asked(source, filter) => {
                asked(source, filter, scan, of.names, self.silent.clone()).boxed()
            }
            Piece::Nothing => stream::empty().boxed(),
        };
        let batches = match self.scan.aggregation() {
            Some(aggregation) => together(batches, aggregation)?,
            None => limited(batches, self.limit),
        };
        let batches = batches.inspect_ok(move |b| rows.add(b.num_rows()));
        let schema = self.scan.schema().clone();
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, batches)))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn statistics_from_inputs(
        &self,
        _: &[Arc<Statistics>],
        args: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        let of = match args.partition() {
            Some(one) => self.partitions.get(one..=one).unwrap_or_default(),
            None => &self.partitions,
        };
        let records: Option<u64> = of.iter().map(Partition::records).sum();
        let mut statistics = Statistics::new_unknown(self.scan.schema());
        // How many groups there are, nobody knows.
        let records = records.filter(|_| self.scan.aggregation().is_none());
        if let Some(records) = records {
            let records = records as usize;
            let most = self.limit.map_or(records, |limit| limit.min(records));
            // What the summaries say is right as long as nothing was damaged since: then an answer says so.
            statistics.num_rows = match self.scan.predicate().is_empty() {
                true => Precision::Exact(most),
                false => Precision::Inexact(most),
            };
        }
        Ok(Arc::new(statistics))
    }
}

/// The rows of a chunk. One that is damaged gives none; the completeness of the store says so.
pub(crate) fn of_chunk(
    view: &StoreView,
    chunk: &StoredChunk,
    scan: &Scan,
    names: &Names,
) -> Result<Option<RecordBatch>> {
    let decoded = view.decode(chunk, |chunk| rows(scan, chunk, names));
    decoded.unwrap_or(Ok(None))
}

/// The rows of a chunk; what is wrong with the chunk apart from what the engine says.
fn rows(
    scan: &Scan,
    chunk: &Chunk<'_>,
    names: &Names,
) -> Result<Result<Option<RecordBatch>>, dosmos_trace::chunk::ChunkError> {
    match scan.rows(chunk, names) {
        Ok(batch) => Ok(Ok(batch)),
        Err(Failure::Chunk(damage)) => Err(damage),
        Err(Failure::Engine(e)) => Ok(Err(e)),
    }
}

/// How far a running event manager was asked.
struct Asking {
    source: Arc<dyn TraceSource>,
    filter: Filter,
    after: Option<Cursor>,
    ended: bool,
    ready: VecDeque<RecordBatch>,
    silent: Silent,
}

/// The rows of a source that is asked page by page. One that does not answer ends the stream and is named.
fn asked(
    source: Arc<dyn TraceSource>,
    filter: Filter,
    scan: Arc<Scan>,
    names: Arc<Names>,
    silent: Silent,
) -> impl Stream<Item = Result<RecordBatch>> {
    let asking = Asking {
        source,
        filter,
        after: None,
        ended: false,
        ready: VecDeque::new(),
        silent,
    };
    stream::try_unfold(asking, move |mut asking| {
        let (scan, names) = (scan.clone(), names.clone());
        async move {
            loop {
                if let Some(batch) = asking.ready.pop_front() {
                    return Ok(Some((batch, asking)));
                }
                if asking.ended {
                    return Ok(None);
                }
                asking.next_page(&scan, &names).await?;
            }
        }
    })
}

impl Asking {
    async fn next_page(&mut self, scan: &Scan, names: &Names) -> Result<()> {
        let found = page(self.source.as_ref(), &self.filter, self.after, PAGE).await;
        let (records, next) = match found {
            Ok(found) => found,
            Err(error) => {
                tracing::debug!(%error, "does not answer to its end");
                self.silent.add(self.source.name());
                self.ended = true;
                return Ok(());
            }
        };
        let mut encoder = Encoder::new();
        for part in records.chunks(MOST_RECORDS) {
            let encoded = encoder.encode(part);
            let chunk = Chunk::open(&encoded.bytes).map_err(external)?;
            let found = rows(scan, &chunk, names).map_err(external)?;
            self.ready.extend(found?);
        }
        self.after = next;
        self.ended = next.is_none();
        Ok(())
    }
}

fn external(e: impl std::error::Error + Send + Sync + 'static) -> DataFusionError {
    DataFusionError::External(Box::new(e))
}

/// Groups that a partition keeps before it hands them on.
const MOST_GROUPS: usize = 1 << 16;
/// Chunks after which others get a turn.
const TURN: usize = 8;

/// The states of chunks, put together.
fn together(
    batches: stream::BoxStream<'static, Result<RecordBatch>>,
    aggregation: &Aggregation,
) -> Result<stream::BoxStream<'static, Result<RecordBatch>>> {
    let together = Together::new(aggregation)?;
    let states = stream::try_unfold(
        (batches, together, 0),
        |(mut batches, mut together, mut turn)| async move {
            while together.groups() < MOST_GROUPS
                && let Some(batch) = batches.try_next().await?
            {
                together.add(&batch)?;
                turn += 1;
                if turn % TURN == 0 {
                    tokio::task::yield_now().await;
                }
            }
            let states = together.take()?;
            Ok(states.map(|states| (states, (batches, together, turn))))
        },
    );
    Ok(states.boxed())
}

/// At most `limit` rows; then nothing more is read.
fn limited(
    batches: stream::BoxStream<'static, Result<RecordBatch>>,
    limit: Option<usize>,
) -> stream::BoxStream<'static, Result<RecordBatch>> {
    let Some(limit) = limit else { return batches };
    let kept = stream::try_unfold((batches, limit), |(mut batches, left)| async move {
        if left == 0 {
            return Ok(None);
        }
        let Some(batch) = batches.try_next().await? else {
            return Ok(None);
        };
        let kept = batch.slice(0, batch.num_rows().min(left));
        let left = left - kept.num_rows();
        Ok(Some((kept, (batches, left))))
    });
    kept.boxed()
}
