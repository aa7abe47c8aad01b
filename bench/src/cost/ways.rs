//! The ways to run an application: alone, on shared memory, with MPI.

use std::fmt;
use std::process::Command;

use anyhow::{Context, bail};
use dosmos_examples::Figures;
use dosmos_proto::Component;

use super::mpi::{Communication, Mpi, Transport};
use super::programs::Program;
use crate::breakdown::{breakdown_of, computing};
use crate::run::{json_lines, one_group, run_prepared};

/// A way to run an application.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Way {
    /// The plain program.
    Sequential,
    /// On a cluster of one group, each process with a memory process.
    Shared { processes: usize, monitored: bool },
    /// The MPI program.
    Mpi {
        processes: usize,
        communication: Communication,
        transport: Transport,
    },
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sequential => write!(f, "sequential"),
            Self::Shared {
                processes,
                monitored: true,
            } => write!(f, "{processes} processes, monitored"),
            Self::Shared { processes, .. } => write!(f, "{processes} processes"),
            Self::Mpi {
                processes,
                communication,
                transport,
            } => write!(
                f,
                "MPI {communication} over {transport}, {processes} processes"
            ),
        }
    }
}

/// All ways to run a program, the sequential one first.
pub(super) fn ways(program: &Program, processes: &[usize], mpi: Option<&Mpi>) -> Vec<Way> {
    let mut ways = vec![Way::Sequential];
    for &processes in processes {
        ways.extend([false, true].map(|monitored| Way::Shared {
            processes,
            monitored,
        }));
        // A single process communicates with nobody.
        if processes < 2 || !mpi.is_some_and(|mpi| mpi.has(program.name())) {
            continue;
        }
        for communication in Communication::ALL {
            ways.extend(Transport::ALL.map(|transport| Way::Mpi {
                processes,
                communication,
                transport,
            }));
        }
    }
    ways
}

/// What a run gave.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    pub(super) figures: Figures,
    /// Seconds that the busiest process computed, where the breakdown says it.
    pub(super) busiest: Option<f64>,
}

impl Way {
    pub(super) async fn run(&self, program: &Program, mpi: Option<&Mpi>) -> anyhow::Result<Run> {
        match *self {
            Self::Sequential => sequential(program),
            Self::Shared {
                processes,
                monitored,
            } => shared(program, processes, monitored).await,
            Self::Mpi {
                processes,
                communication,
                transport,
            } => {
                let mpi = mpi.context("there is no MPI")?;
                let said = mpi.run(program.name(), processes, communication, transport)?;
                of_output(&said)
            }
        }
    }
}

fn sequential(program: &Program) -> anyhow::Result<Run> {
    let output = Command::new(std::env::current_exe()?)
        .args(["cost", "--alone", &program.to_string()])
        .output()?;
    if !output.status.success() {
        bail!("{}", String::from_utf8_lossy(&output.stderr));
    }
    of_output(&String::from_utf8_lossy(&output.stdout))
}

async fn shared(program: &Program, processes: usize, monitored: bool) -> anyhow::Result<Run> {
    let cluster = one_group(processes, monitored);
    let mut command = vec![program.name()];
    command.extend(program.args().iter().map(String::as_str));
    command.push("--json");
    let ran = run_prepared(&cluster, &command, |_| Ok(())).await?;
    let mut run = of_output(&ran.said)?;
    if monitored {
        let breakdown = breakdown_of(&ran).await?;
        let busy = computing(&breakdown).into_iter();
        let busy = busy.map(|p| p.spent.time(Component::Busy).0).max();
        run.busiest = busy.map(|nanos| nanos as f64 / 1e9);
    }
    Ok(run)
}

fn of_output(said: &str) -> anyhow::Result<Run> {
    let figures: Vec<Figures> = json_lines(said)?;
    let figures = figures.first().context("the program printed no figures")?;
    Ok(Run {
        figures: *figures,
        busiest: None,
    })
}
