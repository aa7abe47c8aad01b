//! Looking through one chunk for what a filter matches, decoding no more columns than that needs.

use dosmos_proto::{ApId, Nanos, VarId};

use crate::chunk::{Chunk, ChunkError, Column};
use crate::query::Filter;
use crate::record::{Flags, Op, Origin, Record, Side};
use crate::wire::kind_from;

/// What a histogram needs of an access.
#[derive(Clone, Copy, Debug)]
pub(super) struct Match {
    pub(super) start: Nanos,
    pub(super) origin: Origin,
    pub(super) optimized: bool,
}

/// Hands out what `filter` matches among the first `most` records of a chunk.
pub(super) fn matches(
    bytes: &[u8],
    most: usize,
    filter: &Filter,
    mut each: impl FnMut(Match),
) -> Result<(), ChunkError> {
    let chunk = Chunk::open(bytes)?;
    let column = |wanted: bool, column| wanted.then(|| chunk.column(column)).transpose();
    let starts = chunk.column(Column::Start)?;
    let kinds = chunk.column(Column::Kind)?;
    let variables = column(!filter.variables.is_empty(), Column::Variable)?;
    let objects = column(filter.object.is_some(), Column::Object)?;
    let aps = column(!filter.aps.is_empty(), Column::Ap)?;
    let at = |column: &Option<Vec<u64>>, i: usize| column.as_ref().map(|c| c[i] as u32);
    for (i, (&start, &kind)) in starts.iter().zip(&kinds).enumerate().take(most) {
        let start = Nanos(start);
        let (op, side, origin, flags) =
            kind_from(kind as u32).map_err(|_| ChunkError::Damaged("record kind"))?;
        let wanted = of_kind(filter, op, side, origin, flags)
            && filter.range.is_none_or(|r| r.contains(start))
            && at(&variables, i).is_none_or(|v| filter.variables.contains(&VarId(v)))
            && at(&objects, i).is_none_or(|o| filter.object == Some(o))
            && at(&aps, i).is_none_or(|a| filter.aps.contains(&ApId(a)));
        if wanted {
            each(Match {
                start,
                origin,
                optimized: flags.optimized,
            });
        }
    }
    Ok(())
}

/// As [`Record::is_access`] and [`Filter::matches`] have it.
fn of_kind(filter: &Filter, op: Op, side: Side, origin: Origin, flags: Flags) -> bool {
    let access = side == Side::Requester && !flags.failed && !flags.waiting;
    (filter.everything || access)
        && (filter.ops.is_empty() || filter.ops.contains(&op))
        && (filter.origins.is_empty() || filter.origins.contains(&origin))
}

/// Hands out the records that `filter` matches among the first `most` of a chunk.
pub(super) fn records(
    bytes: &[u8],
    most: usize,
    filter: &Filter,
    each: impl FnMut(&Record),
) -> Result<(), ChunkError> {
    let records = Chunk::open(bytes)?.records()?;
    let wanted = records.iter().take(most).filter(|r| filter.matches(r));
    wanted.for_each(each);
    Ok(())
}
