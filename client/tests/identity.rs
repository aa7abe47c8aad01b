//! Sources that do not belong together are refused, one given twice counts once, and one that is missing is named.

#![allow(clippy::unwrap_used)] // a test may

mod support;

use std::sync::Arc;

use dosmos_client::{Error, Run};
use dosmos_testkit::Memory;
use dosmos_trace::query::TraceSource;
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
