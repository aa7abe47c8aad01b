//! Whole clusters, simulated: a small number of seeds of each kind. `.ci/simulate` runs many.
#![allow(clippy::unwrap_used)] // a test may

use dosmos_simulation::{Kind, Outcome, TOLD, run};

fn seeds(default: u32, kind: Kind) -> Vec<Outcome> {
    let first = dosmos_testseeds::seed();
    let seeds = (0..dosmos_testseeds::cases(default)).map(|i| first.wrapping_add(i.into()));
    seeds
        .map(|seed| match run(seed, kind, TOLD) {
            Ok(outcome) => outcome,
            Err(failure) => panic!("{failure}\n{}", dosmos_testseeds::repeat_command(seed)),
        })
        .collect()
}

/// Of runs without faults nothing is undecided, if no copies are kept in application processes.
#[test]
fn runs_without_faults_are_verified() {
    let all = seeds(20, Kind::Plain);
    assert!(all.iter().all(|o| o.refusals == 0 && o.operations > 0));
}

#[test]
fn runs_without_faults_keep_the_contract_with_every_lock_kind_and_copies_everywhere() {
    let all = seeds(20, Kind::Healthy);
    assert!(all.iter().all(|o| o.refusals == 0 && o.operations > 0));
}

/// What the records say of them is compared with what they are in each run.
#[test]
fn clocks_of_event_managers_are_related_by_what_is_recorded() {
    let related: u32 = seeds(20, Kind::Healthy).iter().map(|o| o.related).sum();
    assert!(related > 5, "{related} clocks");
}

#[test]
fn whatever_goes_wrong_the_contract_is_kept_and_no_record_is_missing_unsaid() {
    let all = seeds(60, Kind::Faulty);
    assert!(
        all.iter().any(|o| o.refusals > 0),
        "nothing went wrong in {} runs",
        all.len()
    );
}

#[test]
fn what_was_released_of_variables_with_replicas_outlives_the_first_memory_process_that_is_lost() {
    let all = seeds(40, Kind::Replicated);
    assert!(all.iter().any(|o| o.refusals > 0));
}

/// Also names, and what a second of five held that is lost while another takes the place of the first.
#[test]
fn as_many_memory_processes_as_there_are_replicas_may_be_lost_again_and_again() {
    let all = seeds(40, Kind::Losses);
    assert!(all.iter().any(|o| o.refusals > 0));
}

#[test]
fn a_seed_repeats_its_run_to_the_byte() {
    let first = dosmos_testseeds::seed();
    for i in 0..dosmos_testseeds::cases(10) {
        let seed = first.wrapping_add(i.into());
        let kind = Kind::of(seed);
        let one = run(seed, kind, TOLD).unwrap();
        assert_eq!(one, run(seed, kind, TOLD).unwrap(), "seed {seed}");
        let other = run(seed.wrapping_add(1), kind, TOLD).unwrap();
        assert_ne!(one.hash, other.hash, "seed {seed}");
    }
}
