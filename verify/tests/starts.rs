//! Processes that were started again. The coordinator of a barrier counts its openings anew, and the records say which start of
//! it an opening is of. What an application process learned, the next of its name need not know.

#![allow(clippy::unwrap_used)] // a test may

mod common;

use common::{
    Made, X, Y, acquire, all_at, barrier, in_order, read, release, section, verdict_of, write,
};
use dosmos_trace::query::Completeness;
use dosmos_verify::{Kind, State, Verdict};

/// Of a run in which mp0, the coordinator, was lost once.
fn lost() -> Completeness {
    Completeness {
        silent: vec!["mp0".into()],
        ..Completeness::default()
    }
}

fn accused_of(verdict: &Verdict, kind: Kind) -> bool {
    verdict.state == State::Violated && verdict.violations.iter().any(|v| v.kind == kind)
}

/// All three at an opening of this start of the coordinator.
fn all_of(start: u64, generation: u32, at: u64) -> Vec<Made> {
    let all = all_at(generation, at).into_iter();
    all.map(|made| made.version(start)).collect()
}

/// The coordinator opened the barrier for two processes and was started again before it told the third. Of those two one was
/// lost with it, so nobody passes two openings of this number.
fn opened_by(first: u64, second: u64) -> Vec<Made> {
    let mut run = vec![
        barrier(0, 1, (100, 110)).version(first),
        write(2, X, 120),
        read(0, X, 130),
    ];
    let later = |ap| barrier(ap, 1, (200, 210)).version(second);
    run.extend([later(1), later(2)]);
    run
}

#[test]
fn openings_of_one_number_by_two_starts_of_the_coordinator_order_nothing() {
    let judged = |first, second| verdict_of(&in_order(opened_by(first, second)), &lost());
    let verdict = judged(1, 2);
    assert!(verdict.violations.is_empty(), "{verdict:#?}");
    assert_eq!(verdict.state, State::Undecided);
    // Of one start it is one opening, and its records refute the contract whatever else is lost.
    assert!(accused_of(&judged(1, 1), Kind::LostWrite));
}

#[test]
fn openings_of_one_start_refute_the_contract_although_its_process_was_lost_later() {
    // A process passes an opening twice, and one leaves it long before another comes.
    let mut run = all_at(1, 100);
    run.push(barrier(0, 1, (200, 210)));
    let verdict = verdict_of(&in_order(run), &lost());
    assert!(accused_of(&verdict, Kind::BarrierRepeated), "{verdict:#?}");
    let late = 100_000_000;
    let run = [
        barrier(0, 1, (100, 200)),
        barrier(1, 1, (150, late + 20)),
        barrier(2, 1, (late, late + 20)),
    ];
    let verdict = verdict_of(&in_order(run), &lost());
    assert!(accused_of(&verdict, Kind::BarrierLeftEarly), "{verdict:#?}");
}

#[test]
fn a_later_start_of_the_coordinator_orders_by_its_openings() {
    let run = |seen| {
        let mut run = all_of(1, 1, 100);
        run.push(write(0, X, 150));
        run.extend(all_of(2, 1, 200));
        run.push(read(1, X, 300).version(seen));
        run
    };
    let verdict = verdict_of(&in_order(run(1)), &lost());
    assert!(verdict.violations.is_empty(), "{verdict:#?}");
    assert_eq!(verdict.looked.barriers, 2);
    let verdict = verdict_of(&in_order(run(0)), &lost());
    assert!(accused_of(&verdict, Kind::LostWrite), "{verdict:#?}");
}

/// Records of other tools, and of earlier versions.
#[test]
fn where_no_start_is_told_a_lost_process_may_have_counted_anew() {
    let run = opened_by(0, 0);
    let whole = verdict_of(&in_order(run.clone()), &Completeness::default());
    assert!(accused_of(&whole, Kind::LostWrite), "{whole:#?}");
    let verdict = verdict_of(&in_order(run), &lost());
    assert!(verdict.violations.is_empty(), "{verdict:#?}");
    assert_eq!(verdict.state, State::Undecided);
    let mut run = all_of(0, 1, 100);
    run.push(barrier(0, 1, (200, 210)).version(0));
    let verdict = verdict_of(&in_order(run), &lost());
    assert!(verdict.violations.is_empty(), "{verdict:#?}");
}

/// A process writes `x` and gives `y` on to another, of which there is a next start before it reads `x`, or not.
fn given_on(again: bool) -> Vec<Made> {
    let mut run = section(0, X, 100, 0);
    run.extend(section(0, Y, 200, 0));
    run.extend(section(1, Y, 300, 1));
    run.push(read(1, X, 400).set(|r| r.flags.first = again));
    run
}

#[test]
fn what_an_earlier_start_of_a_process_learned_a_later_one_need_not_know() {
    let verdict = verdict_of(&in_order(given_on(true)), &lost());
    assert!(verdict.violations.is_empty(), "{verdict:#?}");
    let verdict = verdict_of(&in_order(given_on(false)), &lost());
    assert!(accused_of(&verdict, Kind::LostWrite), "{verdict:#?}");
}

/// In these runs `ap2` has to read version 1, and is accused if it reads version 0.
#[track_caller]
fn it_has_to_be_seen(run: impl Fn(u64) -> Vec<Made>) {
    let verdict = verdict_of(&in_order(run(1)), &lost());
    assert!(verdict.violations.is_empty(), "{verdict:#?}");
    let verdict = verdict_of(&in_order(run(0)), &lost());
    assert!(accused_of(&verdict, Kind::LostWrite), "{verdict:#?}");
}

#[test]
fn what_an_earlier_start_of_a_process_published_others_still_have_to_see() {
    let run = |seen| {
        let mut run = section(1, X, 100, 0);
        run.extend(all_at(1, 200));
        // Another of its name, from which the reader learns more.
        run.push(acquire(1, Y, 300).set(|r| r.flags.first = true));
        run.push(release(1, Y, 310).version(1));
        run.push(acquire(2, Y, 320).version(1));
        run.push(read(2, X, 400).version(seen));
        run
    };
    it_has_to_be_seen(run);
}

/// Its clock has a component more than those of who learns from it.
#[test]
fn what_a_later_start_of_a_process_published_others_have_to_see() {
    let run = |seen| {
        let mut run = section(1, Y, 100, 0);
        run.push(acquire(1, X, 200).set(|r| r.flags.first = true));
        run.push(write(1, X, 210));
        run.push(release(1, X, 220).version(1));
        run.extend(section(1, Y, 300, 1));
        run.push(acquire(2, Y, 400).version(2));
        run.push(read(2, X, 500).version(seen));
        run
    };
    it_has_to_be_seen(run);
}

/// An earlier start released what it had not acquired, as far as is recorded, and so learned nothing: it was another one all the
/// same.
#[test]
fn what_an_earlier_start_published_a_later_one_need_not_know() {
    let run = |again: bool| {
        let mut run = vec![write(1, X, 100), release(1, Y, 110).version(1)];
        run.push(read(1, X, 200).set(|r| r.flags.first = again));
        verdict_of(&in_order(run), &lost())
    };
    assert!(accused_of(&run(false), Kind::OwnWriteMissed));
    let verdict = run(true);
    assert!(verdict.violations.is_empty(), "{verdict:#?}");
}

/// One program after another, with the same names.
#[test]
fn programs_that_follow_one_another_do_not_race() {
    let mut run = vec![write(0, X, 100).range(0, 4)];
    run.extend(all_at(1, 200));
    run.push(write(1, X, 300).range(0, 4).set(|r| r.flags.first = true));
    let verdict = verdict_of(&in_order(run), &Completeness::default());
    assert!(verdict.violations.is_empty(), "{verdict:#?}");
}
