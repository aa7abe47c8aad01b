//! `simulate SEEDS [FROM] [KIND] [EVENTS]`: runs seeds on all processors, some of them twice, and says what they came to; of
//! a run that fails, its last EVENTS events.
#![allow(clippy::print_stdout)] // it is what this prints

use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use anyhow::{Context, bail};
use dosmos_simulation::{Failure, Kind, Outcome, TOLD, run};

/// Of at most this number of seeds, each is run twice.
const ALL_TWICE: u64 = 2_000;
/// Of more, one in this number is.
const TWICE: u64 = 16;

#[derive(Default)]
struct Sums {
    healthy: u64,
    faulty: u64,
    twice: u64,
    events: u64,
    time: u64,
    operations: u64,
    refusals: u64,
}

impl Sums {
    fn add(&mut self, kind: Kind, outcome: &Outcome) {
        match kind {
            Kind::Faulty | Kind::Replicated | Kind::Losses => self.faulty += 1,
            Kind::Plain | Kind::Healthy => self.healthy += 1,
        }
        self.events += outcome.events;
        self.time += outcome.time;
        self.operations += outcome.operations;
        self.refusals += outcome.refusals;
    }
}

fn main() -> anyhow::Result<ExitCode> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, default: u64| match arguments.get(at) {
        Some(text) => text
            .parse()
            .with_context(|| format!("{text} is not a number")),
        None => Ok(default),
    };
    let (seeds, from) = (number(0, 2000)?, number(1, 1998)?);
    let only = match arguments.get(2).map(String::as_str) {
        None => None,
        Some("plain") => Some(Kind::Plain),
        Some("healthy") => Some(Kind::Healthy),
        Some("faulty") => Some(Kind::Faulty),
        Some("replicated") => Some(Kind::Replicated),
        Some("losses") => Some(Kind::Losses),
        Some(other) => bail!("{other} is not plain, healthy, faulty, replicated or losses"),
    };
    let told = number(3, TOLD as u64)? as usize;
    let began = Instant::now();
    let cores = std::thread::available_parallelism()?.get();
    let (next, failed) = (AtomicU64::new(0), AtomicBool::new(false));
    let (sums, failures) = (Mutex::new(Sums::default()), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..cores {
            let (next, failed, sums, failures) = (&next, &failed, &sums, &failures);
            scope.spawn(move || {
                while !failed.load(Ordering::Relaxed) {
                    let i = next.fetch_add(1, Ordering::Relaxed);
                    if i >= seeds {
                        break;
                    }
                    let seed = from + i;
                    let kind = only.unwrap_or_else(|| Kind::of(seed));
                    let twice = seeds <= ALL_TWICE || i % TWICE == 0;
                    if let Err(failure) = one(seed, kind, told, twice, sums) {
                        failed.store(true, Ordering::Relaxed);
                        let mut all = failures.lock();
                        let _ = all.as_deref_mut().map(|all| all.push((kind, failure)));
                    }
                }
            });
        }
    });
    let took = began.elapsed().as_secs_f64();
    let mut failures = failures.into_inner().unwrap_or_default();
    failures.sort_by_key(|(_, failure)| failure.seed);
    if let Some((kind, failure)) = failures.first() {
        let name = format!("{kind:?}").to_lowercase();
        println!("{failure}");
        println!(
            "seed {}, after {took:.1} s; this seed alone: .ci/simulate 1 {0} {name}",
            failure.seed
        );
        return Ok(ExitCode::FAILURE);
    }
    let sums = sums.into_inner().unwrap_or_default();
    let hours = sums.time as f64 / 3.6e12;
    println!(
        "{seeds} seeds from {from}: {} without faults, all accepted, and {} with; {} of them twice with the same result",
        sums.healthy, sums.faulty, sums.twice
    );
    println!(
        "{} events, {} operations, {} of them refused; {hours:.1} simulated hours",
        sums.events,
        sums.operations + sums.refusals,
        sums.refusals
    );
    println!(
        "{took:.1} s on {cores} processors: {:.1} seeds per second, {:.1} simulated hours per minute of a processor",
        seeds as f64 / took,
        hours / (took * cores as f64 / 60.0)
    );
    Ok(ExitCode::SUCCESS)
}

fn one(seed: u64, kind: Kind, told: usize, twice: bool, sums: &Mutex<Sums>) -> Result<(), Failure> {
    let outcome = run(seed, kind, told)?;
    if twice {
        let again = run(seed, kind, told)?;
        if again != outcome {
            return Err(Failure {
                seed,
                what: format!("{again:?} is not {outcome:?}"),
                last: String::new(),
            });
        }
    }
    if let Ok(mut sums) = sums.lock() {
        sums.add(kind, &outcome);
        sums.twice += u64::from(twice);
    }
    Ok(())
}
