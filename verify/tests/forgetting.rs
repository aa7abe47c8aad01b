//! What the checker forgets: nothing that somebody could still miss, but what grows with the length of a run.

#![allow(clippy::unwrap_used)] // a test may

mod common;

use common::{
    Made, X, Y, acquire, all_at, barrier, catalog, in_order, judge_by, kinds, question, read,
    release, section, write,
};
use dosmos_verify::{Kind, Options, State, Verdict, Verifier};

fn judge_but_races(records: Vec<Made>) -> Verdict {
    let options = Options {
        races: false,
        ..Options::default()
    };
    judge_by(catalog(), options, records)
}

/// Sections of `ap0` that make the versions after `from`, of which `ap2` knows all up to `known`.
fn sections_after(from: u64, count: u64, known: u64, at: &mut u64) -> Vec<Made> {
    let mut run = Vec::new();
    for version in from..from + count {
        if version == known {
            run.extend(tell(at));
        }
        run.extend(section(0, X, *at, version));
        *at += 100;
    }
    run
}

/// `ap2` learns what `ap0` knows, by sections of `y`: the first two of these.
fn tell(at: &mut u64) -> Vec<Made> {
    let mut run = section(0, Y, *at, 0);
    run.extend(section(2, Y, *at + 100, 1));
    *at += 200;
    run
}

/// What is said of a read of the version `seen` by one that knows `known` of `count` versions.
fn of_a_read(count: u64, known: u64, seen: u64) -> Verdict {
    let mut at = 100;
    let mut run = sections_after(0, count, known, &mut at);
    run.push(read(2, X, at).version(seen));
    judge_but_races(run)
}

#[test]
fn sixty_four_versions_are_remembered_and_of_more_every_second_of_the_older_half() {
    for known in [1, 2, 3, 31, 63] {
        let verdict = of_a_read(64, known, known);
        assert_eq!(verdict.state, State::Consistent, "{known}: {verdict:#?}");
    }
    for known in [1, 2, 3, 31] {
        let verdict = of_a_read(65, known, known);
        assert_eq!(question(&verdict), "whether reads of x were new enough");
    }
    for known in [33, 34, 50, 64] {
        let verdict = of_a_read(65, known, known);
        assert_eq!(verdict.state, State::Consistent, "{known}: {verdict:#?}");
    }
    // The first one is not among those that are forgotten.
    assert_eq!(kinds(&of_a_read(65, 1, 0)), [Kind::LostWrite]);
}

/// Between the version that is remembered and the next one the records do not decide; neither for reads nor for grants.
#[test]
fn who_sees_the_next_version_that_is_remembered_sees_enough() {
    let judged = |seen: u64, grant: bool| {
        let mut at = 100;
        let mut run = sections_after(0, 65, 4, &mut at);
        run.push(match grant {
            true => acquire(2, X, at).version(seen),
            false => read(2, X, at).version(seen),
        });
        judge_but_races(run)
    };
    for grant in [false, true] {
        // Versions 3 and 5 are remembered, and `ap2` knows 4.
        assert_eq!(judged(2, grant).state, State::Violated);
        for seen in [3, 4] {
            let verdict = judged(seen, grant);
            assert_eq!(question(&verdict), "whether reads of x were new enough");
        }
        for seen in [5, 6, 65] {
            let verdict = judged(seen, grant);
            assert_eq!(verdict.state, State::Consistent, "{seen}: {verdict:#?}");
        }
    }
}

/// What everybody knows is worked out from time to time. It takes no room from what came after it.
#[test]
fn of_the_versions_since_all_synchronised_none_is_forgotten() {
    let mut run = Vec::new();
    let mut at = 100;
    let rounds = 150;
    for round in 0..rounds + 200 {
        if round < rounds {
            run.extend(section(0, X, at, round));
        }
        run.extend(all_at(round as u32 + 1, at + 50));
        at += 100;
    }
    // One by one, then sixty at once.
    let known = rounds + 2;
    run.extend(sections_after(rounds, 60, known, &mut at));
    run.push(read(2, X, at).version(known));
    let verdict = judge_but_races(run.clone());
    assert_eq!(verdict.state, State::Consistent, "{verdict:#?}");
    *run.last_mut().unwrap() = read(2, X, at).version(known - 1);
    assert_eq!(kinds(&judge_but_races(run)), [Kind::LostWrite]);
}

#[test]
fn what_one_process_knows_long_since_another_still_has_to_see() {
    let mut at = 100;
    let mut run = sections_after(0, 22, 10, &mut at);
    // `ap0` goes on for so long that what everybody knows is worked out anew.
    for version in 2..600 {
        run.extend(section(0, Y, at, version));
        at += 100;
    }
    run.extend(section(0, X, at, 22));
    run.push(read(2, X, at + 100).version(10));
    let verdict = judge_but_races(run.clone());
    assert_eq!(verdict.state, State::Consistent, "{verdict:#?}");
    *run.last_mut().unwrap() = read(2, X, at + 100).version(9);
    assert_eq!(kinds(&judge_but_races(run)), [Kind::LostWrite]);
}

/// The length of everything that is kept after `rounds` rounds, written out.
fn kept_after(rounds: u64, round: impl Fn(u64, u64) -> Vec<Made>) -> usize {
    let mut verifier = Verifier::new(catalog(), Options::default());
    let run = (0..rounds).flat_map(|i| round(i, 1_000_000_000 + 1_000 * i));
    in_order(run).iter().for_each(|r| verifier.add(r));
    format!("{verifier:?}").len()
}

/// `lib.rs`: memory grows with the objects and processes, not with the records.
#[test]
fn what_is_kept_does_not_grow_with_the_run() {
    let grows = |round: fn(u64, u64) -> Vec<Made>| {
        let (short, long) = (kept_after(400, round), kept_after(4_000, round));
        long > short + short / 2
    };
    // Sections, barriers, and accesses between them.
    assert!(!grows(|i, at| {
        let mut run = section((i % 3) as u32, X, at, i);
        run.extend(all_at(i as u32 + 1, at + 100));
        run.extend((0..3).map(|ap| read(ap, X, at + 200).version(i + 1)));
        run
    }));
    // One process alone.
    assert!(!grows(|i, at| section(0, X, at, i)));
    // Writes outside sections, and what is served that nobody asked for.
    assert!(!grows(|i, at| vec![
        write(0, X, at).version(i),
        read(1, X, at + 10).version(i).at_owner(),
    ]));
    // Ends by owners, and arrivals that fail.
    assert!(!grows(|i, at| vec![
        acquire(1, X, at).took(i % 50),
        release(1, X, at + 100).failed().at_owner(),
        barrier(2, 0, (at + 200, at + 210)).failed(),
    ]));
}
