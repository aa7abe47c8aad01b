//! The gRPC service: questions are answered over what is on disk, after everything received so far
//! has been put there.

use std::ops::ControlFlow;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use dosmos_proto::guard;
use dosmos_proto::wire::catalog_request::Detail;
use dosmos_proto::wire::event_manager_server::EventManager;
use dosmos_proto::{Malformed, Topology, VarId, wire};
use dosmos_trace::query::{Filter, HistogramQuery, HistoryQuery, QueryError};
use dosmos_trace::selection::Selection;
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio_stream::Stream;
use tokio_stream::wrappers::{ReceiverStream, UnboundedReceiverStream};
use tonic::{Request, Response, Status, Streaming};

use super::state::Shared;
use super::{exchange, ingest};

/// Records in one message of an answer.
const RECORDS_PER_MESSAGE: usize = 8192;
/// How long a question waits for the disk before it is answered without what is pending.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(2);

/// How long `Flush` waits for other event managers.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(5);

/// Questions that read the store at the same time, each on a thread of its own; more wait.
const MOST_QUESTIONS: usize = 4;
/// Streams of records at the same time; more are refused.
const MOST_RECORD_STREAMS: usize = 16;
/// Messages of a stream of records that are encoded before the first is taken.
const PARTS_AHEAD: usize = 2;
/// Streams whose other side has not introduced itself; more are refused. Each has its time for that.
const MOST_STRANGERS: usize = 256;
/// How long a stream of records waits for its reader.
const UNREAD_TIMEOUT: Duration = Duration::from_secs(60);

/// Answers on threads of their own: the thread that takes records never waits for a question.
pub(super) struct Service {
    shared: Arc<Shared>,
    questions: Arc<Semaphore>,
    record_streams: Arc<Semaphore>,
    strangers: Arc<Semaphore>,
}

type Answers<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

impl Service {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self {
            shared,
            questions: Arc::new(Semaphore::new(MOST_QUESTIONS)),
            record_streams: Arc::new(Semaphore::new(MOST_RECORD_STREAMS)),
            strangers: Arc::new(Semaphore::new(MOST_STRANGERS)),
        }
    }

    /// Answers a question about what is on disk, on another thread.
    async fn ask<T: Send + 'static>(
        &self,
        question: impl FnOnce(&Shared) -> T + Send + 'static,
    ) -> Result<T, Status> {
        let ending = |_| Status::unavailable("this event manager is ending");
        let place = Arc::clone(&self.questions).acquire_owned().await;
        let place = place.map_err(ending)?;
        let shared = Arc::clone(&self.shared);
        let answer = tokio::task::spawn_blocking(move || {
            let answer = question(&shared);
            drop(place);
            answer
        });
        let failed = |e| Status::internal(format!("the question could not be answered: {e}"));
        answer.await.map_err(failed)
    }

    /// A place for a stream whose other side has not introduced itself.
    fn stranger(&self) -> Result<OwnedSemaphorePermit, Status> {
        let full = |_| {
            Status::resource_exhausted(
                "too many streams are open whose other side has not introduced itself",
            )
        };
        let place = Arc::clone(&self.strangers).try_acquire_owned();
        place.map_err(full)
    }

    /// A store in trouble, or slow, leaves out what it could not write; the answer says so.
    async fn settle(&self) {
        let _ = tokio::time::timeout(FLUSH_TIMEOUT, self.shared.flush()).await;
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
        let caller = guard::peer(request.extensions())?;
        let stranger = self.stranger()?;
        let (send, replies) = mpsc::unbounded_channel();
        let shared = Arc::clone(&self.shared);
        tokio::spawn(async move {
            let requests = request.into_inner();
            let stream = ingest::serve(shared.clone(), requests, send, stranger, caller);
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
        let caller = guard::peer(request.extensions())?;
        let stranger = self.stranger()?;
        let (send, replies) = mpsc::unbounded_channel();
        let shared = Arc::clone(&self.shared);
        tokio::spawn(async move {
            let requests = request.into_inner();
            let stream = exchange::take(shared.clone(), requests, send, stranger, caller);
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
        let catalog = self
            .ask(move |shared| {
                let mut catalog = match detail {
                    Detail::All => shared.view.catalog(),
                    Detail::NoVariables | Detail::Growing => shared.view.outline(),
                };
                if detail == Detail::Growing {
                    catalog.topology = Topology::default();
                }
                catalog.completeness = shared.completeness();
                catalog
            })
            .await?;
        Ok(Response::new(catalog.into()))
    }

    async fn get_meta_objects(
        &self,
        request: Request<wire::MetaRequest>,
    ) -> Result<Response<wire::MetaObjects>, Status> {
        self.settle().await;
        let query = request.into_inner().into();
        let metas = self.ask(move |shared| shared.meta_objects(&query)).await?;
        Ok(Response::new(metas.into()))
    }

    async fn rank_variables(
        &self,
        request: Request<wire::RankRequest>,
    ) -> Result<Response<wire::Ranking>, Status> {
        let query = request.into_inner().into();
        let ranking = self.ask(move |shared| shared.rank(&query)).await?;
        let ranking = ranking.map_err(refused)?;
        Ok(Response::new(ranking.into()))
    }

    async fn describe_variables(
        &self,
        request: Request<wire::DescribeRequest>,
    ) -> Result<Response<wire::VariableTable>, Status> {
        let wanted = request.into_inner().variables.into_iter();
        let wanted = wanted.map(VarId).collect();
        let table = self.ask(move |shared| shared.describe(&wanted)).await?;
        Ok(Response::new(table.into()))
    }

    async fn set_selection(
        &self,
        request: Request<wire::SelectionRequest>,
    ) -> Result<Response<wire::SelectionReply>, Status> {
        let selection = request.into_inner().selection.unwrap_or_default();
        let selection = Selection::try_from(selection).map_err(|e: Malformed| Status::from(e))?;
        tracing::info!("told to record {selection:?}");
        let (told, absent) = self.shared.select(selection);
        Ok(Response::new(wire::SelectionReply { told, absent }))
    }

    async fn get_histogram(
        &self,
        request: Request<wire::HistogramRequest>,
    ) -> Result<Response<wire::Histogram>, Status> {
        let query = HistogramQuery::try_from(request.into_inner())?;
        self.settle().await;
        let histogram = self
            .ask(move |shared| shared.view.histogram(&query))
            .await?;
        let mut histogram = histogram.map_err(refused)?;
        histogram.completeness = self.shared.completeness();
        Ok(Response::new(histogram.into()))
    }

    async fn get_history(
        &self,
        request: Request<wire::HistoryRequest>,
    ) -> Result<Response<wire::History>, Status> {
        let query = HistoryQuery::try_from(request.into_inner())?;
        self.settle().await;
        let history = self.ask(move |shared| shared.view.history(&query)).await?;
        let mut history = history.map_err(refused)?;
        history.completeness = self.shared.completeness();
        Ok(Response::new(history.into()))
    }

    async fn get_status(
        &self,
        _: Request<wire::StatusRequest>,
    ) -> Result<Response<wire::Status>, Status> {
        Ok(Response::new(self.shared.status().into()))
    }

    async fn get_breakdown(
        &self,
        _: Request<wire::BreakdownRequest>,
    ) -> Result<Response<wire::Breakdown>, Status> {
        self.settle().await;
        let mut breakdown = self.ask(|shared| shared.view.breakdown()).await?;
        breakdown.completeness = self.shared.completeness();
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
        let full = |_| {
            Status::resource_exhausted("too many streams of records are open; read those first")
        };
        let place = Arc::clone(&self.record_streams).try_acquire_owned();
        let place = place.map_err(full)?;
        let (send, parts) = mpsc::channel(PARTS_AHEAD);
        let shared = Arc::clone(&self.shared);
        let runtime = Handle::current();
        tokio::task::spawn_blocking(move || {
            let out = |part| {
                let sent = runtime.block_on(send.send_timeout(Ok(part), UNREAD_TIMEOUT));
                sent.is_ok()
            };
            send_records(&shared, &filter, request.limit, out);
            drop(place);
        });
        Ok(Response::new(Box::pin(ReceiverStream::new(parts))))
    }

    async fn flush(
        &self,
        _: Request<wire::FlushRequest>,
    ) -> Result<Response<wire::FlushDoneReply>, Status> {
        self.shared
            .settle(SETTLE_TIMEOUT)
            .await
            .map_err(Status::unavailable)?;
        Ok(Response::new(wire::FlushDoneReply {}))
    }
}

/// Sends what `filter` matches, at most `limit` records (0: no limit), then what that lacks; gives up when
/// `out` says that nobody reads.
fn send_records(
    shared: &Shared,
    filter: &Filter,
    limit: u64,
    mut out: impl FnMut(wire::RecordsPart) -> bool,
) {
    let mut left = match usize::try_from(limit) {
        Ok(0) | Err(_) => usize::MAX,
        Ok(limit) => limit,
    };
    let mut read = true;
    shared.view.records_in_order(filter, |mut records| {
        records.truncate(left);
        left -= records.len();
        for part in records.chunks(RECORDS_PER_MESSAGE) {
            read = read
                && out(wire::RecordsPart {
                    records: Some(dosmos_trace::wire::encode(part)),
                    completeness: None,
                });
        }
        match read && left > 0 {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        }
    });
    if read {
        out(wire::RecordsPart {
            records: None,
            completeness: Some(shared.completeness().into()),
        });
    }
}
