//! `dosmos check`: what is wrong with the sharing, what it costs and what to change; for people and for CI.
//!
//! With `--apply` it writes a cluster file instead, and the exit status is 0.
//!
//! Exit status: 2 whenever not everything could be looked at, also with findings: the run cannot be read, it failed or was
//! never begun, nothing was recorded, something is missing, or a finding was withheld. Otherwise 1 if something was found that
//! `--fail-on` and `--baseline` ask for, and 0 if not. The JSON answer is [`dosmos_analysis::Analysis`], each finding with one more
//! key, `change`: `"new"`, `"worse"` or `"known"` against the baseline, null without one; and with the keys `run` (how the run was started
//! and how it ended) and `incomplete` (why not everything could be looked at). Documented in
//! `docs/guide/findings.md`. As OTLP each finding is a log record, and each reason why not everything could be looked at too
//! (`docs/guide/interchange.md`).

mod answer;
mod apply;
mod baseline;
mod fail_on;
mod otlp;
mod show;

use std::process::ExitCode;

use anyhow::bail;
use dosmos_client::{Analysed, Run, network_here, read_thresholds, time_range};

use crate::args::{CheckArgs, CheckFormat, Format};
use crate::output;

use answer::{Answer, Judged};
use apply::Apply;
use baseline::{Baseline, Change};
pub(crate) use fail_on::FailOn;

pub(crate) async fn run(args: CheckArgs) -> anyhow::Result<ExitCode> {
    let thresholds = read_thresholds(args.thresholds.as_deref())?;
    let baseline = args.baseline.as_deref().map(Baseline::read).transpose()?;
    if args.network.is_some() && (args.from.is_some() || args.to.is_some()) {
        bail!(
            "--network has no effect with --from or --to: gains in a part of a run are estimated from the costs of its \
             accesses; leave one of them out"
        );
    }
    let network = network_here(args.network.as_deref())?;
    let run = Run::open(&args.sources.target()).await?;
    let range = match (args.from.as_deref(), args.to.as_deref()) {
        (None, None) => None,
        (from, to) => time_range(&run.source().catalog().await?, from, to)?,
    };
    let Analysed {
        analysis,
        completeness,
        records,
    } = run.analyse(range, &thresholds, network).await?;
    let judge = |finding| Judged {
        finding,
        change: baseline.as_ref().map(|b| b.change(finding, &thresholds)),
    };
    let (launch, troubles) = run.launch_and_troubles().await?;
    let mut incomplete = completeness.reasons();
    if analysis.to_ns == 0 {
        incomplete.push("nothing was recorded".to_owned());
    } else if records == 0 {
        incomplete.push("no record matches the selection".to_owned());
    }
    incomplete.extend(troubles);
    for line in &incomplete {
        output::note(&format!("incomplete: {line}"));
    }
    if let Some(number) = args.apply {
        let apply = Apply {
            number,
            cluster: args.cluster.as_deref(),
            output: args.output.as_deref(),
        };
        apply.run(&analysis.findings, &launch)?;
        return Ok(ExitCode::SUCCESS);
    }
    let answer = Answer {
        run: launch.metadata(),
        incomplete: &incomplete,
        complete: analysis.complete,
        from_ns: analysis.from_ns,
        to_ns: analysis.to_ns,
        efficiency: analysis.efficiency.as_ref(),
        verdict: &analysis.verdict,
        critical_path: analysis.critical_path.as_ref(),
        delays: &analysis.delays,
        findings: analysis.findings.iter().map(judge).collect(),
        oversubscribed: analysis.oversubscribed.as_ref(),
        dismissed: &analysis.dismissed,
        withheld: &analysis.withheld,
        races: &analysis.races,
    };
    match args.format {
        CheckFormat::Json => output::text(&(serde_json::to_string_pretty(&answer)? + "\n")),
        CheckFormat::Csv => output::text(&show::table(&answer).render(Format::Csv)),
        CheckFormat::Table => output::text(&show::report(&answer, &launch)),
        CheckFormat::Otlp => {
            let catalog = run.source().catalog().await?;
            output::text(&(serde_json::to_string(&otlp::logs(&answer, &catalog))? + "\n"));
        }
    }
    let fails = |judged: &Judged<'_>| {
        judged.change != Some(Change::Known) && fail_on::any(&args.fail_on, judged.finding)
    };
    let found = answer.findings.iter().any(fails);
    // What was not looked at is never reported as fine, nor as all that is wrong.
    let looked = incomplete.is_empty() && completeness.is_complete();
    Ok(match looked && analysis.withheld.is_empty() {
        true => ExitCode::from(u8::from(found)),
        false => ExitCode::from(2),
    })
}
