//! The detectors against labelled traces whose seeds they were not tuned on. The whole table:
//! `dosmos-bench findings`.

use std::collections::BTreeSet;
use std::path::Path;

use dosmos_analysis::{Input, Kind, Thresholds, analyse};
use dosmos_proto::{EmpId, MpId};
use dosmos_testkit::labelled::{KindScore, Labelled, Loss, Score, generate, score};
use dosmos_trace::query::Filter;
use dosmos_trace::record::Record;
use dosmos_trace::run::RunId;
use dosmos_trace::store::{Commit, Event, Identity, RecordingCounters, StoreSource, StoreWriter};

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
    // The others are planted in varied traces.
    let here = |k: &&KindScore| k.kind <= Kind::Deadlock || k.wrong > 0;
    for kind in score.kinds.iter().filter(here) {
        let (precision, recall) = (kind.precision(), kind.recall());
        // Of so few planted, one miss is more than 5 %.
        let missed = kind.planted - kind.found;
        let planted = kind.planted >= 3 || kind.kind > Kind::Deadlock;
        assert!(planted, "too little planted: {kind:?}");
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

/// What is lost of the records of one memory process, and nobody counts it.
type Silent = (&'static str, fn(usize, usize) -> bool);

const SILENTLY: [Silent; 5] = [
    ("every second record", |i, _| i % 2 == 1),
    ("three of four records", |i, _| i % 4 != 0),
    ("the first half", |i, of| 2 * i < of),
    ("the second half", |i, of| 2 * i >= of),
    ("a burst in the middle", |i, of| {
        3 * i >= of && 3 * i < 2 * of
    }),
];

/// Kinds of findings in a store, and whether it is said that something is missing.
fn kinds(store: &StoreSource) -> (BTreeSet<Kind>, bool) {
    let everything = Filter {
        everything: true,
        ..Filter::default()
    };
    let records = store.view().records(&everything, 0).records;
    let input = Input {
        catalog: store.describe(),
        records: &mut records.into_iter(),
        window: None,
    };
    let findings = analyse(input, &Thresholds::default()).findings;
    let lacking = !store.completeness().is_complete();
    (findings.iter().map(|f| f.kind).collect(), lacking)
}

/// The store of a trace whose memory processes reported to their end, with those records of which `keeps` says so.
fn stored(trace: &Labelled, dir: &Path, mut keeps: impl FnMut(&Record) -> bool) -> StoreSource {
    let topology = trace.catalog.topology.clone();
    let identity = Identity {
        run: RunId::from_bits(1),
        event_manager: topology.emp_name(EmpId(0)),
        emp: EmpId(0),
        topology: topology.clone(),
    };
    let (mut writer, _) = StoreWriter::open(dir, &identity).unwrap();
    let variables = trace.catalog.variables.iter().cloned().map(Event::Variable);
    let barriers = trace.catalog.barriers.iter().cloned().map(Event::Barrier);
    let mut events: Vec<Event> = variables.chain(barriers).collect();
    for (mp, _) in (0..).map(MpId).zip(topology.memory_processes()) {
        let counters = RecordingCounters {
            recorded: trace.records.iter().filter(|r| r.mp == mp).count() as u64,
            sampling: 1.0,
            ..RecordingCounters::default()
        };
        events.push(Event::Counters {
            mp,
            incarnation: 1,
            counters,
        });
        events.push(Event::Report {
            mp,
            incarnation: 1,
            ended: true,
        });
    }
    let kept = trace.records.iter().filter(|r| keeps(r));
    let commit = Commit {
        records: kept.copied().collect(),
        events: events.into_iter().map(|e| (0, e)).collect(),
        ..Commit::default()
    };
    writer.commit(&commit).unwrap();
    writer.close().unwrap();
    StoreSource::open(dir).unwrap()
}

/// Whatever part of the records of one process is lost on the way: it is said, and no store that says nothing has a
/// finding that the whole trace lacks.
#[test]
fn what_is_lost_silently_at_one_process_is_said_and_no_finding() {
    let dir = dosmos_testseeds::scratch();
    let (mut stores, mut new) = (0, Vec::new());
    for seed in 2_000_000..2_000_012 {
        let whole = generate(seed);
        let mut store = |keeps: &mut dyn FnMut(&Record) -> bool| {
            stores += 1;
            kinds(&stored(&whole, &dir.path().join(stores.to_string()), keeps))
        };
        let (there, lacking) = store(&mut |_| true);
        assert!(!lacking, "seed {seed}: all records are there");
        let mps: BTreeSet<_> = whole.records.iter().map(|r| r.mp).collect();
        for mp in mps.into_iter().take(2) {
            let of = whole.records.iter().filter(|r| r.mp == mp).count();
            for (what, lost) in SILENTLY {
                let mut i = 0;
                let (found, lacking) = store(&mut |r| {
                    i += usize::from(r.mp == mp);
                    r.mp != mp || !lost(i - 1, of)
                });
                assert!(lacking, "seed {seed} without {what} of {mp:?}");
                let more = found.difference(&there);
                new.extend(
                    more.map(|kind| format!("{kind}: seed {seed} without {what} of {mp:?}")),
                );
            }
        }
    }
    assert!(new.is_empty(), "{new:#?}");
}
