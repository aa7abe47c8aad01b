//! `dosmos report`: a run as one HTML page, or in short as Markdown or JSON.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use dosmos_analysis::Analysis;
use dosmos_client::{Run, network_here, read_thresholds};
use dosmos_report as report;

use crate::args::{ReportArgs, ReportFormat};
use crate::output;

pub(crate) async fn run(args: ReportArgs) -> anyhow::Result<()> {
    if args.format != ReportFormat::Html {
        for (option, given) in [
            ("--variables", args.variables.is_some()),
            ("--processes", args.processes.is_some()),
        ] {
            if given {
                bail!("{option} has no effect without charts; only --format html has some");
            }
        }
    }
    let run = Run::open(&args.sources.target()).await?;
    let thresholds = read_thresholds(args.thresholds.as_deref())?;
    let network = network_here(args.network.as_deref())?;
    let analysis = run.analyse(None, &thresholds, network).await?.analysis;
    let usual = report::Options::default();
    let options = report::Options {
        title: args.title.clone().unwrap_or(run.title().to_owned()),
        variables: args.variables.unwrap_or(usual.variables),
        processes: args.processes.unwrap_or(usual.processes),
        launch: run.launch(),
        ..usual
    };
    let text = written(&run, &analysis, &options, args.format).await?;
    let output = args.output.unwrap_or_else(|| usual_output(args.format));
    if output == Path::new("-") {
        output::text(&text);
        return Ok(());
    }
    let path = output.display();
    std::fs::write(&output, &text).with_context(|| format!("cannot write {path}"))?;
    output::note(&format!(
        "{path}: {}, {} KiB",
        match analysis.findings.len() {
            0 => "no finding".to_owned(),
            1 => "1 finding".to_owned(),
            n => format!("{n} findings"),
        },
        text.len().div_ceil(1024)
    ));
    Ok(())
}

async fn written(
    run: &Run,
    analysis: &Analysis,
    options: &report::Options,
    format: ReportFormat,
) -> anyhow::Result<String> {
    let source = run.source();
    Ok(match format {
        ReportFormat::Html => report::report(source, analysis, options).await?.html(),
        ReportFormat::Markdown => {
            let page = report::brief(source, analysis, options).await?;
            // It has no picture to link to.
            page.markdown(|_, _| String::new())
        }
        ReportFormat::Json => {
            let document = report::document(source, analysis, options).await?;
            serde_json::to_string_pretty(&document)? + "\n"
        }
    })
}

fn usual_output(format: ReportFormat) -> PathBuf {
    match format {
        ReportFormat::Html => "report.html".into(),
        ReportFormat::Markdown | ReportFormat::Json => "-".into(),
    }
}
