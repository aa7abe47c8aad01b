//! Every kind of violation, planted in a small run that keeps the contract without it: it is found, by its kind, with a
//! counter-example that refutes the contract alone.

#![allow(clippy::unwrap_used)] // a test may

mod common;

use std::time::Duration;

use common::{
    Made, X, Y, acquire, all_at, barrier, catalog, in_order, of, read, release, replicated,
    section, verdict_of, write,
};
use dosmos_proto::direct::GONE_AFTER;
use dosmos_proto::{MpId, Nanos};
use dosmos_trace::clock::ProcessClock;
use dosmos_trace::query::Completeness;
use dosmos_trace::record::{Op, Origin, Record};
use dosmos_verify::{Kind, MOST_RECORDS, Options, State, Verdict, Verifier};

const SECOND: Duration = Duration::from_secs(1);

/// A remote section as both sides record it.
fn remote_section(ap: u32, at: u64, from: u64) -> Vec<Made> {
    let own = section(ap, X, at, from);
    let theirs = own.clone().into_iter().map(|m| {
        m.at_owner().set(|r| {
            r.start = dosmos_proto::Nanos(r.start.0 + 1);
            r.duration = dosmos_proto::Nanos(3);
        })
    });
    own.clone().into_iter().chain(theirs).collect()
}

/// A run with everything in it that keeps the contract.
fn healthy() -> Vec<Made> {
    let mut run = section(0, X, 100, 0);
    run.extend(all_at(1, 200));
    // Copies, and reads from them.
    run.push(read(0, X, 300).version(1));
    run.push(read(1, X, 300).version(1));
    run.push(read(1, X, 305).version(1).at_owner());
    run.push(read(1, X, 310).version(1).cached());
    run.extend(all_at(2, 400));
    // A write outside sections, published by the barrier.
    run.push(write(0, X, 500).version(1));
    run.extend(all_at(3, 600));
    run.push(read(1, X, 700).version(2));
    run.push(read(1, X, 705).version(2).at_owner());
    run.extend(all_at(4, 800));
    run.extend(remote_section(1, 900, 2));
    run.extend(section(0, X, 1000, 3));
    // A section that changes nothing leaves copies as they are.
    run.push(acquire(0, X, 1100).version(4));
    run.push(release(0, X, 1110).version(5));
    run
}

fn planted(records: Vec<Made>) -> Vec<Record> {
    in_order(records)
}

fn judge(records: &[Record]) -> Verdict {
    verdict_of(records, &Completeness::default())
}

/// The run is refuted by this kind, and so are the records of the counter-example, or those and what they lack.
#[track_caller]
fn refuted(kind: Kind, records: Vec<Made>) -> Vec<Record> {
    let verdict = judge(&planted(records));
    assert_eq!(verdict.state, State::Violated, "{kind}: {verdict:#?}");
    let found = verdict.violations.iter().find(|v| v.kind == kind);
    let found = found.unwrap_or_else(|| panic!("no {kind}: {verdict:#?}"));
    assert!(
        (1..=MOST_RECORDS).contains(&found.records.len()),
        "{found:?}"
    );
    found.records.clone()
}

/// As [`refuted`], and the counter-example alone refutes the contract by the same kind.
#[track_caller]
fn refuted_alone(kind: Kind, records: Vec<Made>) {
    let example = refuted(kind, records);
    let mut sorted = example;
    sorted.sort_by_key(|r| r.start);
    let again = judge(&sorted);
    let found = again.violations.iter().any(|v| v.kind == kind);
    assert!(
        found,
        "{kind} is not in its own counter-example: {sorted:#?}, {again:#?}"
    );
}

#[test]
fn a_run_that_keeps_the_contract_is_accepted() {
    let verdict = judge(&planted(healthy()));
    assert_eq!(verdict.state, State::Consistent, "{verdict:#?}");
    assert_eq!(verdict.looked.barriers, 4);
    assert!(verdict.looked.reads >= 4 && verdict.looked.sections >= 4);
}

#[test]
fn two_holders() {
    refuted_alone(
        Kind::TwoHolders,
        vec![
            acquire(0, X, 100).version(0),
            acquire(1, X, 110).version(0),
            release(0, X, 120).version(1),
            release(1, X, 130).version(2),
        ],
    );
}

#[test]
fn a_lock_that_seems_to_pass_on_early_by_a_clock_that_was_corrected_is_not_accused_within_its_bound()
 {
    let mut run = section(0, X, 100, 0);
    run[2] = release(0, X, 120).version(1).took(50);
    run.push(acquire(1, X, 125).version(1).took(20).at_owner());
    run.push(acquire(1, X, 122).version(1).took(30));
    let clock = |error| ProcessClock {
        mp: MpId(0),
        offset_ns: -1_315_388_279,
        drift_ppb: 57_978,
        error: Some(Nanos(error)),
    };
    let judged = |error| {
        let mut catalog = catalog();
        catalog.clocks = vec![clock(error)];
        let mut verifier = Verifier::new(catalog, Options::default());
        in_order(run.clone()).iter().for_each(|r| verifier.add(r));
        verifier.finish(&Completeness::default(), false, &[])
    };
    let accused = |v: &Verdict| v.violations.iter().any(|v| v.kind == Kind::GrantedTooEarly);
    // 25 ns too early.
    assert!(accused(&judged(12)));
    assert!(!accused(&judged(13)), "{:#?}", judged(13));
}

#[test]
fn a_lock_that_passes_on_before_the_release_is_complete() {
    let mut run = section(0, X, 100, 0);
    run[2] = release(0, X, 120).version(1).took(50);
    run.push(acquire(1, X, 125).version(1).took(20).at_owner());
    run.push(acquire(1, X, 122).version(1).took(30));
    refuted_alone(Kind::GrantedTooEarly, run);
}

#[test]
fn a_request_granted_out_of_turn() {
    let run = vec![
        acquire(1, X, 100).version(1).took(90).at_owner(),
        acquire(2, X, 110).version(0).took(20).at_owner(),
    ];
    refuted_alone(Kind::OutOfTurn, run);
}

#[test]
fn a_lock_granted_to_its_holder() {
    let run = vec![
        acquire(0, X, 100).version(0),
        acquire(0, X, 200).version(0),
        release(0, X, 300).version(1),
    ];
    refuted_alone(Kind::AcquiredTwice, run);
}

#[test]
fn a_lock_whose_release_failed_and_was_done_may_be_granted_again() {
    let mut run = section(0, X, 100, 0);
    // Its response came too late: the owner had done it.
    run.push(acquire(1, X, 200).version(1));
    run.push(release(1, X, 210).version(0).failed());
    run.push(acquire(1, X, 300).version(2));
    run.push(release(1, X, 310).version(3));
    let verdict = judge(&planted(run));
    assert!(verdict.violations.is_empty(), "{verdict:#?}");
}

#[test]
fn a_release_without_a_section() {
    refuted_alone(
        Kind::ReleasedWithoutSection,
        vec![release(0, X, 300).version(1)],
    );
}

#[test]
fn an_epoch_that_counts_again() {
    let mut run = vec![
        acquire(1, X, 100).version(0),
        release(1, X, 200).version(0).failed().at_owner(),
    ];
    run.extend(section(0, X, 300, 0));
    run.push(release(1, X, 400).version(2));
    refuted_alone(Kind::OldSection, run);
}

#[test]
fn a_grant_of_an_old_version() {
    let mut run = section(0, X, 100, 0);
    run.extend(all_at(1, 200));
    run.extend(section(1, X, 300, 0));
    refuted(Kind::StaleGrant, run);
}

/// Sections of process `ap` that it held in itself, made known at `at`.
fn own_sections(ap: u32, at: u64, count: u32, versions: (u64, u64)) -> Vec<Made> {
    let of_sections = |made: Made| {
        made.set(|r| {
            (r.count, r.flags.in_process, r.range) = (count, true, (0, 0));
            r.flags.own_clock = true;
            r.duration = dosmos_proto::Nanos(0);
        })
    };
    vec![
        of_sections(acquire(ap, X, at - 40).version(versions.0)),
        of_sections(release(ap, X, at).version(versions.1)),
    ]
}

#[test]
fn sections_that_a_process_held_in_itself_come_before_what_follows() {
    let run = |seen: u64| {
        let mut run = own_sections(0, 1_000, 5, (0, 5));
        run.extend(all_at(1, 1_000 + 50));
        run.extend(section(1, X, 1_000 + 100, seen));
        run
    };
    let verdict = judge(&planted(run(5)));
    assert!(verdict.violations.is_empty(), "{verdict:#?}");
    // From within their versions, and from before them.
    refuted(Kind::TwoHolders, run(3));
    refuted(Kind::VersionReused, run(4));
}

/// When a section in the process began is not known, only that it was not before the last report.
#[test]
fn a_message_before_a_section_in_the_process_began_is_not_in_it() {
    let mut run = section(0, X, 100, 0);
    run.push(read(0, X, 200).version(1));
    run.push(acquire(1, X, 300).version(1));
    run.push(release(1, X, 310).version(2));
    // It may have begun from 150 on, and began when the version was 2.
    let mut own = own_sections(0, 1_000, 1, (2, 3));
    own[0] = own[0].took(840).set(|r| r.start = Nanos(150));
    run.extend(own);
    let verdict = judge(&planted(run));
    assert!(verdict.violations.is_empty(), "{verdict:#?}");
}

#[test]
fn a_version_made_twice() {
    let mut run = section(0, X, 100, 0);
    run.push(acquire(1, X, 200).version(0));
    run.push(release(1, X, 220).version(1));
    refuted_alone(Kind::VersionReused, run);
}

#[test]
fn a_version_that_goes_back() {
    let mut run = section(0, X, 100, 0);
    run.extend(section(0, X, 200, 1));
    run.push(acquire(0, X, 300).version(2));
    run.push(release(0, X, 320).version(1));
    refuted_alone(Kind::VersionBack, run);
}

#[test]
fn a_release_in_two_steps() {
    let mut run = section(0, X, 100, 0);
    run[1] = write(0, X, 120)
        .version(2)
        .took(0)
        .with_release()
        .range(0, 8);
    refuted_alone(Kind::TornRelease, run);
}

#[test]
fn a_copy_that_is_read_although_it_is_out_of_date() {
    let mut run = section(0, X, 100, 0);
    run.extend(all_at(1, 200));
    run.push(read(1, X, 300).version(0).cached());
    refuted(Kind::StaleCopy, run);
    // By locks instead of the barrier.
    let mut run = section(0, X, 100, 0);
    run.extend(section(0, Y, 200, 0));
    run.extend(section(1, Y, 300, 1));
    run.push(read(1, X, 400).version(0).cached());
    refuted(Kind::StaleCopy, run);
}

#[test]
fn a_copy_in_a_process_that_seems_out_of_date_is_undecided() {
    let mut run = section(0, X, 100, 0);
    run.extend(all_at(1, 200));
    run.push(read(1, X, 300).version(0).inside().count(10));
    let verdict = judge(&planted(run));
    assert_eq!(verdict.state, State::Undecided, "{verdict:#?}");
    assert!(verdict.doubts[0].why.contains("their own clocks"));
}

#[test]
fn a_write_that_the_owner_lost() {
    let mut run = vec![write(0, X, 100).version(3)];
    run.extend(all_at(1, 200));
    run.push(read(1, X, 300).version(3));
    let example = refuted(Kind::LostWrite, run);
    assert_eq!(example.len(), 4, "write, both at the barrier, read");
}

/// What is said of a write of `x`, with replicas, that was answered with version 1 and is read as this version after a barrier.
fn of_a_replicated_write(read_as: u64) -> Verdict {
    let mut run = vec![write(0, X, 100).version(1)];
    run.extend(all_at(1, 200));
    run.push(read(1, X, 300).version(read_as));
    let mut catalog = catalog();
    catalog.variables[0] = replicated(&catalog.variables[0]);
    let mut verifier = Verifier::new(catalog, Options::default());
    planted(run).iter().for_each(|r| verifier.add(r));
    verifier.finish(&Completeness::default(), false, &[])
}

#[test]
fn a_write_of_what_has_replicas_is_published_as_its_own_version() {
    let verdict = of_a_replicated_write(1);
    assert_eq!(verdict.state, State::Consistent, "{verdict:#?}");
    let verdict = of_a_replicated_write(0);
    assert_eq!(verdict.violations[0].kind, Kind::LostWrite, "{verdict:#?}");
}

#[test]
fn an_own_write_that_is_not_read() {
    let mut run = section(0, X, 100, 0);
    run.push(write(1, X, 200).version(1));
    run.push(read(1, X, 210).version(0).cached());
    refuted_alone(Kind::OwnWriteMissed, run);
}

#[test]
fn a_process_that_reads_backwards() {
    let mut run = section(0, X, 100, 0);
    run.push(read(1, X, 200).version(1));
    run.push(read(1, X, 210).version(0));
    refuted(Kind::ReadBack, run);
}

#[test]
fn a_copy_of_two_versions() {
    let mut run = section(0, X, 100, 0);
    // Two processes read different parts of one copy.
    run.push(read(1, X, 200).version(1).cached().range(0, 4));
    let other = read(2, X, 210).version(0).cached().range(4, 8);
    run.push(other.set(|r| r.mp = MpId(1)));
    refuted(Kind::FracturedCopy, run);
}

/// A release whose requester heard nothing may have been done at the owner.
#[test]
fn a_version_that_a_failed_release_may_have_made_is_not_accused() {
    let mut run = section(0, X, 100, 0);
    run.push(acquire(2, X, 200).version(1));
    run.push(write(2, X, 210).version(1));
    run.push(release(2, X, 220).failed());
    run.push(read(1, X, 300).version(2));
    let verdict = judge(&planted(run));
    let unmade = verdict
        .violations
        .iter()
        .any(|v| v.kind == Kind::UnmadeVersion);
    assert!(!unmade, "{verdict:#?}");
}

#[test]
fn a_version_that_nobody_made() {
    let mut run = section(0, X, 100, 0);
    run.push(read(1, X, 200).version(7));
    refuted(Kind::UnmadeVersion, run);
}

#[test]
fn a_version_seen_before_it_was_made() {
    let run = vec![
        read(0, X, 50).version(1),
        acquire(0, X, 100).version(0),
        release(0, X, 200).version(1),
    ];
    refuted(Kind::ReadAhead, run);
}

#[test]
fn an_access_from_before_its_section() {
    let mut run = section(0, X, 100, 0);
    run.push(acquire(1, X, 200).version(1));
    run.push(read(1, X, 210).version(0).cached());
    run.push(release(1, X, 220).version(2));
    refuted_alone(Kind::StaleSection, run);
}

#[test]
fn a_barrier_that_is_left_early() {
    let late = 100_000_000;
    let run = vec![
        barrier(0, 1, (100, 200)),
        barrier(1, 1, (150, late + 20)),
        barrier(2, 1, (late, late + 20)),
    ];
    refuted(Kind::BarrierLeftEarly, run);
}

/// It came, and gave up as the barrier opened.
#[test]
fn a_barrier_that_opens_as_a_participant_gives_up_is_undecided() {
    let mut run = all_at(1, 100);
    run.extend([barrier(0, 2, (200, 210)), barrier(1, 2, (200, 210))]);
    run.push(barrier(2, 0, (190, 210)).failed());
    let verdict = judge(&planted(run));
    assert_eq!(verdict.state, State::Undecided, "{verdict:#?}");
    assert!(verdict.violations.is_empty(), "{verdict:#?}");
    let why = &verdict.doubts[0].why;
    assert!(why.contains("arrival"), "{why}");
}

/// It came before the others left, was cut off as the barrier opened, and came again to hear that it had.
#[test]
fn a_participant_that_gave_up_may_have_come_before_the_others_left() {
    let late = 200 + Nanos::from(SECOND).0;
    let mut run = all_at(1, 100);
    run.extend([barrier(0, 2, (200, 210)), barrier(1, 2, (200, 210))]);
    run.push(barrier(2, 0, (190, late)).failed());
    run.push(barrier(2, 2, (late, late + 10)));
    let verdict = judge(&planted(run));
    assert_eq!(verdict.state, State::Undecided, "{verdict:#?}");
    assert!(verdict.violations.is_empty(), "{verdict:#?}");
}

/// It gave up, and did not come again.
fn gave_up_for(apart: Duration) -> Vec<Made> {
    let mut run = all_at(1, 100);
    run.push(barrier(2, 0, (190, 200)).failed());
    let later = 200 + Nanos::from(apart).0;
    let passed = |ap| barrier(ap, 2, (later, later + 10));
    run.extend([passed(0), passed(1)]);
    run
}

#[test]
fn a_barrier_that_opens_long_after_a_participant_gave_up() {
    refuted(Kind::BarrierMissed, gave_up_for(GONE_AFTER + SECOND));
}

/// The network may have been cut, so that its coordinator did not hear of it.
#[test]
fn a_barrier_that_opens_before_it_can_be_known_that_a_participant_gave_up_is_undecided() {
    let verdict = judge(&planted(gave_up_for(GONE_AFTER - SECOND)));
    assert_eq!(verdict.state, State::Undecided, "{verdict:#?}");
    assert!(verdict.violations.is_empty(), "{verdict:#?}");
}

#[test]
fn a_barrier_that_opens_without_a_participant() {
    let mut run = all_at(1, 100);
    run.extend([barrier(0, 2, (200, 210)), barrier(1, 2, (200, 210))]);
    run.push(read(2, X, 300));
    refuted(Kind::BarrierMissed, run);
}

#[test]
fn a_barrier_passed_twice() {
    let mut run = all_at(1, 100);
    run.push(barrier(0, 1, (200, 210)));
    refuted_alone(Kind::BarrierRepeated, run);
}

#[test]
fn a_copy_in_another_group() {
    refuted_alone(Kind::CopyAcrossGroups, vec![read(2, X, 100).cached()]);
}

#[test]
fn another_owner() {
    let elsewhere = read(1, X, 100).set(|r| r.peer = MpId(1));
    refuted_alone(Kind::WrongOwner, vec![elsewhere]);
}

#[test]
fn elements_that_are_not_there() {
    refuted_alone(Kind::OutsideObject, vec![read(0, X, 100).range(4, 9)]);
}

#[test]
fn an_answer_that_is_not_what_was_served() {
    let mut run = section(0, X, 100, 0);
    run.extend(all_at(1, 200));
    run.push(read(1, X, 300).version(1).at_owner());
    run.push(read(1, X, 298).version(2).took(10));
    let example = refuted(Kind::AnswerDiffers, run);
    assert_eq!(example.len(), 2);
}

#[test]
fn a_request_that_is_served_twice() {
    let run = vec![
        write(1, X, 100),
        write(1, X, 101).at_owner(),
        write(1, X, 103).at_owner(),
    ];
    refuted(Kind::ServedTwice, run);
}

#[test]
fn a_request_that_is_not_served() {
    let run = vec![
        write(1, X, 100),
        write(1, X, 101).at_owner(),
        write(1, X, 200),
    ];
    refuted(Kind::NeverServed, run);
}

#[test]
fn an_unlocked_read_modify_write_of_four_steps_is_a_race_with_both_accesses() {
    let mut run = Vec::new();
    for ap in 0..3 {
        run.push(read(ap, X, 100 + u64::from(ap)).range(0, 1));
        run.push(write(ap, X, 200 + u64::from(ap)).range(0, 1));
    }
    let example = refuted(Kind::DataRace, run);
    assert_eq!(example.len(), 2);
    assert_ne!(example[0].ap, example[1].ap);
    assert!(example.iter().any(|r| r.op == Op::Write));
}

#[test]
fn what_is_ordered_or_apart_or_atomic_is_no_race() {
    // Ordered by a lock.
    let mut run = section(0, X, 100, 0);
    run.extend(section(1, X, 200, 1));
    // Different elements.
    run.push(write(0, Y, 300).range(0, 4));
    run.push(write(1, Y, 301).range(4, 8));
    run.extend(all_at(1, 400));
    // Atomic operations, and who looks at them.
    run.push(write(0, Y, 500).version(1).range(0, 1).atomic());
    run.push(write(1, Y, 501).version(1).range(0, 1).atomic());
    run.push(read(2, Y, 502).version(1).range(0, 1));
    // A write of one element is one step at the owner, too.
    run.push(write(0, Y, 510).version(1).range(1, 2));
    run.push(write(1, Y, 511).version(1).range(1, 2).atomic());
    // What an atomic operation hands over.
    run.push(write(0, X, 600).version(2).range(0, 1));
    run.push(write(0, Y, 620).version(1).range(0, 1).atomic());
    run.push(write(1, Y, 640).version(1).range(0, 1).atomic());
    run.push(write(1, X, 660).version(2).range(0, 1));
    let verdict = judge(&planted(run));
    assert_eq!(verdict.state, State::Consistent, "{verdict:#?}");
}

/// The races of a run, of which reads of what was released do not count.
fn races_but_of_released(run: Vec<Made>) -> Vec<[bool; 2]> {
    let options = Options {
        unlocked_reads: false,
        ..Options::default()
    };
    let mut verifier = Verifier::new(catalog(), options);
    in_order(run).iter().for_each(|r| verifier.add(r));
    let verdict = verifier.finish(&Completeness::default(), false, &[]);
    let races = verdict.violations.iter();
    let races = races.filter(|v| v.kind == Kind::DataRace);
    races.map(|v| v.in_sections.unwrap()).collect()
}

#[test]
fn reads_of_what_was_released_are_races_unless_they_are_not_asked_for() {
    let mut run = section(0, X, 100, 0);
    run.push(read(1, X, 200).version(1));
    refuted(Kind::DataRace, run.clone());
    assert_eq!(races_but_of_released(run), [[false; 2]; 0]);
    // A write that needs the lock as well.
    let mut run = section(0, X, 100, 0);
    run.push(write(1, X, 200).version(1));
    assert_eq!(races_but_of_released(run), [[true, false]]);
}

#[test]
fn a_write_in_a_section_does_not_hide_the_one_outside_before_it() {
    let mut run = vec![write(0, X, 50)];
    run.extend(section(0, X, 100, 0));
    run.push(read(1, X, 200).version(1));
    assert_eq!(races_but_of_released(run), [[false, false]]);
}

#[test]
fn a_race_of_unknown_elements_is_undecided() {
    let run = vec![
        write(0, X, 100).inside().count(5),
        read(1, X, 110).inside().count(5),
    ];
    let verdict = judge(&planted(run));
    assert_eq!(verdict.state, State::Undecided, "{verdict:#?}");
    assert!(verdict.doubts[0].question.contains("data races on x"));
}

#[test]
fn accesses_to_other_elements_are_no_race_wherever_they_were() {
    let run = |first: u32| {
        vec![
            write(0, X, 100).inside().range(0, 3).count(5),
            read(1, X, 110).inside().range(first, 4).count(5),
            write(1, X, 130).range(4, 6),
        ]
    };
    let verdict = judge(&planted(run(3)));
    assert_eq!(verdict.state, State::Consistent, "{verdict:#?}");
    // The ranges hold what was accessed; they need not have been accessed as a whole.
    let verdict = judge(&planted(run(2)));
    assert_eq!(verdict.state, State::Undecided, "{verdict:#?}");
    assert!(verdict.doubts[0].question.contains("data races on x"));
}

#[test]
fn what_is_fetched_ahead_of_accesses_is_no_race() {
    let run = |ahead: bool| {
        let mut run = vec![read(1, X, 90).set(|r| r.flags.ahead = ahead)];
        run.extend(section(0, X, 100, 0));
        run[2] = write(0, X, 110).version(0).range(0, 1);
        run
    };
    let verdict = judge(&planted(run(true)));
    assert_eq!(verdict.state, State::Consistent, "{verdict:#?}");
    refuted(Kind::DataRace, run(false));
}

/// Copies may come into application processes, so not all that was done there was done in sections.
#[test]
fn sections_of_an_object_do_not_hide_races_beside_them() {
    let mut run = section(0, X, 100, 0);
    run.push(write(0, X, 200).version(1).inside().count(5));
    run.push(read(1, X, 210).version(1).inside().count(5));
    let verdict = judge(&planted(run));
    assert_eq!(verdict.state, State::Undecided, "{verdict:#?}");
    assert!(verdict.doubts[0].question.contains("data races on x"));
}

/// What makes records fewer than they were, and a word of what would decide.
fn losses() -> Vec<(Completeness, &'static str)> {
    let whole = Completeness {
        recorded: 100,
        ..Completeness::default()
    };
    let mut all = Vec::new();
    let mut lose = |change: fn(&mut Completeness), word| {
        let mut less = whole.clone();
        change(&mut less);
        all.push((less, word));
    };
    lose(|c| c.dropped = 1, "buffer_bytes");
    lose(|c| c.removed = 1, "retention");
    lose(|c| c.damaged = 1, "undamaged");
    lose(|c| c.sampling = 0.5, "sampling");
    lose(|c| c.unselected = 5, "selection");
    lose(|c| c.missing.push("emp1".into()), "event managers");
    lose(|c| c.missing_stores.push("emp1".into()), "stores");
    lose(|c| c.silent.push("mp1".into()), "end in order");
    lose(|c| c.corrupt_chunks = 1, "undamaged");
    all
}

#[test]
fn with_records_lost_a_run_is_undecided_and_what_would_decide_it_is_said() {
    for (completeness, word) in losses() {
        let verdict = verdict_of(&planted(healthy()), &completeness);
        assert_eq!(verdict.state, State::Undecided, "{completeness:?}");
        let said = verdict.doubts.iter().any(|d| d.decided_by.contains(word));
        assert!(said, "{word}: {:?}", verdict.doubts);
    }
}

#[test]
fn what_a_lost_record_could_explain_is_withheld_and_what_it_cannot_is_not() {
    let lost = Completeness {
        recorded: 10,
        dropped: 1,
        ..Completeness::default()
    };
    let explained = planted(vec![release(0, X, 300).version(1)]);
    let verdict = verdict_of(&explained, &lost);
    assert_eq!(verdict.state, State::Undecided);
    let withheld = |d: &dosmos_verify::Doubt| d.question.contains("released-without-section");
    assert!(verdict.doubts.iter().any(withheld), "{verdict:#?}");
    let mut run = section(0, X, 100, 0);
    run.extend(all_at(1, 200));
    run.push(read(1, X, 300).version(0).cached());
    let verdict = verdict_of(&planted(run), &lost);
    assert_eq!(verdict.state, State::Violated);
}

/// The release and the acquire that order two accesses may be among the records that are lost.
#[test]
fn a_race_is_withheld_while_records_are_lost() {
    let lost = Completeness {
        recorded: 10,
        dropped: 2,
        ..Completeness::default()
    };
    let run = planted(vec![write(0, X, 100), write(1, X, 200)]);
    let verdict = verdict_of(&run, &lost);
    assert_eq!(verdict.state, State::Undecided, "{verdict:#?}");
    let withheld = |d: &dosmos_verify::Doubt| d.question.contains("data-race");
    assert!(verdict.doubts.iter().any(withheld), "{verdict:#?}");
    assert_eq!(judge(&run).state, State::Violated);
}

#[test]
fn nothing_recorded_is_not_fine() {
    assert_eq!(judge(&[]).state, State::Undecided);
    let sampled = read(0, X, 100).set(|r| r.flags.sampled = true);
    assert_eq!(judge(&planted(vec![sampled])).state, State::Undecided);
}

#[test]
fn clocks_that_differ_less_than_is_waited_for_change_nothing() {
    // ap1 at mp1 is 20 ms behind: its grant is recorded before the release that it came after.
    let behind = 20_000_000;
    let mut run = Vec::new();
    let (mut version, base) = (0, 100_000_000);
    for turn in 0..20 {
        let ap = (turn % 2) as u32;
        let at = base + turn * 1000 - if ap == 1 { behind } else { 0 };
        run.extend(section(ap, X, at, version));
        version += 1;
    }
    let verdict = judge(&planted(run));
    assert_eq!(verdict.state, State::Consistent, "{verdict:#?}");
    // By more than is waited for it is said.
    let mut run = Vec::new();
    for turn in 0..4 {
        let ap = (turn % 2) as u32;
        let at = 2 * base + turn * 1000 - if ap == 1 { base } else { 0 };
        run.extend(section(ap, X, at, turn));
    }
    run.push(read(0, Y, 3 * base));
    let verdict = judge(&planted(run));
    assert_eq!(verdict.state, State::Undecided, "{verdict:#?}");
}

#[test]
fn who_waits_goes_on_in_the_order_of_time_after_a_pause_of_everybody() {
    let later = 3_000_000_000;
    // Writes outside sections made version 7 of `y` and version 3 of `x`: no release that is waited for comes.
    let run = [
        read(1, Y, 50).version(7),
        acquire(1, Y, 100).version(7),
        acquire(0, X, 110).version(3),
        release(0, X, 120).version(4),
        acquire(1, X, 112).took(25).version(4),
        release(1, X, 150).version(5),
        release(1, Y, 160).version(8),
        read(2, X, later).version(5),
    ];
    let mut writes = vec![write(2, X, 10).count(3), write(2, Y, 20).count(7)];
    writes.extend(run);
    let verdict = verdict_of(&in_order(writes), &Completeness::default());
    let order = verdict.doubts.iter().find(|d| d.question.contains("order"));
    assert!(order.is_none(), "{verdict:#?}");
}

#[test]
fn what_a_process_did_not_publish_is_not_published_by_the_next_of_its_name() {
    let run = |first: bool| {
        let begins = acquire(1, Y, 200).set(|r| r.flags.first = first);
        let mut run = vec![write(1, X, 100), begins, release(1, Y, 210).version(1)];
        run.extend([acquire(0, Y, 220).version(1), read(0, X, 230)]);
        run
    };
    refuted(Kind::LostWrite, run(false));
    let verdict = judge(&planted(run(true)));
    assert!(verdict.violations.is_empty(), "{verdict:#?}");
}

#[test]
fn what_was_written_while_a_release_failed_may_not_be_published_by_the_next() {
    let run = |failed: Made| {
        let mut run = vec![acquire(1, Y, 90), failed, write(1, X, 110).took(20)];
        run.push(release(1, Y, 210).version(1));
        run.extend([acquire(0, Y, 220).version(1), read(0, X, 230)]);
        run
    };
    let release_of = |took| release(1, Y, 100).took(took).failed();
    refuted(Kind::LostWrite, run(release_of(5)));
    let verdict = judge(&planted(run(release_of(50))));
    assert!(verdict.violations.is_empty(), "{verdict:#?}");
    assert_eq!(verdict.state, State::Undecided);
}

#[test]
fn failures_are_no_violations() {
    let run = vec![
        write(0, X, 100),
        release(0, X, 110).failed(),
        read(1, X, 120).failed(),
        of(1, Op::Acquire, X, 130).failed(),
    ];
    let verdict = judge(&planted(run));
    assert_eq!(verdict.state, State::Undecided, "{verdict:#?}");
    assert!(verdict.violations.is_empty());
    let inter = read(2, X, 100);
    assert_eq!(inter.0.origin, Origin::Inter);
    assert_eq!(catalog().variables.len(), 2);
}
