//! Data races in what `dosmos check` says: of programs in which something that orders accesses was left out, both accesses and
//! what would order them; of others none; and where nobody looked, or records lack, that it is not known.

#![allow(clippy::unwrap_used)] // a test may

use std::sync::Arc;

use dosmos_analysis::{Analysis, Finding, Kind, Level, Thresholds};
use dosmos_client::{Run, network_here};
use dosmos_proto::Nanos;
use dosmos_testkit::Memory;
use dosmos_testkit::labelled::{Labelled, racing};
use dosmos_trace::query::TimeRange;
use dosmos_trace::record::Record;

/// Seeds that nothing was adjusted by.
const SEEDS: std::ops::Range<u64> = 7_700_000..7_700_060;

fn analysed(trace: &Labelled, range: Option<TimeRange>) -> Analysis {
    let source = Memory::new(trace.catalog.clone(), trace.records.clone());
    let run = Run::of(Arc::new(source), "");
    let network = network_here(None).unwrap();
    let thresholds = Thresholds::default();
    let analysed = run.analyse(range, &thresholds, network);
    futures::executor::block_on(analysed).unwrap().analysis
}

fn races(analysis: &Analysis) -> Vec<&Finding> {
    let findings = analysis.findings.iter();
    findings.filter(|f| f.kind == Kind::DataRace).collect()
}

#[test]
fn what_nothing_orders_is_found_and_what_a_lock_or_barrier_orders_is_not() {
    let (mut missed, mut wrong) = (Vec::new(), Vec::new());
    for seed in SEEDS {
        let sick = racing(seed, true);
        let analysis = analysed(&sick, None);
        let found = races(&analysis);
        let named = |f: &&Finding| f.variable.as_ref() == Some(&sick.planted[0].variables[0]);
        if !found.iter().any(named) {
            missed.push(seed);
        }
        wrong.extend(
            found
                .iter()
                .filter(|f| !named(f))
                .map(|f| (seed, f.target())),
        );
        let cured = analysed(&racing(seed, false), None);
        wrong.extend(races(&cured).iter().map(|f| (seed, f.target())));
        for analysis in [&analysis, &cured] {
            assert!(analysis.races.looked, "{seed}");
            assert!(
                analysis.races.undecided.is_empty(),
                "{seed}: {:?}",
                analysis.races
            );
        }
    }
    assert!(
        missed.is_empty() && wrong.is_empty(),
        "missed {missed:?}, wrong {wrong:?}"
    );
}

#[test]
fn a_race_names_both_accesses_and_what_would_order_them_before_all_that_costs_time() {
    let guide = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/guide/findings.md");
    let guide = std::fs::read_to_string(guide).unwrap();
    let mut advice = Vec::new();
    for seed in SEEDS {
        let analysis = analysed(&racing(seed, true), None);
        let race = &analysis.findings[0];
        assert_eq!((race.kind, race.level()), (Kind::DataRace, Level::High));
        assert_eq!(race.aps.len(), 2);
        let said = |key: &str| race.evidence[key].as_str().unwrap().to_owned();
        for (access, other) in [("first_access", 1), ("second_access", 0)] {
            let access = said(access);
            assert!(access.contains("elements "), "{access}");
            assert!(
                race.aps.iter().any(|ap| access.contains(ap)),
                "{access} {other}"
            );
        }
        for key in race.evidence.keys() {
            assert!(
                guide.contains(&format!("`{key}`")),
                "{key} is not in the guide"
            );
        }
        assert!(race.evidence["races"].as_u64() >= Some(1));
        assert!(race.from_ns < race.to_ns && race.patch.is_none());
        advice.push(race.advice.clone());
    }
    let some = |what: &str| advice.iter().any(|a| a.contains(what));
    assert!(
        some(": let both acquire data-race[0], or pass barrier"),
        "{advice:#?}"
    );
    assert!(some(" must acquire data-race[0] too"), "{advice:#?}");
}

#[test]
fn where_nobody_looked_or_records_lack_it_is_not_said_to_be_without_races() {
    let whole = racing(SEEDS.start, false);
    let extent = whole.catalog.extent.unwrap();
    let half = TimeRange {
        from: extent.from,
        to: extent.from + Nanos(extent.length().0 / 2),
    };
    let part = analysed(&whole, Some(half));
    assert!(!part.races.looked && races(&part).is_empty());
    // Every other record is lacking, and this is known.
    let mut lacking = whole.clone();
    let mut at = 0;
    lacking.records.retain(|_| {
        at += 1;
        at % 2 == 0
    });
    lacking.catalog.completeness.dropped = lacking.records.len() as u64;
    let analysis = analysed(&lacking, None);
    assert!(!analysis.races.undecided.is_empty(), "{:?}", analysis.races);
    // Of reads and writes it is not known which elements they touched.
    let mut vague = racing(SEEDS.start, true);
    let unknown = |record: &mut Record| (record.range, record.bytes) = ((0, 0), 8);
    vague.records.iter_mut().for_each(unknown);
    let analysis = analysed(&vague, None);
    assert!(races(&analysis).is_empty());
    let undecided = analysis.races.undecided.join("\n");
    assert!(undecided.contains("data races on data-race"), "{undecided}");
}
