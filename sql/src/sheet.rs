//! Small tables that are worked out as a whole when a query first needs them.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::array::ArrayRef;
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::arrow::record_batch::{RecordBatch, RecordBatchOptions};
use datafusion::catalog::{MemTable, Session, TableProvider};
use datafusion::common::ScalarValue;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{Expr, TableType};
use datafusion::physical_plan::ExecutionPlan;

/// A value of a small table.
pub(crate) fn text(text: impl Into<String>) -> ScalarValue {
    ScalarValue::Utf8View(Some(text.into()))
}

/// A text, or null.
pub(crate) fn text_or_null(text: Option<String>) -> ScalarValue {
    ScalarValue::Utf8View(text)
}

/// A number.
pub(crate) fn number(number: u64) -> ScalarValue {
    number_or_null(Some(number))
}

/// A number, or null.
pub(crate) fn number_or_null(number: Option<u64>) -> ScalarValue {
    ScalarValue::Int64(number.map(crate::decode::signed))
}

/// A fraction, or null.
pub(crate) fn fraction(fraction: Option<f64>) -> ScalarValue {
    ScalarValue::Float64(fraction)
}

/// Whether something is so.
pub(crate) fn flag(flag: bool) -> ScalarValue {
    ScalarValue::Boolean(Some(flag))
}

/// What the type of a column of a small table is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Text,
    Number,
    Fraction,
    Flag,
}

/// The schema of columns that may all be null.
pub(crate) fn schema<'a>(columns: impl IntoIterator<Item = (&'a str, Kind)>) -> SchemaRef {
    let fields = columns.into_iter().map(|(name, kind)| {
        let kind = match kind {
            Kind::Text => DataType::Utf8View,
            Kind::Number => DataType::Int64,
            Kind::Fraction => DataType::Float64,
            Kind::Flag => DataType::Boolean,
        };
        Field::new(name, kind, true)
    });
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

/// Where the rows of a small table come from.
#[async_trait]
pub(crate) trait Rows: Send + Sync + 'static {
    /// Its columns.
    fn schema(&self) -> SchemaRef;
    /// Its rows, each with as many values as there are columns.
    async fn rows(&self) -> Result<Vec<Vec<ScalarValue>>>;
}

/// A small table.
pub(crate) struct Sheet<R> {
    rows: R,
    schema: SchemaRef,
}

impl<R: Rows> Sheet<R> {
    pub(crate) fn new(rows: R) -> Self {
        Self {
            schema: rows.schema(),
            rows,
        }
    }

    async fn batch(&self) -> Result<RecordBatch> {
        let rows = self.rows.rows().await?;
        let columns = self.schema.fields().iter().enumerate().map(|(i, field)| {
            let values: Vec<ScalarValue> = rows.iter().filter_map(|r| r.get(i).cloned()).collect();
            match values.is_empty() {
                true => Ok(datafusion::arrow::array::new_empty_array(field.data_type())),
                false => ScalarValue::iter_to_array(values),
            }
        });
        let columns: Vec<ArrayRef> = columns.collect::<Result<_>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
        let schema = self.schema.clone();
        Ok(RecordBatch::try_new_with_options(
            schema, columns, &options,
        )?)
    }
}

impl<R> fmt::Debug for Sheet<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sheet")
            .field("schema", &self.schema)
            .finish()
    }
}

#[async_trait]
impl<R: Rows> TableProvider for Sheet<R> {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let rows = vec![vec![self.batch().await?]];
        let table = MemTable::try_new(self.schema.clone(), rows)?;
        table.scan(state, projection, filters, limit).await
    }
}

/// An error of another part of the program, as the engine carries it.
pub(crate) fn external(e: impl std::error::Error + Send + Sync + 'static) -> DataFusionError {
    DataFusionError::External(Box::new(e))
}
