//! Findings on recorded runs of the pathologies and their cures (`testkit/recorded`), with the thresholds that users have:
//! each sick program shows what is wrong with it, and its cure does not.
#![allow(clippy::unwrap_used)] // a test may

use std::ops::ControlFlow;

use dosmos_analysis::{Analysis, Finding, Kind, Thresholds};
use dosmos_client::{Run, Target};
use dosmos_interchange::jsonl::{self, BadLines};
use dosmos_model::inputs::NetworkRecord;
use dosmos_testkit::recorded;

/// What is found in the recorded run of this name.
fn findings(name: &str) -> Vec<Finding> {
    analysis(name).findings
}

fn analysis(name: &str) -> Analysis {
    let dir = dosmos_testseeds::scratch();
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

/// The critical path of a real run is as long as its parts.
fn path_is_whole(analysis: &Analysis) {
    let path = analysis.critical_path.as_ref().unwrap();
    let sum: u64 = path.parts.iter().map(|p| p.time_ns).sum();
    assert!(path.complete && sum == path.length_ns, "{path:#?}");
    assert!(analysis.delays.iter().all(|d| d.share <= 1.0));
}

#[test]
fn of_an_imbalance_the_critical_path_is_the_slow_process_that_others_wait_for() {
    let sick = analysis("imbalance-sick");
    path_is_whole(&sick);
    let path = &sick.critical_path.as_ref().unwrap().parts[0];
    assert!(path.doing == "computing" && path.share > 0.9, "{path:#?}");
    let delay = &sick.delays[0];
    assert_eq!((delay.at, delay.because), ("barrier", "computing"));
    assert_eq!((&delay.process, delay.waiting.len()), (&path.process, 3));
    assert!(delay.share > 0.5 && delay.path_share.unwrap() > 0.9);
    let cured = analysis("imbalance-cured");
    path_is_whole(&cured);
    assert!(cured.delays.iter().all(|d| d.share < 0.1));
}

#[test]
fn of_a_bottleneck_every_holder_is_waited_for() {
    let sick = analysis("bottleneck-sick");
    path_is_whole(&sick);
    let at_lock = |analysis: &Analysis| -> Vec<(String, f64)> {
        let delays = analysis.delays.iter().filter(|d| d.at == "lock");
        delays.map(|d| (d.of.clone(), d.share)).collect()
    };
    let locks = at_lock(&sick);
    assert!(locks.len() >= 4, "{:#?}", sick.delays);
    assert!(locks.iter().all(|(of, _)| of == "counter[0]"), "{locks:?}");
    assert!(locks.iter().map(|(_, share)| share).sum::<f64>() > 0.5);
    let cured = analysis("bottleneck-cured");
    path_is_whole(&cured);
    assert!(at_lock(&cured).is_empty());
}
