use dosmos_proto::{ApId, Nanos, VarId};
use dosmos_trace::query::Catalog;
use dosmos_trace::record::{Op, Record};

use super::*;
use crate::{Input, Thresholds, analyse};
use dosmos_testkit::labelled::{Labelled, generate};

fn phased(catalog: &Catalog, records: &[Record]) -> (PhasedRun, Analysis) {
    let mut run = PhasedRun::new(catalog.clone());
    records.iter().for_each(|r| run.add(r));
    let input = Input {
        catalog: catalog.clone(),
        records: &mut records.iter().copied(),
        window: None,
    };
    (run, analyse(input, &Thresholds::default()))
}

/// A generated run whose processes pass barriers.
fn with_barriers() -> Labelled {
    let mut traces = (0..).map(generate);
    let passes = |t: &Labelled| t.records.iter().filter(|r| r.op == Op::Barrier).count() > 20;
    traces.find(passes).unwrap()
}

#[test]
fn a_run_equals_itself_however_slow_its_clock() {
    let trace = with_barriers();
    let (a, of_a) = phased(&trace.catalog, &trace.records);
    let same = compare((a.clone(), &of_a), (a.clone(), &of_a));
    assert!(same.phases.len() > 1 && same.phases.iter().all(|p| p.rows.is_empty()));
    assert!(same.findings.new.is_empty() && same.findings.gone.is_empty());
    // The same program, everything shifted and later phases twice as slow: counts agree phase by phase.
    let mut slow = trace.records.clone();
    for r in &mut slow {
        r.start = Nanos(r.start.0 * 2 + 5_000_000_000);
    }
    let (b, of_b) = phased(&trace.catalog, &slow);
    let late = compare((a, &of_a), (b, &of_b));
    assert!(late.phases.iter().all(|p| p.rows.is_empty()));
    assert!(late.second.length_ns > late.first.length_ns);
}

#[test]
fn what_one_phase_has_more_shows_there_and_nowhere_else() {
    let trace = with_barriers();
    let mut more = trace.records.clone();
    // One process reads once more before its third barrier.
    let mut passed = 0;
    let at = more.iter().position(|r| {
        passed += u64::from(r.is_access() && r.op == Op::Barrier && r.ap == ApId(0));
        passed == 2 && r.is_access() && r.op != Op::Barrier && r.ap == ApId(0)
    });
    let extra = more[at.unwrap()];
    more.insert(at.unwrap(), extra);
    let (a, of_a) = phased(&trace.catalog, &trace.records);
    let (b, of_b) = phased(&trace.catalog, &more);
    let diff = compare((a, &of_a), (b, &of_b));
    let differing: Vec<u64> = diff
        .phases
        .iter()
        .filter(|p| !p.rows.is_empty())
        .map(|p| p.phase)
        .collect();
    assert_eq!(differing, [2]);
}

#[test]
fn many_phases_are_joined_and_nothing_is_lost() {
    let trace = with_barriers();
    let barrier = trace.records.iter().find(|r| r.op == Op::Barrier).unwrap();
    let mut run = PhasedRun::new(trace.catalog.clone());
    for i in 0..10_000 {
        let mut r = *barrier;
        r.start = Nanos(i);
        run.add(&r);
    }
    assert!(run.phases.len() <= MOST && run.stride == 4);
    assert_eq!(
        run.total().table.values().map(|s| s.count).sum::<u64>(),
        10_000
    );
    let (short, of) = phased(&trace.catalog, &trace.records);
    let both = compare((short, &of), (run, &of));
    assert_eq!(both.stride, 4);
}

/// Two processes read an object ten times in each phase, compute 1 ms and pass a barrier.
fn program(like: &Labelled, phases: u64, read: u64) -> Vec<Record> {
    let of = |op| {
        *like
            .records
            .iter()
            .find(|r| r.op == op && r.is_access())
            .unwrap()
    };
    let (a_read, a_barrier) = (of(Op::Read), of(Op::Barrier));
    let mut records = Vec::new();
    let mut now = 1_000;
    for _ in 0..phases {
        let begin = now;
        for ap in [ApId(0), ApId(1)] {
            now = begin;
            for _ in 0..10 {
                let (start, duration) = (Nanos(now), Nanos(read));
                records.push(Record {
                    ap,
                    start,
                    duration,
                    wait: Nanos::ZERO,
                    count: 1,
                    ..a_read
                });
                now += read;
            }
            now += 1_000_000;
            let (start, duration) = (Nanos(now), Nanos(1_000));
            records.push(Record {
                ap,
                start,
                duration,
                wait: Nanos::ZERO,
                ..a_barrier
            });
            now += 1_000;
        }
    }
    records.sort_by_key(|r| r.start);
    records
}

fn compared(like: &Labelled, first: &[Record], second: &[Record]) -> Comparison {
    let (a, of_a) = phased(&like.catalog, first);
    let (b, of_b) = phased(&like.catalog, second);
    compare((a, &of_a), (b, &of_b))
}

#[test]
fn the_faster_run_is_named_with_the_operation_that_became_faster() {
    let like = with_barriers();
    let (slow, fast) = (program(&like, 6, 487_000), program(&like, 6, 2_100));
    let name = like.catalog.name_of(slow[0].object.var);
    let diff = compared(&like, &slow, &fast);
    let c = &diff.conclusion;
    assert_eq!(
        (c.change, c.basis, c.phases),
        (Change::Faster, Basis::Phases, 6)
    );
    assert_eq!((c.first_ns, c.second_ns), (6 * 5_871_000, 6 * 1_022_000));
    let because = format!("reads of {name}: 487.0 µs → 2.1 µs each");
    assert_eq!(c.because[0].text, because);
    assert_eq!(
        c.verdict,
        format!(
            "the second run is faster: 35.2 ms → 6.1 ms for the 6 phases of both (-83 %, ± 0 % from phase to phase); mostly by {because}"
        )
    );
    let back = compared(&like, &fast, &slow).conclusion;
    assert_eq!(back.change, Change::Slower);
    assert_eq!(back.because[0].op, Some(Op::Read));
}

#[test]
fn only_phases_of_both_runs_are_compared() {
    let like = with_barriers();
    let (long, short) = (program(&like, 9, 10_000), program(&like, 4, 10_000));
    let diff = compared(&like, &long, &short);
    assert_eq!(
        diff.conclusion.change,
        Change::Same,
        "{}",
        diff.conclusion.verdict
    );
    assert_eq!(diff.conclusion.phases, 4);
    assert_eq!(diff.conclusion.first_ns, diff.conclusion.second_ns);
    let reads = diff.matched.iter().find(|r| r.op == Op::Read).unwrap();
    assert_eq!(reads.first, reads.second);
    // The rest of the longer run is in the totals only.
    let total = diff.totals.iter().find(|r| r.op == Op::Read).unwrap();
    assert_eq!(total.first.as_ref().unwrap().count, 9 * 20);
}

#[test]
fn the_distribution_of_a_time_is_compared_too() {
    let like = with_barriers();
    let steady = program(&like, 4, 10_000);
    let mut rarely_slow = steady.clone();
    let reads = rarely_slow.iter_mut().filter(|r| r.op == Op::Read);
    reads
        .step_by(40)
        .for_each(|r| r.duration = Nanos(1_000_000));
    let diff = compared(&like, &steady, &rarely_slow);
    let row = diff.totals.iter().find(|r| r.op == Op::Read).unwrap();
    let figures = |s: &Option<Sums>| {
        let json = serde_json::to_value(s).unwrap();
        ["p50_ns", "p99_ns", "max_ns"].map(|key| json[key].as_u64().unwrap())
    };
    assert_eq!(figures(&row.first), [10_000; 3]);
    let [p50, p99, max] = figures(&row.second);
    assert!((10_000..12_500).contains(&p50), "{p50}");
    assert_eq!([p99, max], [1_000_000; 2]);
}

#[test]
fn a_difference_that_phases_show_by_chance_is_none() {
    let like = with_barriers();
    let even = program(&like, 6, 10_000);
    let mut uneven = program(&like, 6, 10_000);
    // One phase takes twice as long.
    let late = uneven[uneven.len() / 2].start;
    for r in uneven.iter_mut().filter(|r| r.start > late) {
        r.start += Nanos(1_100_000);
    }
    let c = compared(&like, &even, &uneven).conclusion;
    assert!(c.difference.unwrap() > 0.1, "{c:?}");
    assert_eq!(c.change, Change::Same, "{c:?}");
}

#[test]
fn runs_without_barriers_are_compared_by_their_accesses_if_they_did_not_do_the_same() {
    let like = with_barriers();
    let free = |phases, read| {
        let mut records = program(&like, phases, read);
        records.retain(|r| r.op != Op::Barrier);
        records
    };
    let same_work = compared(&like, &free(4, 100_000), &free(4, 400_000)).conclusion;
    assert_eq!(
        (same_work.change, same_work.basis),
        (Change::Slower, Basis::Run)
    );
    let more_work = compared(&like, &free(4, 100_000), &free(40, 50_000)).conclusion;
    assert_eq!(
        (more_work.change, more_work.basis),
        (Change::Faster, Basis::Accesses)
    );
    assert_eq!(more_work.difference, Some(-0.5));
}

#[test]
fn runs_of_different_programs_are_not_concluded_upon() {
    let like = with_barriers();
    let records = program(&like, 4, 10_000);
    let mut other = records.clone();
    for r in &mut other {
        r.object.var = VarId(r.object.var.0 ^ 0x1000);
    }
    let diff = compared(&like, &records, &other);
    assert_eq!(diff.conclusion.change, Change::Unknown);
    assert!(
        diff.warnings[0].contains("different programs"),
        "{:?}",
        diff.warnings
    );
    assert!(compared(&like, &records, &records).warnings.is_empty());
}
