//! `dosmos diff`: two runs of a program side by side, phase by phase.
//!
//! The JSON answer is [`dosmos_analysis::compare::Comparison`], each run with the key `run` (how it was started and how it ended);
//! documented in `docs/guide/findings.md`.

mod show;

use dosmos_analysis::Thresholds;
use dosmos_analysis::compare::{Comparison, compare};
use dosmos_client::{Launch, Phased, Run, Target, read_thresholds};

use crate::args::{DiffArgs, Format};
use crate::output;

pub(crate) async fn run(args: DiffArgs) -> anyhow::Result<()> {
    let thresholds = read_thresholds(args.thresholds.as_deref())?;
    let (first, first_launch) = read(&args.first, &thresholds).await?;
    let (second, second_launch) = read(&args.second, &thresholds).await?;
    let mut comparison: Comparison = compare(
        (first.phases, &first.analysed.analysis),
        (second.phases, &second.analysed.analysis),
    );
    let programs = different_programs(&first_launch, &second_launch);
    comparison.warnings.extend(programs);
    for warning in &comparison.warnings {
        output::note(&format!("warning: {warning}"));
    }
    match args.format {
        Format::Json => {
            let mut json = serde_json::to_value(&comparison)?;
            json["first"]["run"] = serde_json::to_value(first_launch.metadata())?;
            json["second"]["run"] = serde_json::to_value(second_launch.metadata())?;
            output::text(&(serde_json::to_string_pretty(&json)? + "\n"));
        }
        Format::Csv => {
            output::text(&show::accesses(&comparison.matched).render(Format::Csv));
        }
        Format::Table => {
            for (which, launch) in [("first", &first_launch), ("second", &second_launch)] {
                output::text(&format!("{which:8}{}\n", launch.line()));
            }
            output::text(&format!("\n{}", show::report(&comparison)));
        }
    }
    Ok(())
}

/// Reads a run once, for its phases and its findings.
async fn read(name: &str, thresholds: &Thresholds) -> anyhow::Result<(Phased, Launch)> {
    let run = Run::open(&Target::named(name)).await?;
    let phased = run.phases(thresholds).await?;
    let (launch, troubles) = run.launch_and_troubles().await?;
    let lacking = phased.analysed.completeness.reasons().into_iter();
    for line in lacking.chain(troubles) {
        output::note(&format!("{name} is incomplete: {line}"));
    }
    Ok((phased, launch))
}

/// Says so if the two runs are known to be of different programs.
fn different_programs(first: &Launch, second: &Launch) -> Option<String> {
    let (a, b) = (first.program()?, second.program()?);
    (a != b).then(|| format!("the runs are of different programs: {a} and {b}"))
}
