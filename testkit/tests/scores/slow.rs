//! Processes that are without a processor: found wherever they are, told apart from uneven work, and not seen where all are
//! alike.

use dosmos_analysis::{Kind, ProfileBuilder, Thresholds, conclude};
use dosmos_testkit::labelled::{Labelled, Variation, score_with_times, varied};
use dosmos_trace::query::Breakdown;

fn traces(
    kind: Option<Kind>,
    seeds: std::ops::Range<u64>,
    processes: usize,
) -> impl Iterator<Item = Labelled> {
    seeds.map(move |seed| varied(seed, Variation::of_seed(kind, seed, processes)))
}

#[test]
fn slow_processes_are_found() {
    for (seeds, processes) in [(7_500_000..7_500_040, 8), (7_600_000..7_600_006, 64)] {
        let traces = traces(Some(Kind::SlowProcess), seeds, processes);
        let score = score_with_times(traces, &Thresholds::default());
        let slow = score.kinds.iter().find(|k| k.kind == Kind::SlowProcess);
        let slow = slow.unwrap();
        assert!(2 * slow.planted >= score.traces, "{slow:?}");
        assert!(
            20 * slow.found >= 19 * slow.planted,
            "{:#?}",
            score.mistakes
        );
        assert_eq!(slow.wrong, 0, "{:#?}", score.mistakes);
    }
}

#[test]
fn uneven_work_and_good_programs_have_no_slow_process() {
    for kind in [Some(Kind::Imbalance), None] {
        let traces = traces(kind, 7_900_000..7_900_040, 8);
        let score = score_with_times(traces, &Thresholds::default());
        for found in &score.kinds {
            if found.kind == Kind::Imbalance {
                assert!(
                    20 * found.found >= 19 * found.planted,
                    "{:#?}",
                    score.mistakes
                );
            }
            let told_apart = found.kind != Kind::SlowProcess || found.wrong == 0;
            assert!(told_apart, "{:#?}", score.mistakes);
        }
    }
}

/// Where a process does not say where its time went, or none does, nobody is said to be slow, nor that none is.
#[test]
fn without_the_times_of_all_it_is_withheld() {
    let all_the_time = Variation {
        kind: Some(Kind::SlowProcess),
        processes: 8,
        bursts: 1,
        begins: 0.0,
        lasts: 1.0,
    };
    let analysed = |seed, times: &dyn Fn(Breakdown) -> Breakdown| {
        let trace = varied(seed, all_the_time);
        let mut profile = ProfileBuilder::new(trace.catalog.clone());
        trace.records.iter().for_each(|record| profile.add(record));
        profile.times(times(trace.times));
        conclude(&profile.finish(None), &Thresholds::default())
    };
    let seeds = 7_400_000..7_400_006;
    let found = |kinds: Vec<Kind>| kinds.contains(&Kind::SlowProcess);
    for seed in seeds {
        let whole = analysed(seed, &|times| times);
        let finding = whole.findings.iter().find(|f| f.kind == Kind::SlowProcess);
        let slow = finding.unwrap().aps.clone();
        let catalog = varied(seed, all_the_time).catalog;
        let topology = catalog.topology;
        let silent = topology.application_processes().iter();
        let silent = silent
            .map(|ap| ap.name.clone())
            .find(|ap| !slow.contains(ap));
        let silent = topology.find_ap(&silent.unwrap()).unwrap();
        let partly = analysed(seed, &|mut times| {
            times.phases.retain(|piece| piece.ap != silent);
            times
        });
        assert!(!found(partly.findings.iter().map(|f| f.kind).collect()));
        assert!(found(partly.withheld.iter().map(|w| w.kind).collect()));
        let none = analysed(seed, &|_| Breakdown::default());
        assert!(!found(none.findings.iter().map(|f| f.kind).collect()));
        assert!(none.efficiency.is_none());
    }
}
