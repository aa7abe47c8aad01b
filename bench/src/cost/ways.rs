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

/// How a cluster runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum How {
    /// Nothing is recorded.
    Plain,
    /// The same, each process bound to a share of the processors with its memory process; as MPI binds two processes by default.
    Bound,
    /// The same, each memory process within its application process.
    Within,
    /// Everything is recorded.
    Monitored,
}

/// A way to run an application.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Way {
    /// The plain program.
    Sequential,
    /// This number of them at once, which share nothing but the machine: what its processors and its memory give to as many processes.
    AtOnce { copies: usize },
    /// On a cluster of one group, each process with a memory process.
    Shared { processes: usize, how: How },
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
            Self::AtOnce { copies } => write!(f, "sequential, {copies} at once"),
            Self::Shared { processes, how } => write!(
                f,
                "{processes} processes{}",
                match how {
                    How::Plain => "",
                    How::Bound => ", bound",
                    How::Within => ", in application",
                    How::Monitored => ", monitored",
                }
            ),
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
        if processes > 1 {
            ways.push(Way::AtOnce { copies: processes });
        }
        let all = [How::Plain, How::Bound, How::Within, How::Monitored].into_iter();
        // A single memory process has all processors anyway.
        let all = all.filter(|how| processes > 1 || *how != How::Bound);
        ways.extend(all.map(|how| Way::Shared { processes, how }));
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
    /// Seconds that the busiest process computed, where the breakdown says it; of programs at once, the part of one that would be its
    /// share of one program.
    pub(super) busiest: Option<f64>,
}

impl Way {
    pub(super) async fn run(&self, program: &Program, mpi: Option<&Mpi>) -> anyhow::Result<Run> {
        match *self {
            Self::Sequential => sequential(program),
            Self::AtOnce { copies } => at_once(program, copies),
            Self::Shared { processes, how } => shared(program, processes, how).await,
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

pub(super) fn sequential(program: &Program) -> anyhow::Result<Run> {
    let output = Command::new(std::env::current_exe()?)
        .args(["cost", "--alone", &program.to_string()])
        .output()?;
    if !output.status.success() {
        bail!("{}", String::from_utf8_lossy(&output.stderr));
    }
    of_output(&String::from_utf8_lossy(&output.stdout))
}

/// The mean of programs that run at once.
pub(super) fn at_once(program: &Program, copies: usize) -> anyhow::Result<Run> {
    let runs = std::thread::scope(|scope| {
        let start = |_| scope.spawn(|| sequential(program));
        let threads: Vec<_> = (0..copies).map(start).collect();
        let runs = threads.into_iter().map(|thread| {
            let run = thread.join();
            run.unwrap_or_else(|_| bail!("a thread panicked"))
        });
        runs.collect::<anyhow::Result<Vec<Run>>>()
    })?;
    let mut figures = runs.first().context("no program")?.figures;
    let sum: f64 = runs.iter().map(|run| run.figures.seconds).sum();
    figures.seconds = sum / copies as f64;
    Ok(Run {
        figures,
        busiest: Some(figures.seconds / copies as f64),
    })
}

async fn shared(program: &Program, processes: usize, how: How) -> anyhow::Result<Run> {
    let monitored = how == How::Monitored;
    let cluster = one_group(processes, monitored);
    let defaults = match how {
        How::Plain | How::Monitored => "",
        How::Bound => "bind = \"cores\"\n",
        How::Within => "bind = \"cores\"\nin_application = true\n",
    };
    let cluster = cluster.replacen("[defaults]\n", &format!("[defaults]\n{defaults}"), 1);
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
