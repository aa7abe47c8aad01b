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

use model::{Faults, Sim};

/// Runs many seeds, one after another from the first; a failing one is named.
fn run_seeds(faults: Faults) {
    let first = dosmos_testseeds::seed();
    for i in 0..dosmos_testseeds::cases(300) {
        let seed = first.wrapping_add(i.into());
        let run = std::panic::catch_unwind(|| Sim::new(seed, faults).run());
        // The panic's own message stands above.
        assert!(
            run.is_ok(),
            "this seed alone: DOSMOS_CASES=1 {}",
            dosmos_testseeds::repeat_command(seed)
        );
    }
}

#[test]
fn random_programs_keep_the_contract() {
    run_seeds(Faults::default());
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
fn everything_at_once_with_timeouts_does_not_break_the_contract() {
    let faults = Faults {
        deaths: true,
        cuts: true,
        one_sided: true,
        timeouts: true,
        restarts: false,
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
    let faults = Faults {
        deaths: true,
        cuts: true,
        one_sided: true,
        timeouts: true,
        restarts: true,
    };
    run_seeds(faults);
}
