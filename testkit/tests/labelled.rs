//! The detectors against labelled traces whose seeds they were not tuned on. The whole table:
//! `dosmos-bench findings`.

#![allow(clippy::unwrap_used)] // a test may

use dosmos_analysis::Thresholds;
use dosmos_testkit::labelled::{KindScore, Loss, Score, generate, score};

fn over(seeds: std::ops::Range<u64>, loss: Loss) -> Score {
    let traces = seeds.map(|seed| {
        let mut trace = generate(seed);
        loss.apply(&mut trace);
        trace
    });
    score(traces, &Thresholds::default())
}

#[test]
fn what_is_wrong_is_found_and_what_is_not_is_not() {
    let everything = Loss {
        dropped: 0.0,
        one_in: 1,
    };
    let score = over(2_000_000..2_000_100, everything);
    for kind in &score.kinds {
        let (precision, recall) = (kind.precision(), kind.recall());
        // Of so few planted, one miss is more than 5 %.
        let missed = kind.planted - kind.found;
        assert!(kind.planted >= 3, "too little planted: {kind:?}");
        assert!(
            precision >= 0.95 || kind.wrong <= 1,
            "{kind:?}: {:#?}",
            score.mistakes
        );
        assert!(
            recall >= 0.95 || missed <= 1,
            "{kind:?}: {:#?}",
            score.mistakes
        );
    }
    let sum = |of: fn(&KindScore) -> u64| score.kinds.iter().map(of).sum::<u64>() as f64;
    let (planted, found, wrong) = (sum(|k| k.planted), sum(|k| k.found), sum(|k| k.wrong));
    assert!(found >= 0.95 * planted, "{:#?}", score.mistakes);
    assert!(found >= 0.95 * (found + wrong), "{:#?}", score.mistakes);
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
        let score = over(2_000_000..2_000_040, loss);
        let wrong: u64 = score.kinds.iter().map(|k| k.wrong).sum();
        let found: u64 = score.kinds.iter().map(|k| k.found).sum();
        // With one in seven accesses, nothing may be certain enough to report; that is not a mistake.
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
