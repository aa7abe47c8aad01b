//! Conditions of a query, sorted by what of a chunk they need.
//!
//! A condition on the kind, the object or the application process of a record is worked out once per different value in the
//! chunk, by the engine's own evaluation, so it means exactly what it means there; the others are worked out row by row, on the
//! rows that are left.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, BooleanArray};
use datafusion::arrow::compute::prep_null_mask_filter;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::record_batch::{RecordBatch, RecordBatchOptions};
use datafusion::common::cast::as_boolean_array;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::Result;
use datafusion::physical_expr::utils::{collect_columns, reassign_expr_columns};
use datafusion::physical_expr::{PhysicalExpr, split_conjunction};

use crate::columns::{Column, Part, schema_of};

/// A condition over some columns.
#[derive(Clone, Debug)]
pub(crate) struct Condition {
    expression: Arc<dyn PhysicalExpr>,
    columns: Vec<Column>,
    schema: SchemaRef,
}

impl Condition {
    fn new(expression: &Arc<dyn PhysicalExpr>) -> Result<Self> {
        let named = collect_columns(expression);
        let columns: Vec<Column> = Column::ALL
            .into_iter()
            .filter(|c| named.iter().any(|n| n.name() == c.name()))
            .collect();
        let schema = schema_of(&columns);
        Ok(Self {
            expression: reassign_expr_columns(Arc::clone(expression), &schema)?,
            columns,
            schema,
        })
    }

    pub(crate) fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// Which of `rows` rows pass, given its columns.
    pub(crate) fn passes(&self, arrays: Vec<ArrayRef>, rows: usize) -> Result<BooleanArray> {
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let batch = RecordBatch::try_new_with_options(self.schema.clone(), arrays, &options)?;
        let found = self.expression.evaluate(&batch)?.into_array(rows)?;
        let found = as_boolean_array(&found)?;
        // Not known means no.
        Ok(match found.null_count() {
            0 => found.clone(),
            _ => prep_null_mask_filter(found),
        })
    }

    /// The part of a chunk that all its columns belong to.
    fn part(&self) -> Part {
        let mut parts = self.columns.iter().map(|c| c.part());
        match parts.next() {
            Some(first) if parts.all(|part| part == first) => first,
            _ => Part::Row,
        }
    }
}

/// All conditions of a query on the table `records`; a row passes if it meets them all.
#[derive(Clone, Debug, Default)]
pub(crate) struct Predicate {
    /// As the engine gave them.
    given: Vec<Arc<dyn PhysicalExpr>>,
    parts: Vec<(Part, Condition)>,
}

impl Predicate {
    pub(crate) fn new(given: Vec<Arc<dyn PhysicalExpr>>) -> Result<Self> {
        let mut parts = Vec::new();
        for expression in given.iter().flat_map(split_conjunction) {
            let condition = Condition::new(expression)?;
            parts.push((condition.part(), condition));
        }
        Ok(Self { given, parts })
    }

    pub(crate) fn given(&self) -> &[Arc<dyn PhysicalExpr>] {
        &self.given
    }

    /// Hands out each, as a node of a plan does, until told to stop.
    pub(crate) fn each_given(
        &self,
        each: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        for expression in &self.given {
            if each(expression)? == TreeNodeRecursion::Stop {
                return Ok(TreeNodeRecursion::Stop);
            }
        }
        Ok(TreeNodeRecursion::Continue)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// The conditions on one part of a chunk.
    pub(crate) fn on(&self, part: Part) -> impl Iterator<Item = &Condition> {
        let its = self.parts.iter().filter(move |(p, _)| *p == part);
        its.map(|(_, condition)| condition)
    }
}
