//! The gRPC service: questions are answered over what is on disk, after everything received so far
//! has been put there.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use dosmos_proto::wire::catalog_request::Detail;
use dosmos_proto::wire::event_manager_server::EventManager;
use dosmos_proto::{Malformed, Topology, VarId, wire};
use dosmos_trace::query::{Filter, HistogramQuery, HistoryQuery, QueryError};
use dosmos_trace::selection::Selection;
use tokio::sync::mpsc;
use tokio_stream::wrappers::UnboundedReceiverStream;
use tokio_stream::{Stream, StreamExt};
use tonic::{Request, Response, Status, Streaming};

use super::state::Shared;
use super::{exchange, ingest};

/// Records in one message of an answer.
const RECORDS_A_MESSAGE: usize = 8192;
/// How long a question waits for the disk before it is answered without what is pending.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(2);

/// How long `Flush` waits for other event managers.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(5);

pub(super) struct Service(pub(super) Arc<Shared>);

type Answers<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

impl Service {
    /// A store in trouble, or slow, leaves out what it could not write; the answer says so.
    async fn settle(&self) {
        let _ = tokio::time::timeout(FLUSH_TIMEOUT, self.0.flush()).await;
    }
}

fn refused(error: QueryError) -> Status {
    match error {
        QueryError::BadQuery(why) => Status::invalid_argument(why),
        other => Status::unavailable(other.to_string()),
    }
}

#[tonic::async_trait]
impl EventManager for Service {
    type IngestStream = Answers<wire::IngestReply>;
    type ExchangeStream = Answers<wire::ExchangeReply>;
    type GetRecordsStream = Answers<wire::RecordsPart>;

    async fn ingest(
        &self,
        request: Request<Streaming<wire::IngestRequest>>,
    ) -> Result<Response<Self::IngestStream>, Status> {
        let (send, replies) = mpsc::unbounded_channel();
        let shared = self.0.clone();
        tokio::spawn(async move {
            let stream = ingest::serve(shared.clone(), request.into_inner(), send);
            shared.until_ended(stream).await;
        });
        Ok(Response::new(Box::pin(UnboundedReceiverStream::new(
            replies,
        ))))
    }

    async fn exchange(
        &self,
        request: Request<Streaming<wire::ExchangeRequest>>,
    ) -> Result<Response<Self::ExchangeStream>, Status> {
        let (send, replies) = mpsc::unbounded_channel();
        let shared = self.0.clone();
        tokio::spawn(async move {
            let stream = exchange::take(shared.clone(), request.into_inner(), send);
            shared.until_ended(stream).await;
        });
        Ok(Response::new(Box::pin(UnboundedReceiverStream::new(
            replies,
        ))))
    }

    async fn get_catalog(
        &self,
        request: Request<wire::CatalogRequest>,
    ) -> Result<Response<wire::Catalog>, Status> {
        let detail = request.into_inner().detail();
        self.settle().await;
        let mut catalog = match detail {
            Detail::All => self.0.view.catalog(),
            Detail::NoVariables | Detail::Growing => self.0.view.outline(),
        };
        if detail == Detail::Growing {
            catalog.topology = Topology::default();
        }
        catalog.completeness = self.0.completeness();
        Ok(Response::new(catalog.into()))
    }

    async fn get_meta_objects(
        &self,
        request: Request<wire::MetaRequest>,
    ) -> Result<Response<wire::MetaObjects>, Status> {
        self.settle().await;
        let metas = self.0.meta_objects(&request.into_inner().into());
        Ok(Response::new(metas.into()))
    }

    async fn rank_variables(
        &self,
        request: Request<wire::RankRequest>,
    ) -> Result<Response<wire::Ranking>, Status> {
        let query = request.into_inner().into();
        let ranking = self.0.rank(&query).map_err(refused)?;
        Ok(Response::new(ranking.into()))
    }

    async fn describe_variables(
        &self,
        request: Request<wire::DescribeRequest>,
    ) -> Result<Response<wire::VariableTable>, Status> {
        let wanted = request.into_inner().variables.into_iter();
        let wanted = wanted.map(VarId).collect();
        Ok(Response::new(self.0.describe(&wanted).into()))
    }

    async fn set_selection(
        &self,
        request: Request<wire::SelectionRequest>,
    ) -> Result<Response<wire::SelectionReply>, Status> {
        let selection = request.into_inner().selection.unwrap_or_default();
        let selection = Selection::try_from(selection).map_err(|e: Malformed| Status::from(e))?;
        tracing::info!("told to record {selection:?}");
        let (told, absent) = self.0.select(selection);
        Ok(Response::new(wire::SelectionReply { told, absent }))
    }

    async fn get_histogram(
        &self,
        request: Request<wire::HistogramRequest>,
    ) -> Result<Response<wire::Histogram>, Status> {
        let query = HistogramQuery::try_from(request.into_inner())?;
        self.settle().await;
        let mut histogram = self.0.view.histogram(&query).map_err(refused)?;
        histogram.completeness = self.0.completeness();
        Ok(Response::new(histogram.into()))
    }

    async fn get_history(
        &self,
        request: Request<wire::HistoryRequest>,
    ) -> Result<Response<wire::History>, Status> {
        let query = HistoryQuery::try_from(request.into_inner())?;
        self.settle().await;
        let mut history = self.0.view.history(&query).map_err(refused)?;
        history.completeness = self.0.completeness();
        Ok(Response::new(history.into()))
    }

    async fn get_status(
        &self,
        _: Request<wire::StatusRequest>,
    ) -> Result<Response<wire::Status>, Status> {
        Ok(Response::new(self.0.status().into()))
    }

    async fn get_breakdown(
        &self,
        _: Request<wire::BreakdownRequest>,
    ) -> Result<Response<wire::Breakdown>, Status> {
        self.settle().await;
        let mut breakdown = self.0.view.breakdown();
        breakdown.completeness = self.0.completeness();
        Ok(Response::new(breakdown.into()))
    }

    async fn get_records(
        &self,
        request: Request<wire::RecordsRequest>,
    ) -> Result<Response<Self::GetRecordsStream>, Status> {
        let request = request.into_inner();
        let filter = request.filter.unwrap_or_default();
        let filter = Filter::try_from(filter).map_err(|e: Malformed| Status::from(e))?;
        self.settle().await;
        let records = self.0.view.records(&filter, request.limit);
        let lacking = wire::RecordsPart {
            records: None,
            completeness: Some(self.0.completeness().into()),
        };
        // Encoded as they are sent, not all at once.
        let parts = records.len().div_ceil(RECORDS_A_MESSAGE);
        let part = move |i: usize| {
            let from = i * RECORDS_A_MESSAGE;
            let to = records.len().min(from + RECORDS_A_MESSAGE);
            wire::RecordsPart {
                records: Some(dosmos_trace::wire::encode(&records[from..to])),
                completeness: None,
            }
        };
        let parts = (0..parts).map(part).chain([lacking]);
        Ok(Response::new(Box::pin(tokio_stream::iter(parts).map(Ok))))
    }

    async fn flush(
        &self,
        _: Request<wire::FlushRequest>,
    ) -> Result<Response<wire::FlushDoneReply>, Status> {
        self.0
            .settle(SETTLE_TIMEOUT)
            .await
            .map_err(Status::unavailable)?;
        Ok(Response::new(wire::FlushDoneReply {}))
    }
}
