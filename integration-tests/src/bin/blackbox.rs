//! `blackbox RUNS [DOSMOS]`: real clusters in which things go wrong, from seed DOSMOS_SEED (1998) on, JOBS (2) at a time.
//! Prints a line per run, and what was broken; fails if anything was.

#![allow(clippy::print_stdout)] // a program for who develops dosmos

use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use dosmos_integration_tests::Lab;
use dosmos_integration_tests::blackbox::{Plan, allowed, carry_out};

fn number(name: &str, default: u64) -> u64 {
    let value = std::env::var(name).ok();
    value.map_or(default, |v| {
        v.parse()
            .unwrap_or_else(|_| panic!("{name}={v}: not a number"))
    })
}

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    let runs = args.next().map_or(40, |n| {
        n.parse()
            .unwrap_or_else(|_| panic!("{n}: not a number of runs"))
    });
    let beside = || {
        let this = std::env::current_exe().ok()?;
        Some(
            this.with_file_name("dosmos-under-test")
                .display()
                .to_string(),
        )
    };
    let Some(binary) = args.next().or_else(beside) else {
        println!("name the dosmos binary: blackbox RUNS DOSMOS");
        return ExitCode::from(2);
    };
    let (networks, disks) = allowed();
    for (what, can) in [("cut networks", &networks), ("full disks", &disks)] {
        if let Err(why) = can {
            println!("without {what}: {why}");
        }
    }
    let can = (networks.is_ok(), disks.is_ok());
    let next = AtomicU64::new(number("DOSMOS_SEED", 1998));
    let end = next.load(Ordering::Relaxed) + runs;
    let broken = Mutex::new(Vec::new());
    let sums = Mutex::new([0u64; 5]);
    let began = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..number("JOBS", 2) {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= end {
                        return;
                    }
                    let plan = Plan::of(seed, can);
                    let mut lab = Lab::new(&binary);
                    let failed = one(&lab, &plan, &sums);
                    if failed {
                        lab.keep();
                        println!("seed {seed}: its directory is {}", lab.path().display());
                        broken
                            .lock()
                            .unwrap_or_else(std::sync::PoisonError::into_inner)
                            .push(seed);
                    }
                }
            });
        }
    });
    let broken = broken.into_inner().unwrap_or_default();
    let [consistent, undecided, records, dropped, succeeded] =
        sums.into_inner().unwrap_or_default();
    println!(
        "{runs} runs in {} s: {consistent} consistent, {undecided} undecided, {} broken; {succeeded} application processes \
         ended well; {records} records stored, {dropped} dropped",
        began.elapsed().as_secs(),
        broken.len()
    );
    if broken.is_empty() {
        return ExitCode::SUCCESS;
    }
    println!("broken: seeds {broken:?}; repeat one with DOSMOS_SEED=SEED .ci/blackbox 1");
    ExitCode::FAILURE
}

/// One run; whether it broke a promise.
fn one(lab: &Lab, plan: &Plan, sums: &Mutex<[u64; 5]>) -> bool {
    let places = match (plan.network, plan.disk) {
        (true, _) => ", networks",
        (_, true) => ", small disk",
        _ => "",
    };
    let replicas = match plan.replicas {
        Some(n) => format!(", replicas = {n}"),
        None => String::new(),
    };
    let within = match plan.within {
        true => ", in application",
        false => "",
    };
    let what = format!(
        "seed {}{places}{within}{replicas}, {:?}",
        plan.seed, plan.faults
    );
    let outcome = match carry_out(lab, plan) {
        Ok(outcome) => outcome,
        Err(e) => {
            println!("{what}: {e}");
            return true;
        }
    };
    println!(
        "{what}: {} of 4 ended well, {} records, {} dropped, {} releases with replicas confirmed, verify {}",
        outcome.succeeded, outcome.records, outcome.dropped, outcome.released, outcome.verdict
    );
    for broken in &outcome.broken {
        println!("seed {}: BROKEN: {broken}", plan.seed);
    }
    let mut sums = sums
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    sums[0] += u64::from(outcome.verdict == 0);
    sums[1] += u64::from(outcome.verdict == 2);
    sums[2] += outcome.records;
    sums[3] += outcome.dropped;
    sums[4] += outcome.succeeded as u64;
    !outcome.broken.is_empty()
}
