//! The bounds of the rules of single accesses: what belongs to a section, what a read must show, what owners served, and which
//! accesses conflict.

#![allow(clippy::unwrap_used)] // a test may

mod common;

use common::{
    Made, X, Y, acquire, all_at, catalog, consistent, judge, judge_by, judge_with, kinds, question,
    read, release, section, with_x, write,
};
use dosmos_proto::{ElementType, GroupId, Layout, MpId, Variable, VariableSpec};
use dosmos_trace::query::Catalog;
use dosmos_verify::{Kind, Options, State, Verdict, Violation};

fn of_kind(verdict: &Verdict, kind: Kind) -> Vec<&Violation> {
    let found = verdict.violations.iter();
    found.filter(|v| v.kind == kind).collect()
}

/// How many of a kind were found, with those that are not shown.
fn count(verdict: &Verdict, kind: Kind) -> u64 {
    let found = of_kind(verdict, kind);
    found.iter().map(|v| 1 + v.more).sum()
}

/// When the records of an example begin.
fn starts(violation: &Violation) -> Vec<u64> {
    violation.records.iter().map(|r| r.start.0).collect()
}

/// The catalog with `x` of as many objects as it says, each of one element, all at mp0.
fn with_single_elements(objects: u64) -> Catalog {
    with_x(|v| {
        let layout = Layout::new(ElementType::F64, (1, objects), (1, objects as u32)).unwrap();
        let spec = VariableSpec::new("x", layout).unwrap();
        let owners = vec![MpId(0); objects as usize];
        Variable::new(v.id(), spec, owners, GroupId(0)).unwrap()
    })
}

fn second(made: Made) -> Made {
    made.set(|r| r.object.index = 1)
}

// ---- Sections.

/// Writes in the application process are of its sections if these were held there and had begun; all others made versions of
/// their own.
#[test]
fn a_write_in_a_process_makes_a_version_unless_it_is_in_a_section_there() {
    let unmade = |begins: Made, ends: Made, at: u64| {
        let mut run = vec![begins, write(1, X, at).inside().range(0, 8), ends];
        run.extend(all_at(1, 400));
        run.push(read(0, X, 500).version(2));
        kinds(&judge(run)).contains(&Kind::UnmadeVersion)
    };
    let (begins, ends) = (acquire(1, X, 300), release(1, X, 340).version(1));
    assert!(!unmade(begins, ends, 310));
    let there = |made: Made| made.inside().took(0);
    let (begins, ends) = (there(begins), there(ends));
    assert!(!unmade(begins, ends, 290));
    assert!(!unmade(begins, ends, 300));
    assert!(unmade(begins, ends, 301));
    assert!(unmade(begins, ends, 320));
}

/// By its section, or by the barrier if it began before the section or with it, also if it was over later.
#[test]
fn what_a_process_wrote_in_itself_is_published() {
    for at in [250, 290, 295, 300, 301, 330] {
        let there = |made: Made| made.inside().took(0);
        let mut run = vec![write(1, X, at).inside().range(0, 8).took(8)];
        run.push(there(acquire(1, X, 300)));
        run.push(there(release(1, X, 340)).version(1));
        run.extend(all_at(1, 400));
        run.push(read(2, X, 500).version(0));
        let verdict = judge(run);
        let mut doubts = verdict.doubts.iter();
        let old = doubts.any(|d| d.question == "whether reads of x were new enough");
        assert!(old, "{at}: {verdict:#?}");
    }
}

#[test]
fn a_section_that_the_owner_ended_holds_no_writes_of_others() {
    let run = |writer: u32| {
        let mut run = vec![acquire(1, X, 100), write(writer, X, 120).took(200)];
        run.push(release(1, X, 150).failed().at_owner());
        run.extend(all_at(1, 400));
        run.push(read(2, X, 500).version(0));
        kinds(&judge(run)).contains(&Kind::LostWrite)
    };
    assert!(!run(1));
    assert!(run(0));
}

#[test]
fn of_several_sections_that_owners_ended_none_may_be_released() {
    let ended = |at| release(1, X, at).failed().at_owner();
    let verdict = judge([
        acquire(1, X, 100),
        ended(150),
        acquire(2, X, 200),
        ended(250).set(|r| r.ap = dosmos_proto::ApId(2)),
        release(1, X, 300).version(1),
        release(2, X, 400).version(2),
    ]);
    assert_eq!(count(&verdict, Kind::OldSection), 2);
    // Of two of one process it is the later one.
    let verdict = judge([
        acquire(1, X, 100),
        ended(150),
        acquire(1, X, 200),
        ended(250),
        release(1, X, 300).version(1),
    ]);
    let old = of_kind(&verdict, Kind::OldSection);
    assert_eq!(starts(old[0]), [200, 250, 300]);
}

/// Only the grant of the object whose section the owner ended is taken back.
#[test]
fn the_end_of_a_section_leaves_other_steps_of_its_process_as_they_are() {
    let run = |open: Made| {
        let mut run = vec![open];
        run.push(release(1, X, 150).failed().at_owner());
        run
    };
    // A grant of another object, of the same owner and of another one.
    let mut other = run(acquire(1, Y, 100).took(100));
    other.push(release(1, Y, 300).version(1));
    assert_eq!(count(&judge(other), Kind::ReleasedWithoutSection), 0);
    let mut other = run(second(acquire(1, X, 100)).took(100));
    other.push(second(release(1, X, 300)).version(1));
    let verdict = judge_with(with_single_elements(2), other);
    assert_eq!(count(&verdict, Kind::ReleasedWithoutSection), 0);
    // A write: it is published by the barrier.
    let mut other = run(write(1, X, 100).took(100));
    other.extend(all_at(1, 300));
    other.push(read(0, X, 400));
    assert_eq!(count(&judge(other), Kind::LostWrite), 1);
}

#[test]
fn a_section_overlaps_each_of_the_last_three() {
    let mut run = Vec::new();
    for i in 0..6 {
        run.extend(section((i % 3) as u32, X, 100 * (i + 1), i));
    }
    run.push(acquire(0, X, 1_000).version(0));
    run.push(release(0, X, 1_020).version(7));
    assert_eq!(count(&judge(run), Kind::TwoHolders), 3);
}

#[test]
fn a_release_without_a_later_version_is_not_read_ahead() {
    let mut run = section(0, X, 100, 0);
    run.push(read(0, X, 200).version(1));
    run.push(acquire(0, X, 300).version(1));
    run.push(release(0, X, 320).version(1));
    let verdict = judge(run);
    assert_eq!(kinds(&verdict), [Kind::VersionReused, Kind::VersionBack]);
}

// ---- Owners.

#[test]
fn a_request_out_of_turn_is_compared_with_the_grant_that_ended_last() {
    let grant = |ap, at, took| acquire(ap, X, at).took(took).at_owner();
    // Ends at 120, 200 and 150.
    let verdict = judge([grant(0, 100, 20), grant(1, 110, 90), grant(2, 120, 30)]);
    let found = of_kind(&verdict, Kind::OutOfTurn);
    assert_eq!(found.len(), 1, "{verdict:#?}");
    assert_eq!(starts(found[0]), [110, 120]);
    // Behind one out of turn the one before it is still the last.
    let verdict = judge([grant(0, 100, 100), grant(1, 110, 20), grant(2, 120, 20)]);
    assert_eq!(count(&verdict, Kind::OutOfTurn), 2);
    // At the same time is in turn.
    let verdict = judge([grant(0, 100, 100), grant(1, 110, 90)]);
    assert_eq!(count(&verdict, Kind::OutOfTurn), 0);
}

#[test]
fn a_lock_may_pass_on_when_the_release_is_complete() {
    let accused = |ends: u64| {
        let mut run = section(0, X, 100, 0);
        run[2] = release(0, X, 120).version(1).took(50);
        run.push(acquire(1, X, 125).version(1).took(ends - 125).at_owner());
        count(&judge(run), Kind::GrantedTooEarly) > 0
    };
    assert!(accused(169));
    assert!(!accused(170));
    assert!(!accused(171));
}

#[test]
fn what_was_served_and_what_was_told_are_not_confused() {
    for owner_first in [true, false] {
        let mut run = section(0, X, 100, 0);
        run.extend(all_at(1, 200));
        let asked = if owner_first { 302 } else { 298 };
        run.push(read(1, X, 300).version(1).at_owner());
        run.push(read(1, X, asked).version(2).took(10));
        let verdict = judge(run);
        let found = of_kind(&verdict, Kind::AnswerDiffers);
        assert_eq!(
            found[0].why,
            "the owner served version 1 and ap1 was told version 2"
        );
        assert_eq!(starts(found[0]), [300, asked]);
    }
}

// ---- Reads.

#[test]
fn a_write_that_failed_may_have_made_versions() {
    let unmade = |version: u64| {
        let run = [
            write(1, X, 100).failed().count(3),
            read(0, X, 300).version(version),
        ];
        count(&judge(run), Kind::UnmadeVersion) > 0
    };
    assert!(!unmade(3));
    assert!(unmade(4));
}

#[test]
fn a_version_that_nobody_made_is_shown_by_the_read_that_saw_it_first() {
    let verdict = judge([
        read(1, X, 200).version(7),
        read(0, X, 300).version(7),
        read(0, X, 310).version(6),
    ]);
    assert_eq!(starts(of_kind(&verdict, Kind::UnmadeVersion)[0]), [200]);
}

#[test]
fn what_begins_when_a_release_has_failed_is_published_by_the_next() {
    let lost = |failed_for: u64| {
        let failed = release(1, Y, 100).took(failed_for).failed();
        let mut run = vec![acquire(1, Y, 90), failed, write(1, X, 110)];
        run.push(release(1, Y, 210).version(1));
        run.extend([acquire(0, Y, 220).version(1), read(0, X, 230)]);
        count(&judge(run), Kind::LostWrite) > 0
    };
    assert!(lost(10));
    assert!(!lost(11));
}

/// The newest version that a process saw or wrote to counts, not the one of last.
#[test]
fn a_process_goes_back_from_the_newest_that_it_saw() {
    let mut run = section(0, X, 100, 0);
    run.extend([
        read(1, X, 50).version(0),
        read(1, X, 200).version(1),
        read(1, X, 210).version(0),
        read(1, X, 220).version(0),
    ]);
    assert_eq!(count(&judge(run), Kind::ReadBack), 2);
    let mut run = vec![write(1, X, 50).version(0)];
    run.extend(section(0, X, 100, 0));
    run.push(write(1, X, 200).version(1));
    run.push(read(1, X, 210).version(0));
    assert_eq!(count(&judge(run), Kind::OwnWriteMissed), 1);
}

#[test]
fn a_copy_that_went_back_is_told_once() {
    let copy = |ap, at, version: u64| {
        let made = read(ap, X, at).version(version).cached();
        made.set(|r| r.mp = MpId(1))
    };
    let mut run = section(0, X, 100, 0);
    run.extend([copy(1, 200, 1), copy(2, 300, 0), copy(2, 400, 0)]);
    assert_eq!(count(&judge(run), Kind::FracturedCopy), 1);
}

/// What the owner answers, and what application processes have, is no copy at a memory process.
#[test]
fn only_reads_of_a_copy_are_compared_with_it() {
    let at_mp1 = |made: Made| made.set(|r| r.mp = MpId(1));
    let fractured = |first: Made, then: Made| {
        let mut run = section(0, X, 100, 0);
        run.extend([at_mp1(first), at_mp1(then)]);
        count(&judge(run), Kind::FracturedCopy) > 0
    };
    let (new, old) = (read(1, X, 200).version(1), read(2, X, 300).version(0));
    assert!(fractured(new.cached(), old.cached()));
    assert!(!fractured(new, old.cached()));
    assert!(!fractured(new, old));
    assert!(!fractured(new.cached().with_release(), old.cached()));
    assert!(!fractured(new.cached(), old.cached().with_release()));
}

/// The version of what a process has goes up when it gives it back, so that it reads its own writes by the same version. For
/// others, and by messages, the times do not decide.
#[test]
fn only_a_process_itself_may_read_its_writes_by_the_old_version() {
    let doubted = |made: Made| {
        let mut run = vec![write(0, X, 100).inside().range(0, 8).version(3)];
        run.extend(all_at(1, 200));
        run.push(made.version(3).range(0, 8));
        let verdict = judge(run);
        let mut doubts = verdict.doubts.iter();
        doubts.any(|d| d.question == "whether reads of x were new enough")
    };
    assert!(!doubted(read(0, X, 300).inside()));
    assert!(doubted(read(0, X, 300)));
    assert!(doubted(read(1, X, 300).inside()));
    assert!(doubted(read(1, X, 300)));
}

// ---- Races.

/// A record of several writes in a process may be of atomic operations.
#[test]
fn writes_of_several_elements_in_a_process_may_have_been_atomic_operations() {
    let inside = write(0, X, 100).inside().range(0, 3).count(5);
    let atomic = write(1, X, 200).range(0, 1).atomic();
    consistent([inside, atomic]);
    // But for other writes they are writes.
    for other in [write(1, X, 200).range(0, 1), write(1, X, 200).range(0, 2)] {
        assert_eq!(question(&judge([inside, other])), "data races on x");
    }
    consistent([inside, write(1, X, 200).inside().range(0, 3)]);
}

/// What a section wrote in the process is told with its release.
#[test]
fn a_write_of_a_section_in_a_process_is_no_atomic_operation() {
    let inside = write(0, X, 120).took(0).with_release().range(0, 8);
    let verdict = judge([
        acquire(0, X, 100),
        inside,
        release(0, X, 120).version(1),
        write(1, X, 200).version(1).range(0, 1).atomic(),
    ]);
    assert_eq!(count(&verdict, Kind::DataRace), 1, "{verdict:#?}");
}

#[test]
fn elements_that_are_not_said_are_known_of_an_object_of_one() {
    let run = [
        acquire(0, X, 100),
        write(0, X, 120).took(0).with_release(),
        release(0, X, 120).version(1),
        read(1, X, 200).version(1).range(0, 1),
    ];
    let verdict = judge(run);
    assert_eq!(question(&verdict), "data races on x");
    let single = run.map(|made| made.set(|r| r.bytes = r.bytes.min(8)));
    let verdict = judge_with(with_single_elements(1), single);
    assert_eq!(count(&verdict, Kind::DataRace), 1, "{verdict:#?}");
}

/// Where the elements of accesses in a process are said, they are those of all of them: not each was accessed again, so an earlier
/// access by message is not hidden.
#[test]
fn an_access_in_a_process_hides_none_by_message() {
    let verdict = judge([
        read(0, X, 100).range(0, 4),
        read(0, X, 110).inside().range(0, 8),
        write(1, X, 200).range(0, 4),
    ]);
    assert_eq!(count(&verdict, Kind::DataRace), 1, "{verdict:#?}");
}

#[test]
fn what_may_be_races_by_the_clock_of_a_process_is_counted_once_for_an_object() {
    let told = write(0, X, 100).inside().range(0, 8);
    for i in 1..4 {
        let mut run = vec![told];
        run.extend((0..i).map(|i| read(1, X, 200 + 10 * i).range(0, 8)));
        let verdict = judge(run);
        assert_eq!(question(&verdict), "data races on x");
        assert_eq!(verdict.doubts[0].count, 1);
    }
}

#[test]
fn of_several_races_of_an_access_that_with_the_first_is_told() {
    let verdict = judge([read(0, X, 100), read(1, X, 110), write(2, X, 200)]);
    assert_eq!(count(&verdict, Kind::DataRace), 1);
    assert_eq!(starts(&verdict.violations[0]), [100, 200]);
}

/// An access as one before it by the same process takes its place.
#[test]
fn many_accesses_of_one_kind_take_no_room() {
    for unlocked_reads in [true, false] {
        let options = Options {
            unlocked_reads,
            ..Options::default()
        };
        let run = (0..500).map(|i| read(0, X, 100 + 10 * i));
        let verdict = judge_by(catalog(), options, run);
        assert_eq!(verdict.state, State::Consistent, "{verdict:#?}");
    }
}
