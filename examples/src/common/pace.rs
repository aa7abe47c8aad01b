//! How long an application runs: a number of iterations, or a time, and all processes the same.

use std::time::{Duration, Instant};

use clap::Args;
use dsm_lib::{CopyPolicy, Dsm, Vector};

use crate::app::patient;
use crate::error::Result;

/// The arguments that say how long.
#[derive(Args, Debug, Clone, Default)]
pub(crate) struct Pace {
    /// Iterations [default: as few as show something, or what --seconds allows].
    #[arg(long)]
    iterations: Option<usize>,
    /// Run until this much time is up (or the iterations are done).
    #[arg(long)]
    seconds: Option<f64>,
}

impl Pace {
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
            .declare()?;
        for flag in stop.objects().filter(|_| dsm.rank() == 0) {
            flag.write(&[false])?;
        }
        dsm.barrier()?;
        Ok(Clock {
            dsm,
            stop,
            started: Instant::now(),
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

    /// Ends an iteration: a barrier. All processes get the same answer to whether there is another.
    pub(crate) fn next(&mut self) -> Result<bool> {
        self.done += 1;
        let Some(time) = self.time else {
            self.dsm.barrier()?;
            return Ok(self.runs());
        };
        let flag = self.stop.object(self.done % 2)?;
        if self.dsm.rank() == 0 && self.started.elapsed() >= time {
            flag.write(&[true])?;
        }
        self.dsm.barrier()?;
        Ok(!flag.get(0)? && self.runs())
    }

    /// Iterations done.
    pub(crate) fn done(&self) -> usize {
        self.done
    }
}
