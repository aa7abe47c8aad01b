//! A variable with replicas on real processes, and one without, whose owner is killed.

use std::time::Duration;

use dosmos_integration_tests::Lab;
use dosmos_integration_tests::blackbox::{Fault, Outcome, Plan, Process, carry_out};

/// Two groups of two memory processes and a link process each; the owner, mp0, is killed while four processes count, each of
/// which has begun. No operation fails only because it takes long.
fn the_owner_is_killed(replicas: u32, operations: u64) -> Outcome {
    let plan = Plan {
        seed: 1,
        network: false,
        disk: false,
        within: false,
        faults: vec![(Duration::ZERO, Fault::Kill(Process::Memory(0), None))],
        operations,
        replicas: Some(replicas),
        counted: 20,
        timeout: Duration::from_secs(60),
    };
    let lab = Lab::new(env!("CARGO_BIN_EXE_dosmos-under-test"));
    carry_out(&lab, &plan).unwrap()
}

#[test]
fn the_program_goes_on_with_what_was_released_last_when_the_owner_is_killed() {
    let sections = 600;
    let outcome = the_owner_is_killed(1, sections);
    assert_eq!(outcome.broken, [""; 0], "{outcome:#?}");
    // All but the one whose memory process was killed came to their end.
    assert_eq!(outcome.succeeded, 3, "{outcome:#?}");
    assert!(outcome.released as u64 >= 3 * sections, "{outcome:#?}");
}

#[test]
fn without_replicas_what_the_owner_held_is_lost_and_everybody_is_told() {
    let outcome = the_owner_is_killed(0, 100_000);
    assert_eq!(outcome.broken, [""; 0], "{outcome:#?}");
    assert_eq!(outcome.succeeded, 0, "{outcome:#?}");
    let told = |what: &str| outcome.failed.iter().any(|l| l.contains(what));
    assert!(told("mp0 cannot be reached"), "{:#?}", outcome.failed);
}
