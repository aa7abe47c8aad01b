//! Aggregation inside the scan: counts, sums, extremes and means of the records of a chunk by columns that have few values there.
//!
//! The engine aggregates in two steps, rows into partial states and states into results. Here the first step is the scan's, where
//! it can be: the group of a record follows from the numbers that the chunk keeps in the place of names, so that no row is made and
//! no name is hashed but once per group and chunk. A state means what the engine's own would, so the second step does not know.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, Float64Array, Int64Array, UInt32Array, UInt64Array};
use datafusion::arrow::compute::{FilterPredicate, take};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::arrow::record_batch::{RecordBatch, RecordBatchOptions};
use datafusion::arrow::row::{RowConverter, SortField};
use datafusion::common::cast::{as_float64_array, as_int64_array, as_uint64_array};
use datafusion::common::internal_err;
use datafusion::error::Result;

use crate::columns::{Column, Part, schema_of};
use crate::decode::{Classes, Decoder, Failure};

/// What is worked out of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Function {
    /// How many records there are.
    Count,
    Sum(Column),
    Min(Column),
    Max(Column),
    Mean(Column),
}

impl Function {
    /// The types of its state, column by column.
    fn state(self) -> &'static [DataType] {
        match self {
            Self::Count | Self::Sum(_) | Self::Min(_) | Self::Max(_) => &[DataType::Int64],
            Self::Mean(_) => &[DataType::UInt64, DataType::Float64],
        }
    }

    /// The column that it is of.
    pub(crate) fn column(self) -> Option<Column> {
        match self {
            Self::Count => None,
            Self::Sum(column) | Self::Min(column) | Self::Max(column) | Self::Mean(column) => {
                Some(column)
            }
        }
    }

    /// What the engine calls it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Count => "count",
            Self::Sum(_) => "sum",
            Self::Min(_) => "min",
            Self::Max(_) => "max",
            Self::Mean(_) => "avg",
        }
    }

    /// What the engine calls `name`, of a column or of none.
    pub(crate) fn named(name: &str, column: Option<Column>) -> Option<Self> {
        Some(match (name, column) {
            ("count", None) => Self::Count,
            ("sum", Some(column)) => Self::Sum(column),
            ("min", Some(column)) => Self::Min(column),
            ("max", Some(column)) => Self::Max(column),
            ("avg", Some(column)) => Self::Mean(column),
            _ => return None,
        })
    }
}

impl fmt::Display for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let column = self.column().map_or("*", Column::name);
        write!(f, "{}({column})", self.name())
    }
}

/// Groups, and what is worked out of each.
#[derive(Clone, Debug)]
pub(crate) struct Aggregation {
    groups: Vec<Column>,
    functions: Vec<Function>,
    schema: SchemaRef,
}

/// Whether a column has a whole number, never null, for each record.
fn is_number(column: Column) -> bool {
    let schema = schema_of(&[column]);
    let field = schema.field(0);
    column.part() == Part::Row && *field.data_type() == DataType::Int64 && !field.is_nullable()
}

impl Aggregation {
    /// The states of these functions by these groups, as columns with the engine's names: those of the groups, then those of the
    /// states. None if a chunk does not tell them, or the engine's states are others.
    pub(crate) fn new(
        groups: Vec<Column>,
        functions: Vec<Function>,
        named: impl IntoIterator<Item = (String, bool)>,
    ) -> Option<Self> {
        let by_value = groups.iter().all(|column| column.part() != Part::Row);
        let of_numbers = functions.iter().filter_map(|f| f.column()).all(is_number);
        let of_groups = schema_of(&groups);
        let of_groups = of_groups.fields().iter().map(|f| f.data_type().clone());
        let of_states = functions.iter().flat_map(|f| f.state()).cloned();
        let types: Vec<DataType> = of_groups.chain(of_states).collect();
        let named: Vec<(String, bool)> = named.into_iter().collect();
        if !by_value || !of_numbers || named.len() != types.len() {
            return None;
        }
        let fields = named
            .into_iter()
            .zip(types)
            .map(|((name, nullable), of)| Field::new(name, of, nullable));
        Some(Self {
            schema: Arc::new(Schema::new(fields.collect::<Vec<_>>())),
            groups,
            functions,
        })
    }

    pub(crate) fn groups(&self) -> &[Column] {
        &self.groups
    }

    pub(crate) fn functions(&self) -> &[Function] {
        &self.functions
    }

    pub(crate) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// States of no group yet, one per function.
    fn begin(&self) -> Vec<State> {
        self.functions.iter().map(|f| State::new(*f)).collect()
    }

    /// The states of the records of a chunk that passed both filters, `numbers` being the columns of those.
    pub(crate) fn of_chunk(
        &self,
        decoder: &Decoder<'_>,
        filters: &[&FilterPredicate],
        mut numbers: impl FnMut(Column) -> std::result::Result<ArrayRef, Failure>,
    ) -> std::result::Result<RecordBatch, Failure> {
        let mut grouping = Grouping::of(decoder, &self.groups)?;
        let mut of: ArrayRef = Arc::new(UInt32Array::from(std::mem::take(&mut grouping.of)));
        for filter in filters {
            of = filter.filter(&of)?;
        }
        let of: &[u32] = match of.as_any().downcast_ref::<UInt32Array>() {
            Some(of) => of.values(),
            None => &[],
        };
        let mut records = vec![0_i64; grouping.groups];
        of.iter().for_each(|group| records[*group as usize] += 1);
        let mut states: Vec<State> = Vec::new();
        for function in &self.functions {
            let array = function.column().map(&mut numbers).transpose()?;
            let values: &[i64] = match &array {
                Some(array) => as_int64_array(array)?.values(),
                None => &[],
            };
            let mut state = State::new(*function);
            state.grow(grouping.groups);
            state.add_numbers(of, values, &records);
            states.push(state);
        }
        // Groups all of whose records were filtered out are none.
        let kept = (0_u32..).zip(&records).filter(|(_, n)| **n > 0);
        let kept: Vec<u32> = kept.map(|(group, _)| group).collect();
        let mut arrays = Vec::new();
        for column in &self.groups {
            let symbols = grouping.symbols(column.part(), &kept);
            arrays.push(take(&decoder.values(*column)?, &symbols, None)?);
        }
        let places = UInt32Array::from(kept.clone());
        for state in states {
            for array in state.arrays() {
                arrays.push(take(&array, &places, None)?);
            }
        }
        Ok(batch(&self.schema, arrays, kept.len())?)
    }
}

fn batch(schema: &SchemaRef, arrays: Vec<ArrayRef>, rows: usize) -> Result<RecordBatch> {
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    let schema = schema.clone();
    Ok(RecordBatch::try_new_with_options(schema, arrays, &options)?)
}

/// The groups of a chunk's records.
struct Grouping {
    /// The group of each record.
    of: Vec<u32>,
    groups: usize,
    /// Of each part: in which classes its values are, and the class of each group.
    parts: Vec<(Part, Classes, Vec<u32>)>,
}

impl Grouping {
    fn of(decoder: &Decoder<'_>, columns: &[Column]) -> std::result::Result<Self, Failure> {
        let mut grouping = Self {
            of: vec![0; decoder.rows()],
            groups: 1,
            parts: Vec::new(),
        };
        for part in [Part::Source, Part::Kind, Part::Object, Part::Process] {
            let its = columns.iter().copied().filter(|c| c.part() == part);
            let its: Vec<Column> = its.collect();
            if !its.is_empty() {
                grouping.refine(decoder, part, &its)?;
            }
        }
        Ok(grouping)
    }

    /// Divides each group by the values of one more part.
    fn refine(
        &mut self,
        decoder: &Decoder<'_>,
        part: Part,
        columns: &[Column],
    ) -> std::result::Result<(), Failure> {
        let classes = decoder.classes(part, columns)?;
        let Some(symbols) = decoder.symbols(part)? else {
            // All records have the same.
            self.parts.push((part, classes, vec![0; self.groups]));
            return Ok(());
        };
        let number = classes.number();
        let mut known = Places::new(self.groups * number, self.of.len());
        let mut made: Vec<(u32, u32)> = Vec::new();
        for (group, symbol) in self.of.iter_mut().zip(symbols) {
            let (before, class) = (*group, classes.of(*symbol));
            let pair = before as usize * number + class as usize;
            *group = known.get_or(pair, || {
                made.push((before, class));
                made.len() as u32 - 1
            });
        }
        for (_, _, class) in &mut self.parts {
            *class = made.iter().map(|(old, _)| class[*old as usize]).collect();
        }
        self.groups = made.len();
        let its = made.into_iter().map(|(_, class)| class).collect();
        self.parts.push((part, classes, its));
        Ok(())
    }

    /// For each of these groups, a value of the part that its records have.
    fn symbols(&self, part: Part, groups: &[u32]) -> UInt32Array {
        let known = self.parts.iter().find(|(p, ..)| *p == part);
        let symbols = groups.iter().map(|group| match known {
            Some((_, classes, of)) => classes.first(of[*group as usize]),
            None => 0,
        });
        UInt32Array::from_iter_values(symbols)
    }
}

/// Numbers given to pairs as they come up.
enum Places {
    Dense(Vec<u32>),
    Sparse(HashMap<usize, u32>),
}

const NOWHERE: u32 = u32::MAX;

impl Places {
    fn new(pairs: usize, rows: usize) -> Self {
        match pairs <= 4 * rows + 1024 {
            true => Self::Dense(vec![NOWHERE; pairs]),
            false => Self::Sparse(HashMap::new()),
        }
    }

    fn get_or(&mut self, pair: usize, new: impl FnOnce() -> u32) -> u32 {
        match self {
            Self::Dense(places) => {
                let place = &mut places[pair];
                if *place == NOWHERE {
                    *place = new();
                }
                *place
            }
            Self::Sparse(places) => *places.entry(pair).or_insert_with(new),
        }
    }
}

/// The state of a function, group by group.
enum State {
    Count(Vec<i64>),
    Sum(Vec<i64>),
    Min(Vec<i64>),
    Max(Vec<i64>),
    Mean(Vec<u64>, Vec<f64>),
}

impl State {
    fn new(function: Function) -> Self {
        match function {
            Function::Count => Self::Count(Vec::new()),
            Function::Sum(_) => Self::Sum(Vec::new()),
            Function::Min(_) => Self::Min(Vec::new()),
            Function::Max(_) => Self::Max(Vec::new()),
            Function::Mean(_) => Self::Mean(Vec::new(), Vec::new()),
        }
    }

    /// Room for this many groups; new ones are empty.
    fn grow(&mut self, groups: usize) {
        match self {
            Self::Count(of) | Self::Sum(of) => of.resize(groups, 0),
            Self::Min(of) => of.resize(groups, i64::MAX),
            Self::Max(of) => of.resize(groups, i64::MIN),
            Self::Mean(counts, sums) => {
                counts.resize(groups, 0);
                sums.resize(groups, 0.0);
            }
        }
    }

    /// Adds numbers to the groups beside them; `records` is how many of each group there are.
    fn add_numbers(&mut self, groups: &[u32], numbers: &[i64], records: &[i64]) {
        let each = groups.iter().map(|g| *g as usize).zip(numbers);
        match self {
            Self::Count(of) => of.iter_mut().zip(records).for_each(|(all, n)| *all += n),
            // As the engine does.
            Self::Sum(of) => each.for_each(|(g, n)| of[g] = of[g].wrapping_add(*n)),
            Self::Min(of) => each.for_each(|(g, n)| of[g] = of[g].min(*n)),
            Self::Max(of) => each.for_each(|(g, n)| of[g] = of[g].max(*n)),
            Self::Mean(counts, sums) => {
                each.for_each(|(g, n)| sums[g] += *n as f64);
                let all = counts.iter_mut().zip(records);
                all.for_each(|(all, n)| *all += *n as u64);
            }
        }
    }

    /// Adds states to the groups beside them; answers how many columns they were.
    fn add_states(&mut self, groups: &[usize], states: &[ArrayRef]) -> Result<usize> {
        let [first, rest @ ..] = states else {
            return internal_err!("a state is missing");
        };
        if let Self::Mean(counts, sums) = self {
            let [more, ..] = rest else {
                return internal_err!("the sum of a mean is missing");
            };
            let (n, sum) = (as_uint64_array(first)?.values(), as_float64_array(more)?);
            let each = groups.iter().zip(n.iter().zip(sum.values()));
            each.for_each(|(g, (n, sum))| {
                counts[*g] += n;
                sums[*g] += sum;
            });
            return Ok(2);
        }
        let each = groups.iter().zip(as_int64_array(first)?.values());
        match self {
            Self::Count(of) | Self::Sum(of) => {
                each.for_each(|(g, n)| of[*g] = of[*g].wrapping_add(*n));
            }
            Self::Min(of) => each.for_each(|(g, n)| of[*g] = of[*g].min(*n)),
            Self::Max(of) => each.for_each(|(g, n)| of[*g] = of[*g].max(*n)),
            Self::Mean(..) => {}
        }
        Ok(1)
    }

    fn arrays(self) -> Vec<ArrayRef> {
        match self {
            Self::Count(of) | Self::Sum(of) | Self::Min(of) | Self::Max(of) => {
                vec![Arc::new(Int64Array::from(of))]
            }
            Self::Mean(counts, sums) => vec![
                Arc::new(UInt64Array::from(counts)),
                Arc::new(Float64Array::from(sums)),
            ],
        }
    }
}

/// The states of many chunks, put together.
pub(crate) struct Together {
    aggregation: Aggregation,
    /// None if there are no columns to group by.
    converter: Option<RowConverter>,
    /// The groups, by their values as one row.
    known: HashMap<Box<[u8]>, usize>,
    states: Vec<State>,
}

impl Together {
    pub(crate) fn new(aggregation: &Aggregation) -> Result<Self> {
        let groups = schema_of(&aggregation.groups);
        let fields = groups.fields().iter();
        let fields: Vec<SortField> = fields
            .map(|f| SortField::new(f.data_type().clone()))
            .collect();
        Ok(Self {
            aggregation: aggregation.clone(),
            converter: match fields.is_empty() {
                true => None,
                false => Some(RowConverter::new(fields)?),
            },
            known: HashMap::new(),
            states: aggregation.begin(),
        })
    }

    pub(crate) fn groups(&self) -> usize {
        self.known.len()
    }

    /// Adds the states of a chunk.
    pub(crate) fn add(&mut self, states: &RecordBatch) -> Result<()> {
        let (groups, mut left) = states.columns().split_at(self.aggregation.groups.len());
        let rows = self
            .converter
            .as_ref()
            .map(|c| c.convert_columns(groups))
            .transpose()?;
        let known = &mut self.known;
        let mut place = |row: &[u8]| match known.get(row) {
            Some(place) => *place,
            None => {
                let place = known.len();
                known.insert(row.into(), place);
                place
            }
        };
        let places: Vec<usize> = match &rows {
            Some(rows) => rows.iter().map(|row| place(row.as_ref())).collect(),
            None => (0..states.num_rows()).map(|_| place(&[])).collect(),
        };
        for state in &mut self.states {
            state.grow(self.known.len());
            let taken = state.add_states(&places, left)?;
            left = &left[taken..];
        }
        Ok(())
    }

    /// The states of all groups so far, or none if there is no group; then begins anew.
    pub(crate) fn take(&mut self) -> Result<Option<RecordBatch>> {
        let known = std::mem::take(&mut self.known);
        if known.is_empty() {
            return Ok(None);
        }
        let groups = known.len();
        let mut rows: Vec<(Box<[u8]>, usize)> = known.into_iter().collect();
        rows.sort_unstable_by_key(|(_, place)| *place);
        let mut arrays = match &self.converter {
            Some(converter) => {
                let parser = converter.parser();
                converter.convert_rows(rows.iter().map(|(row, _)| parser.parse(row)))?
            }
            None => Vec::new(),
        };
        let states = std::mem::replace(&mut self.states, self.aggregation.begin());
        arrays.extend(states.into_iter().flat_map(State::arrays));
        batch(&self.aggregation.schema, arrays, groups).map(Some)
    }
}
