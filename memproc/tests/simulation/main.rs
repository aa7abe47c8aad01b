//! Random programs on whole clusters of cores, with random interleavings of their messages, checked
//! against the consistency contract (docs/design/consistency.md#contract) and the
//! monitoring invariant (docs/design/monitoring.md#invariant).
//!
//! A run is determined by its seed. A failure prints the seed and how to repeat it. `DOSMOS_SEED=n` sets the first
//! seed, `DOSMOS_CASES=n` the number of seeds.
#![allow(clippy::unwrap_used)] // helpers of tests are tests

mod clocks;
#[path = "../common/mod.rs"]
mod common;
#[path = "../../../dsm-lib/src/cache/held.rs"]
#[allow(dead_code)] // it is the library's, and used in part
mod held;
#[allow(unreachable_pub)] // a test is one crate
mod model;
#[allow(unreachable_pub)]
mod monitoring;
mod replicas;

use std::time::Instant;

use model::{Faults, Sim};

/// Runs many seeds, one after another from the first; a failing one is named, with how long that took.
fn run_seeds(faults: Faults) {
    let first = dosmos_testseeds::seed();
    let began = Instant::now();
    for i in 0..dosmos_testseeds::cases(300) {
        let seed = first.wrapping_add(i.into());
        if std::panic::catch_unwind(|| drop(Sim::new(seed, faults, true).run())).is_ok() {
            continue;
        }
        let took = began.elapsed().as_secs_f64();
        // Again, to see what happens: the panic's own message stands above.
        let _ = std::panic::catch_unwind(|| drop(Sim::new(seed, faults, false).run()));
        panic!(
            "seed {seed}, after {took:.1} s; this seed alone: DOSMOS_CASES=1 {}",
            dosmos_testseeds::repeat_command(seed)
        );
    }
}

/// Everything that can happen.
const EVERYTHING: Faults = Faults {
    deaths: true,
    cuts: true,
    one_sided: true,
    lasting: false,
    timeouts: true,
    restarts: true,
    stops: true,
    plain: false,
};

/// And so decides `verify`: each of them is consistent.
#[test]
fn random_programs_keep_the_contract_and_are_verified() {
    run_seeds(Faults::default());
}

#[test]
fn random_programs_without_copies_in_application_processes_are_verified() {
    let plain = Faults {
        plain: true,
        ..Faults::default()
    };
    run_seeds(plain);
}

#[test]
fn dying_application_processes_do_not_break_the_contract() {
    let faults = Faults {
        deaths: true,
        ..Faults::default()
    };
    run_seeds(faults);
}

#[test]
fn broken_links_do_not_break_the_contract() {
    let faults = Faults {
        deaths: true,
        cuts: true,
        ..Faults::default()
    };
    run_seeds(faults);
}

#[test]
fn links_that_one_end_believes_to_be_up_do_not_break_the_contract() {
    let faults = Faults {
        one_sided: true,
        ..Faults::default()
    };
    run_seeds(faults);
}

#[test]
fn links_that_one_end_believes_to_be_up_for_seconds_do_not_break_the_contract() {
    let faults = Faults {
        one_sided: true,
        lasting: true,
        ..Faults::default()
    };
    run_seeds(faults);
}

#[test]
fn everything_at_once_with_timeouts_does_not_break_the_contract() {
    let faults = Faults {
        restarts: false,
        ..EVERYTHING
    };
    run_seeds(faults);
}

#[test]
fn processes_started_again_with_empty_memory_do_not_break_the_contract() {
    let faults = Faults {
        restarts: true,
        ..Faults::default()
    };
    run_seeds(faults);
}

#[test]
fn restarts_among_all_other_faults_do_not_break_the_contract() {
    run_seeds(EVERYTHING);
}

#[test]
fn processes_that_are_stopped_and_go_on_do_not_break_the_contract() {
    let faults = Faults {
        stops: true,
        ..Faults::default()
    };
    run_seeds(faults);
}

#[test]
fn a_seed_repeats_its_run_to_the_letter() {
    let first = dosmos_testseeds::seed();
    for i in 0..dosmos_testseeds::cases(100) {
        let seed = first.wrapping_add(i.into());
        let one = Sim::new(seed, EVERYTHING, false).run();
        let other = Sim::new(seed, EVERYTHING, false).run();
        let mut both = one.log.iter().zip(&other.log);
        let apart = both.find(|(a, b)| a != b);
        assert_eq!(apart, None, "seed {seed}");
        assert_eq!(one.log.len(), other.log.len(), "seed {seed}");
        let recorded = |c: &common::Cluster| format!("{:?}", c.items);
        assert_eq!(recorded(&one), recorded(&other), "seed {seed}");
    }
}
