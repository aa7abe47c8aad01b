//! `dosmos diff`: two runs of a program side by side, phase by phase.
//!
//! The JSON answer is [`dosmos_analysis::compare::Comparison`], documented in `docs/guide/findings.md`.

mod show;

use dosmos_analysis::Thresholds;
use dosmos_analysis::compare::{Comparison, compare};
use dosmos_client::{Phased, Run, Target, read_thresholds};

use crate::args::{DiffArgs, Format};
use crate::output;

pub(crate) async fn run(args: DiffArgs) -> anyhow::Result<()> {
    let thresholds = read_thresholds(args.thresholds.as_deref())?;
    let first = read(&args.first, &thresholds).await?;
    let second = read(&args.second, &thresholds).await?;
    let comparison: Comparison = compare(
        (first.phases, &first.analysed.analysis),
        (second.phases, &second.analysed.analysis),
    );
    match args.format {
        Format::Json => output::text(&(serde_json::to_string_pretty(&comparison)? + "\n")),
        Format::Csv => output::text(&show::totals(&comparison).render(Format::Csv)),
        Format::Table => output::text(&show::report(&comparison)),
    }
    Ok(())
}

/// Reads a run once, for its phases and its findings.
async fn read(name: &str, thresholds: &Thresholds) -> anyhow::Result<Phased> {
    let run = Run::open(&Target::named(name)).await?;
    let phased = run.phases(thresholds).await?;
    for line in phased.analysed.completeness.reasons() {
        output::note(&format!("{name} is incomplete: {line}"));
    }
    Ok(phased)
}
