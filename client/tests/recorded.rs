//! Findings on recorded runs of the pathologies and their cures (`testkit/recorded`), with the thresholds that users have:
//! each sick program shows what is wrong with it, and its cure does not.
#![allow(clippy::unwrap_used)] // a test may

use std::ops::ControlFlow;

use dosmos_analysis::{Finding, Kind, Thresholds};
use dosmos_client::{Run, Target};
use dosmos_interchange::jsonl::{self, BadLines};
use dosmos_model::inputs::NetworkRecord;
use dosmos_testkit::recorded;

/// What is found in the recorded run of this name.
fn findings(name: &str) -> Vec<Finding> {
    let dir = tempfile::tempdir().unwrap();
    let store = dir.path().join("store");
    let text = recorded::jsonl(name).unwrap();
    let go_on = |_| ControlFlow::Continue(());
    jsonl::import(&text[..], &store, BadLines::Refuse, go_on).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    runtime.block_on(async {
        let target = Target {
            stores: vec![store],
            ..Target::default()
        };
        let run = Run::open(&target).await.unwrap();
        // Not of this machine: what is projected is the same everywhere.
        let network = NetworkRecord {
            processors: 2,
            ..NetworkRecord::typical()
        };
        let thresholds = Thresholds::default();
        run.analyse(None, &thresholds, network)
            .await
            .unwrap()
            .analysis
            .findings
    })
}

/// The sick run has this finding, whole and with advice; the cured one has none of this kind.
fn check(kind: Kind, variable: Option<&str>) {
    let sick = findings(&format!("{}-sick", kind.name()));
    let cured = findings(&format!("{}-cured", kind.name()));
    let found = sick.iter().find(|f| f.kind == kind);
    let found = found.unwrap_or_else(|| panic!("{} is not found: {sick:#?}", kind.name()));
    assert_eq!(found.variable.as_deref(), variable);
    assert_eq!(found.completeness, 1.0);
    assert!(!found.advice.is_empty() && found.lost_ns > 0, "{found:#?}");
    assert!(cured.iter().all(|f| f.kind != kind), "{cured:#?}");
}

#[test]
fn bottleneck() {
    check(Kind::Bottleneck, Some("counter"));
}

#[test]
fn ping_pong() {
    check(Kind::PingPong, Some("ball"));
}

#[test]
fn no_sharing() {
    check(Kind::NoSharing, Some("scratch"));
}

#[test]
fn policy_mismatch() {
    check(Kind::PolicyMismatch, Some("rows"));
}

#[test]
fn false_sharing() {
    check(Kind::FalseSharing, Some("counts"));
}

#[test]
fn bad_group() {
    check(Kind::BadGroup, None);
}

#[test]
fn misplaced_owner() {
    check(Kind::MisplacedOwner, Some("array"));
}

#[test]
fn imbalance() {
    check(Kind::Imbalance, None);
}

#[test]
fn deadlock() {
    check(Kind::Deadlock, Some("locks"));
}
