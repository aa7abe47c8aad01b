//! Answers over what is committed: for readers in the writer's process, and over directories.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::sync::{Arc, PoisonError, RwLock};

use dosmos_proto::{MpId, Nanos};

use super::coarse::Coarse;
use super::index::{ChunkRef, Index};
use super::manifest::Identity;
use super::scan::{self, Scanned};
use crate::chunk::{Chunk, ChunkError, Summary, Tally};
use crate::clock::Corrections;
use crate::query::{
    Breakdown, Catalog, Completeness, Filter, Histogram, HistogramQuery, History, HistoryPoint,
    HistoryQuery, OriginCounts, QueryError, Records, TimeRange, causality, gather,
};
use crate::record::Record;

/// A thread is worth starting for this many chunks: some 30 µs if they are summaries, 3 ms if they are decoded.
const CHUNKS_PER_THREAD: usize = 32;

/// A reader of what is committed. Cheap to clone; every answer sees whole commits only.
#[derive(Clone, Debug)]
pub struct StoreView {
    index: Arc<RwLock<Index>>,
    identity: Identity,
    live: bool,
}

/// How much a store holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Records.
    pub records: u64,
    /// Chunks.
    pub chunks: u64,
    /// Bytes of the chunks as encoded.
    pub encoded: u64,
    /// Bytes on disk.
    pub bytes: u64,
}

/// Like [`StoreView::records_in_order`], of several stores together, each with what moves its times, which keeps their order.
/// `make` makes of a record and that what is handed out, and `start` tells where it is then. What has one start comes in any order.
pub(crate) fn records_in_order<M: Fn(Nanos) -> Nanos, T>(
    views: &[(&StoreView, M)],
    filter: &Filter,
    (make, start): (impl Fn(&Record, &M) -> T, impl Fn(&T) -> Nanos),
    mut each: impl FnMut(Vec<T>) -> ControlFlow<()>,
) {
    let mut chunks = Vec::new();
    for (view, moved) in views {
        let its = view.candidates(filter).into_iter();
        chunks.extend(its.map(|chunk| (moved(chunk.summary.starts.from), view, moved, chunk)));
    }
    chunks.sort_by_key(|(from, ..)| *from);
    let mut waiting: Vec<T> = Vec::new();
    for (i, (_, view, moved, chunk)) in chunks.iter().enumerate() {
        view.each_match(chunk, filter, |record| waiting.push(make(record, moved)));
        waiting.sort_by_key(&start);
        // Nothing of a later chunk comes before these.
        let ready = match chunks.get(i + 1) {
            Some((next, ..)) => waiting.partition_point(|r| start(r) < *next),
            None => waiting.len(),
        };
        let later = waiting.split_off(ready);
        let ready = std::mem::replace(&mut waiting, later);
        if !ready.is_empty() && each(ready).is_break() {
            break;
        }
    }
}

impl StoreView {
    pub(super) fn new(index: Arc<RwLock<Index>>, identity: Identity, live: bool) -> Self {
        Self {
            index,
            identity,
            live,
        }
    }

    pub(super) fn read<T>(&self, with: impl FnOnce(&Index) -> T) -> T {
        with(&self.index.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// How much it holds.
    pub fn usage(&self) -> Usage {
        self.read(|index| Usage {
            records: index.records(),
            chunks: index.chunks.len() as u64,
            encoded: index.chunks.iter().map(|c| u64::from(c.place.bytes)).sum(),
            bytes: index.files.values().map(|file| file.size()).sum(),
        })
    }

    /// What is missing.
    pub fn completeness(&self) -> Completeness {
        self.read(|index| self.lacking(index))
    }

    /// What is missing; of a store that nobody writes any more, also who did not report to the end.
    fn lacking(&self, index: &Index) -> Completeness {
        let mut lacking = index.completeness();
        if !self.live {
            lacking.silent = index.silent(&self.identity.topology, self.identity.emp);
        }
        lacking
    }

    /// Processes, variables, extent.
    pub fn catalog(&self) -> Catalog {
        let variables = self.read(|index| index.variables.values().cloned().collect());
        Catalog {
            variables,
            ..self.outline()
        }
    }

    /// The same without the variables: what is asked for again and again while a program runs.
    pub fn outline(&self) -> Catalog {
        self.read(|index| Catalog {
            run: Some(self.identity.run),
            event_managers: vec![self.identity.event_manager.clone()],
            topology: self.identity.topology.clone(),
            variables: Vec::new(),
            barriers: index.barriers.values().cloned().collect(),
            extent: index.extent(),
            records: index.records(),
            clocks: index.clocks(),
            completeness: self.lacking(index),
            live: self.live,
        })
    }

    /// How the times of each start of a memory process were corrected.
    pub fn corrections(&self) -> BTreeMap<(MpId, u64), Corrections> {
        self.read(|index| index.corrections().clone())
    }

    /// Where the application processes' time went.
    pub fn breakdown(&self) -> Breakdown {
        self.read(|index| Breakdown {
            phases: index.phases.values().copied().collect(),
            processor: index.processor(),
            completeness: self.lacking(index),
        })
    }

    /// Whose trace it is.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Access counts over time. Chunks that lie within one bucket are answered from their summaries.
    ///
    /// # Errors
    /// If the number of buckets is not 1 to [`MAX_BUCKETS`](crate::query::MAX_BUCKETS), or the range is empty or its end before its start.
    pub fn histogram(&self, query: &HistogramQuery) -> Result<Histogram, QueryError> {
        let count = query.buckets;
        query.check()?;
        let range = self.range_of(&query.filter)?;
        let filter = Filter {
            range: Some(range),
            ..query.filter.clone()
        };
        let chunks = self.candidates(&filter);
        let buckets = in_parts(
            &chunks,
            |part| self.count(part, &filter, range, count),
            |mut sum, part| {
                sum.iter_mut().zip(part).for_each(|(s, p)| s.add(&p));
                sum
            },
        );
        Ok(Histogram {
            range,
            buckets,
            completeness: self.completeness(),
        })
    }

    /// The buckets of a histogram, as far as these chunks fill them.
    fn count(
        &self,
        chunks: &[Arc<ChunkRef>],
        filter: &Filter,
        range: TimeRange,
        count: u32,
    ) -> Vec<OriginCounts> {
        let mut buckets = vec![OriginCounts::default(); count as usize];
        for chunk in chunks {
            let starts = chunk.summary.starts;
            let (first, last) = (
                range.bucket(count, starts.from),
                range.bucket(count, starts.to - Nanos(1)),
            );
            match (first, last) {
                (Some(a), Some(b)) if a == b => self.each_tally(chunk, filter, |t| {
                    buckets[a].count(t.origin, (t.optimized, t.in_process), t.count);
                }),
                _ => self.read_chunk(chunk, |bytes| {
                    scan::matches(bytes, filter, |found| {
                        let how = (found.optimized, found.in_process);
                        found.spread.over(range, count, |at, part| {
                            buckets[at].count(found.origin, how, part.count());
                        });
                    })
                }),
            }
        }
        buckets
    }

    /// What happened, gathered where there is too much of it.
    ///
    /// # Errors
    /// If the number of points is not 1 to 100,000, or the range makes no sense.
    pub fn history(&self, query: &HistoryQuery) -> Result<History, QueryError> {
        query.check()?;
        let range = self.range_of(&query.filter)?;
        let filter = Filter {
            range: Some(range),
            ..query.filter.clone()
        };
        let mut candidates = self.candidates(&filter);
        if let Some(coarse) = Coarse::plan(&candidates, range, query.max_points) {
            let coarse = self.coarsely(&coarse, &candidates, &filter);
            let Some(hits) = coarse.hits() else {
                return Ok(History {
                    range,
                    matched: coarse.matched(),
                    points: coarse.points(),
                    completeness: self.completeness(),
                });
            };
            candidates = hits.to_vec();
        }
        let mut collected = gather::Collected::new(range, query.max_points);
        for chunk in candidates {
            self.each_point(&chunk, &filter, |point| collected.add(&point));
            collected.bound();
        }
        let matched = collected.matched();
        let mut points = collected.points();
        causality::respect_sections(&mut points);
        Ok(History {
            range,
            points: gather::gather(points, range, query.max_points),
            matched,
            completeness: self.completeness(),
        })
    }

    /// More than can be decoded while somebody waits: from summaries, from the columns that tell how often, and from whole
    /// records only where a chunk lies across an edge of the range.
    fn coarsely(&self, plan: &Coarse, candidates: &[Arc<ChunkRef>], filter: &Filter) -> Coarse {
        let look = |chunks: &[Arc<ChunkRef>]| {
            let mut found = plan.empty();
            for chunk in chunks {
                let before = found.matched();
                if filter.range.is_some_and(|r| !chunk.summary.is_within(r)) {
                    self.each_point(chunk, filter, |point| found.point(&point));
                } else {
                    self.each_tally(chunk, filter, |t| found.tally(&chunk.summary, filter, &t));
                }
                if found.matched() > before {
                    found.hit(chunk);
                }
            }
            found
        };
        in_parts(candidates, look, Coarse::join)
    }

    /// Records in order of their start, at most `limit` (0: no limit). Of a range, all that have an access in it, whole.
    pub fn records(&self, filter: &Filter, limit: u64) -> Records {
        let limit = match usize::try_from(limit) {
            Ok(0) | Err(_) => usize::MAX,
            Ok(limit) => limit,
        };
        let mut chunks = self.candidates(filter);
        chunks.sort_by_key(|c| c.summary.starts.from);
        let mut found = Vec::new();
        for chunk in chunks {
            // Sorted, and no longer than the limit: nothing of this chunk or a later one comes before its end.
            if found.len() >= limit
                && found
                    .last()
                    .is_some_and(|r: &Record| r.start < chunk.summary.starts.from)
            {
                break;
            }
            self.each_match(&chunk, filter, |record| found.push(*record));
            if limit < usize::MAX {
                found.sort_by_key(|r| r.start);
                found.truncate(limit);
            }
        }
        found.sort_by_key(|r| r.start);
        Records {
            records: found,
            completeness: self.completeness(),
        }
    }

    /// Hands out what `filter` matches, chunk by chunk in the order of the log, decoding only the columns it
    /// needs: for whoever looks at every record.
    pub fn scan(&self, filter: &Filter, mut each: impl FnMut(Scanned)) -> Completeness {
        for chunk in self.candidates(filter) {
            self.read_chunk(&chunk, |bytes| scan::scanned(bytes, filter, &mut each));
        }
        self.completeness()
    }

    /// Hands out what `filter` matches in order of its start, piece by piece, until `each` breaks off. In
    /// memory are the records of chunks that overlap in time, however many the store holds.
    pub fn records_in_order(
        &self,
        filter: &Filter,
        each: impl FnMut(Vec<Record>) -> ControlFlow<()>,
    ) -> Completeness {
        let as_it_is = (|record: &Record, _: &_| *record, |r: &Record| r.start);
        records_in_order(&[(self, |at| at)], filter, as_it_is, each);
        self.completeness()
    }

    /// The range a question is about: its own, else everything there is.
    fn range_of(&self, filter: &Filter) -> Result<TimeRange, QueryError> {
        let range = match filter.range {
            Some(range) => range,
            None => self.read(Index::extent).unwrap_or(TimeRange::NOTHING),
        };
        if range.from >= range.to {
            return Err(QueryError::BadQuery(format!(
                "the range ends ({}) at or before its start ({})",
                range.to.0, range.from.0
            )));
        }
        Ok(range)
    }

    pub(super) fn candidates(&self, filter: &Filter) -> Vec<Arc<ChunkRef>> {
        self.read(|index| {
            let may = |c: &&Arc<ChunkRef>| c.summary.may_match(filter);
            index.chunks.iter().filter(may).cloned().collect()
        })
    }

    /// Hands out what `filter` finds in a chunk by kind, its range aside.
    fn each_tally(&self, chunk: &ChunkRef, filter: &Filter, each: impl FnMut(Tally)) {
        if chunk.summary.can_count(filter) {
            chunk.summary.tallies(filter, each);
        } else {
            self.read_chunk(chunk, |bytes| scan::tallies(bytes, filter, each));
        }
    }

    /// Hands out the points of a chunk that match.
    fn each_point(&self, chunk: &ChunkRef, filter: &Filter, each: impl FnMut(HistoryPoint)) {
        self.read_chunk(chunk, |bytes| scan::points(bytes, filter, each));
    }

    /// Hands out the records of a chunk that match.
    pub(super) fn each_match(&self, chunk: &ChunkRef, filter: &Filter, each: impl FnMut(&Record)) {
        self.read_chunk(chunk, |bytes| scan::records(bytes, filter, each));
    }

    /// Reads a chunk. One that cannot be read is noted; one that retention has removed since is counted there.
    pub(super) fn read_chunk(
        &self,
        chunk: &ChunkRef,
        decode: impl FnOnce(&[u8]) -> Result<(), ChunkError>,
    ) {
        let place = chunk.place;
        let Some(file) = self.read(|index| index.files.get(&place.database).cloned()) else {
            return;
        };
        let read = file.read(place.at, place.bytes).map_err(|e| e.to_string());
        let outcome = read.and_then(|bytes| decode(&bytes).map_err(|e| e.to_string()));
        if let Err(why) = outcome {
            let mut index = self.index.write().unwrap_or_else(PoisonError::into_inner);
            index.damaged(chunk.number, &why);
        }
    }

    /// Compares every chunk with its checksums and its summary, and notes those that do not hold.
    pub(super) fn check_chunks(&self) {
        for chunk in self.candidates(&Filter::default()) {
            self.read_chunk(&chunk, |bytes| {
                let records = Chunk::open(bytes)?.records()?;
                match Summary::of(&records) {
                    Some(summary) if summary == chunk.summary => Ok(()),
                    _ => Err(ChunkError::Damaged("summary")),
                }
            });
        }
    }
}

/// Works on chunks with as many threads as pay, and joins what they found.
pub(super) fn in_parts<T: Send>(
    chunks: &[Arc<ChunkRef>],
    work: impl Fn(&[Arc<ChunkRef>]) -> T + Sync,
    join: impl Fn(T, T) -> T,
) -> T {
    let processors = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let parts = (chunks.len() / CHUNKS_PER_THREAD).clamp(1, processors);
    let (own, others) = chunks.split_at(chunks.len().div_ceil(parts));
    std::thread::scope(|scope| {
        let others: Vec<_> = others
            .chunks(own.len().max(1))
            .map(|part| {
                let thread = std::thread::Builder::new();
                // Where the system gives no thread, this one does it.
                thread.spawn_scoped(scope, || work(part)).map_err(|_| part)
            })
            .collect();
        let others = others.into_iter();
        others.fold(work(own), |sum, part| {
            match part.map(std::thread::ScopedJoinHandle::join) {
                Ok(Ok(found)) => join(sum, found),
                Ok(Err(panic)) => std::panic::resume_unwind(panic),
                Err(part) => join(sum, work(part)),
            }
        })
    })
}
