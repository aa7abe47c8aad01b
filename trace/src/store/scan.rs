//! Looking through one chunk for what a filter matches, decoding no more columns than that needs.

use dosmos_proto::{Nanos, ObjectId};

use crate::chunk::{Chunk, ChunkError, Kind};
use crate::query::{Filter, HistoryPoint};
use crate::record::{Op, Origin, Record, Side};

/// What a histogram needs of an access.
#[derive(Clone, Copy, Debug)]
pub(super) struct Match {
    pub(super) start: Nanos,
    pub(super) origin: Origin,
    pub(super) optimized: bool,
}

/// For each record, whether a filter wants it; which values of a column pass is worked out once each.
struct Selected {
    starts: Vec<u64>,
    kinds: crate::chunk::Symbols<Kind>,
    wanted: Vec<bool>,
}

impl Selected {
    fn new(chunk: &Chunk<'_>, filter: &Filter) -> Result<Self, ChunkError> {
        let starts = chunk.starts()?;
        let kinds = chunk.kinds()?;
        let passes: Vec<bool> = kinds.values.iter().map(|k| of_kind(filter, k)).collect();
        let mut wanted: Vec<bool> = kinds.of.iter().map(|k| passes[usize::from(*k)]).collect();
        if let Some(range) = filter.range {
            let inside = starts.iter().map(|s| range.contains(Nanos(*s)));
            wanted.iter_mut().zip(inside).for_each(|(w, i)| *w &= i);
        }
        if !filter.variables.is_empty() || filter.object.is_some() {
            let objects = chunk.objects()?;
            let passes: Vec<bool> = objects
                .values
                .iter()
                .map(|o| {
                    (filter.variables.is_empty() || filter.variables.contains(&o.var))
                        && filter.object.is_none_or(|i| i == o.index)
                })
                .collect();
            let own = objects.of.iter().map(|o| passes[usize::from(*o)]);
            wanted.iter_mut().zip(own).for_each(|(w, o)| *w &= o);
        }
        if !filter.aps.is_empty() {
            let aps = chunk.aps()?;
            let passes: Vec<bool> = aps.values.iter().map(|a| filter.aps.contains(a)).collect();
            let own = aps.of.iter().map(|a| passes[usize::from(*a)]);
            wanted.iter_mut().zip(own).for_each(|(w, o)| *w &= o);
        }
        Ok(Self {
            starts,
            kinds,
            wanted,
        })
    }

    /// The positions of the records that are wanted.
    fn positions(&self) -> impl Iterator<Item = usize> {
        let wanted = self.wanted.iter().enumerate();
        wanted.filter(|(_, w)| **w).map(|(i, _)| i)
    }
}

/// As [`Record::is_access`] and [`Filter::matches`] have it.
fn of_kind(filter: &Filter, kind: &Kind) -> bool {
    let access = kind.side == Side::Requester && !kind.flags.failed && !kind.flags.waiting;
    (filter.everything || access)
        && (filter.ops.is_empty() || filter.ops.contains(&kind.op))
        && (filter.origins.is_empty() || filter.origins.contains(&kind.origin))
}

/// Hands out what `filter` matches of a chunk.
pub(super) fn matches(
    bytes: &[u8],
    filter: &Filter,
    mut each: impl FnMut(Match),
) -> Result<(), ChunkError> {
    let selected = Selected::new(&Chunk::open(bytes)?, filter)?;
    for i in selected.positions() {
        let kind = &selected.kinds.values[usize::from(selected.kinds.of[i])];
        each(Match {
            start: Nanos(selected.starts[i]),
            origin: kind.origin,
            optimized: kind.flags.optimized,
        });
    }
    Ok(())
}

/// One record as a scan sees it: the columns that tell who shares what, and how far away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scanned {
    /// When the memory process received the request.
    pub start: Nanos,
    /// What was done.
    pub op: Op,
    /// How far it went.
    pub origin: Origin,
    /// To what.
    pub object: ObjectId,
}

/// Hands out what `filter` matches of a chunk, in the order of the log.
pub(super) fn scanned(
    bytes: &[u8],
    filter: &Filter,
    mut each: impl FnMut(Scanned),
) -> Result<(), ChunkError> {
    let chunk = Chunk::open(bytes)?;
    let selected = Selected::new(&chunk, filter)?;
    let objects = chunk.objects()?;
    for i in selected.positions() {
        let kind = &selected.kinds.values[usize::from(selected.kinds.of[i])];
        each(Scanned {
            start: Nanos(selected.starts[i]),
            op: kind.op,
            origin: kind.origin,
            object: objects.at(i),
        });
    }
    Ok(())
}

/// Hands out the points of a history that `filter` matches of a chunk.
pub(super) fn points(
    bytes: &[u8],
    filter: &Filter,
    mut each: impl FnMut(HistoryPoint),
) -> Result<(), ChunkError> {
    let chunk = Chunk::open(bytes)?;
    let selected = Selected::new(&chunk, filter)?;
    if selected.positions().next().is_none() {
        return Ok(());
    }
    let (waits, durations) = chunk.waits_and_durations(&selected.kinds)?;
    let (objects, aps) = (chunk.objects()?, chunk.aps()?);
    let versions = chunk.versions(&objects)?;
    for i in selected.positions() {
        let kind = selected.kinds.at(i);
        each(HistoryPoint {
            start: Nanos(selected.starts[i]),
            duration: Nanos(durations[i]),
            wait: Nanos(waits[i]),
            op: kind.op,
            origin: kind.origin,
            optimized: kind.flags.optimized,
            ap: aps.at(i),
            object: objects.at(i),
            version: versions[i],
            count: 1,
        });
    }
    Ok(())
}

/// Hands out the records that `filter` matches of a chunk.
pub(super) fn records(
    bytes: &[u8],
    filter: &Filter,
    each: impl FnMut(&Record),
) -> Result<(), ChunkError> {
    let chunk = Chunk::open(bytes)?;
    let selected = Selected::new(&chunk, filter)?;
    if selected.positions().next().is_none() {
        return Ok(());
    }
    let records = chunk.records()?;
    selected.positions().map(|i| &records[i]).for_each(each);
    Ok(())
}
