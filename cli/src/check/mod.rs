//! `dosmos check`: what is wrong with the sharing, what it costs and what to change; for people and for CI.
//!
//! Exit status: 0 if nothing was found that `--fail-on` and `--baseline` ask for, 1 if something was, 2 if the
//! question could not be answered. The JSON answer is [`dosmos_analysis::Analysis`], each finding with one more
//! key, `change`: `"new"`, `"worse"` or `"known"` against the baseline, null without one. Documented in
//! `docs/guide/findings.md`.

mod baseline;
mod fail_on;
mod show;

use std::path::Path;
use std::process::ExitCode;

use anyhow::Context;
use dosmos_analysis::{Analysis, Finding, ProfileBuilder, Thresholds, conclude};
use dosmos_model::inputs::Builder;
use dosmos_trace::query::{Completeness, TimeRange, TraceSource};
use dosmos_visualizer::source::Fused;
use serde::Serialize;

use crate::args::{CheckArgs, Format};
use crate::model::of_run;
use crate::query::{between, lacking};
use crate::{output, records, sources};

use baseline::{Baseline, Change};
pub(crate) use fail_on::FailOn;

/// A finding, and what became of it since the baseline.
#[derive(Debug, Serialize)]
struct Judged<'a> {
    #[serde(flatten)]
    finding: &'a Finding,
    change: Option<Change>,
}

/// An answer: that of the analysis, with its findings judged.
#[derive(Debug, Serialize)]
struct Answer<'a> {
    complete: f64,
    from_ns: u64,
    to_ns: u64,
    findings: Vec<Judged<'a>>,
    withheld: &'a [dosmos_analysis::Withheld],
}

pub(crate) async fn run(args: CheckArgs) -> anyhow::Result<ExitCode> {
    let thresholds = thresholds(args.thresholds.as_deref())?;
    let baseline = args.baseline.as_deref().map(Baseline::read).transpose()?;
    let source = Fused::new(sources::open(&args.sources).await?.sources);
    let times = (args.from.as_deref(), args.to.as_deref());
    let network = args.network.as_deref();
    let (analysis, completeness) = analyse(&source, times, &thresholds, network).await?;
    let judge = |finding| Judged {
        finding,
        change: baseline.as_ref().map(|b| b.change(finding, &thresholds)),
    };
    let answer = Answer {
        complete: analysis.complete,
        from_ns: analysis.from_ns,
        to_ns: analysis.to_ns,
        findings: analysis.findings.iter().map(judge).collect(),
        withheld: &analysis.withheld,
    };
    for line in lacking(&completeness) {
        output::note(&format!("incomplete: {line}"));
    }
    match args.format {
        Format::Json => output::text(&(serde_json::to_string_pretty(&answer)? + "\n")),
        Format::Csv => output::text(&show::table(&answer).render(Format::Csv)),
        Format::Table => output::text(&show::report(&answer)),
    }
    let fails = |judged: &Judged<'_>| {
        judged.change != Some(Change::Known) && fail_on::any(&args.fail_on, judged.finding)
    };
    Ok(ExitCode::from(u8::from(answer.findings.iter().any(fails))))
}

/// The analysis of a source, over a range of time or over all of it. Over all of it the model of the run predicts
/// what following each advice would save, with messages that cost what the file `network` says.
///
/// # Errors
/// If the source does not answer, the times make no sense, or `network` is not a network record.
pub(crate) async fn analyse(
    source: &dyn TraceSource,
    (from, to): (Option<&str>, Option<&str>),
    thresholds: &Thresholds,
    network: Option<&Path>,
) -> anyhow::Result<(Analysis, Completeness)> {
    let catalog = source.catalog().await?;
    let range: Option<TimeRange> = between(&catalog, from, to)?;
    let network = of_run::network_here(network)?;
    let mut profile = ProfileBuilder::new(catalog.clone());
    // The times of processes are those of the whole run.
    let mut run = match range {
        None => Some(Builder::new(catalog.clone(), network)?),
        Some(_) => None,
    };
    let completeness = records::each(source, &catalog, range, |record| {
        profile.add(record);
        run.iter_mut().for_each(|run| run.add(record));
    })
    .await?;
    let times = source.breakdown().await?;
    profile.times(times.clone());
    let mut analysis = conclude(&profile.finish(range), thresholds);
    if let Some(run) = run
        && let Ok(run) = run.finish(&times)
    {
        analysis.predict_gains(&run);
    }
    Ok((analysis, completeness))
}

/// Thresholds from a file; the defaults without one.
///
/// # Errors
/// Names the file, and in it the line and the key.
pub fn thresholds(file: Option<&Path>) -> anyhow::Result<Thresholds> {
    let Some(file) = file else {
        return Ok(Thresholds::default());
    };
    let named = || file.display().to_string();
    let text = std::fs::read_to_string(file).with_context(named)?;
    let thresholds: Thresholds = toml::from_str(&text).with_context(named)?;
    thresholds.check().with_context(named)?;
    Ok(thresholds)
}
