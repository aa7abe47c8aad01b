//! The table `records`: one row per record.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::DFSchema;
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_plan::ExecutionPlan;

use crate::columns::{Column, schema_of};
use crate::exec::{RecordsExec, Workers};
use crate::predicate::Predicate;
use crate::source::{Silent, Source};

/// Records of some sources.
pub(crate) struct RecordsTable {
    sources: Vec<Source>,
    silent: Silent,
    schema: SchemaRef,
    pushdown: bool,
    workers: Option<Workers>,
}

impl RecordsTable {
    pub(crate) fn new(sources: Vec<Source>, silent: Silent) -> Self {
        Self {
            sources,
            silent,
            schema: schema_of(&Column::ALL),
            pushdown: true,
            workers: None,
        }
    }

    /// The same, which workers can scan instead.
    #[must_use]
    pub(crate) fn of_workers(mut self, workers: Workers) -> Self {
        self.workers = Some(workers);
        self
    }

    /// The same, but the engine works all conditions out itself, on rows: what the scan is compared with.
    #[must_use]
    pub(crate) fn without_pushdown(mut self) -> Self {
        self.pushdown = false;
        self
    }
}

impl fmt::Debug for RecordsTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecordsTable")
            .field("sources", &self.sources.len())
            .finish()
    }
}

#[async_trait]
impl TableProvider for RecordsTable {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn supports_filters_pushdown(
        &self,
        filters: &[&Expr],
    ) -> Result<Vec<TableProviderFilterPushDown>> {
        let support = |filter: &&Expr| match self.pushdown && !filter.is_volatile() {
            true => TableProviderFilterPushDown::Exact,
            false => TableProviderFilterPushDown::Unsupported,
        };
        Ok(filters.iter().map(support).collect())
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let columns = match projection {
            Some(places) => places
                .iter()
                .filter_map(|i| Column::ALL.get(*i))
                .copied()
                .collect(),
            None => Column::ALL.to_vec(),
        };
        let schema = DFSchema::try_from(self.schema.as_ref().clone())?;
        let conditions = filters
            .iter()
            .map(|filter| state.create_physical_expr(filter.clone(), &schema))
            .collect::<Result<_>>()?;
        let scan = RecordsExec::new(
            &self.sources,
            &self.silent,
            columns,
            Predicate::new(conditions)?,
            limit,
            state.config().target_partitions(),
        );
        Ok(Arc::new(match self.workers {
            Some(workers) => scan.of_workers(workers),
            None => scan,
        }))
    }
}
