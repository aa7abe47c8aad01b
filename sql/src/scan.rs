//! From a chunk to the rows of a query: conditions first, on as few values as possible, then the columns asked for, of the rows
//! that passed, or the states of groups of them.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, BooleanArray};
use datafusion::arrow::buffer::BooleanBuffer;
use datafusion::arrow::compute::{FilterBuilder, FilterPredicate};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::record_batch::{RecordBatch, RecordBatchOptions};
use dosmos_trace::chunk::Chunk;

use crate::aggregate::Aggregation;
use crate::columns::{Column, Part, schema_of};
use crate::decode::{Decoder, Failure};
use crate::names::Names;
use crate::predicate::Predicate;

/// What a query wants of each chunk.
#[derive(Clone, Debug)]
pub(crate) struct Scan {
    columns: Vec<Column>,
    schema: SchemaRef,
    predicate: Predicate,
    aggregation: Option<Aggregation>,
}

impl fmt::Display for Scan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = |columns: &[Column]| -> String {
            let names: Vec<&str> = columns.iter().map(|c| c.name()).collect();
            names.join(", ")
        };
        write!(f, "columns=[{}]", names(&self.columns))?;
        if let Some(aggregation) = &self.aggregation {
            let functions = aggregation.functions().iter();
            let functions: Vec<String> = functions.map(ToString::to_string).collect();
            let groups = names(aggregation.groups());
            write!(f, ", groups=[{groups}], states=[{}]", functions.join(", "))?;
        }
        let mut conditions = self.predicate.given().iter();
        conditions.try_for_each(|condition| write!(f, ", {condition}"))
    }
}

/// The rows that passed so far.
enum Rows {
    All,
    Some(BooleanBuffer),
}

impl Scan {
    pub(crate) fn new(columns: Vec<Column>, predicate: Predicate) -> Self {
        Self {
            schema: schema_of(&columns),
            columns,
            predicate,
            aggregation: None,
        }
    }

    /// The same scan, whose rows are states of groups of records.
    pub(crate) fn aggregated(&self, aggregation: Aggregation) -> Self {
        Self {
            schema: aggregation.schema().clone(),
            aggregation: Some(aggregation),
            ..self.clone()
        }
    }

    pub(crate) fn aggregation(&self) -> Option<&Aggregation> {
        self.aggregation.as_ref()
    }

    pub(crate) fn columns(&self) -> &[Column] {
        &self.columns
    }

    pub(crate) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    pub(crate) fn predicate(&self) -> &Predicate {
        &self.predicate
    }

    /// The rows of a chunk that pass, or the states of their groups; none if none does.
    pub(crate) fn rows(
        &self,
        chunk: &Chunk<'_>,
        names: &Names,
    ) -> Result<Option<RecordBatch>, Failure> {
        let decoder = Decoder::new(chunk, names);
        let mut rows = Rows::All;
        for part in [Part::Source, Part::Kind, Part::Object, Part::Process] {
            match self.by_value(&decoder, part)? {
                None => return Ok(None),
                Some(Rows::All) => {}
                Some(Rows::Some(more)) => {
                    rows = Rows::Some(match rows {
                        Rows::All => more,
                        Rows::Some(before) => &before & &more,
                    });
                }
            }
        }
        let filter = match rows {
            Rows::All => None,
            Rows::Some(rows) => Some(BooleanArray::new(rows, None)),
        };
        let rows = filter
            .as_ref()
            .map_or(decoder.rows(), BooleanArray::true_count);
        if rows == 0 {
            return Ok(None);
        }
        let mut arrays = Arrays {
            decoder: &decoder,
            filter: filter.map(|f| Arc::new(FilterBuilder::new(&f).optimize().build())),
            known: Vec::new(),
        };
        match self.by_row(&mut arrays, rows)? {
            None => self.batch(&mut arrays, rows, None).map(Some),
            Some(passed) if passed.true_count() == 0 => Ok(None),
            Some(passed) => {
                let rows = passed.true_count();
                let passed = FilterBuilder::new(&passed).optimize().build();
                self.batch(&mut arrays, rows, Some(&passed)).map(Some)
            }
        }
    }

    /// The rows whose value of `part` meets the conditions on it; none if no value does.
    fn by_value(&self, decoder: &Decoder<'_>, part: Part) -> Result<Option<Rows>, Failure> {
        let mut passes: Option<BooleanBuffer> = None;
        for condition in self.predicate.on(part) {
            let arrays = condition.columns().iter().map(|c| decoder.values(*c));
            let arrays: Vec<ArrayRef> = arrays.collect::<Result<_, _>>()?;
            let values = arrays.first().map_or(1, |a| a.len());
            let found = condition.passes(arrays, values)?;
            passes = Some(match passes {
                None => found.values().clone(),
                Some(before) => &before & found.values(),
            });
        }
        let Some(passes) = passes else {
            return Ok(Some(Rows::All));
        };
        match passes.count_set_bits() {
            0 => Ok(None),
            all if all == passes.len() => Ok(Some(Rows::All)),
            _ => {
                let passes: Vec<bool> = passes.iter().collect();
                let of = decoder.symbols(part)?.unwrap_or_default();
                let rows = BooleanBuffer::collect_bool(of.len(), |i| passes[usize::from(of[i])]);
                Ok(Some(Rows::Some(rows)))
            }
        }
    }

    /// Which of the rows left meet the conditions on rows; none: there are none.
    fn by_row(
        &self,
        arrays: &mut Arrays<'_>,
        rows: usize,
    ) -> Result<Option<BooleanArray>, Failure> {
        let mut passed: Option<BooleanArray> = None;
        for condition in self.predicate.on(Part::Row) {
            let its = condition.columns().iter().map(|c| arrays.get(*c));
            let its: Vec<ArrayRef> = its.collect::<Result<_, _>>()?;
            let found = condition.passes(its, rows)?;
            passed = Some(match passed {
                None => found,
                Some(before) => BooleanArray::new(before.values() & found.values(), None),
            });
        }
        Ok(passed)
    }

    fn batch(
        &self,
        arrays: &mut Arrays<'_>,
        rows: usize,
        passed: Option<&FilterPredicate>,
    ) -> Result<RecordBatch, Failure> {
        if let Some(aggregation) = &self.aggregation {
            let (decoder, first) = (arrays.decoder, arrays.filter.clone());
            let filters: Vec<&FilterPredicate> =
                first.iter().map(AsRef::as_ref).chain(passed).collect();
            return aggregation.of_chunk(decoder, &filters, |column| arrays.passed(column, passed));
        }
        let columns = self.columns.iter().map(|c| arrays.passed(*c, passed));
        let columns: Vec<ArrayRef> = columns.collect::<Result<_, Failure>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let schema = self.schema.clone();
        Ok(RecordBatch::try_new_with_options(
            schema, columns, &options,
        )?)
    }
}

/// Columns of the rows that passed the conditions on values.
struct Arrays<'a> {
    decoder: &'a Decoder<'a>,
    filter: Option<Arc<FilterPredicate>>,
    known: Vec<(Column, ArrayRef)>,
}

impl Arrays<'_> {
    fn get(&mut self, column: Column) -> Result<ArrayRef, Failure> {
        if let Some((_, known)) = self.known.iter().find(|(c, _)| *c == column) {
            return Ok(known.clone());
        }
        let whole = self.decoder.array(column)?;
        let array = match &self.filter {
            Some(filter) => filter.filter(&whole)?,
            None => whole,
        };
        self.known.push((column, array.clone()));
        Ok(array)
    }

    /// Of the rows that passed the conditions on rows as well.
    fn passed(
        &mut self,
        column: Column,
        passed: Option<&FilterPredicate>,
    ) -> Result<ArrayRef, Failure> {
        let array = self.get(column)?;
        Ok(match passed {
            Some(passed) => passed.filter(&array)?,
            None => array,
        })
    }
}
