//! The questions a visualization process asks, and their answers.
//!
//! [`TraceSource`] is answered alike by a live event manager (over gRPC), by a store directory, and by
//! a fusion of many of either; so everything above it works live and post-mortem.

mod breakdown;
mod catalog;
pub mod causality;
mod completeness;
mod error;
mod filter;
pub mod gather;
mod histogram;
mod history;
pub mod page;
mod status;
pub mod table;

pub use breakdown::{Breakdown, ProcessTimes};
pub use catalog::{BarrierName, Catalog, MetaObjects, MetaQuery};
pub use completeness::Completeness;
pub use error::{BadCursor, BadPattern, QueryError, UnknownColumn};
pub use filter::{Filter, TimeRange};
pub use histogram::{Histogram, HistogramQuery, MAX_BUCKETS, OriginCounts};
pub use history::{History, HistoryPoint, HistoryQuery, MAX_POINTS, Records, Several};
pub use status::{ApOrigins, EmpStatus, ProcessStatus, Status};

use std::any::Any;

use async_trait::async_trait;
use dosmos_proto::{Topology, VarId};

use crate::selection::Selection;
use table::{RankQuery, Ranking, Table, TableQuery, VariableTable};

/// Something that answers questions about a trace: a live event manager, a store, or many of them. Being [`Any`], it can be
/// told apart by whoever knows a faster way for one of them.
#[async_trait]
pub trait TraceSource: Any + Send + Sync {
    /// What to call it in messages.
    fn name(&self) -> String;
    /// Processes, variables, extent.
    async fn catalog(&self) -> Result<Catalog, QueryError>;
    /// Meta-objects.
    async fn meta_objects(&self, query: &MetaQuery) -> Result<MetaObjects, QueryError>;
    /// Access counts over time.
    async fn histogram(&self, query: &HistogramQuery) -> Result<Histogram, QueryError>;
    /// What happened.
    async fn history(&self, query: &HistoryQuery) -> Result<History, QueryError>;
    /// Records in order of their start, at most `limit` (0: no limit). [`page::page`] goes on from there.
    async fn records(&self, filter: &Filter, limit: u64) -> Result<Records, QueryError>;
    /// Where the application processes' time went. A source that was never told says nothing.
    async fn breakdown(&self) -> Result<Breakdown, QueryError> {
        Ok(Breakdown::default())
    }
    /// State of the processes.
    async fn status(&self) -> Result<Status, QueryError>;

    /// The catalog without its variables; without the topology either unless `topology`. What is
    /// asked again and again while a program runs.
    async fn outline(&self, topology: bool) -> Result<Catalog, QueryError> {
        let mut catalog = self.catalog().await?;
        catalog.variables.clear();
        if !topology {
            catalog.topology = Topology::default();
        }
        Ok(catalog)
    }

    /// A part of the order of variables.
    async fn rank(&self, query: &RankQuery) -> Result<Ranking, QueryError> {
        let (catalog, metas) = (
            self.catalog().await?,
            self.meta_objects(&MetaQuery::default()).await?,
        );
        table::rank(&catalog, &metas, query)
    }

    /// The figures of some variables, in no particular order; those unknown here are left out.
    async fn describe(&self, variables: &[VarId]) -> Result<VariableTable, QueryError> {
        let query = MetaQuery {
            variables: variables.to_vec(),
            objects: Vec::new(),
        };
        let (catalog, metas) = (self.catalog().await?, self.meta_objects(&query).await?);
        Ok(table::describe(&catalog, &metas, variables))
    }

    /// A page of the table of variables.
    async fn table(&self, query: &TableQuery) -> Result<Table, QueryError> {
        let ranking = self.rank(&query.rank()).await?;
        let wanted: Vec<VarId> = ranking.entries.iter().map(|e| e.variable).collect();
        let described = self.describe(&wanted).await?;
        Ok(table::page(query.offset, &wanted, ranking, described))
    }

    /// Changes what is recorded from now on. Answers how many memory processes were told.
    async fn select(&self, selection: &Selection) -> Result<u32, QueryError> {
        let _ = selection;
        Err(QueryError::BadQuery(format!(
            "{} is a finished run: nothing is recorded any more",
            self.name()
        )))
    }

    /// Bytes of the answers received over a network so far; 0 if none is used.
    fn received_bytes(&self) -> u64 {
        0
    }
}
