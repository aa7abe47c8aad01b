//! Seeds of randomised tests. `cargo test` always runs the same, recorded seed, so it gives the same result for the same
//! commit. `.ci/soak` runs fresh ones; what it finds becomes a named test case.
//!
//! Two environment variables override the defaults of all randomised tests:
//!
//! * `DOSMOS_SEED`: the seed, an unsigned 64-bit number;
//! * `DOSMOS_CASES`: the number of cases per test.
//!
//! A failing test prints the command that repeats it.
//!
//! Also: random numbers from a seed ([`Random`]), tests that run a part of themselves in a process of its own
//! ([`child`]), and temporary directories ([`scratch`]).

pub mod child;
mod random;
mod scratch;

pub use random::Random;
pub use scratch::scratch;

use std::env;
use std::str::FromStr;

#[cfg(feature = "proptest")]
use proptest::test_runner::{Config, RngSeed};

/// The seed of every randomised test unless `DOSMOS_SEED` is set.
const RECORDED: u64 = 1998;

/// Configuration of a property test: this many cases, or `DOSMOS_CASES`, from [`seed`].
///
/// ```text
/// use proptest::prelude::*;
///
/// proptest! {
///     #![proptest_config(dosmos_testseeds::config(64))]
///
///     #[test]
///     fn small(n in 0u8..10) { prop_assert!(n < 10); }
/// }
/// ```
#[cfg(feature = "proptest")]
pub fn config(default_cases: u32) -> Config {
    let cases = cases(default_cases);
    Config {
        cases,
        // Proptest's default is 1024 for 256 cases.
        max_global_rejects: cases.saturating_mul(4).max(1024),
        // Failures become named test cases, not files of seeds.
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(seed()),
        ..Config::default()
    }
}

/// The seed of this test run: `DOSMOS_SEED`, or the recorded one. Prints how to repeat the run; the test harness shows
/// that for a failed test only.
///
/// # Panics
///
/// If `DOSMOS_SEED` is set and is not an unsigned 64-bit number.
#[allow(clippy::print_stdout)] // captured by the test harness
pub fn seed() -> u64 {
    let seed = from_environment("DOSMOS_SEED").unwrap_or(RECORDED);
    println!("repeat with: {}", repeat_command(seed));
    seed
}

/// Number of cases of a randomised test: `DOSMOS_CASES`, or this default.
///
/// # Panics
///
/// If `DOSMOS_CASES` is set and is not an unsigned 32-bit number.
pub fn cases(default: u32) -> u32 {
    from_environment("DOSMOS_CASES").unwrap_or(default)
}

/// The command that repeats the calling test with this seed.
pub fn repeat_command(seed: u64) -> String {
    let package = env::var("CARGO_PKG_NAME").map_or_else(|_| String::new(), |p| format!(" -p {p}"));
    let cases =
        env::var("DOSMOS_CASES").map_or_else(|_| String::new(), |n| format!("DOSMOS_CASES={n} "));
    // The harness names the thread after the test.
    let thread = std::thread::current();
    let test = thread
        .name()
        .filter(|name| *name != "main")
        .unwrap_or_default();
    format!("DOSMOS_SEED={seed} {cases}cargo test{package} {test}")
        .trim_end()
        .to_owned()
}

fn from_environment<T: FromStr>(name: &str) -> Option<T> {
    let value = env::var(name).ok()?;
    match value.parse() {
        Ok(number) => Some(number),
        Err(_) => panic!("{name}={value}: not a number that fits"),
    }
}

#[cfg(all(test, feature = "proptest"))]
mod tests {
    use std::cell::RefCell;

    use proptest::prelude::*;
    use proptest::test_runner::TestRunner;

    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_cases() {
        let run = |seed| {
            let seen = RefCell::new(Vec::new());
            let config = Config {
                rng_seed: RngSeed::Fixed(seed),
                ..config(20)
            };
            TestRunner::new(config)
                .run(&any::<u64>(), |n| {
                    seen.borrow_mut().push(n);
                    Ok(())
                })
                .unwrap_or_else(|e| panic!("{e}"));
            seen.into_inner()
        };
        assert_eq!(run(1), run(1));
        assert_ne!(run(1), run(2));
    }

    #[test]
    fn the_command_names_the_test() {
        let command = repeat_command(7);
        assert!(command.starts_with("DOSMOS_SEED=7 "), "{command}");
        assert!(
            command.contains("cargo test -p dosmos-testseeds"),
            "{command}"
        );
        assert!(command.ends_with("the_command_names_the_test"), "{command}");
    }
}
