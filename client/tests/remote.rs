//! Event managers asked over real sockets: what they say, and what happens when they do not.

#![allow(clippy::unwrap_used)] // helpers of tests, too

mod support;

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use dosmos_client::{Fused, RemoteSource, Run, Target};
use dosmos_proto::AddressBook;
use dosmos_proto::transport::{Address, Listener, server};
use dosmos_proto::wire::event_manager_server::{EventManager, EventManagerServer};
use dosmos_proto::{Token, VarId, wire};
use dosmos_testkit::Memory;
use dosmos_trace::query::{
    Filter, HistogramQuery, HistoryQuery, MetaQuery, QueryError, TraceSource,
};
use dosmos_trace::wire as convert;
use tokio::sync::oneshot;
use tokio_stream::Stream;
use tonic::{Request, Response, Status, Streaming};

/// The query half of an event manager, over records in memory.
struct Manager {
    source: Memory,
    /// Says nothing, ever.
    mute: bool,
}

type Reply<T> = Result<Response<T>, Status>;
type Stream_<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

fn refuse(error: QueryError) -> Status {
    match error {
        QueryError::BadQuery(why) => Status::invalid_argument(why),
        other => Status::unavailable(other.to_string()),
    }
}

#[tonic::async_trait]
impl EventManager for Manager {
    type IngestStream = Stream_<wire::IngestReply>;
    type ExchangeStream = Stream_<wire::ExchangeReply>;
    type GetRecordsStream = Stream_<wire::RecordsPart>;

    async fn ingest(
        &self,
        _: Request<Streaming<wire::IngestRequest>>,
    ) -> Reply<Self::IngestStream> {
        Err(Status::unimplemented("not here"))
    }
    async fn exchange(
        &self,
        _: Request<Streaming<wire::ExchangeRequest>>,
    ) -> Reply<Self::ExchangeStream> {
        Err(Status::unimplemented("not here"))
    }
    async fn get_catalog(&self, _: Request<wire::CatalogRequest>) -> Reply<wire::Catalog> {
        if self.mute {
            std::future::pending::<()>().await;
        }
        let catalog = self.source.catalog().await.map_err(refuse)?;
        Ok(Response::new(catalog.into()))
    }
    async fn get_meta_objects(&self, r: Request<wire::MetaRequest>) -> Reply<wire::MetaObjects> {
        let query = MetaQuery::from(r.into_inner());
        let metas = self.source.meta_objects(&query).await.map_err(refuse)?;
        Ok(Response::new(metas.into()))
    }
    async fn rank_variables(&self, r: Request<wire::RankRequest>) -> Reply<wire::Ranking> {
        let query = r.into_inner().into();
        let ranking = self.source.rank(&query).await.map_err(refuse)?;
        Ok(Response::new(ranking.into()))
    }
    async fn describe_variables(
        &self,
        r: Request<wire::DescribeRequest>,
    ) -> Reply<wire::VariableTable> {
        let wanted: Vec<_> = r.into_inner().variables.into_iter().map(VarId).collect();
        let table = self.source.describe(&wanted).await.map_err(refuse)?;
        Ok(Response::new(table.into()))
    }
    async fn set_selection(
        &self,
        _: Request<wire::SelectionRequest>,
    ) -> Reply<wire::SelectionReply> {
        Ok(Response::new(wire::SelectionReply { told: 3, absent: 0 }))
    }
    async fn get_histogram(&self, r: Request<wire::HistogramRequest>) -> Reply<wire::Histogram> {
        let query = HistogramQuery::try_from(r.into_inner())?;
        let histogram = self.source.histogram(&query).await.map_err(refuse)?;
        Ok(Response::new(histogram.into()))
    }
    async fn get_history(&self, r: Request<wire::HistoryRequest>) -> Reply<wire::History> {
        let query = HistoryQuery::try_from(r.into_inner())?;
        let history = self.source.history(&query).await.map_err(refuse)?;
        Ok(Response::new(history.into()))
    }
    async fn get_status(&self, _: Request<wire::StatusRequest>) -> Reply<wire::Status> {
        let mut status = self.source.status.clone();
        Ok(Response::new(status.event_managers.remove(0).into()))
    }
    async fn get_breakdown(&self, _: Request<wire::BreakdownRequest>) -> Reply<wire::Breakdown> {
        Ok(Response::new(wire::Breakdown::default()))
    }
    async fn get_records(&self, r: Request<wire::RecordsRequest>) -> Reply<Self::GetRecordsStream> {
        let r = r.into_inner();
        let filter = Filter::try_from(r.filter.unwrap_or_default())?;
        let records = self
            .source
            .records(&filter, r.limit)
            .await
            .map_err(refuse)?;
        let mut batches: Vec<_> = records
            .chunks(100)
            .map(|c| {
                Ok(wire::RecordsPart {
                    records: Some(convert::encode(c)),
                    completeness: None,
                })
            })
            .collect();
        batches.push(Ok(wire::RecordsPart {
            records: None,
            completeness: Some(records.completeness.into()),
        }));
        Ok(Response::new(Box::pin(tokio_stream::iter(batches))))
    }
    async fn flush(&self, _: Request<wire::FlushRequest>) -> Reply<wire::FlushDoneReply> {
        Ok(Response::new(wire::FlushDoneReply {}))
    }
}

/// The token of the run.
fn token() -> Token {
    "0123456789abcdef0123456789abcdef".parse().unwrap()
}

/// A running event manager on a thread with a runtime of its own, so that its connections end with
/// it, as those of a process do.
struct Running {
    address: Address,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Running {
    async fn start(source: Memory, mute: bool, address: &str) -> Self {
        let address: Address = address.parse().unwrap();
        let (stop, stopped) = oneshot::channel::<()>();
        let (bound_there, bound) = oneshot::channel();
        let service = EventManagerServer::new(Manager { source, mute });
        let serve = async move {
            let listener = Listener::bind(&address).await.unwrap();
            bound_there.send(listener.address().clone()).unwrap();
            let serving = server(token())
                .add_service(service)
                .serve_with_incoming(listener);
            tokio::select! {
                _ = serving => {}
                _ = stopped => {}
            }
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let thread = std::thread::spawn(move || runtime.block_on(serve));
        Self {
            address: bound.await.unwrap(),
            stop: Some(stop),
            thread: Some(thread),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.stop.take());
        let ended = self.thread.take().map(std::thread::JoinHandle::join);
        assert!(matches!(ended, Some(Ok(()))));
    }
}

fn parts() -> Vec<Memory> {
    let all = support::records(5);
    let now = dosmos_proto::Nanos(support::START + 50_000_000);
    let status = support::status(&all, now);
    let mut parts = support::split(&all);
    for (part, manager) in parts.iter_mut().zip(status.event_managers) {
        part.status.event_managers = vec![manager];
    }
    parts
}

const SOON: Duration = Duration::from_millis(300);

#[tokio::test]
async fn over_the_network_the_answers_are_the_same() {
    let mut near: Vec<Arc<dyn TraceSource>> = Vec::new();
    let mut far: Vec<Arc<dyn TraceSource>> = Vec::new();
    let mut running = Vec::new();
    for part in parts() {
        let manager = Running::start(part.clone(), false, "127.0.0.1:0").await;
        far.push(Arc::new(RemoteSource::connect(
            manager.address.clone(),
            Some(token()),
        )));
        near.push(Arc::new(part));
        running.push(manager);
    }
    let (near, far) = (Fused::new(near), Fused::new(far));
    assert_eq!(near.catalog().await.unwrap(), far.catalog().await.unwrap());
    assert_eq!(near.status().await.unwrap(), far.status().await.unwrap());
    let query = MetaQuery::default();
    assert_eq!(
        near.meta_objects(&query).await.unwrap(),
        far.meta_objects(&query).await.unwrap()
    );
    let filter = Filter::default();
    let query = HistogramQuery {
        filter: filter.clone(),
        buckets: 40,
    };
    assert_eq!(
        near.histogram(&query).await.unwrap(),
        far.histogram(&query).await.unwrap()
    );
    let query = HistoryQuery {
        filter: filter.clone(),
        max_points: 500,
    };
    assert_eq!(
        near.history(&query).await.unwrap(),
        far.history(&query).await.unwrap()
    );
    assert_eq!(
        near.records(&filter, 0).await.unwrap(),
        far.records(&filter, 0).await.unwrap()
    );
    assert!(far.name().contains("emp0 at 127.0.0.1:"), "{}", far.name());
}

#[tokio::test]
async fn one_that_ended_is_missing_and_heard_again_when_it_is_back() {
    let directory = dosmos_testseeds::scratch();
    let place = format!("unix:{}", directory.path().join("emp1").display());
    let mut parts = parts();
    let first = Running::start(parts[0].clone(), false, "127.0.0.1:0").await;
    let second = Running::start(parts[1].clone(), false, &place).await;
    let sources: Vec<Arc<dyn TraceSource>> = vec![
        Arc::new(RemoteSource::connect(first.address.clone(), Some(token()))),
        Arc::new(RemoteSource::connect(second.address.clone(), Some(token()))),
    ];
    let fused = Fused::new(sources);
    let whole = fused.catalog().await.unwrap();
    assert!(whole.completeness.is_complete());
    drop(second);
    let half = fused.catalog().await.unwrap();
    assert_eq!(half.completeness.missing, [format!("emp1 at {place}")]);
    assert!(half.records < whole.records);
    let _second = Running::start(parts.remove(1), false, &place).await;
    assert_eq!(fused.catalog().await.unwrap(), whole);
}

#[tokio::test]
async fn one_restarted_elsewhere_is_found_through_the_book() {
    let directory = dosmos_testseeds::scratch();
    let book = AddressBook::new(Default::default(), Some(directory.path()));
    std::fs::write(directory.path().join("token"), token().reveal()).unwrap();
    let source = RemoteSource::named("emp0", book.clone());
    let error = source.catalog().await.unwrap_err().to_string();
    assert!(
        error.contains("emp0") && error.contains("address"),
        "{error}"
    );
    for _ in 0..2 {
        let manager = Running::start(parts().remove(0), false, "127.0.0.1:0").await;
        book.publish("emp0", &manager.address).unwrap();
        assert_eq!(source.catalog().await.unwrap().event_managers, ["emp0"]);
        drop(manager);
    }
}

#[tokio::test]
async fn silence_ends_by_the_deadline_and_names_the_address() {
    let manager = Running::start(parts().remove(0), true, "127.0.0.1:0").await;
    let address = manager.address.to_string();
    let hurried = RemoteSource::connect(manager.address.clone(), Some(token())).with_deadline(SOON);
    let error = hurried.catalog().await.unwrap_err().to_string();
    assert!(
        error.contains(&address) && error.contains("300ms"),
        "{error}"
    );
    // What it does answer still comes.
    let source = RemoteSource::connect(manager.address.clone(), Some(token()));
    assert_eq!(source.status().await.unwrap().event_managers.len(), 1);
    drop(manager);
    let error = source.catalog().await.unwrap_err().to_string();
    assert!(
        error.contains(&address) && error.contains("refused"),
        "{error}"
    );
}

#[tokio::test]
async fn a_bad_question_is_refused_as_one() {
    let manager = Running::start(parts().remove(0), false, "127.0.0.1:0").await;
    let source = RemoteSource::connect(manager.address.clone(), Some(token()));
    let query = HistoryQuery {
        filter: Filter::default(),
        max_points: 0,
    };
    let error = source.history(&query).await.unwrap_err();
    assert!(matches!(error, QueryError::BadQuery(_)), "{error}");
}

#[tokio::test]
async fn one_that_begins_after_its_run_was_opened_is_asked_too() {
    let directory = dosmos_testseeds::scratch();
    let run_dir = directory.path();
    let book = AddressBook::new(Default::default(), Some(run_dir));
    std::fs::write(run_dir.join("token"), "0123456789abcdef0123456789abcdef\n").unwrap();
    let parts = parts();
    let begin = |at: usize, name: &'static str| {
        let (part, book) = (parts[at].clone(), book.clone());
        async move {
            let manager = Running::start(part, false, "127.0.0.1:0").await;
            std::fs::create_dir_all(run_dir.join("store").join(name)).unwrap();
            book.publish(name, &manager.address).unwrap();
            manager
        }
    };
    let _first = begin(1, "emp1").await;
    let run = Run::open(&Target::run(run_dir)).await.unwrap();
    let lacking = run.source().catalog().await.unwrap().completeness;
    assert!(!lacking.is_complete());
    assert_eq!(lacking.missing_stores, ["emp0"], "nobody speaks for it");
    let _second = begin(0, "emp0").await;
    let whole = run.source().catalog().await.unwrap().completeness;
    assert!(whole.is_complete(), "{whole:?}");
}
