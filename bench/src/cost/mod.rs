//! `dosmos-bench cost`: what shared memory costs, beside the plain sequential program and beside MPI.
//!
//! A speed-up over one's own run on one process says little: the program on one process may be slow itself
//! (docs/bibliography.md#cost). So each application is compared with the sequential program that has the same kernel, is a
//! process of its own and shares nothing; and four of them with MPI programs in C. All run in interleaved rounds, so that what else
//! the machine does concerns all alike, and all must compute the same result.

mod measured;
mod mpi;
mod programs;
mod table;
mod ways;

use anyhow::{Context, bail};
use dosmos_cli::args::Format;
use dosmos_cli::output;

use crate::args::CostArgs;
use measured::Measured;
use mpi::Mpi;
use programs::{Program, chosen};

pub(crate) async fn run(args: CostArgs) -> anyhow::Result<()> {
    let programs = chosen(&args.applications, args.quick)?;
    if args.alone {
        return alone(&programs);
    }
    if args.runs == 0 || args.processes.is_empty() || args.processes.contains(&0) {
        bail!("--runs and --processes must be at least 1");
    }
    let earlier = args.compare.as_deref().map(Measured::read).transpose()?;
    let mpi = match args.no_mpi {
        true => None,
        false => Mpi::prepare(&programs)?,
    };
    let processes = match args.quick {
        true => &[1, 2][..],
        false => &args.processes,
    };
    let mut measured = Measured::default();
    let rounds = if args.quick { 1 } else { args.runs };
    for round in 0..rounds {
        for program in &programs {
            output::note(&format!("round {} of {rounds}: {program}", round + 1));
            let mut ways = ways::ways(program, processes, mpi.as_ref());
            // Forth and back, so that a machine that becomes slower concerns all alike.
            if round % 2 == 1 {
                ways.reverse();
            }
            for way in ways {
                let run = way.run(program, mpi.as_ref()).await;
                let run = run.with_context(|| format!("{program}, {way}"))?;
                measured.add(program, &way, &run)?;
            }
        }
    }
    measured.check()?;
    if let Some(path) = &args.json {
        measured.write(path)?;
    }
    match args.format {
        Format::Json => output::text(&(serde_json::to_string_pretty(&measured)? + "\n")),
        format => output::text(&table::tables(&measured, earlier.as_ref(), format)),
    }
    Ok(())
}

/// Seconds that the plain sequential program takes, the mean of as many processes that run it at once.
pub(crate) fn sequential(program: &str, processes: usize) -> anyhow::Result<f64> {
    let programs = chosen(&[program.to_owned()], false)?;
    let program = programs.first().context("no program")?;
    Ok(ways::at_once(program, processes)?.figures.seconds)
}

/// The sequential program, in this process.
fn alone(programs: &[Program]) -> anyhow::Result<()> {
    for program in programs {
        let figures = dosmos_examples::alone(program.name(), program.args())?;
        output::text(&(serde_json::to_string(&figures)? + "\n"));
    }
    Ok(())
}
