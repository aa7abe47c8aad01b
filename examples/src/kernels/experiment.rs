//! One experiment (docs/design/models.md#kernels-experiment): a test process carries grains out, alone and beside N competitors.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use dsm_lib::{Cache, Call, Dsm, LockKind, Vector};
use serde::{Deserialize, Serialize};

use super::grain::{Delay, Grain, Shared, Worker};
use crate::error::{Error, Result};
use crate::program::patient;

/// Elements in an object of the shared data: 64 bytes, as in a cache line.
const WORDS_AN_OBJECT: usize = 16;
/// Grains before those that are timed: the competitors are at work by then.
const WARM_UP: u64 = 20;
/// Elements of the locked object.
const LOCKED_WORDS: usize = 64;

/// Where the lock is, seen from the test process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Place {
    /// At its own memory process.
    Local,
    /// At another of its group (its own, if there is none).
    #[default]
    Remote,
    /// In another group (remote, if there is none).
    Far,
}

/// `{N, M, G_t, G_c}`, and what else decides the outcome.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    /// What to call it; unique.
    pub name: String,
    /// M, the number of shared elements (32-bit words).
    pub words: usize,
    /// The grain of the test process.
    pub test: Grain,
    /// The grain of the competitors; the same if missing (homogeneous).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub competitors: Option<Grain>,
    /// Numbers of competitors to try; 0 is tried in any case.
    pub n: Vec<usize>,
    /// Kind of the lock.
    #[serde(default)]
    pub lock: LockKind,
    /// Where it is.
    #[serde(default)]
    pub place: Place,
}

/// What was measured with one number of competitors; each list has one entry a repetition.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Outcome {
    /// The experiment.
    pub name: String,
    /// N.
    pub n: usize,
    /// Grains of the test process that were timed, in all.
    pub grains: u64,
    /// `T_N`, nanoseconds a grain.
    pub t_ns: Vec<f64>,
    /// Efficiency `T_0 / T_N`.
    pub efficiency: Vec<f64>,
    /// Interference `(T_N - T_0) / T_0`.
    pub interference: Vec<f64>,
    /// Shared words accessed a second by all processes together.
    pub words_per_second: Vec<f64>,
}

/// How long to measure, and how often.
#[derive(Clone, Copy, Debug)]
pub(super) struct Effort {
    pub(super) time: Duration,
    pub(super) repeats: usize,
}

/// Carries one out; all processes call it. Process 0 gets the outcomes.
pub(super) fn run(
    dsm: &Dsm,
    experiment: &Experiment,
    delay: Delay,
    effort: Effort,
) -> Result<Vec<Outcome>> {
    let shared = declare(dsm, experiment)?;
    let tallies: Vector<f64> = dsm
        .vector(&format!("{}.tally", experiment.name), 2 * dsm.size())
        .split(dsm.size())
        .owner_per_rank()
        .cache(Cache::Mp)
        .declare()?;
    let mut numbers = experiment.n.clone();
    numbers.push(0);
    numbers.retain(|n| *n < dsm.size());
    numbers.sort_unstable();
    numbers.dedup();
    let mut outcomes: Vec<Outcome> = numbers.iter().map(|n| empty(experiment, *n)).collect();
    for repeat in 0..effort.repeats {
        let mut alone = 0.0;
        for outcome in &mut outcomes {
            let n = outcome.n;
            let round = format!("{}.{n}.{repeat}", experiment.name);
            let mine = take_part(dsm, experiment, &shared, delay, effort, (&round, n))?;
            let tally = tallies.object(dsm.rank())?;
            tally.write(&[mine.words as f64, mine.elapsed.as_secs_f64()])?;
            patient(dsm).barrier()?;
            if dsm.rank() != 0 {
                continue;
            }
            let time = mine.elapsed.as_nanos() as f64 / mine.grains.max(1) as f64;
            if n == 0 {
                alone = time;
            }
            outcome.grains += mine.grains;
            outcome.t_ns.push(time);
            outcome.efficiency.push(alone / time);
            outcome.interference.push((time - alone) / alone);
            outcome.words_per_second.push(rate(&tallies, n)?);
        }
        // The tallies have been read.
        patient(dsm).barrier()?;
    }
    Ok(outcomes)
}

fn empty(experiment: &Experiment, n: usize) -> Outcome {
    Outcome {
        name: experiment.name.clone(),
        n,
        grains: 0,
        t_ns: Vec::new(),
        efficiency: Vec::new(),
        interference: Vec::new(),
        words_per_second: Vec::new(),
    }
}

fn rate(tallies: &Vector<f64>, n: usize) -> Result<f64> {
    let mut sum = 0.0;
    for rank in 0..=n {
        let tally = tallies.object(rank)?.read()?;
        sum += tally[0] / tally[1].max(1e-9);
    }
    Ok(sum)
}

fn declare(dsm: &Dsm, experiment: &Experiment) -> Result<Shared> {
    if experiment.words == 0 {
        let why = format!("{}: words is 0; there must be at least 1", experiment.name);
        return Err(Error::Usage(why));
    }
    let words = dsm
        .vector(&format!("{}.words", experiment.name), experiment.words)
        .split(experiment.words.div_ceil(WORDS_AN_OBJECT))
        .owners_round_robin()
        .cache(Cache::Mp)
        .declare()?;
    let locked: Vector<u32> = dsm
        .vector(&format!("{}.locked", experiment.name), LOCKED_WORDS)
        .owner(&owner(dsm, experiment.place))
        .lock(experiment.lock)
        .cache(Cache::Mp)
        .declare()?;
    let locked = locked.object(0)?;
    Ok(Shared { words, locked })
}

/// The memory process at a place; the same answer in all processes.
fn owner(dsm: &Dsm, place: Place) -> String {
    let all = dsm.memory_processes();
    let tested = &dsm.homes()[0];
    let group = all.iter().find(|mp| mp.name == *tested).map(|mp| &mp.group);
    let remote = all
        .iter()
        .find(|mp| mp.name != *tested && Some(&mp.group) == group);
    let far = all.iter().find(|mp| Some(&mp.group) != group);
    let found = match place {
        Place::Local => None,
        Place::Remote => remote,
        Place::Far => far.or(remote),
    };
    found.map_or(tested, |mp| &mp.name).to_string()
}

/// What one process did.
#[derive(Default)]
struct Done {
    grains: u64,
    words: u64,
    elapsed: Duration,
}

/// The test process times its grains; competitors go on until it has finished, others look on. Nobody polls
/// memory for that: arriving at the closing barrier is one message, sent at the start.
fn take_part(
    dsm: &Dsm,
    experiment: &Experiment,
    shared: &Shared,
    delay: Delay,
    effort: Effort,
    (round, n): (&str, usize),
) -> Result<Done> {
    let patient = patient(dsm);
    patient.barrier_named(&format!("start {round}"))?;
    let stop = format!("stop {round}");
    let rank = dsm.rank();
    if rank > n {
        patient.barrier_named(&stop)?;
        return Ok(Done::default());
    }
    let grain = match rank {
        0 => experiment.test,
        _ => experiment.competitors.unwrap_or(experiment.test),
    };
    let mut worker = Worker::new(shared, grain, delay, rank as u64);
    let mut done = Done::default();
    if rank == 0 {
        for _ in 0..WARM_UP {
            worker.step()?;
        }
        worker.words = 0;
        let start = Instant::now();
        while start.elapsed() < effort.time {
            worker.step()?;
            done.grains += 1;
        }
        done.elapsed = start.elapsed();
        patient.barrier_named(&stop)?;
    } else {
        let mut stopped = patient.barrier_named_async(&stop);
        let start = Instant::now();
        while !over(&mut stopped)? {
            worker.step()?;
            done.grains += 1;
        }
        done.elapsed = start.elapsed();
    }
    done.words = worker.words;
    Ok(done)
}

fn over(call: &mut Call<()>) -> Result<bool> {
    match Pin::new(call).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Pending => Ok(false),
        Poll::Ready(done) => Ok(done.map(|()| true)?),
    }
}
