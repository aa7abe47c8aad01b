//! Columns of a chunk as Arrow arrays, each decoded when it is first asked for.

use std::cell::OnceCell;
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, BooleanArray, Float64Array, Int64Array, StringViewArray,
    TimestampNanosecondArray, UInt16Array,
};
use datafusion::arrow::compute::take;
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::row::{RowConverter, SortField};
use dosmos_proto::{ApId, MpId, ObjectId};
use dosmos_trace::chunk::{Chunk, ChunkError, Kind, Symbols};
use dosmos_trace::record::Side;

use crate::columns::{Column, Part};
use crate::names::Names;

/// Why a chunk gives no rows.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// The chunk is damaged.
    #[error(transparent)]
    Chunk(#[from] ChunkError),
    /// The engine refused.
    #[error(transparent)]
    Engine(#[from] datafusion::error::DataFusionError),
}

impl From<ArrowError> for Failure {
    fn from(e: ArrowError) -> Self {
        Self::Engine(e.into())
    }
}

/// The values of a part by what some columns tell of them: those that are alike in all are one class.
pub(crate) struct Classes {
    /// By value.
    of: Vec<u32>,
    /// A value of each class.
    first: Vec<u32>,
}

impl Classes {
    /// Those of equal keys, one key per value.
    fn by<K: Eq + Hash>(keys: impl Iterator<Item = K>) -> Self {
        let mut classes = Self {
            of: Vec::new(),
            first: Vec::new(),
        };
        let mut known = HashMap::new();
        for (value, key) in (0_u32..).zip(keys) {
            let first = &mut classes.first;
            let class = *known.entry(key).or_insert_with(|| {
                first.push(value);
                first.len() as u32 - 1
            });
            classes.of.push(class);
        }
        classes
    }

    pub(crate) fn number(&self) -> usize {
        self.first.len()
    }

    /// The class of a value.
    pub(crate) fn of(&self, value: u16) -> u32 {
        self.of[usize::from(value)]
    }

    /// A value of this class.
    pub(crate) fn first(&self, class: u32) -> u32 {
        self.first[class as usize]
    }
}

/// A chunk whose columns become arrays.
pub(crate) struct Decoder<'a> {
    chunk: &'a Chunk<'a>,
    names: &'a Names,
    kinds: OnceCell<Symbols<Kind>>,
    objects: OnceCell<Symbols<ObjectId>>,
    aps: OnceCell<Symbols<ApId>>,
    starts: OnceCell<Vec<u64>>,
    waits: OnceCell<Vec<u64>>,
    services: OnceCell<Vec<u64>>,
}

/// What is in the cell, decoded if need be.
fn once<T>(
    cell: &OnceCell<T>,
    decode: impl FnOnce() -> Result<T, ChunkError>,
) -> Result<&T, ChunkError> {
    match cell.get() {
        Some(known) => Ok(known),
        None => {
            let decoded = decode()?;
            Ok(cell.get_or_init(|| decoded))
        }
    }
}

impl<'a> Decoder<'a> {
    pub(crate) fn new(chunk: &'a Chunk<'a>, names: &'a Names) -> Self {
        Self {
            chunk,
            names,
            kinds: OnceCell::new(),
            objects: OnceCell::new(),
            aps: OnceCell::new(),
            starts: OnceCell::new(),
            waits: OnceCell::new(),
            services: OnceCell::new(),
        }
    }

    pub(crate) fn rows(&self) -> usize {
        self.chunk.len()
    }

    fn kinds(&self) -> Result<&Symbols<Kind>, ChunkError> {
        once(&self.kinds, || self.chunk.kinds())
    }

    fn objects(&self) -> Result<&Symbols<ObjectId>, ChunkError> {
        once(&self.objects, || self.chunk.objects())
    }

    fn aps(&self) -> Result<&Symbols<ApId>, ChunkError> {
        once(&self.aps, || self.chunk.aps())
    }

    fn starts(&self) -> Result<&[u64], ChunkError> {
        once(&self.starts, || self.chunk.starts()).map(Vec::as_slice)
    }

    fn waits(&self) -> Result<&[u64], ChunkError> {
        let kinds = self.kinds()?;
        once(&self.waits, || self.chunk.waits(kinds)).map(Vec::as_slice)
    }

    fn services(&self) -> Result<&[u64], ChunkError> {
        let kinds = self.kinds()?;
        once(&self.services, || self.chunk.services(kinds)).map(Vec::as_slice)
    }

    /// Which value of `part` each row has; none if all have the same.
    pub(crate) fn symbols(&self, part: Part) -> Result<Option<&[u16]>, ChunkError> {
        Ok(match part {
            Part::Kind => Some(&self.kinds()?.of),
            Part::Object => Some(&self.objects()?.of),
            Part::Process => Some(&self.aps()?.of),
            Part::Source | Part::Row => None,
        })
    }

    /// The different values of a column that has few of them, one per value of its part.
    pub(crate) fn values(&self, column: Column) -> Result<ArrayRef, ChunkError> {
        Ok(match column.part() {
            Part::Kind => of_kinds(column, &self.kinds()?.values),
            Part::Object => self.of_objects(column, &self.objects()?.values),
            Part::Process => {
                let names = self.aps()?.values.iter();
                Arc::new(StringViewArray::from_iter_values(
                    names.map(|ap| self.names.ap(*ap)),
                ))
            }
            Part::Source | Part::Row => texts([self.names.event_manager()]),
        })
    }

    /// The classes that these columns of a part make of its values.
    pub(crate) fn classes(&self, part: Part, columns: &[Column]) -> Result<Classes, Failure> {
        Ok(match part {
            Part::Kind => {
                let arrays = columns.iter().map(|c| self.values(*c));
                let arrays: Vec<ArrayRef> = arrays.collect::<Result<_, _>>()?;
                let fields = arrays.iter().map(|a| SortField::new(a.data_type().clone()));
                let rows = RowConverter::new(fields.collect())?.convert_columns(&arrays)?;
                Classes::by(rows.iter())
            }
            Part::Object => {
                let objects = self.objects()?.values.iter();
                match columns.contains(&Column::Object) {
                    true => Classes::by(objects),
                    // Names are variables'.
                    false => Classes::by(objects.map(|o| o.var)),
                }
            }
            Part::Process => Classes::by(self.aps()?.values.iter()),
            Part::Source | Part::Row => Classes::by(std::iter::once(())),
        })
    }

    fn of_objects(&self, column: Column, objects: &[ObjectId]) -> ArrayRef {
        let names = self.names;
        match column {
            Column::Object => numbers(objects.iter().map(|o| o.index.into())),
            Column::Barrier => {
                let barriers = objects.iter().map(|o| names.barrier(o.var));
                Arc::new(StringViewArray::from_iter(barriers))
            }
            _ => {
                let variables = objects.iter().map(|o| names.variable(o.var));
                Arc::new(StringViewArray::from_iter(variables))
            }
        }
    }

    /// A column, one value per row.
    pub(crate) fn array(&self, column: Column) -> Result<ArrayRef, Failure> {
        match column.part() {
            Part::Row => Ok(self.of_rows(column)?),
            Part::Source => {
                let all = std::iter::repeat_n(self.names.event_manager(), self.rows());
                Ok(texts(all))
            }
            part => {
                let values = self.values(column)?;
                let of = self.symbols(part)?.unwrap_or_default();
                let of = UInt16Array::from_iter_values(of.iter().copied());
                Ok(take(&values, &of, None)?)
            }
        }
    }

    fn of_rows(&self, column: Column) -> Result<ArrayRef, ChunkError> {
        Ok(match column {
            Column::StartNs => numbers(self.starts()?.iter().copied()),
            Column::Start => {
                let starts = self.starts()?.iter().map(|t| signed(*t));
                let starts = TimestampNanosecondArray::from_iter_values(starts);
                Arc::new(starts.with_timezone("UTC"))
            }
            Column::AtS => {
                let zero = self.names.zero().0;
                let at = self.starts()?.iter();
                let at = at.map(|t| (i128::from(*t) - i128::from(zero)) as f64 / 1e9);
                Arc::new(Float64Array::from_iter_values(at))
            }
            Column::DurationNs => {
                let (kinds, waits, services) = (self.kinds()?, self.waits()?, self.services()?);
                numbers(self.chunk.durations(kinds, waits, services)?)
            }
            Column::WaitNs => numbers(self.waits()?.iter().copied()),
            Column::ServiceNs => numbers(self.services()?.iter().copied()),
            Column::Mp => self.memory_processes(&self.chunk.mps(self.aps()?)?),
            Column::Owner => self.memory_processes(&self.chunk.peers(self.objects()?)?),
            Column::Bytes => numbers(self.chunk.bytes(self.objects()?, self.kinds()?)?),
            Column::Version => numbers(self.chunk.versions(self.objects()?)?),
            Column::RangeFirst | Column::RangeEnd => {
                let ranges = self.chunk.ranges(self.objects()?, self.kinds()?)?;
                let of = ranges.into_iter().map(|range| {
                    let one = match column {
                        Column::RangeFirst => range.0,
                        _ => range.1,
                    };
                    (range != (0, 0)).then_some(i64::from(one))
                });
                Arc::new(Int64Array::from_iter(of))
            }
            _ => match self.chunk.counts()? {
                Some(counts) => numbers(counts.into_iter().map(u64::from)),
                None => numbers(std::iter::repeat_n(1, self.rows())),
            },
        })
    }

    /// Names of memory processes, each made once.
    fn memory_processes(&self, of: &[MpId]) -> ArrayRef {
        let mut known: Vec<(MpId, String)> = Vec::new();
        let positions: Vec<usize> = of
            .iter()
            .map(|mp| match known.iter().position(|(id, _)| id == mp) {
                Some(at) => at,
                None => {
                    known.push((*mp, self.names.mp(*mp)));
                    known.len() - 1
                }
            })
            .collect();
        texts(positions.into_iter().map(|at| known[at].1.as_str()))
    }
}

fn of_kinds(column: Column, kinds: &[Kind]) -> ArrayRef {
    let flag = |of: fn(&Kind) -> bool| -> ArrayRef {
        let flags: Vec<bool> = kinds.iter().map(of).collect();
        Arc::new(BooleanArray::from(flags))
    };
    match column {
        Column::Op => texts(kinds.iter().map(|k| k.op.name())),
        Column::Origin => texts(kinds.iter().map(|k| k.origin.name())),
        Column::Optimized => flag(|k| k.flags.optimized),
        Column::InProcess => flag(|k| k.flags.in_process),
        Column::Atomic => flag(|k| k.flags.atomic),
        Column::OwnClock => flag(|k| k.flags.own_clock),
        Column::Ahead => flag(|k| k.flags.ahead),
        Column::Posted => flag(|k| k.flags.posted),
        Column::First => flag(|k| k.flags.first),
        Column::Sampled => flag(|k| k.flags.sampled),
        Column::Failed => flag(|k| k.flags.failed),
        Column::Waiting => flag(|k| k.flags.waiting),
        _ => texts(kinds.iter().map(|k| match k.side {
            Side::Requester => "requester",
            Side::Owner => "owner",
        })),
    }
}

fn texts<'t>(all: impl IntoIterator<Item = &'t str>) -> ArrayRef {
    Arc::new(StringViewArray::from_iter_values(all))
}

fn numbers(all: impl IntoIterator<Item = u64>) -> ArrayRef {
    Arc::new(Int64Array::from_iter_values(all.into_iter().map(signed)))
}

/// SQL has signed numbers; what is larger than the largest of them is that.
pub(crate) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
