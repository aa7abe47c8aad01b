//! Records that come late, by clocks that differ by more than is waited for, and passages of barriers: what is said to be out of
//! order, and what is not.

#![allow(clippy::unwrap_used)] // a test may

mod common;

use common::{
    Made, X, Y, acquire, all_at, barrier, catalog, judge, judge_by, kinds, question, read, release,
    section, write,
};
use dosmos_proto::{MpId, Nanos, VarId};
use dosmos_trace::clock::ProcessClock;
use dosmos_trace::query::Catalog;
use dosmos_verify::{Doubt, Kind, Options, State, Verdict};

/// Twice as long as is waited for.
const LATE: u64 = 100_000_000;

/// By clocks that may be apart by a second.
fn judge_loosely(records: Vec<Made>) -> Verdict {
    let options = Options {
        clock_error: Some(Nanos(1_000_000_000)),
        ..Options::default()
    };
    judge_by(catalog(), options, records)
}

/// What is said of the order of accesses to something.
fn order_of<'a>(verdict: &'a Verdict, name: &str) -> Option<&'a Doubt> {
    let question = format!("the order of what was done with {name}");
    verdict.doubts.iter().find(|d| d.question == question)
}

// ---- Barriers.

#[test]
fn who_comes_to_an_opening_after_somebody_passed_it_alone_came_out_of_order() {
    let run = vec![
        barrier(0, 1, (100, 110)),
        read(0, X, 200),
        // Somebody else is recorded long after that, so `ap0` goes on.
        read(0, X, 200 + LATE),
        barrier(1, 1, (300 + LATE, 310 + LATE)),
        barrier(2, 1, (301 + LATE, 310 + LATE)),
    ];
    let verdict = judge_loosely(run.clone());
    assert_eq!(
        question(&verdict),
        "the order of what was done with barrier"
    );
    assert_eq!(verdict.doubts[0].count, 2);
    // Behind others of the same opening nobody is late.
    let mut run = run;
    run.extend([
        barrier(0, 2, (400 + LATE, 430 + LATE)),
        barrier(1, 2, (410 + LATE, 430 + LATE)),
        barrier(2, 2, (420 + LATE, 430 + LATE)),
    ]);
    run.push(read(0, X, 500 + LATE));
    assert_eq!(judge_loosely(run).doubts[0].count, 2);
}

/// A coordinator opens no opening twice, but what is wrong with its records is not their order. Nor is anybody missing.
#[test]
fn a_passage_too_many_is_not_one_out_of_order() {
    for all_passed in [false, true] {
        let mut run = all_at(1, 100);
        if all_passed {
            run.extend((0..3).map(|ap| read(ap, X, 150)));
        }
        run.push(barrier(0, 1, (200, 210)));
        let verdict = judge(run);
        assert_eq!(kinds(&verdict), [Kind::BarrierRepeated], "{all_passed}");
        assert_eq!(verdict.doubts, []);
    }
}

/// The group of a barrier may not be known. Who passes it later than another has the same behind it.
#[test]
fn an_opening_of_a_barrier_of_unknown_participants_orders_for_all_of_them() {
    let unknown = || Catalog {
        barriers: Vec::new(),
        ..catalog()
    };
    let mut run = vec![write(0, X, 50)];
    run.extend(all_at(1, 100));
    run.extend([read(2, Y, 150), read(0, Y, 160), read(1, X, 200)]);
    let verdict = judge_by(unknown(), Options::default(), run);
    assert_eq!(kinds(&verdict), [Kind::LostWrite]);
    let name = VarId(1 << 31).to_string();
    assert_eq!(
        verdict.doubts[0].question,
        format!("who had to pass {name}")
    );
}

/// Of clocks of which nothing is known only an early leave is a question.
#[test]
fn who_leaves_when_the_last_one_comes_does_not_leave_early_by_any_clock() {
    let judged = |late: u64| {
        let clock = |mp| ProcessClock {
            mp: MpId(mp),
            offset_ns: 0,
            drift_ppb: 0,
            error: None,
        };
        let unknown = Catalog {
            clocks: (0..3).map(clock).collect(),
            ..catalog()
        };
        let run = [
            barrier(0, 1, (100, 200)),
            barrier(1, 1, (150, late + 20)),
            barrier(2, 1, (late, late + 20)),
        ];
        judge_by(unknown, Options::default(), run)
    };
    assert_eq!(judged(200).state, State::Consistent);
    assert_eq!(
        question(&judged(201)),
        "whether a process left barrier early"
    );
}

/// What the user says of clocks is of two of them.
#[test]
fn times_of_one_memory_process_are_compared_by_its_own_clock() {
    let run = |mp| {
        let run = vec![
            barrier(0, 1, (100, 200)),
            barrier(1, 1, (210, 230)).set(|r| r.mp = MpId(mp)),
            barrier(2, 1, (150, 230)),
        ];
        kinds(&judge_loosely(run))
    };
    assert_eq!(run(1), []);
    assert_eq!(run(0), [Kind::BarrierLeftEarly]);
}

// ---- Sections.

/// Races after something was out of order may be ordered: each is counted among what is not decided.
#[test]
fn races_of_a_run_out_of_order_are_counted_as_undecided() {
    let late = 3 * LATE;
    let run = vec![
        write(0, Y, 50),
        write(1, Y, 60),
        // The release that this one starts from is recorded too late.
        acquire(1, X, 100).version(1),
        read(1, X, 200).version(1),
        acquire(0, X, late),
        write(0, X, late + 10),
        release(0, X, late + 20).version(1),
        write(2, Y, late + 100),
    ];
    let verdict = judge(run);
    assert!(!kinds(&verdict).contains(&Kind::DataRace), "{verdict:#?}");
    // The release, and the read before it.
    assert_eq!(order_of(&verdict, "x").map(|d| d.count), Some(2));
    assert_eq!(order_of(&verdict, "y").map(|d| d.count), Some(2));
}

#[test]
fn a_release_that_goes_back_is_not_one_out_of_order() {
    let mut run = section(0, X, 100, 0);
    run.extend(section(0, X, 200, 1));
    run.push(acquire(0, X, 300).version(2));
    run.push(release(0, X, 320).version(1));
    let verdict = judge(run);
    assert!(kinds(&verdict).contains(&Kind::VersionBack));
    assert_eq!(verdict.doubts, []);
}

/// A write outside sections becomes a version of its own while its process synchronises: which one is not said.
#[test]
fn a_version_that_may_be_a_higher_one_does_not_stand_for_a_release_that_waits() {
    let mut run = vec![write(0, X, 50).version(1), acquire(0, Y, 60)];
    run.extend(section(2, X, 100, 0));
    run.push(acquire(2, X, 200).version(1));
    // By another clock: it comes after what `ap0` releases later.
    run.push(acquire(2, Y, 210).version(2));
    run.push(release(2, X, 220).version(2));
    // This could have made version 2 of `x`, and made version 3.
    run.push(release(0, Y, 230).version(1).took(60));
    run.push(acquire(1, X, 240).version(2));
    run.push(read(1, X, 250).version(2));
    run.push(acquire(0, Y, 300).version(1));
    run.push(release(0, Y, 310).version(2));
    let verdict = judge(run);
    // The write outside is a race, and nothing is undecided.
    assert_eq!(kinds(&verdict), [Kind::DataRace]);
    assert_eq!(verdict.doubts, []);
}
