//! `dosmos diff`: two runs of a program side by side, phase by phase.
//!
//! The JSON answer is [`dosmos_analysis::compare::Comparison`], documented in `docs/guide/findings.md`.

mod show;

use std::path::PathBuf;

use dosmos_analysis::compare::{Comparison, PhasedRun, compare};
use dosmos_analysis::{Analysis, ProfileBuilder, Thresholds, conclude};
use dosmos_trace::query::TraceSource;
use dosmos_visualizer::source::Fused;

use crate::args::{DiffArgs, Format, SourceArgs};
use crate::query::lacking;
use crate::{check, output, records, sources};

pub(crate) async fn run(args: DiffArgs) -> anyhow::Result<()> {
    let thresholds = check::thresholds(args.thresholds.as_deref())?;
    let first = read(&args.first, &thresholds).await?;
    let second = read(&args.second, &thresholds).await?;
    let comparison: Comparison = compare((first.0, &first.1), (second.0, &second.1));
    match args.format {
        Format::Json => output::text(&(serde_json::to_string_pretty(&comparison)? + "\n")),
        Format::Csv => output::text(&show::totals(&comparison).render(Format::Csv)),
        Format::Table => output::text(&show::report(&comparison)),
    }
    Ok(())
}

/// A run directory, a store directory, or the address of a running event manager.
fn named(run: &str) -> SourceArgs {
    let path = PathBuf::from(run);
    let mut args = SourceArgs::default();
    if path.join("store").is_dir() {
        args.run_dir = Some(path);
    } else if path.exists() {
        args.store.push(path);
    } else {
        args.emp.push(run.to_owned());
    }
    args
}

/// Reads a run once, for its phases and its findings.
async fn read(run: &str, thresholds: &Thresholds) -> anyhow::Result<(PhasedRun, Analysis)> {
    let source = Fused::new(sources::open(&named(run)).await?.sources);
    let catalog = source.catalog().await?;
    let mut phases = PhasedRun::new(catalog.clone());
    let mut builder = ProfileBuilder::new(catalog.clone());
    let completeness = records::each(&source, &catalog, None, |record| {
        phases.add(record);
        builder.add(record);
    })
    .await?;
    // Only now: reading may have found damage.
    for line in lacking(&completeness) {
        output::note(&format!("{run} is incomplete: {line}"));
    }
    builder.times(source.breakdown().await?);
    Ok((phases, conclude(&builder.finish(None), thresholds)))
}
