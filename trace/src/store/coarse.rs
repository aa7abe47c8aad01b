//! Histories of very many records, from the summaries of their chunks, or from the few columns that tell how often.
//!
//! Where a question matches more records than can be decoded while somebody waits, a point stands for
//! what happened in a slice of time at least a chunk long, by operation and origin. Its number of
//! accesses and its waiting time are exact; it spans the chunks it comes from. Which process and object it
//! names is that of the first, and it says so (`several`), unless the filter names only one. If so few records match that each may be a point of its own, it is.

use std::collections::BTreeMap;
use std::sync::Arc;

use dosmos_proto::{Nanos, ObjectId};

use super::index::ChunkRef;
use crate::chunk::{Summary, Tally};
use crate::query::{Filter, HistoryPoint, Several, TimeRange, gather};
use crate::record::{Op, Origin};

/// Records up to which every one is looked at.
const DECODED: u64 = 1 << 18;
/// Kinds a slice can have: operations, origins, cached reads, and what application processes served themselves.
const KINDS: u32 = 20;

/// A history under way.
pub(super) struct Coarse {
    range: TimeRange,
    slices: u32,
    most: u32,
    matched: u64,
    points: BTreeMap<(usize, Op, Origin, bool, bool), HistoryPoint>,
    /// Where something was found, as long as that is little.
    hits: Vec<Arc<ChunkRef>>,
}

impl Coarse {
    /// None if the chunks are few enough to decode.
    pub(super) fn plan(chunks: &[Arc<ChunkRef>], range: TimeRange, most: u32) -> Option<Self> {
        let records: u64 = chunks.iter().map(|c| u64::from(c.summary.records)).sum();
        if records <= DECODED || records <= u64::from(most) {
            return None;
        }
        let (first, last) = extent(chunks)?;
        Some(Self {
            range: TimeRange {
                from: range.from.max(first),
                to: range.to.min(last),
            },
            slices: (most / KINDS).max(1),
            most,
            matched: 0,
            points: BTreeMap::new(),
            hits: Vec::new(),
        })
    }

    /// The same, with nothing in it.
    pub(super) fn empty(&self) -> Self {
        Self {
            matched: 0,
            points: BTreeMap::new(),
            hits: Vec::new(),
            ..*self
        }
    }

    /// Adds what was found in later chunks.
    pub(super) fn join(mut self, later: Self) -> Self {
        for point in later.points.into_values() {
            self.count(&point);
        }
        self.hits.extend(later.hits);
        self
    }

    /// Adds what a filter finds in a chunk of this summary, all of which is in the range.
    pub(super) fn tally(&mut self, summary: &Summary, filter: &Filter, t: &Tally) {
        let object = filter.object.unwrap_or(0);
        self.count(&HistoryPoint {
            start: summary.starts.from,
            duration: summary.end - summary.starts.from,
            wait: t.wait,
            op: t.op,
            origin: t.origin,
            optimized: t.optimized,
            in_process: t.in_process,
            ap: t.ap,
            object: ObjectId::new(t.variable, object),
            version: 0,
            count: t.count,
            several: Several {
                ops: false,
                aps: filter.aps.len() != 1,
                objects: filter.variables.len() != 1 || filter.object.is_none(),
            },
        });
    }

    /// Notes that something was found in a chunk, as long as they are few.
    pub(super) fn hit(&mut self, chunk: &Arc<ChunkRef>) {
        if self.matched <= u64::from(self.most) {
            self.hits.push(chunk.clone());
        }
    }

    /// The chunks in which something was found, if that is so little that it can be shown one by one.
    pub(super) fn hits(&self) -> Option<&[Arc<ChunkRef>]> {
        (self.matched <= u64::from(self.most)).then_some(&self.hits)
    }

    /// Adds the point of a record, where its accesses were.
    pub(super) fn point(&mut self, point: &HistoryPoint) {
        point.cut(self.range, self.slices, |piece| self.count(&piece));
    }

    fn count(&mut self, point: &HistoryPoint) {
        let slice = self.range.bucket(self.slices, point.start).unwrap_or(0);
        let key = (
            slice,
            point.op,
            point.origin,
            point.optimized,
            point.in_process,
        );
        self.matched += point.count;
        let sum = self.points.entry(key).or_insert(HistoryPoint {
            count: 0,
            wait: Nanos::ZERO,
            ..*point
        });
        sum.several.aps |= point.several.aps || sum.ap != point.ap;
        sum.several.objects |= point.several.objects || sum.object != point.object;
        let end = (sum.start + sum.duration).max(point.start + point.duration);
        sum.start = sum.start.min(point.start);
        sum.duration = end - sum.start;
        sum.wait += point.wait;
        sum.count += point.count;
        sum.version = sum.version.max(point.version);
    }

    /// Accesses behind the points.
    pub(super) fn matched(&self) -> u64 {
        self.matched
    }

    /// The points, in order of their start.
    pub(super) fn points(self) -> Vec<HistoryPoint> {
        let (range, most) = (self.range, self.most);
        gather::gather(self.points.into_values().collect(), range, most)
    }
}

fn extent(chunks: &[Arc<ChunkRef>]) -> Option<(Nanos, Nanos)> {
    let first = chunks.iter().map(|c| c.summary.starts.from).min()?;
    let last = chunks.iter().map(|c| c.summary.starts.to).max()?;
    Some((first, last))
}
