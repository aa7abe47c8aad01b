//! A row group in the making, column by column.

use std::collections::HashMap;
use std::io::Write;

use dosmos_interchange::Names;
use dosmos_proto::{ApId, MpId, Nanos, VarId};
use dosmos_trace::record::{Op, Record, Side};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, Int64Type};
use parquet::errors::Result;
use parquet::file::writer::SerializedRowGroupWriter;

/// Values of a column, and for one that has nulls, which rows have a value (1).
struct Column<T: DataType> {
    values: Vec<T::T>,
    present: Option<Vec<i16>>,
}

impl<T: DataType> Column<T> {
    fn required() -> Self {
        Self {
            values: Vec::new(),
            present: None,
        }
    }

    fn optional() -> Self {
        Self {
            present: Some(Vec::new()),
            ..Self::required()
        }
    }

    fn push(&mut self, value: T::T) {
        self.push_or_null(Some(value));
    }

    fn push_or_null(&mut self, value: Option<T::T>) {
        if let Some(present) = &mut self.present {
            present.push(value.is_some().into());
        }
        self.values.extend(value);
    }

    fn write<W: Write + Send>(&mut self, to: &mut SerializedRowGroupWriter<'_, W>) -> Result<()> {
        if let Some(mut column) = to.next_column()? {
            let writer = column.typed::<T>();
            writer.write_batch(&self.values, self.present.as_deref(), None)?;
            column.close()?;
        }
        self.values.clear();
        if let Some(present) = &mut self.present {
            present.clear();
        }
        Ok(())
    }
}

type Numbers = Column<Int64Type>;
type Texts = Column<ByteArrayType>;
type Flags = Column<BoolType>;

/// The columns of [`crate::SCHEMA`], in its order.
pub(crate) struct Columns {
    start: Numbers,
    duration: Numbers,
    wait: Numbers,
    service: Numbers,
    op: Texts,
    variable: Texts,
    object: Numbers,
    barrier: Texts,
    ap: Texts,
    mp: Texts,
    owner: Texts,
    origin: Texts,
    optimized: Flags,
    bytes: Numbers,
    version: Numbers,
    first: Numbers,
    end: Numbers,
    side: Texts,
    sampled: Flags,
    failed: Flags,
    waiting: Flags,
    pending: Flags,
    in_process: Flags,
    count: Numbers,
    texts: Shared,
}

/// Names as values; each is made once.
#[derive(Debug, Default)]
struct Shared {
    variables: HashMap<VarId, ByteArray>,
    aps: HashMap<ApId, ByteArray>,
    mps: HashMap<MpId, ByteArray>,
}

impl Shared {
    fn mp(&mut self, names: &Names, mp: MpId) -> ByteArray {
        let text = self.mps.entry(mp);
        text.or_insert_with(|| (&*names.mp(mp)).into()).clone()
    }

    fn ap(&mut self, names: &Names, ap: ApId) -> ByteArray {
        let text = self.aps.entry(ap);
        text.or_insert_with(|| (&*names.ap(ap)).into()).clone()
    }

    /// Of a variable or a barrier.
    fn variable(&mut self, names: &Names, id: VarId, op: Op) -> ByteArray {
        let text = self.variables.entry(id).or_insert_with(|| match op {
            Op::Barrier => names.barrier(id).0.into(),
            _ => (&*names.variable(id)).into(),
        });
        text.clone()
    }
}

impl Default for Columns {
    fn default() -> Self {
        Self {
            start: Column::required(),
            duration: Column::required(),
            wait: Column::required(),
            service: Column::required(),
            op: Column::required(),
            variable: Column::optional(),
            object: Column::required(),
            barrier: Column::optional(),
            ap: Column::required(),
            mp: Column::required(),
            owner: Column::required(),
            origin: Column::required(),
            optimized: Column::required(),
            bytes: Column::required(),
            version: Column::required(),
            first: Column::optional(),
            end: Column::optional(),
            side: Column::required(),
            sampled: Column::required(),
            failed: Column::required(),
            waiting: Column::required(),
            pending: Column::required(),
            in_process: Column::required(),
            count: Column::required(),
            texts: Shared::default(),
        }
    }
}

impl Columns {
    pub(crate) fn rows(&self) -> usize {
        self.start.values.len()
    }

    pub(crate) fn add(&mut self, names: &Names, r: &Record, pending: bool) {
        self.start.push(bits(r.start.0));
        let lengths = [&mut self.duration, &mut self.wait, &mut self.service];
        for (column, Nanos(length)) in lengths.into_iter().zip([r.duration, r.wait, r.service]) {
            column.push(bits(length));
        }
        self.op.push(r.op.name().into());
        let name = self.texts.variable(names, r.object.var, r.op);
        let (variable, barrier) = match r.op {
            Op::Barrier => (None, Some(name)),
            _ => (Some(name), None),
        };
        self.variable.push_or_null(variable);
        self.object.push(r.object.index.into());
        self.barrier.push_or_null(barrier);
        self.ap.push(self.texts.ap(names, r.ap));
        self.mp.push(self.texts.mp(names, r.mp));
        self.owner.push(self.texts.mp(names, r.peer));
        self.origin.push(r.origin.name().into());
        self.optimized.push(r.flags.optimized);
        self.bytes.push(bits(r.bytes));
        self.version.push(bits(r.version));
        let range = (r.range != (0, 0)).then_some(r.range);
        self.first.push_or_null(range.map(|r| r.0.into()));
        self.end.push_or_null(range.map(|r| r.1.into()));
        let side = match r.side {
            Side::Requester => "requester",
            Side::Owner => "owner",
        };
        self.side.push(side.into());
        self.sampled.push(r.flags.sampled);
        self.failed.push(r.flags.failed);
        self.waiting.push(r.flags.waiting);
        self.pending.push(pending);
        self.in_process.push(r.flags.in_process);
        self.count.push(r.count.into());
    }

    /// Writes the columns, in the order of the schema, and empties them.
    pub(crate) fn write<W: Write + Send>(
        &mut self,
        to: &mut SerializedRowGroupWriter<'_, W>,
    ) -> Result<()> {
        self.start.write(to)?;
        self.duration.write(to)?;
        self.wait.write(to)?;
        self.service.write(to)?;
        self.op.write(to)?;
        self.variable.write(to)?;
        self.object.write(to)?;
        self.barrier.write(to)?;
        self.ap.write(to)?;
        self.mp.write(to)?;
        self.owner.write(to)?;
        self.origin.write(to)?;
        self.optimized.write(to)?;
        self.bytes.write(to)?;
        self.version.write(to)?;
        self.first.write(to)?;
        self.end.write(to)?;
        self.side.write(to)?;
        self.sampled.write(to)?;
        self.failed.write(to)?;
        self.waiting.write(to)?;
        self.pending.write(to)?;
        self.in_process.write(to)?;
        self.count.write(to)
    }
}

/// Unsigned numbers are written with the bits they have: the schema says how to read them.
fn bits(n: u64) -> i64 {
    n.cast_signed()
}
