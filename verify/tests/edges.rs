//! The edges of the rules of sections, places and data races: what is just not accused, and what is only doubted.

#![allow(clippy::unwrap_used)] // a test may

mod common;

use common::{
    Made, X, Y, acquire, all_at, consistent, judge, judge_with, kinds, question, read, release,
    replicated, section, with_x, write,
};
use dosmos_proto::{GroupId, LockKind, MpId, Variable};
use dosmos_verify::{Kind, State, Verdict};

/// Without what follows from requests that no owner has a record of.
fn kinds_but_unserved(verdict: &Verdict) -> Vec<Kind> {
    let mut kinds = kinds(verdict);
    kinds.retain(|k| *k != Kind::NeverServed);
    kinds
}

// ---- Sections.

#[test]
fn what_is_written_in_a_section_is_published_by_its_release_alone() {
    // A section that is not released publishes nothing at a barrier.
    let mut run = vec![acquire(1, X, 100), write(1, X, 110)];
    run.extend(all_at(1, 200));
    run.push(read(0, X, 300).version(0));
    let verdict = judge(run);
    assert!(!kinds(&verdict).contains(&Kind::LostWrite), "{verdict:#?}");
}

#[test]
fn a_write_whose_section_the_owner_ended_is_published_by_nothing() {
    let run = |asked: u64| {
        // The section of ap1 ends at 150, by its owner; the answer to the write comes after that.
        let mut run = vec![acquire(1, X, 100), write(1, X, asked).took(200)];
        run.push(release(1, X, 150).failed().at_owner());
        run.extend(all_at(1, 20_000_000));
        run.push(read(0, X, 20_000_300).version(0));
        kinds(&judge(run)).contains(&Kind::LostWrite)
    };
    assert!(!run(110));
    // Within what clocks can be apart it may have been in it, later not.
    assert!(!run(150 + 10_000_000));
    assert!(run(151 + 10_000_000));
}

#[test]
fn a_section_that_the_owner_ended_before_its_grant_arrived_never_was() {
    // Granted, and ended since its process is lost; the next of its name releases what it holds.
    let mut run = vec![acquire(1, X, 100).took(100)];
    run.push(release(1, X, 150).failed().at_owner());
    run.extend(section(0, X, 300, 0));
    run.push(release(1, X, 400).version(2));
    assert_eq!(
        kinds_but_unserved(&judge(run)),
        [Kind::ReleasedWithoutSection]
    );
}

#[test]
fn an_end_by_the_owner_of_an_earlier_section_changes_nothing_for_a_later_one() {
    let mut run = section(0, X, 100, 0);
    run.push(acquire(1, X, 200).version(1));
    // Of a section that began with version 0.
    run.push(release(1, X, 250).version(0).failed().at_owner());
    run.push(release(1, X, 300).version(2));
    assert_eq!(kinds_but_unserved(&judge(run)), []);
}

/// The owner granted it twice, and ended the first, of which the process heard nothing.
#[test]
fn a_grant_of_a_variable_with_replicas_may_be_one_that_was_asked_for_again() {
    let mut run = vec![acquire(1, X, 100).took(100)];
    run.push(release(1, X, 150).failed().at_owner());
    run.push(release(1, X, 300).version(1));
    let verdict = judge_with(with_x(replicated), run);
    assert_eq!(kinds_but_unserved(&verdict), []);
}

/// Its clock is another: what it ended was granted before, and never arrived, or later, and was not waited for.
#[test]
fn an_end_by_one_that_serves_what_has_replicas_may_be_of_another_grant_than_that_of_the_section() {
    for version in [0, 1] {
        let run = [
            acquire(1, X, 100),
            release(1, X, 150).failed().at_owner().version(version),
            release(1, X, 300).version(2),
        ];
        let verdict = judge_with(with_x(replicated), run);
        assert_eq!(kinds_but_unserved(&verdict), []);
        let doubts = verdict.doubts.iter();
        let asked = doubts.filter(|d| d.question.contains("had ended")).count();
        assert_eq!(asked, 1, "{:?}", verdict.doubts);
    }
}

#[test]
fn an_end_by_one_that_served_the_object_before_changes_nothing_for_a_section_that_another_granted()
{
    for took in [10, 100] {
        let mut run = vec![acquire(1, X, 100).took(took).set(|r| r.peer = MpId(1))];
        run.push(release(1, X, 150).failed().at_owner());
        run.push(release(1, X, 300).version(1).set(|r| r.peer = MpId(1)));
        assert_eq!(kinds_but_unserved(&judge_with(with_x(replicated), run)), []);
    }
}

#[test]
fn an_end_is_of_the_section_that_its_owner_granted_last() {
    // By the owner's clock, which is behind, the second section is granted and ended before the first is released by that of its
    // process, which gave up waiting for the second.
    // Requests that reach the owner meanwhile are granted after the end.
    let run = |second: u64, later: Vec<Made>| {
        let mut run = vec![
            acquire(1, X, 50).at_owner(),
            release(1, X, 80).at_owner().version(1),
            acquire(1, X, 100),
            acquire(1, X, 120).at_owner().version(second),
            release(1, X, 130).failed().at_owner().version(1),
            release(1, X, 300).version(1),
            acquire(1, X, 400).failed(),
        ];
        run.extend(later);
        run.sort_by_key(|made| made.0.start);
        kinds_but_unserved(&judge(run))
    };
    let granted = acquire(2, X, 125).took(5).version(1).at_owner();
    for later in [vec![], vec![granted, acquire(2, X, 410).failed()]] {
        assert_eq!(run(1, later.clone()), []);
        // Of a section from the version of the open one it is.
        assert_eq!(run(0, later), [Kind::ReleasedWithoutSection]);
    }
}

#[test]
fn an_end_may_be_of_a_grant_that_its_process_did_not_wait_for() {
    // By the owner's clock, which is ahead, what it granted too late ended after the next section had begun.
    let run = |gave_up: Made| {
        kinds_but_unserved(&judge([
            gave_up,
            acquire(1, X, 100),
            release(1, X, 120).failed().at_owner(),
            release(1, X, 300).version(1),
        ]))
    };
    assert_eq!(run(acquire(1, X, 50).failed()), []);
    // Another process, and another object.
    assert_eq!(run(acquire(2, X, 50).failed()), [Kind::OldSection]);
    assert_eq!(run(acquire(1, Y, 50).failed()), [Kind::OldSection]);
}

#[test]
fn one_grant_that_was_not_waited_for_explains_one_end() {
    let ended = |at| release(1, X, at).failed().at_owner();
    let run = judge([
        acquire(1, X, 50).failed(),
        acquire(1, X, 100),
        ended(120),
        release(1, X, 200).version(1),
        acquire(1, X, 300).version(1),
        ended(320).version(1),
        release(1, X, 400).version(2),
    ]);
    assert_eq!(kinds_but_unserved(&run), [Kind::OldSection]);
}

#[test]
fn a_lone_release_is_of_an_old_section_only_behind_its_end() {
    let released = |ended: Made, released: Made| {
        kinds_but_unserved(&judge([acquire(1, X, 100), ended, released]))
    };
    let ended = |at| release(1, X, at).failed().at_owner();
    assert_eq!(
        released(ended(200), release(1, X, 300).version(1)),
        [Kind::OldSection]
    );
    // With the version that the section ended with, it is not known to be later.
    let same = released(ended(200).version(1), release(1, X, 300).version(1));
    assert_eq!(same, [Kind::ReleasedWithoutSection]);
    // Somebody else's.
    let other = judge([
        acquire(2, X, 100),
        release(2, X, 200).failed().at_owner(),
        release(1, X, 300).version(1),
    ]);
    assert_eq!(kinds_but_unserved(&other), [Kind::ReleasedWithoutSection]);
}

#[test]
fn the_write_of_the_highest_version_is_what_a_torn_release_is_shown_by() {
    let inside = |at, version: u64| write(0, X, at).version(version);
    let run = vec![
        acquire(0, X, 100),
        inside(110, 0),
        inside(120, 3),
        inside(130, 1),
        release(0, X, 140).version(2),
    ];
    let verdict = judge(run);
    let torn = verdict
        .violations
        .iter()
        .find(|v| v.kind == Kind::TornRelease)
        .unwrap();
    let starts: Vec<u64> = torn.records.iter().map(|r| r.start.0).collect();
    assert_eq!(starts, [100, 120, 140]);
    // As high as the release is not torn.
    let run = vec![
        acquire(0, X, 100),
        inside(110, 0),
        inside(120, 1),
        release(0, X, 140).version(1),
    ];
    assert_eq!(kinds(&judge(run)), []);
}

#[test]
fn a_write_in_a_section_is_not_of_before_it() {
    let run = |version: u64| {
        let mut run = section(0, X, 100, 0);
        run.push(acquire(1, X, 200).version(1));
        run.push(write(1, X, 210).version(version));
        run.push(release(1, X, 220).version(2));
        kinds(&judge(run))
    };
    assert_eq!(run(1), []);
    assert_eq!(run(0), [Kind::StaleSection]);
}

#[test]
fn more_sections_than_are_kept_are_told_apart() {
    let mut run = Vec::new();
    for i in 0..6 {
        run.extend(section((i % 3) as u32, X, 100 * (i + 1), i));
    }
    consistent(run.clone());
    // Overlaps the fourth, the fifth and the sixth.
    run.extend([
        acquire(0, X, 1_000).version(3),
        write(0, X, 1_010).version(3),
        release(0, X, 1_020).version(7),
    ]);
    let found = kinds(&judge(run));
    assert_eq!(
        found.iter().filter(|k| **k == Kind::TwoHolders).count(),
        2,
        "{found:?}"
    );
}

// ---- Where things are.

#[test]
fn what_has_replicas_may_be_served_by_its_group_and_by_nobody_else() {
    let served_by = |mp| {
        let made = read(1, X, 100).set(|r| r.peer = MpId(mp));
        kinds(&judge_with(with_x(replicated), [made]))
    };
    assert_eq!(served_by(0), []);
    assert_eq!(served_by(1), []);
    assert_eq!(served_by(2), [Kind::WrongOwner]);
    assert_eq!(served_by(99), [Kind::WrongOwner]);
}

#[test]
fn copies_in_processes_and_reads_at_the_owner_cross_no_group() {
    assert_eq!(kinds(&judge([read(2, X, 100)])), []);
    assert_eq!(kinds(&judge([read(2, X, 100).cached().with_release()])), []);
    assert_eq!(kinds(&judge([read(1, X, 100).cached()])), []);
    assert_eq!(
        kinds(&judge([read(2, X, 100).cached()])),
        [Kind::CopyAcrossGroups]
    );
}

#[test]
fn the_last_element_is_inside() {
    assert_eq!(kinds(&judge([read(0, X, 100).range(4, 8)])), []);
    let verdict = judge([read(0, X, 100).range(4, 9)]);
    assert_eq!(
        verdict.violations[0].why,
        "elements 4 to 9 were accessed; x has 8"
    );
}

#[test]
fn who_failed_once_may_have_been_served_what_it_did_not_hear_of() {
    let run = |failed: bool| {
        let mut run = vec![
            write(1, X, 100),
            write(1, X, 101).at_owner(),
            write(1, X, 110).at_owner(),
        ];
        if failed {
            run.push(read(1, Y, 200).failed());
        }
        kinds(&judge(run))
    };
    assert_eq!(run(false), [Kind::ServedTwice]);
    assert_eq!(run(true), []);
}

// ---- Races.

#[test]
fn a_lock_made_of_words_leaves_races_open() {
    let spins = with_x(|v| {
        let spec = v.spec().clone().with_lock(LockKind::Spin);
        Variable::new(v.id(), spec, v.owners().to_vec(), GroupId(0)).unwrap()
    });
    let run = [write(0, X, 100), write(1, X, 200)];
    let verdict = judge_with(spins, run);
    assert_eq!(question(&verdict), "data races on x");
    assert!(verdict.doubts[0].why.contains("words in memory"));
    // And these words themselves.
    let named = |name: &str| {
        with_x(|v| {
            let spec = dosmos_proto::VariableSpec::new(name, v.spec().layout()).unwrap();
            Variable::new(v.id(), spec, v.owners().to_vec(), GroupId(0)).unwrap()
        })
    };
    for name in ["x#lock", "x#nodes"] {
        let verdict = judge_with(named(name), run);
        assert_eq!(question(&verdict), format!("data races on {name}"));
    }
    assert_eq!(kinds(&judge_with(named("lock"), run)), [Kind::DataRace]);
}

#[test]
fn a_race_says_which_elements() {
    let verdict = judge([write(0, X, 100).range(1, 5), read(1, X, 200).range(3, 8)]);
    assert_eq!(
        verdict.violations[0].why,
        "the write of ap0 and the read of ap1 touch elements 3 to 5, and no acquire, release or barrier orders them"
    );
    assert_eq!(verdict.violations[0].in_sections, Some([false, false]));
    consistent([write(0, X, 100).range(1, 3), read(1, X, 200).range(3, 8)]);
}

#[test]
fn an_access_of_unknown_elements_that_may_have_been_apart_is_undecided() {
    // Its bytes are fewer than those of the range: some of the elements were written.
    let some = write(0, X, 100).range(0, 8).set(|r| r.bytes = 24);
    let verdict = judge([some, read(1, X, 200).range(2, 3)]);
    assert_eq!(question(&verdict), "data races on x");
    // All of them, three times.
    let all = write(0, X, 100)
        .range(0, 8)
        .count(3)
        .set(|r| r.bytes = 3 * 64);
    assert_eq!(
        kinds(&judge([all, read(1, X, 200).range(2, 3)])),
        [Kind::DataRace]
    );
    // An atomic operation is of its element whatever it stored.
    let atomic = write(0, X, 100).range(2, 3).atomic().set(|r| r.bytes = 0);
    assert_eq!(
        kinds(&judge([atomic, write(1, X, 200).range(0, 8)])),
        [Kind::DataRace]
    );
}

/// Accesses that a later one hides are not kept, so a process may make as many different ones as it likes.
#[test]
fn accesses_that_a_later_one_covers_are_not_remembered() {
    let ranges = || (0..7_u32).flat_map(|first| (first + 2..9).map(move |end| (first, end)));
    let crowded = |run: Vec<Made>| {
        let verdict = judge(run);
        assert!(verdict.violations.is_empty(), "{verdict:#?}");
        !verdict.doubts.is_empty()
    };
    let with = |cover: bool| {
        let mut run = Vec::new();
        for round in 0..12 {
            let at = 100 + 1_000 * u64::from(round);
            for (i, (first, end)) in ranges().enumerate() {
                let made = match (round + i as u32) % 2 {
                    0 => read(0, X, at + 10 * i as u64),
                    _ => write(0, X, at + 10 * i as u64),
                };
                run.push(made.version(round.into()).range(first, end));
            }
            if cover {
                run.push(write(0, X, at + 900).version(round.into()));
            }
            run.extend(all_at(round + 1, at + 950));
        }
        crowded(run)
    };
    assert!(!with(true));
    assert!(!with(false), "of one process there are not that many");
    // Three processes one after the other: of those before what is covered is forgotten too.
    let mut run = Vec::new();
    for ap in 0..3 {
        let at = 100 + 10_000 * u64::from(ap);
        for (i, (first, end)) in ranges().enumerate() {
            run.push(
                read(ap, X, at + 20 * i as u64)
                    .version(ap.into())
                    .range(first, end),
            );
            run.push(
                write(ap, X, at + 20 * i as u64 + 10)
                    .version(ap.into())
                    .range(first, end),
            );
        }
        run.push(write(ap, X, at + 5_000).version(ap.into()));
        run.extend(all_at(ap + 1, at + 6_000));
    }
    assert!(!crowded(run));
}

#[test]
fn too_many_different_accesses_between_two_barriers_are_said() {
    // The largest first: none covers an earlier one.
    let ranges = || (0..8_u32).flat_map(|first| (first + 1..9).rev().map(move |end| (first, end)));
    let mut run = Vec::new();
    for ap in 0..3 {
        for (i, (first, end)) in ranges().enumerate() {
            run.push(read(ap, X, 100 + 10 * i as u64 + u64::from(ap)).range(first, end));
        }
    }
    let verdict = judge(run);
    assert_eq!(question(&verdict), "data races on x");
    assert!(verdict.doubts[0].why.starts_with("too many"));
    assert_eq!(verdict.doubts[0].count, 1);
}

// ---- Accesses in application processes, and starts of one name.

/// A section of `ap1` in itself, told of from 300 to 340, behind one by messages.
fn own_section() -> Vec<Made> {
    let mut run = section(0, X, 100, 0);
    let told = |made: Made, version: u64| made.inside().took(0).version(version);
    run.push(told(acquire(1, X, 300), 1).took(39));
    run.push(told(release(1, X, 340), 2));
    run
}

#[test]
fn what_a_process_wrote_in_itself_before_its_section_was_not_in_it() {
    let published = |at: u64| {
        let mut run = own_section();
        run.push(write(1, X, at).inside().took(0).version(1).range(0, 8));
        run.extend(all_at(1, 400));
        // At least version 2 if the section wrote it, and version 2 too if it was published by the barrier.
        run.push(read(2, X, 500).version(1));
        judge(run)
    };
    for at in [250, 300, 310] {
        let verdict = published(at);
        assert!(!verdict.doubts.is_empty(), "{at}: {verdict:#?}");
        assert_eq!(kinds(&verdict), [], "{at}");
    }
}

#[test]
fn a_grant_older_than_what_was_written_in_a_process_is_only_doubted() {
    let mut run = vec![write(0, X, 100).inside().version(3)];
    run.extend(all_at(1, 200));
    run.push(acquire(1, X, 300).version(3));
    let verdict = judge(run.clone());
    let doubted = |v: &Verdict| v.doubts.iter().any(|d| d.why.contains("their own clocks"));
    assert!(doubted(&verdict), "{verdict:#?}");
    assert_eq!(kinds(&verdict), []);
    *run.last_mut().unwrap() = acquire(1, X, 300).version(4);
    assert!(!doubted(&judge(run)));
}

#[test]
fn a_process_that_does_not_see_its_own_section_missed_its_own_write() {
    let mut run = section(0, X, 100, 0);
    run.push(read(0, X, 200).version(0));
    assert_eq!(kinds(&judge(run)), [Kind::OwnWriteMissed]);
}

#[test]
fn the_next_process_of_a_name_saw_nothing_yet() {
    let back = |first: bool| {
        let mut run = section(0, X, 100, 0);
        run.push(read(1, X, 200).version(1));
        run.push(read(2, X, 205).version(1));
        run.push(read(1, X, 210).version(0).set(|r| r.flags.first = first));
        let verdict = judge(run);
        kinds(&verdict).contains(&Kind::ReadBack)
    };
    assert!(back(false) && !back(true));
    // Others of other names did.
    let mut run = section(0, X, 100, 0);
    run.push(read(2, X, 200).version(1));
    run.push(read(1, X, 205).version(1).set(|r| r.flags.first = true));
    run.push(read(2, X, 210).version(0));
    assert!(kinds(&judge(run)).contains(&Kind::ReadBack));
}

/// Writes that leave with a release start with it, and may stand behind it in the records.
#[test]
fn what_starts_together_is_taken_writes_first() {
    let mut run = vec![
        acquire(0, X, 100),
        release(0, X, 120).version(1),
        write(0, X, 120).version(0).took(0),
    ];
    run.extend(all_at(1, 200));
    run.push(read(1, X, 300).version(1));
    consistent(run.clone());
    run[6] = read(1, X, 300).version(0);
    assert_eq!(kinds(&judge(run)), [Kind::LostWrite]);
}

#[test]
fn what_was_looked_at_is_counted() {
    let mut run = section(0, X, 100, 0);
    run.extend(all_at(1, 200));
    run.push(read(1, X, 300).version(1).count(5));
    run.push(read(1, X, 301).version(1).count(5).at_owner());
    let looked = judge(run).looked;
    assert_eq!(
        (
            looked.records,
            looked.accesses,
            looked.reads,
            looked.sections,
            looked.barriers,
            looked.objects
        ),
        (8, 11, 1, 1, 1, 1)
    );
    let names = [State::Consistent, State::Violated, State::Undecided].map(State::name);
    assert_eq!(names, ["consistent", "violated", "undecided"]);
}

#[test]
fn a_write_in_a_process_may_have_been_an_atomic_operation() {
    let inside = write(0, X, 100).inside().range(0, 1);
    let atomic = |ap| write(ap, X, 200).range(0, 1).atomic();
    let verdict = judge([inside, atomic(1)]);
    assert_eq!(verdict.state, State::Consistent, "{verdict:#?}");
    // A plain write of several elements is a conflict with either.
    let verdict = judge([inside, write(1, X, 200).range(0, 2)]);
    assert_eq!(question(&verdict), "data races on x");
}

#[test]
fn of_two_races_the_one_that_is_certain_is_told() {
    // Of the first four elements some, of the others all.
    let some = |at| write(0, X, at).range(0, 4).set(|r| r.bytes = 24);
    let all = |at| write(1, X, at).range(4, 8);
    for (first, second) in [(100, 110), (110, 100)] {
        let verdict = judge([some(first), all(second), read(2, X, 200).range(3, 6)]);
        assert_eq!(kinds(&verdict), [Kind::DataRace]);
        assert_eq!(verdict.doubts, []);
    }
}
