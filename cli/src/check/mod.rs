//! `dosmos check`: what is wrong with the sharing, what it costs and what to change; for people and for CI.
//!
//! Exit status: 1 if something was found that `--fail-on` and `--baseline` ask for. Otherwise 2 if that is not certain: the run
//! cannot be read, nothing was recorded, something is missing, or a finding was withheld. 0 only if everything was looked at
//! and nothing was found. The JSON answer is [`dosmos_analysis::Analysis`], each finding with one more
//! key, `change`: `"new"`, `"worse"` or `"known"` against the baseline, null without one. Documented in
//! `docs/guide/findings.md`.

mod answer;
mod baseline;
mod fail_on;
mod show;

use std::process::ExitCode;

use dosmos_client::{Analysed, Run, network_here, read_thresholds, time_range};

use crate::args::{CheckArgs, Format};
use crate::output;

use answer::{Answer, Judged};
use baseline::{Baseline, Change};
pub(crate) use fail_on::FailOn;

pub(crate) async fn run(args: CheckArgs) -> anyhow::Result<ExitCode> {
    let thresholds = read_thresholds(args.thresholds.as_deref())?;
    let baseline = args.baseline.as_deref().map(Baseline::read).transpose()?;
    let network = network_here(args.network.as_deref())?;
    let run = Run::open(&args.sources.target()).await?;
    let range = match (args.from.as_deref(), args.to.as_deref()) {
        (None, None) => None,
        (from, to) => time_range(&run.source().catalog().await?, from, to)?,
    };
    let Analysed {
        analysis,
        completeness,
    } = run.analyse(range, &thresholds, network).await?;
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
    for line in completeness.reasons() {
        output::note(&format!("incomplete: {line}"));
    }
    let recorded = analysis.to_ns > 0;
    if !recorded {
        output::note("incomplete: nothing was recorded");
    }
    match args.format {
        Format::Json => output::text(&(serde_json::to_string_pretty(&answer)? + "\n")),
        Format::Csv => output::text(&show::table(&answer).render(Format::Csv)),
        Format::Table => output::text(&show::report(&answer)),
    }
    let fails = |judged: &Judged<'_>| {
        judged.change != Some(Change::Known) && fail_on::any(&args.fail_on, judged.finding)
    };
    if answer.findings.iter().any(fails) {
        return Ok(ExitCode::from(1));
    }
    // What was not looked at is never reported as fine.
    let looked = completeness.is_complete() && recorded && analysis.withheld.is_empty();
    Ok(ExitCode::from(if looked { 0 } else { 2 }))
}
