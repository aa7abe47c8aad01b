//! Whether a pathology is found does not depend on how many processes have nothing to do with it, on when it occurs, or
//! on how much of the run has it.

use dosmos_analysis::{Kind, Thresholds};
use dosmos_testkit::labelled::{
    Labelled, Score, VARIED, Variation, score, score_with_times, varied,
};

/// Kinds that take turns: the traces of a seed stay what they are when a kind is added, which has traces of its own.
const IN_TURN: u64 = 11;

/// Every kind in turn; where it is follows from the seed.
fn variation(seed: u64, processes: usize) -> Variation {
    Variation::of_seed(VARIED[(seed % IN_TURN) as usize], seed, processes)
}

fn traces(seeds: std::ops::Range<u64>, processes: usize) -> impl Iterator<Item = Labelled> {
    seeds.map(move |seed| varied(seed, variation(seed, processes)))
}

#[track_caller]
fn check(score: &Score) {
    for kind in score.kinds.iter().filter(|k| k.planted + k.wrong > 0) {
        let (missed, wrong) = (kind.planted - kind.found, kind.wrong);
        // Of so few, one is more than 5 %.
        assert!(
            kind.recall() >= 0.95 || missed <= 1,
            "{kind:?}: {:#?}",
            score.mistakes
        );
        assert!(
            kind.precision() >= 0.95 || wrong <= 1,
            "{kind:?}: {:#?}",
            score.mistakes
        );
    }
    let sum = |of: fn(&dosmos_testkit::labelled::KindScore) -> u64| -> u64 {
        score.kinds.iter().map(of).sum()
    };
    let (planted, found, wrong) = (sum(|k| k.planted), sum(|k| k.found), sum(|k| k.wrong));
    assert!(3 * planted >= score.traces, "{planted} of {}", score.traces);
    assert!(20 * found >= 19 * planted, "{:#?}", score.mistakes);
    assert!(20 * wrong <= found + wrong, "{:#?}", score.mistakes);
}

#[test]
fn among_few_processes() {
    check(&score(
        traces(5_000_000..5_000_042, 8),
        &Thresholds::default(),
    ));
}

#[test]
fn among_many_processes() {
    check(&score(
        traces(5_100_000..5_100_014, 64),
        &Thresholds::default(),
    ));
}

#[test]
fn objects_acquired_only_to_be_read_are_found_wherever_that_is() {
    for (seeds, processes) in [(5_200_000..5_200_012, 8), (5_300_000..5_300_008, 64)] {
        let kind = Kind::ReadOnlyLocking;
        let traces = seeds.map(|seed| varied(seed, Variation::of_seed(kind, seed, processes)));
        let score = score(traces, &Thresholds::default());
        let found = score.kinds.iter().find(|k| k.kind == kind).unwrap();
        assert!(found.planted >= 3, "{found:?}");
        assert_eq!(
            (found.found, found.wrong),
            (found.planted, 0),
            "{:#?}",
            score.mistakes
        );
    }
}

/// Neighbours in a ring read each other's edges, a few of them across groups: other owners would save of that what is less than
/// a change of the cluster file is worth.
#[test]
fn a_change_of_owners_that_saves_next_to_nothing_is_not_advised() {
    let seeds: [(Kind, Vec<u64>); 2] = [
        (Kind::ReadOnlyLocking, (5_200_000..5_200_012).collect()),
        (Kind::SlowProcess, vec![7_100_002, 7_100_020]),
    ];
    for (kind, seeds) in seeds {
        let traces = seeds.into_iter();
        let traces = traces.map(|seed| varied(seed, Variation::of_seed(kind, seed, 8)));
        let score = score_with_times(traces, &Thresholds::default());
        let group = score.kinds.iter().find(|k| k.kind == Kind::BadGroup);
        assert_eq!(group.unwrap().wrong, 0, "{:#?}", score.mistakes);
    }
}

fn in_the_end(kind: Kind, seed: u64) -> (dosmos_analysis::Analysis, dosmos_analysis::Finding) {
    let variation = Variation {
        kind: Some(kind),
        processes: 32,
        bursts: 1,
        begins: 0.9,
        lasts: 0.06,
    };
    let trace = varied(seed, variation);
    let input = dosmos_analysis::Input {
        catalog: trace.catalog,
        records: &mut trace.records.into_iter(),
        window: None,
    };
    let analysis = dosmos_analysis::analyse(input, &Thresholds::default());
    let mut found = analysis.findings.iter().filter(|f| f.kind == kind);
    let first = found.next().cloned();
    assert!(found.next().is_none(), "{:#?}", analysis.findings);
    (analysis.clone(), first.unwrap())
}

/// The iterations that have it come last; they take longer than the others.
#[track_caller]
fn is_said_to_be_in_the_end(kind: Kind, seed: u64) {
    let (analysis, found) = in_the_end(kind, seed);
    let length = (analysis.to_ns - analysis.from_ns) as f64;
    let said = |key: &str| found.evidence[key].as_f64().unwrap();
    assert!(
        said("part_begins_after_ns") > 0.4 * length,
        "{length} {found:#?}"
    );
    assert!(said("part_length_ns") < 0.6 * length, "{found:#?}");
    assert!(
        said("severity_in_part") >= 1.5 * found.severity,
        "{found:#?}"
    );
}

#[test]
fn where_uneven_work_is_is_said() {
    is_said_to_be_in_the_end(Kind::Imbalance, 5_200_002);
}

#[test]
fn where_a_bottleneck_is_is_said() {
    is_said_to_be_in_the_end(Kind::Bottleneck, 5_200_001);
}
