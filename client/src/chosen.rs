//! A source behind which another one answers, chosen at each question.

use std::sync::Arc;

use async_trait::async_trait;
use dosmos_proto::VarId;
use dosmos_trace::query::table::{RankQuery, Ranking, Table, TableQuery, VariableTable};
use dosmos_trace::query::{
    Breakdown, Catalog, Filter, Histogram, HistogramQuery, History, HistoryQuery, MetaObjects,
    MetaQuery, QueryError, Records, Status, TraceSource,
};
use dosmos_trace::selection::Selection;

/// Chooses who answers.
#[async_trait]
pub(crate) trait Choice: Send + Sync + 'static {
    /// What to call it in messages.
    fn name(&self) -> String;
    /// Who answers now; an error if nobody may.
    async fn source(&self) -> Result<Arc<dyn TraceSource>, QueryError>;
    /// Who answers instead of one that could not, if anybody does.
    async fn instead(&self, failure: QueryError) -> Result<Arc<dyn TraceSource>, QueryError>;
    /// Bytes received over a network so far.
    fn received_bytes(&self) -> u64;
}

/// A source that lets its choice answer.
pub(crate) struct Chosen<C>(pub(crate) C);

macro_rules! ask {
    ($self:ident, $question:ident($($about:expr),*)) => {{
        let source = $self.0.source().await?;
        match source.$question($($about),*).await {
            Err(failure @ QueryError::Unavailable { .. }) => {
                $self.0.instead(failure).await?.$question($($about),*).await
            }
            answered => answered,
        }
    }};
}

#[async_trait]
impl<C: Choice> TraceSource for Chosen<C> {
    fn name(&self) -> String {
        self.0.name()
    }
    async fn catalog(&self) -> Result<Catalog, QueryError> {
        ask!(self, catalog())
    }
    async fn meta_objects(&self, query: &MetaQuery) -> Result<MetaObjects, QueryError> {
        ask!(self, meta_objects(query))
    }
    async fn histogram(&self, query: &HistogramQuery) -> Result<Histogram, QueryError> {
        ask!(self, histogram(query))
    }
    async fn history(&self, query: &HistoryQuery) -> Result<History, QueryError> {
        ask!(self, history(query))
    }
    async fn records(&self, filter: &Filter, limit: u64) -> Result<Records, QueryError> {
        ask!(self, records(filter, limit))
    }
    async fn breakdown(&self) -> Result<Breakdown, QueryError> {
        ask!(self, breakdown())
    }
    async fn status(&self) -> Result<Status, QueryError> {
        ask!(self, status())
    }
    async fn outline(&self, topology: bool) -> Result<Catalog, QueryError> {
        ask!(self, outline(topology))
    }
    async fn rank(&self, query: &RankQuery) -> Result<Ranking, QueryError> {
        ask!(self, rank(query))
    }
    async fn describe(&self, variables: &[VarId]) -> Result<VariableTable, QueryError> {
        ask!(self, describe(variables))
    }
    async fn table(&self, query: &TableQuery) -> Result<Table, QueryError> {
        ask!(self, table(query))
    }
    async fn select(&self, selection: &Selection) -> Result<u32, QueryError> {
        ask!(self, select(selection))
    }
    fn received_bytes(&self) -> u64 {
        self.0.received_bytes()
    }
}
