//! The edges of each rule: what is just not accused, what is said in words, and what is only doubted.

#![allow(clippy::unwrap_used)] // a test may

mod common;

use common::{
    Made, X, Y, acquire, all_at, barrier, catalog, consistent, in_order, judge, judge_by,
    judge_with, kinds, question, read, release, section, with_x, write,
};
use dosmos_proto::{GroupId, MpId, Nanos, Variable};
use dosmos_trace::clock::ProcessClock;
use dosmos_trace::query::Completeness;
use dosmos_verify::{Kind, Options, State, Verdict, Verifier};

fn judge_but_races(records: Vec<Made>) -> Verdict {
    let options = Options {
        races: false,
        ..Options::default()
    };
    judge_by(catalog(), options, records)
}

// ---- What is said.

#[test]
fn a_violation_names_processes_variables_and_versions() {
    let mut run = section(0, X, 100, 0);
    run.extend(all_at(1, 200));
    run.push(read(1, X, 300).version(0).cached());
    let verdict = judge(run);
    let v = &verdict.violations[0];
    assert_eq!(
        (v.kind, v.target.as_str(), v.more),
        (Kind::StaleCopy, "x", 0)
    );
    assert_eq!(
        v.why,
        "what ap0 wrote is published by the release of its section as version 1 or later; ap1, which synchronised after that, read \
         version 0"
    );

    let verdict = judge([read(1, X, 100).set(|r| r.peer = MpId(1))]);
    assert_eq!(
        verdict.violations[0].why,
        "x is owned by mp0 and was served by mp1"
    );

    let mut run = all_at(1, 100);
    run.push(barrier(0, 1, (200, 210)));
    let verdict = judge(run);
    let v = &verdict.violations[0];
    assert_eq!(
        (v.target.as_str(), v.why.as_str()),
        ("barrier", "ap0 passed opening 1 and then opening 1")
    );
}

#[test]
fn objects_of_a_variable_of_several_are_told_apart() {
    let parts = with_x(|v| {
        let layout =
            dosmos_proto::Layout::new(dosmos_proto::ElementType::F64, (1, 8), (1, 2)).unwrap();
        let spec = dosmos_proto::VariableSpec::new("x", layout).unwrap();
        Variable::new(v.id(), spec, vec![MpId(0), MpId(1)], GroupId(0)).unwrap()
    });
    let second = |made: Made| made.set(|r| r.object.index = 1).range(0, 4);
    let verdict = judge_with(parts, [second(read(1, X, 100)).set(|r| r.peer = MpId(0))]);
    assert_eq!(
        verdict.violations[0].why,
        "x[1] is owned by mp1 and was served by mp0"
    );
}

#[test]
fn of_many_violations_two_are_shown_and_the_others_counted() {
    let elsewhere = |at| read(1, X, at).set(|r| r.peer = MpId(1));
    let verdict = judge((1..=7).map(|i| elsewhere(100 * i)));
    assert_eq!(kinds(&verdict), [Kind::WrongOwner; 2]);
    assert_eq!(
        (verdict.violations[0].more, verdict.violations[1].more),
        (0, 5)
    );
    let verdict = judge((1..=2).map(|i| elsewhere(100 * i)));
    assert_eq!(
        (verdict.violations[0].more, verdict.violations[1].more),
        (0, 0)
    );
}

#[test]
fn a_doubt_counts_what_it_is_about() {
    let mut run = section(0, X, 100, 0);
    run.extend(all_at(1, 200));
    for i in 0..3 {
        run.push(read(1, X, 300 + 10 * i).version(0).inside().count(10));
    }
    let verdict = judge(run);
    assert_eq!(question(&verdict), "whether reads of x were new enough");
    assert_eq!(verdict.doubts[0].count, 3);
}

// ---- Barriers.

#[test]
fn a_process_that_failed_at_a_barrier_many_times_is_not_said_to_have_been_away() {
    let run = |times: u64| {
        let mut run = all_at(1, 100);
        for i in 0..times {
            let at = 200 + 20 * i;
            run.push(barrier(2, 0, (at, at + 10)).failed());
        }
        let later = 60_000_000_000;
        run.extend([0, 1].map(|ap| barrier(ap, 2, (later, later + 10))));
        judge(run)
    };
    assert_eq!(kinds(&run(16)), [Kind::BarrierMissed]);
    // Not all of them are kept.
    assert_eq!(question(&run(17)), "whether all came to barrier");
}

#[test]
fn who_leaves_a_barrier_earlier_than_clocks_can_be_apart() {
    let run = |late: u64| {
        judge([
            barrier(0, 1, (100, 200)),
            barrier(1, 1, (150, late + 20)),
            barrier(2, 1, (late, late + 20)),
        ])
    };
    // Nobody said how far, so 10 ms.
    assert_eq!(run(200 + 10_000_000).state, State::Consistent);
    let verdict = run(200 + 10_000_001);
    assert_eq!(kinds(&verdict), [Kind::BarrierLeftEarly]);
    assert_eq!(
        verdict.violations[0].why,
        "ap0 left opening 1 10000001 ns before ap2 came"
    );
    // At the same time is not early.
    consistent([
        barrier(0, 1, (100, 200)),
        barrier(1, 1, (150, 200)),
        barrier(2, 1, (200, 210)),
    ]);
}

#[test]
fn how_far_clocks_can_be_apart_is_the_sum_of_their_errors_or_what_the_user_says() {
    let late = 200 + 50;
    let run = [
        barrier(0, 1, (100, 200)),
        barrier(1, 1, (150, late + 20)),
        barrier(2, 1, (late, late + 20)),
    ];
    let clock = |mp, error| ProcessClock {
        mp: MpId(mp),
        offset_ns: 0,
        drift_ppb: 0,
        error: Some(Nanos(error)),
    };
    let judged = |error, clock_error| {
        let mut catalog = catalog();
        catalog.clocks = (0..3).map(|mp| clock(mp, error)).collect();
        let options = Options {
            clock_error,
            ..Options::default()
        };
        let mut verifier = Verifier::new(catalog, options);
        in_order(run).iter().for_each(|r| verifier.add(r));
        kinds(&verifier.finish(&Completeness::default(), false, &[]))
    };
    assert_eq!(judged(25, None), []);
    assert_eq!(judged(24, None), [Kind::BarrierLeftEarly]);
    assert_eq!(judged(25, Some(Nanos(49))), [Kind::BarrierLeftEarly]);
    assert_eq!(judged(24, Some(Nanos(50))), []);
}

#[test]
fn one_clock_that_was_corrected_may_be_off_by_its_error_at_both_ends() {
    // The request of ap2 reached mp0 second and was granted first, by 50 ns.
    let run = [
        acquire(1, X, 100).version(1).took(100).at_owner(),
        acquire(2, X, 110).version(0).took(40).at_owner(),
    ];
    let judged = |offset_ns, drift_ppb, error| {
        let mut catalog = catalog();
        catalog.clocks = vec![ProcessClock {
            mp: MpId(0),
            offset_ns,
            drift_ppb,
            error: Some(Nanos(error)),
        }];
        let verdict = judge_with(catalog, run);
        kinds(&verdict).contains(&Kind::OutOfTurn)
    };
    assert!(judged(7, 0, 24) && judged(0, 7, 24));
    assert!(!judged(7, 0, 25) && !judged(0, 7, 25));
    // One that was not corrected is off by nothing.
    assert!(judged(0, 0, 1_000));
}

// ---- Versions.

#[test]
fn releases_without_versions_leave_everything_open() {
    let mut run = vec![
        acquire(0, X, 100),
        write(0, X, 110),
        release(0, X, 120),
        acquire(1, X, 200),
        read(1, X, 205),
        write(1, X, 210),
        release(1, X, 220),
    ];
    run.extend(all_at(1, 300));
    run.push(read(2, X, 400));
    run.push(read(2, X, 410).version(9));
    let verdict = judge(run);
    assert_eq!(verdict.state, State::Undecided, "{verdict:#?}");
    let all = verdict
        .doubts
        .iter()
        .find(|d| d.question == "everything about x");
    assert_eq!(all.map(|d| d.count), Some(1), "{verdict:#?}");
}

#[test]
fn a_version_that_nobody_made_is_shown_beside_the_last_release() {
    let mut run = section(0, X, 100, 0);
    run.push(write(1, X, 200).version(1).count(3));
    run.push(read(1, X, 300).version(4));
    let verdict = judge(run.clone());
    assert!(
        !kinds(&verdict).contains(&Kind::UnmadeVersion),
        "{verdict:#?}"
    );
    run.push(read(1, X, 310).version(5));
    let verdict = judge(run);
    let unmade = verdict
        .violations
        .iter()
        .find(|v| v.kind == Kind::UnmadeVersion)
        .unwrap();
    let ops: Vec<(u64, u64)> = unmade
        .records
        .iter()
        .map(|r| (r.start.0, r.version))
        .collect();
    assert_eq!(ops, [(120, 1), (310, 5)]);
    assert_eq!(
        unmade.why,
        "version 5 was read; 1 releases and 3 writes outside sections made at most version 4"
    );
}

#[test]
fn atomic_operations_that_stored_nothing_make_no_version_and_publish_nothing() {
    let nothing = |at| write(1, X, at).range(0, 1).atomic().set(|r| r.bytes = 0);
    let mut run = vec![nothing(100)];
    run.extend(all_at(1, 200));
    run.push(read(0, X, 300).version(0));
    consistent(run.clone());
    run.push(read(0, X, 310).version(1));
    assert_eq!(kinds(&judge(run)), [Kind::UnmadeVersion]);
    // One that stored something does.
    let mut run = vec![write(1, X, 100).range(0, 1).atomic()];
    run.extend(all_at(1, 200));
    run.push(read(0, X, 300).version(0));
    assert_eq!(kinds(&judge(run)), [Kind::LostWrite]);
}

#[test]
fn a_read_that_goes_back_to_where_nothing_was_released_between_is_none() {
    // Version 2 is of a section that wrote nothing.
    let run = |back_to: u64| {
        let mut run = section(0, X, 100, 0);
        run.push(acquire(0, X, 200).version(1));
        run.push(release(0, X, 210).version(2));
        run.push(read(1, X, 300).version(2));
        run.push(read(1, X, 310).version(back_to));
        let verdict = judge(run);
        let back = verdict.violations.iter().find(|v| v.kind == Kind::ReadBack);
        back.map(|v| v.why.clone())
    };
    assert_eq!(run(1), None);
    assert_eq!(
        run(0).as_deref(),
        Some("ap1 read version 2 and then version 0, and version 1 changed the content")
    );
}

/// Of a copy only reads one after the other tell something.
#[test]
fn reads_of_one_copy_at_the_same_time_may_be_of_two_versions() {
    let copy = |ap, at, took, version: u64| {
        let made = read(ap, X, at).took(took).version(version).cached();
        made.set(|r| r.mp = MpId(1))
    };
    let fractured = |second: Made| {
        let mut run = section(0, X, 100, 0);
        run.push(copy(1, 200, 10, 1));
        run.push(second);
        kinds(&judge(run)).contains(&Kind::FracturedCopy)
    };
    assert!(fractured(copy(2, 210, 5, 0)));
    assert!(!fractured(copy(2, 209, 5, 0)));
    // The newer version counts for the copy, whichever read was later.
    let mut run = section(0, X, 100, 0);
    run.push(copy(1, 200, 20, 0));
    run.push(copy(2, 205, 5, 1));
    run.push(copy(1, 230, 5, 0));
    assert!(kinds(&judge(run)).contains(&Kind::FracturedCopy));
}

/// `ap2` knew of ten sections of `ap0`, which had a hundred more.
fn long_ago(last: impl FnOnce(u64) -> Vec<Made>) -> Verdict {
    let mut run = Vec::new();
    let mut at = 100;
    for version in 0..110 {
        if version == 10 {
            run.extend(section(0, Y, at, 0));
            run.extend(section(2, Y, at + 100, 1));
            at += 200;
        }
        run.extend(section(0, X, at, version));
        at += 100;
    }
    run.extend(last(at));
    judge_but_races(run)
}

#[test]
fn of_publications_long_ago_some_are_forgotten_and_that_is_said() {
    let read_as = |version: u64| long_ago(|at| vec![read(2, X, at).version(version)]);
    assert_eq!(read_as(110).state, State::Consistent);
    assert_eq!(kinds(&read_as(5)), [Kind::LostWrite]);
    let forgotten = read_as(10);
    assert_eq!(question(&forgotten), "whether reads of x were new enough");
    assert!(
        forgotten.doubts[0].why.contains("not remembered"),
        "{forgotten:#?}"
    );
    // Who knows nothing need see nothing.
    let nobody = long_ago(|at| vec![read(1, X, at).version(0)]);
    assert_eq!(nobody.state, State::Consistent, "{nobody:#?}");

    let granted = long_ago(|at| vec![acquire(2, X, at).version(10)]);
    assert_eq!(question(&granted), "whether reads of x were new enough");
    let granted = long_ago(|at| vec![acquire(2, X, at).version(5)]);
    assert_eq!(kinds(&granted), [Kind::StaleGrant]);
}

/// What everybody knows hides what was before it, so that nothing is forgotten however long a run is.
#[test]
fn who_synchronises_often_is_never_told_that_something_is_forgotten() {
    let mut run = Vec::new();
    let mut at = 100;
    for round in 0..200 {
        run.extend(section(0, X, at, round));
        run.extend(all_at(round as u32 + 1, at + 50));
        run.push(read(1, X, at + 80).version(round + 1));
        at += 100;
    }
    let verdict = judge_but_races(run.clone());
    assert_eq!(verdict.state, State::Consistent, "{verdict:#?}");
    run.push(read(2, X, at).version(199));
    assert_eq!(kinds(&judge_but_races(run)), [Kind::LostWrite]);
}
