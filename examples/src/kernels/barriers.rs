//! BAD: barriers. `T_B` is the time from the last arrival to the last departure, processes arriving at once
//! or one after another (skew).
//!
//! Times of different processes are compared, so they must share a clock: they run on one machine.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use clap::ValueEnum;
use dsm_lib::{Cache, Dsm, Scalar, Vector};
use serde::{Deserialize, Serialize};

use super::grain::Delay;
use crate::error::Result;
use crate::program::patient;

/// How processes wait for each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum BarrierKind {
    /// The memory processes': arrivals combined at each, then at one of them.
    Native,
    /// One counter and one word that all poll, on memory as any program has it.
    Counter,
}

/// What was measured.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct BarrierOutcome {
    /// The kind.
    pub kind: BarrierKind,
    /// Processes that meet.
    pub processes: usize,
    /// Process `i` arrives `i` times this many microseconds later.
    pub skew_us: u64,
    /// `T_B` of each barrier, nanoseconds, in increasing order.
    pub t_ns: Vec<f64>,
}

/// A central barrier made of shared words.
struct Central {
    count: Scalar<u64>,
    generation: Scalar<u64>,
    passed: u64,
}

impl Central {
    fn new(dsm: &Dsm, name: &str) -> Result<Self> {
        Ok(Self {
            count: dsm
                .scalar(&format!("{name}.count"))
                .cache(Cache::Mp)
                .declare()?,
            generation: dsm
                .scalar(&format!("{name}.generation"))
                .cache(Cache::Mp)
                .declare()?,
            passed: 0,
        })
    }

    fn wait(&mut self, dsm: &Dsm) -> Result<()> {
        self.passed += 1;
        dsm.publish()?;
        if self.count.fetch_add(1)? + 1 == self.passed * dsm.size() as u64 {
            self.generation.write(self.passed)?;
            dsm.publish()?;
        }
        while self.generation.read()? < self.passed {
            std::thread::yield_now();
        }
        Ok(())
    }
}

/// Measures `rounds` barriers; all processes call it. Process 0 gets the outcome.
pub(super) fn run(
    dsm: &Dsm,
    kind: BarrierKind,
    skew_us: u64,
    delay: Delay,
    rounds: usize,
) -> Result<BarrierOutcome> {
    let name = format!("barriers.{kind:?}.{skew_us}");
    let mut central = Central::new(dsm, &name)?;
    let clock = Clock::new();
    let mut times = Vec::with_capacity(2 * rounds);
    patient(dsm).barrier()?;
    for _ in 0..rounds {
        delay.run(skew_us * dsm.rank() as u64);
        times.push(clock.now());
        match kind {
            BarrierKind::Native => dsm.barrier_named(&name)?,
            BarrierKind::Counter => central.wait(dsm)?,
        }
        times.push(clock.now());
        // Apart from the next one, so that nobody arrives before all have left.
        dsm.barrier_named("apart")?;
    }
    let all: Vector<u64> = dsm
        .vector(&format!("{name}.times"), times.len() * dsm.size())
        .split(dsm.size())
        .owner_per_rank()
        .cache(Cache::Mp)
        .declare()?;
    all.object(dsm.rank())?.write(&times)?;
    patient(dsm).barrier()?;
    let mut t_ns = Vec::new();
    if dsm.rank() == 0 {
        let mut processes = Vec::new();
        for object in all.objects() {
            processes.push(object.read()?.to_vec());
        }
        t_ns = durations(&processes);
    }
    patient(dsm).barrier()?;
    Ok(BarrierOutcome {
        kind,
        processes: dsm.size(),
        skew_us,
        t_ns,
    })
}

/// From the last arrival to the last departure of each round, sorted; each list has arrivals and departures
/// in turn.
fn durations(processes: &[Vec<u64>]) -> Vec<f64> {
    let rounds = processes.first().map_or(0, |p| p.len() / 2);
    let last = |at: usize| processes.iter().map(|p| p[at]).max().unwrap_or(0);
    let mut all: Vec<f64> = (0..rounds)
        .map(|r| last(2 * r + 1).saturating_sub(last(2 * r)) as f64)
        .collect();
    all.sort_by(f64::total_cmp);
    all
}

/// Wall-clock nanoseconds that never go back within a process.
struct Clock {
    base: u64,
    start: Instant,
}

impl Clock {
    fn new() -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        Self {
            base: since.map_or(0, |d| d.as_nanos() as u64),
            start: Instant::now(),
        }
    }
    fn now(&self) -> u64 {
        self.base + self.start.elapsed().as_nanos() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_barrier_lasts_from_the_last_arrival_to_the_last_departure() {
        let processes = [vec![10, 50, 100, 130], vec![30, 45, 90, 170]];
        assert_eq!(durations(&processes), vec![20.0, 70.0]);
        assert_eq!(durations(&[]), Vec::<f64>::new());
    }
}
