//! `dosmos-bench cures`: what following the advice of `dosmos check` gains, measured, beside what it predicts.
//!
//! Each program runs as it is and is analysed as `dosmos check` does. Then it runs again and again, without and with each cure in
//! turn: a patch of the cluster file applied, or for a pathology whose cure is in the program, the program with `--healthy`. The length of a run is
//! that of its breakdown, without starting. The gain of a cure is the fraction of the run time that it saves, by the
//! mean of the ratios within rounds.
//!
//! Nothing is left out: programs without findings, findings whose cure could not be tried, and cures that failed are rows, too. For a pathology of
//! which no finding has a cure that was tried, `--healthy` is measured as well: the cure that should have been found.
//!
//! Schema of the JSON: `machine`, `pairs`, `patches`, `programs` (see [`measured::OfProgram`]) and `summary` (see [`summary::Summary`]).

mod measured;
mod programs;
mod show;
mod summary;
mod tried;

use anyhow::ensure;
use dosmos_cli::output;
use dosmos_client::{network_here, read_thresholds};

use crate::args::CuresArgs;
use programs::chosen;
use tried::Trial;

pub(crate) async fn run(args: CuresArgs) -> anyhow::Result<()> {
    let programs = chosen(&args.programs)?;
    if args.list {
        output::text(&show::list(&programs));
        return Ok(());
    }
    ensure!(
        args.pairs >= 2,
        "--pairs {} gives no interval; at least 2",
        args.pairs
    );
    let trial = Trial {
        pairs: args.pairs,
        patches: args.patches,
        network: network_here(args.network.as_deref())?,
        thresholds: read_thresholds(args.thresholds.as_deref())?,
    };
    let mut measured = Vec::new();
    for program in &programs {
        measured.push(trial.of(program).await);
    }
    output::text(&show::shown(&measured, &args)?);
    Ok(())
}
