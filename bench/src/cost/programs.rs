//! What is compared: the applications, and the ways to run each.

use std::fmt;
use std::process::Command;

use anyhow::{Context, bail};
use dosmos_examples::Figures;
use dosmos_proto::Component;

use super::mpi::{Communication, Mpi, Transport};
use crate::applications::APPLICATIONS;
use crate::breakdown::{breakdown_of, computing};
use crate::run::{json_lines, one_group, run_prepared};

/// An application with its arguments.
#[derive(Clone, Debug)]
pub(super) struct Program(Vec<String>);

impl Program {
    pub(super) fn name(&self) -> &str {
        self.0.first().map_or("", String::as_str)
    }

    pub(super) fn args(&self) -> &[String] {
        self.0.get(1..).unwrap_or_default()
    }
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join(" "))
    }
}

/// The applications that were named, all if none was; of small size if `quick`.
pub(super) fn chosen(named: &[String], quick: bool) -> anyhow::Result<Vec<Program>> {
    let of_paper = APPLICATIONS.iter().map(|app| {
        let mut words = app.command(quick);
        if app.name == "workpile" {
            words.push("--ahead");
        }
        Program(words.into_iter().map(str::to_owned).collect())
    });
    let of_paper: Vec<Program> = of_paper.collect();
    if named.is_empty() {
        return Ok(of_paper);
    }
    let program = |text: &String| {
        let words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
        let name = words.first().map_or("", String::as_str);
        let Some(known) = of_paper.iter().find(|p| p.name() == name) else {
            let names: Vec<&str> = of_paper.iter().map(Program::name).collect();
            bail!(
                "there is no application {name:?}; there are {}",
                names.join(", ")
            );
        };
        Ok(if words.len() == 1 {
            known.clone()
        } else {
            Program(words)
        })
    };
    named.iter().map(program).collect()
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn applications_are_found_by_name_and_keep_their_arguments() {
        let all = chosen(&[], false).unwrap();
        assert_eq!(all.len(), 12);
        let own = chosen(&["is --keys 100".into(), "sor".into()], false).unwrap();
        assert_eq!(own[0].args(), ["--keys", "100"]);
        assert!(own[1].to_string().contains("2000"), "{}", own[1]);
        let error = chosen(&["latency".into()], false).unwrap_err();
        assert!(error.to_string().contains("there are sor"), "{error}");
        for program in all.iter().chain(&chosen(&[], true).unwrap()) {
            let mut apps = dosmos_examples::catalog().iter();
            let app = apps.find(|a| a.name == program.name()).unwrap();
            assert!(
                app.is_application() && app.accepts(program.args()),
                "{program}"
            );
        }
    }
}
