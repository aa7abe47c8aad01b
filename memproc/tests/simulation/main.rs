//! Random programs on whole clusters of cores, with random interleavings of their messages, checked
//! against the consistency contract (DESIGN §3) and the monitoring invariant (DESIGN §6).
//!
//! A run is determined by its seed. A failure prints the seed and how to repeat it. `DOSMOS_SEED=n`
//! runs that seed only; `DOSMOS_SEEDS=n` runs that many.
#![allow(clippy::unwrap_used)] // helpers of tests are tests

#[path = "../common/mod.rs"]
mod common;
#[allow(unreachable_pub)] // a test is one crate
mod model;
#[allow(unreachable_pub)]
mod monitoring;

use model::{Faults, Sim};

/// Runs many seeds; a failing one is named.
fn run_seeds(what: &str, faults: Faults) {
    let number = |name| std::env::var(name).ok().and_then(|v| v.parse::<u64>().ok());
    let seeds = match number("DOSMOS_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("DOSMOS_SEEDS").unwrap_or(300),
    };
    for seed in seeds {
        let run = std::panic::catch_unwind(|| Sim::new(seed, faults).run());
        // The panic's own message stands above.
        assert!(
            run.is_ok(),
            "repeat with: DOSMOS_SEED={seed} cargo test -p dosmos-memproc --test simulation {what}"
        );
    }
}

#[test]
fn random_programs_keep_the_contract() {
    run_seeds("random_programs", Faults::default());
}

#[test]
fn dying_application_processes_do_not_break_the_contract() {
    let faults = Faults {
        deaths: true,
        ..Faults::default()
    };
    run_seeds("dying_application", faults);
}

#[test]
fn broken_links_do_not_break_the_contract() {
    let faults = Faults {
        deaths: true,
        cuts: true,
    };
    run_seeds("broken_links", faults);
}
