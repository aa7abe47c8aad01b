//! A query over running event managers, each a worker over its own store.
//!
//! The engine divides the plan: each worker scans its store, filters and aggregates what it can, and what has to be put together
//! goes between the workers and to here. One that stops answering ends the query; it is carried out again over the others, and the
//! answer names who is missing. So rows are given out only when all are there.

use std::sync::Arc;
use std::time::Duration;

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{TableReference, plan_err};
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::SessionStateBuilder;
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::prelude::{DataFrame, SessionConfig};
use datafusion_distributed::{
    DesiredTaskCountEvent, DesiredTaskCountEventResponse, DistributedExt, DistributedLeafExec,
    RouteTasksEvent, RouteTasksEventResponse, ScaleUpLeafNodeEvent, ScaleUpLeafNodeEventResponse,
    SessionStateBuilderExt, WorkerResolver,
};
use dosmos_client::Run;
use dosmos_trace::query::TraceSource;
use futures::StreamExt;
use futures::future::{join_all, select_all};
use url::Url;

use crate::channels::{Channels, url_of};
use crate::codec::Codec;
use crate::exec::RecordsExec;
use crate::worker::published_name;

/// A worker that does not say within this time that it is there is taken to be gone.
const DEADLINE: Duration = Duration::from_millis(2500);
/// How often workers are asked while a query goes on.
const ASK_EVERY: Duration = Duration::from_millis(500);

/// The worker beside an event manager.
#[derive(Clone)]
pub(crate) struct Member {
    pub(crate) source: Arc<dyn TraceSource>,
    url: Url,
}

/// The workers of a run, one per event manager.
#[derive(Clone)]
pub(crate) struct Cluster {
    members: Vec<Member>,
    channels: Channels,
}

/// Why there are no rows.
pub(crate) enum Failure {
    /// These stopped answering.
    Gone(Vec<Member>),
    /// The engine refused.
    Engine(DataFusionError),
}

impl Cluster {
    /// The workers of a run: none unless there is one beside each of its event managers, and all answer.
    pub(crate) async fn of(run: &Run) -> Option<Self> {
        let book = run.address_book()?;
        let channels = Channels::new(book.clone());
        let mut members = Vec::new();
        for source in run.members() {
            let outline = source.outline(false).await.ok()?;
            let name = outline.event_managers.first()?;
            let address = book.resolve(&published_name(name))?;
            members.push(Member {
                source: source.clone(),
                url: url_of(&address, name)?,
            });
        }
        let answer = join_all(members.iter().map(|m| channels.answers(&m.url, DEADLINE))).await;
        let all = !members.is_empty() && answer.iter().all(|answers| *answers);
        all.then_some(Self { members, channels })
    }

    pub(crate) fn members(&self) -> &[Member] {
        &self.members
    }

    /// Those of them that are not in `gone`.
    pub(crate) fn without(&self, gone: &[Member]) -> Self {
        let mut left = self.clone();
        left.members.retain(|m| gone.iter().all(|g| g.url != m.url));
        left
    }

    /// A session whose queries are divided among the workers.
    pub(crate) fn session(&self, config: SessionConfig) -> SessionStateBuilder {
        let urls: Vec<Url> = self.members.iter().map(|m| m.url.clone()).collect();
        SessionStateBuilder::new()
            .with_config(config)
            .with_default_features()
            .with_distributed_planner()
            .with_distributed_worker_resolver(Known(urls.clone()))
            .with_distributed_channel_resolver(self.channels.clone())
            .with_distributed_user_codec(Codec::of_coordinator())
            .with_distributed_desired_task_count_handler(one_task_each)
            .with_distributed_scale_up_leaf_node_handler(a_scan_each)
            .with_distributed_route_tasks_handler(move |event: RouteTasksEvent<'_>| {
                to_its_store(&event, &urls)
            })
    }

    /// All rows of a query of such a session.
    pub(crate) async fn rows(
        &self,
        frame: DataFrame,
    ) -> std::result::Result<(SchemaRef, Vec<RecordBatch>), Failure> {
        let all = async {
            let mut stream = frame.execute_stream().await?;
            let schema = stream.schema();
            let mut all = Vec::new();
            while let Some(batch) = stream.next().await {
                all.push(batch?);
            }
            Ok((schema, all))
        };
        let outcome = tokio::select! {
            outcome = all => outcome,
            () = self.one_gone() => Err(DataFusionError::External("a worker is gone".into())),
        };
        match outcome {
            Ok(rows) => Ok(rows),
            Err(error) => Err(self.reason(error).await),
        }
    }

    /// Ends when one of the workers does not answer any more.
    async fn one_gone(&self) {
        let watch = |member: &Member| {
            let (channels, url) = (self.channels.clone(), member.url.clone());
            Box::pin(async move {
                loop {
                    tokio::time::sleep(ASK_EVERY).await;
                    if !channels.answers(&url, DEADLINE).await {
                        return;
                    }
                }
            })
        };
        let watched: Vec<_> = self.members.iter().map(watch).collect();
        if watched.is_empty() {
            std::future::pending::<()>().await;
        }
        select_all(watched).await;
    }

    /// Who is gone; if nobody is, it was the engine.
    async fn reason(&self, error: DataFusionError) -> Failure {
        let answers = self
            .members
            .iter()
            .map(|m| self.channels.answers(&m.url, DEADLINE));
        let answers = join_all(answers).await;
        let gone = self
            .members
            .iter()
            .zip(answers)
            .filter(|(_, answers)| !answers);
        let gone: Vec<Member> = gone.map(|(member, _)| member.clone()).collect();
        match gone.is_empty() {
            true => Failure::Engine(error),
            false => Failure::Gone(gone),
        }
    }
}

/// Whether a plan reads records and nothing else: the small tables are worked out here.
pub(crate) fn only_records(plan: &LogicalPlan) -> bool {
    let mut scans = 0;
    let mut others = 0;
    let walked = plan.apply_with_subqueries(|node| {
        match node {
            LogicalPlan::TableScan(scan) => {
                let records = TableReference::bare("records");
                scans += 1;
                others += usize::from(scan.table_name.table() != records.table());
            }
            LogicalPlan::Explain(_) | LogicalPlan::Analyze(_) => others += 1,
            _ => {}
        }
        Ok(TreeNodeRecursion::Continue)
    });
    walked.is_ok() && scans > 0 && others == 0
}

struct Known(Vec<Url>);

impl WorkerResolver for Known {
    fn get_urls(&self) -> Result<Vec<Url>> {
        Ok(self.0.clone())
    }
}

fn one_task_each(
    event: DesiredTaskCountEvent<'_>,
) -> Option<Result<DesiredTaskCountEventResponse>> {
    let workers = event.plan.downcast_ref::<RecordsExec>()?.workers()?;
    Some(Ok(DesiredTaskCountEventResponse::desired(workers.number)))
}

fn a_scan_each(event: ScaleUpLeafNodeEvent<'_>) -> Option<Result<ScaleUpLeafNodeEventResponse>> {
    let scan = event.plan.downcast_ref::<RecordsExec>()?;
    let workers = scan.workers()?;
    if event.task_count != workers.number {
        return Some(plan_err!(
            "{} tasks for {} event managers",
            event.task_count,
            workers.number
        ));
    }
    let partitions = event.session_config.target_partitions();
    let variant =
        || -> Arc<dyn ExecutionPlan> { Arc::new(scan.for_worker(workers.zero, partitions)) };
    let leaf = DistributedLeafExec::try_new(
        Arc::clone(event.plan),
        (0..workers.number).map(|_| variant()),
    );
    Some(leaf.map(|leaf| ScaleUpLeafNodeEventResponse::new(Arc::new(leaf))))
}

/// A stage that scans runs its tasks where the stores are.
fn to_its_store(
    event: &RouteTasksEvent<'_>,
    urls: &[Url],
) -> Option<Result<RouteTasksEventResponse>> {
    let mut scans = false;
    let walked = event.plan.apply(|node| {
        if let Some(leaf) = node.downcast_ref::<DistributedLeafExec>() {
            scans |= leaf.original().downcast_ref::<RecordsExec>().is_some();
        }
        Ok(TreeNodeRecursion::Continue)
    });
    if let Err(e) = walked {
        return Some(Err(e));
    }
    (scans && event.task_count == urls.len())
        .then(|| Ok(RouteTasksEventResponse::new(urls.to_vec())))
}
