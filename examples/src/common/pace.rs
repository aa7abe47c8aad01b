//! How long an application runs: a number of iterations, or a time, and all processes the same.

use std::time::{Duration, Instant};

use clap::Args;
use dsm_lib::{Cache, Call, CopyPolicy, Dsm, Vector};

use crate::error::Result;
use crate::figures::{Checksum, Figures};
use crate::program::patient;

/// The arguments that say how long.
#[derive(Args, Debug, Clone, Default)]
pub(crate) struct Pace {
    /// Iterations [default: as few as show something, or what --seconds allows].
    #[arg(long)]
    iterations: Option<usize>,
    /// Run until this much time is up (or the iterations are done).
    #[arg(long)]
    seconds: Option<f64>,
    /// Print the time of the computation and a checksum of the result, as a line of JSON.
    #[arg(long)]
    json: bool,
}

impl Pace {
    /// The number of iterations, `default` if nothing is said.
    pub(crate) fn iterations(&self, default: usize) -> usize {
        self.iterations.unwrap_or(default)
    }

    /// Starts the clock; `program` names its variable, `default` is the number of iterations if
    /// nothing is said. Returns when all processes are there.
    pub(crate) fn start(&self, dsm: &Dsm, program: &str, default: usize) -> Result<Clock> {
        let (dsm, time) = (patient(dsm), self.seconds.map(seconds));
        // One flag an iteration in turn: process 0 writes one while the others may still look at
        // the other, so there is no data race.
        let stop = dsm
            .vector::<bool>(&format!("{program}.stop"), 2)
            .split(2)
            .owner_rank(0)
            .policy(CopyPolicy::Update)
            .cache(Cache::Ap)
            .declare()?;
        for flag in stop.objects().filter(|_| dsm.rank() == 0) {
            flag.write(&[false])?;
        }
        dsm.barrier()?;
        Ok(Clock {
            dsm,
            stop,
            started: Instant::now(),
            took: Duration::ZERO,
            json: self.json,
            time,
            iterations: match (self.iterations, time) {
                (Some(n), _) => n,
                (None, Some(_)) => usize::MAX,
                (None, None) => default,
            },
            done: 0,
        })
    }
}

/// A number of seconds as a duration; none if it is not one.
pub(crate) fn seconds(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or(Duration::ZERO)
}

/// Counts iterations, the same at all processes.
#[derive(Debug)]
pub(crate) struct Clock {
    dsm: Dsm,
    stop: Vector<bool>,
    started: Instant,
    /// Until the end of the last iteration.
    took: Duration,
    json: bool,
    time: Option<Duration>,
    iterations: usize,
    done: usize,
}

impl Clock {
    /// Whether there is an iteration to do at all.
    pub(crate) fn runs(&self) -> bool {
        self.done < self.iterations
    }

    /// A barrier within an iteration, however long the others take.
    pub(crate) fn barrier(&self) -> Result<()> {
        Ok(self.dsm.barrier()?)
    }

    /// As [`barrier`](Self::barrier), to be waited for later: what this process still computes meanwhile, nobody reads.
    pub(crate) fn barrier_async(&self) -> Call<()> {
        self.dsm.barrier_async()
    }

    /// Ends an iteration: a barrier. All processes get the same answer to whether there is another.
    pub(crate) fn next(&mut self) -> Result<bool> {
        let arrived = self.arrive()?;
        self.pass(arrived)
    }

    /// Arrives at the end of an iteration, as far as the others are concerned; [`pass`](Self::pass) ends it.
    pub(crate) fn arrive(&self) -> Result<Call<()>> {
        if self.is_over() && self.dsm.rank() == 0 {
            self.stop.object((self.done + 1) % 2)?.write(&[true])?;
        }
        Ok(self.dsm.barrier_async())
    }

    /// Ends an iteration when all have arrived; whether there is another.
    pub(crate) fn pass(&mut self, arrived: Call<()>) -> Result<bool> {
        self.done += 1;
        arrived.wait()?;
        self.took = self.started.elapsed();
        if self.time.is_none() {
            return Ok(self.runs());
        }
        let stop = self.stop.object(self.done % 2)?.get(0)?;
        Ok(!stop && self.runs())
    }

    fn is_over(&self) -> bool {
        self.time.is_some_and(|time| self.started.elapsed() >= time)
    }

    /// A last barrier, after which what the processes have written at the end is there; it counts as part of the
    /// computation.
    pub(crate) fn finish(&mut self) -> Result<()> {
        self.dsm.barrier()?;
        self.took = self.started.elapsed();
        Ok(())
    }

    /// What to print of the run: `text`, or with `--json` the figures of it.
    pub(crate) fn report(&self, text: String, checksum: Checksum) -> String {
        match self.json {
            true => Figures::new(self.took, checksum).line(),
            false => text,
        }
    }

    /// Iterations done.
    pub(crate) fn done(&self) -> usize {
        self.done
    }
}
