//! Sections and accesses in application processes, as their memory processes tell of them.

#![allow(clippy::unwrap_used)] // a test may

mod common;

use common::{Made, X, acquire, all_at, in_order, read, release, section, verdict_of, write};
use dosmos_proto::Nanos;
use dosmos_trace::query::Completeness;
use dosmos_verify::{State, Verdict};

fn judge(records: impl IntoIterator<Item = Made>) -> Verdict {
    verdict_of(&in_order(records), &Completeness::default())
}

/// `count` sections that process `ap` held in itself between `at` and `at` + 40, with reads and writes in them.
fn own_sections(ap: u32, at: u64, count: u32, versions: (u64, u64)) -> Vec<Made> {
    let told = |made: Made, took: u64, version: u64| {
        let made = made.inside().count(count).took(took).version(version);
        made.set(|r| r.bytes *= u64::from(count))
    };
    vec![
        told(acquire(ap, X, at), 39, versions.0),
        told(read(ap, X, at + 1), 37, versions.1 - 1),
        told(write(ap, X, at + 1), 37, versions.1 - 1),
        told(release(ap, X, at + 39), 0, versions.1),
    ]
}

#[test]
fn sections_in_the_process_come_after_what_others_released_before() {
    // Asked for, not acquired: it learned what the other did by the object's version alone.
    let mut run = section(0, X, 100, 0);
    run.extend(own_sections(1, 200, 3, (1, 4)));
    run.extend(section(2, X, 300, 4));
    let verdict = judge(run);
    assert_eq!(verdict.state, State::Consistent, "{verdict:#?}");
}

#[test]
fn sections_in_processes_one_after_the_other() {
    let mut run = own_sections(0, 100, 2, (0, 2));
    run.extend(own_sections(1, 200, 1, (2, 3)));
    run.extend(own_sections(0, 300, 5, (3, 8)));
    run.extend(all_at(1, 400));
    run.push(read(2, X, 500).version(8));
    let verdict = judge(run);
    assert_eq!(verdict.state, State::Consistent, "{verdict:#?}");
}

#[test]
fn a_section_in_the_process_that_goes_on_at_the_owner() {
    let mut run = section(0, X, 100, 0);
    run.extend([
        acquire(1, X, 200)
            .version(1)
            .took(0)
            .set(|r| r.flags.own_clock = true),
        read(1, X, 201).version(1).inside().took(10),
        write(1, X, 220).version(1).with_release().took(0),
        release(1, X, 220).version(2),
    ]);
    run.extend(section(2, X, 300, 2));
    let verdict = judge(run);
    assert_eq!(verdict.state, State::Consistent, "{verdict:#?}");
}

#[test]
fn what_nothing_orders_is_still_not_decided() {
    let mut run = section(0, X, 100, 0);
    // Before the sections: nothing was learned by then.
    run.push(read(1, X, 190).version(1).inside());
    run.extend(own_sections(1, 200, 3, (1, 4)));
    assert_eq!(judge(run).state, State::Undecided);
}

#[test]
fn what_a_section_in_the_process_wrote_is_to_be_seen() {
    let mut run = own_sections(0, 100, 2, (0, 2));
    run.extend(all_at(1, 200));
    run.push(read(1, X, 300).version(1).set(|r| r.duration = Nanos(5)));
    let verdict = judge(run);
    // By the clock of the process: never certain.
    assert_eq!(verdict.state, State::Undecided, "{verdict:#?}");
}
