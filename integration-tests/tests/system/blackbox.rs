//! Clusters of real processes in which things go wrong (`.ci/blackbox` runs more of them).

use dosmos_integration_tests::Lab;
use dosmos_integration_tests::blackbox::{Plan, allowed, carry_out};

/// Runs unless told otherwise (DOSMOS_CASES): each takes seconds.
const RUNS: u32 = 3;

#[test]
fn whatever_goes_wrong_nothing_hangs_and_no_record_is_missing_unsaid() {
    let (networks, disks) = allowed();
    let can = (networks.is_ok(), disks.is_ok());
    let first = dosmos_testseeds::seed();
    for seed in first..first + u64::from(dosmos_testseeds::cases(RUNS)) {
        let plan = Plan::of(seed, can);
        let lab = Lab::new(env!("CARGO_BIN_EXE_dosmos-under-test"));
        let outcome = carry_out(&lab, &plan).unwrap();
        assert!(outcome.broken.is_empty(), "{plan:?}: {outcome:#?}");
    }
}
