//! Sources that do not belong together are refused, one given twice counts once, and one that is missing is named.

#![allow(clippy::unwrap_used)] // a test may

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use dosmos_client::{Error, Run};
use dosmos_testkit::Memory;
use dosmos_trace::query::{
    Catalog, Filter, Histogram, HistogramQuery, History, HistoryQuery, MetaObjects, MetaQuery,
    QueryError, Records, Status, TraceSource,
};
use dosmos_trace::run::RunId;

fn parts(run: u128) -> Vec<Memory> {
    let mut parts = support::split(&support::records(3));
    for part in &mut parts {
        part.catalog.run = Some(RunId::from_bits(run));
    }
    parts
}

async fn open(parts: Vec<Memory>) -> Result<Run, Error> {
    let shared = |p| Arc::new(p) as Arc<dyn TraceSource>;
    Run::together(parts.into_iter().map(shared).collect(), "a run").await
}

#[tokio::test]
async fn stores_of_different_runs_are_refused() {
    let mut mixed = parts(1);
    mixed[1] = parts(2).remove(1);
    let refused = open(mixed).await.err().unwrap();
    assert!(matches!(refused, Error::DifferentRuns { .. }), "{refused}");
    assert!(refused.to_string().contains("emp0 and emp1"), "{refused}");
}

#[tokio::test]
async fn a_store_given_twice_counts_once() {
    let mut twice = parts(1);
    twice.extend(parts(1));
    let (once, twice) = (open(parts(1)).await.unwrap(), open(twice).await.unwrap());
    let records = |run: Run| async move { run.source().catalog().await.unwrap().records };
    let expected = records(once).await;
    assert!(expected > 0);
    assert_eq!(records(twice).await, expected);
}

#[tokio::test]
async fn a_store_that_is_missing_is_named_in_every_answer() {
    let whole = open(parts(1)).await.unwrap();
    let complete = whole.source().catalog().await.unwrap().completeness;
    assert!(complete.is_complete(), "{complete:?}");
    let run = open(parts(1)[..1].to_vec()).await.unwrap();
    let source = run.source();
    let lacking = [
        source.catalog().await.unwrap().completeness,
        source.breakdown().await.unwrap().completeness,
        source.status().await.unwrap().completeness,
        source
            .table(&Default::default())
            .await
            .unwrap()
            .completeness,
        source
            .records(&Default::default(), 1)
            .await
            .unwrap()
            .completeness,
    ];
    for completeness in lacking {
        assert_eq!(completeness.missing_stores, ["emp1"]);
        assert!(!completeness.is_complete());
    }
}

/// A source that answers only when it is told to.
struct Sometimes {
    source: Memory,
    answers: AtomicBool,
}

#[async_trait]
impl TraceSource for Sometimes {
    fn name(&self) -> String {
        self.source.name()
    }
    async fn catalog(&self) -> Result<Catalog, QueryError> {
        match self.answers.load(Ordering::Relaxed) {
            true => self.source.catalog().await,
            false => Err(QueryError::Unavailable {
                source_name: self.name(),
                why: "not now".into(),
            }),
        }
    }
    async fn meta_objects(&self, query: &MetaQuery) -> Result<MetaObjects, QueryError> {
        self.catalog().await?;
        self.source.meta_objects(query).await
    }
    async fn histogram(&self, query: &HistogramQuery) -> Result<Histogram, QueryError> {
        self.catalog().await?;
        self.source.histogram(query).await
    }
    async fn history(&self, query: &HistoryQuery) -> Result<History, QueryError> {
        self.catalog().await?;
        self.source.history(query).await
    }
    async fn records(&self, filter: &Filter, limit: u64) -> Result<Records, QueryError> {
        self.catalog().await?;
        self.source.records(filter, limit).await
    }
    async fn status(&self) -> Result<Status, QueryError> {
        self.catalog().await?;
        self.source.status().await
    }
}

/// The first part, which answers, and the second one, which does not yet.
async fn one_silent(first: Memory, second: Memory) -> (Run, Arc<Sometimes>) {
    let late = Arc::new(Sometimes {
        source: second,
        answers: AtomicBool::new(false),
    });
    let sources: Vec<Arc<dyn TraceSource>> = vec![Arc::new(first), late.clone()];
    (Run::together(sources, "a run").await.unwrap(), late)
}

#[tokio::test]
async fn a_source_that_does_not_answer_at_opening_is_missing_until_it_does() {
    let [first, second]: [Memory; 2] = parts(1).try_into().unwrap();
    let all = first.catalog.records + second.catalog.records;
    let (run, late) = one_silent(first, second).await;
    let lacking = run.source().catalog().await.unwrap().completeness;
    assert_eq!(lacking.missing, ["emp1"]);
    assert_eq!(lacking.missing_stores, ["emp1"], "nobody speaks for it");
    assert!(!lacking.is_complete());
    late.answers.store(true, Ordering::Relaxed);
    let catalog = run.source().catalog().await.unwrap();
    assert!(catalog.completeness.is_complete(), "{catalog:?}");
    assert_eq!(catalog.records, all);
}

#[tokio::test]
async fn a_source_of_another_run_that_answers_late_never_counts() {
    let [first, _]: [Memory; 2] = parts(1).try_into().unwrap();
    let [_, second]: [Memory; 2] = parts(2).try_into().unwrap();
    let alone = first.catalog.records;
    let (run, late) = one_silent(first, second).await;
    late.answers.store(true, Ordering::Relaxed);
    let catalog = run.source().catalog().await.unwrap();
    assert_eq!(catalog.records, alone);
    assert_eq!(catalog.completeness.missing, ["emp1"]);
    let records = run.source().records(&Filter::default(), 0).await.unwrap();
    assert_eq!(records.completeness.missing, ["emp1"]);
}
