//! Looking through one chunk for what a filter matches, decoding no more columns than that needs.

use dosmos_proto::{ApId, Nanos, ObjectId};

use crate::chunk::{Chunk, ChunkError, Kind, Symbols, Tally};
use crate::query::{self, Filter, HistoryPoint};
use crate::record::{Op, Origin, Record, Side};
use crate::spread::Spread;

/// What a histogram needs of a record.
#[derive(Clone, Copy, Debug)]
pub(super) struct Match {
    pub(super) spread: Spread,
    pub(super) origin: Origin,
    pub(super) optimized: bool,
    pub(super) in_process: bool,
}

/// For each record, whether a filter wants it; which values of a column pass is worked out once each.
struct Selected {
    starts: Vec<u64>,
    kinds: Symbols<Kind>,
    /// Of a chunk with records that stand for several accesses: how many, and from the first to the last.
    several: Option<Several>,
    wanted: Vec<bool>,
}

struct Several {
    counts: Vec<u32>,
    durations: Vec<u64>,
}

impl Several {
    fn read(chunk: &Chunk<'_>, kinds: &Symbols<Kind>) -> Result<Option<Self>, ChunkError> {
        let Some(counts) = chunk.counts()? else {
            return Ok(None);
        };
        let (_, durations) = chunk.waits_and_durations(kinds)?;
        Ok(Some(Self { counts, durations }))
    }
}

impl Selected {
    fn new(chunk: &Chunk<'_>, filter: &Filter) -> Result<Self, ChunkError> {
        let starts = chunk.starts()?;
        let kinds = chunk.kinds()?;
        let several = Several::read(chunk, &kinds)?;
        let passes: Vec<bool> = kinds.values.iter().map(|k| of_kind(filter, k)).collect();
        let mut wanted: Vec<bool> = kinds.of.iter().map(|k| passes[usize::from(*k)]).collect();
        if filter.range.is_some() {
            for (i, wanted) in wanted.iter_mut().enumerate() {
                *wanted &= filter.is_in_range(&spread(&starts, several.as_ref(), i));
            }
        }
        if !filter.variables.is_empty() || filter.object.is_some() {
            let objects = chunk.objects()?;
            keep(&mut wanted, &objects, objects_pass(filter, &objects));
        }
        if !filter.aps.is_empty() {
            let aps = chunk.aps()?;
            keep(&mut wanted, &aps, aps_pass(filter, &aps));
        }
        Ok(Self {
            starts,
            kinds,
            several,
            wanted,
        })
    }

    /// When the accesses of a record began.
    fn spread(&self, i: usize) -> Spread {
        spread(&self.starts, self.several.as_ref(), i)
    }

    /// The positions of the records that are wanted.
    fn positions(&self) -> impl Iterator<Item = usize> {
        let wanted = self.wanted.iter().enumerate();
        wanted.filter(|(_, w)| **w).map(|(i, _)| i)
    }
}

fn spread(starts: &[u64], several: Option<&Several>, i: usize) -> Spread {
    let (length, count) = several.map_or((0, 1), |s| (s.durations[i], s.counts[i].into()));
    Spread::new(Nanos(starts[i]), Nanos(length), count)
}

/// Whether each of these objects passes.
fn objects_pass(filter: &Filter, objects: &Symbols<ObjectId>) -> Option<Vec<bool>> {
    let passes = |o: &ObjectId| {
        (filter.variables.is_empty() || filter.variables.contains(&o.var))
            && filter.object.is_none_or(|i| i == o.index)
    };
    let asked = !filter.variables.is_empty() || filter.object.is_some();
    asked.then(|| objects.values.iter().map(passes).collect())
}

/// Whether each of these application processes passes.
fn aps_pass(filter: &Filter, aps: &Symbols<ApId>) -> Option<Vec<bool>> {
    let asked = !filter.aps.is_empty();
    asked.then(|| aps.values.iter().map(|a| filter.aps.contains(a)).collect())
}

/// Keeps those of `wanted` whose value passes.
fn keep<T>(wanted: &mut [bool], column: &Symbols<T>, passes: Option<Vec<bool>>) {
    if let Some(passes) = passes {
        let own = column.of.iter().map(|o| passes[usize::from(*o)]);
        wanted.iter_mut().zip(own).for_each(|(w, o)| *w &= o);
    }
}

/// As [`Record::is_access`] and [`Filter::matches`] have it.
fn of_kind(filter: &Filter, kind: &Kind) -> bool {
    let access = kind.side == Side::Requester && !kind.flags.failed && !kind.flags.waiting;
    (filter.everything || access)
        && (filter.ops.is_empty() || filter.ops.contains(&kind.op))
        && (filter.origins.is_empty() || filter.origins.contains(&kind.origin))
}

/// Hands out what `filter` finds in a chunk by kind, its range aside: what a summary tells where it can.
pub(super) fn tallies(
    bytes: &[u8],
    filter: &Filter,
    mut each: impl FnMut(Tally),
) -> Result<(), ChunkError> {
    let chunk = Chunk::open(bytes)?;
    let objects = chunk.objects()?;
    let object_passes = objects_pass(filter, &objects);
    let nothing = |passes: &Option<Vec<bool>>| passes.as_ref().is_some_and(|p| !p.contains(&true));
    if nothing(&object_passes) {
        return Ok(());
    }
    let aps = chunk.aps()?;
    let ap_passes = aps_pass(filter, &aps);
    if nothing(&ap_passes) {
        return Ok(());
    }
    let object_passes = object_passes.unwrap_or_else(|| vec![true; objects.values.len()]);
    let ap_passes = ap_passes.unwrap_or_else(|| vec![true; aps.values.len()]);
    // Without a branch: whether the next record passes cannot be foreseen.
    let mut positions = vec![0u16; chunk.len() + 1];
    let mut found = 0;
    for (i, (o, a)) in (0u16..).zip(objects.of.iter().zip(&aps.of)) {
        positions[found] = i;
        found += usize::from(object_passes[usize::from(*o)] & ap_passes[usize::from(*a)]);
    }
    let kinds = chunk.kinds()?;
    let counts = chunk.counts()?;
    // Of each kind: accesses, waits, and where the first is.
    let mut sums = vec![(0u64, 0u64, 0usize); kinds.values.len()];
    for i in positions[..found].iter().map(|i| usize::from(*i)) {
        let (count, _, first) = &mut sums[usize::from(kinds.of[i])];
        if *count == 0 {
            *first = i;
        }
        *count += counts.as_ref().map_or(1, |counts| counts[i].into());
    }
    let wanted = |kind: usize| sums[kind].0 > 0 && of_kind(filter, &kinds.values[kind]);
    let mut waited = vec![0u64; kinds.values.len()];
    let mut rest = positions[..found]
        .iter()
        .map(|i| usize::from(*i))
        .peekable();
    chunk.each_wait(&kinds, wanted, |i, wait| {
        while rest.next_if(|next| *next < i).is_some() {}
        if rest.peek() == Some(&i) {
            let sum = &mut waited[usize::from(kinds.of[i])];
            *sum = sum.saturating_add(wait);
        }
    })?;
    for ((_, sum, _), waited) in sums.iter_mut().zip(waited) {
        *sum = waited;
    }
    for (kind, (count, wait, first)) in kinds.values.iter().zip(sums) {
        if count > 0 && of_kind(filter, kind) {
            each(Tally {
                op: kind.op,
                origin: kind.origin,
                optimized: kind.flags.optimized,
                in_process: kind.flags.in_process,
                count,
                wait: Nanos(wait),
                variable: objects.at(first).var,
                ap: aps.at(first),
            });
        }
    }
    Ok(())
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
            spread: selected.spread(i),
            origin: kind.origin,
            optimized: kind.flags.optimized,
            in_process: kind.flags.in_process,
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
    /// How many accesses it stands for.
    pub count: u64,
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
            count: selected.spread(i).count(),
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
            in_process: kind.flags.in_process,
            ap: aps.at(i),
            object: objects.at(i),
            version: versions[i],
            count: selected.spread(i).count(),
            several: query::Several::default(),
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
