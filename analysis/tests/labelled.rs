//! The detectors against labelled traces whose seeds they were not tuned on. The whole table:
//! `dosmos bench findings`.

#![allow(clippy::unwrap_used)] // a test may

use dosmos_analysis::Thresholds;
use dosmos_analysis::labelled::{Loss, Score, generate, score};

fn over(seeds: std::ops::Range<u64>, loss: Loss) -> Score {
    let traces = seeds.map(|seed| {
        let mut trace = generate(seed);
        loss.apply(&mut trace);
        trace
    });
    score(traces, &Thresholds::default())
}

fn sums(score: &Score) -> (f64, f64) {
    let sum = |of: fn(&dosmos_analysis::labelled::KindScore) -> u64| {
        score.kinds.iter().map(of).sum::<u64>() as f64
    };
    let (planted, found, wrong) = (sum(|k| k.planted), sum(|k| k.found), sum(|k| k.wrong));
    assert!(planted > 10.0, "too little planted to say anything");
    (found / (found + wrong), found / planted)
}

#[test]
fn what_is_wrong_is_found_and_what_is_not_is_not() {
    let everything = Loss {
        dropped: 0.0,
        one_in: 1,
    };
    let score = over(2_000_000..2_000_030, everything);
    let (precision, recall) = sums(&score);
    assert!(precision >= 0.95 && recall >= 0.9, "{:#?}", score.mistakes);
    assert_eq!(score.healthy_with_finding, 0, "{:#?}", score.mistakes);
}

#[test]
fn what_is_lost_makes_findings_rarer_not_wrong() {
    let sampled = Loss {
        dropped: 0.0,
        one_in: 7,
    };
    let dropped = Loss {
        dropped: 0.1,
        one_in: 1,
    };
    for loss in [sampled, dropped] {
        let score = over(2_000_000..2_000_030, loss);
        let wrong: u64 = score.kinds.iter().map(|k| k.wrong).sum();
        let found: u64 = score.kinds.iter().map(|k| k.found).sum();
        // Of one access in seven nothing may be sure enough to be said; that is no mistake.
        assert!(
            20 * wrong <= found + wrong,
            "{loss:?}: {:#?}",
            score.mistakes
        );
        assert_eq!(
            score.healthy_with_finding, 0,
            "{loss:?}: {:#?}",
            score.mistakes
        );
    }
}
