//! `dosmos report`: a run as one HTML page.

use anyhow::Context;
use dosmos_client::{Run, network_here, read_thresholds};
use dosmos_report as report;

use crate::args::ReportArgs;
use crate::output;

pub(crate) async fn run(args: ReportArgs) -> anyhow::Result<()> {
    let run = Run::open(&args.sources.target()).await?;
    let thresholds = read_thresholds(args.thresholds.as_deref())?;
    let network = network_here(args.network.as_deref())?;
    let analysis = run.analyse(None, &thresholds, network).await?.analysis;
    let options = report::Options {
        title: args.title.unwrap_or(run.title().to_owned()),
        variables: args.variables,
        processes: args.processes,
        launch: run.launch(),
        ..report::Options::default()
    };
    let page = report::report(run.source(), &analysis, &options).await?;
    let html = page.html();
    let path = args.output.display();
    std::fs::write(&args.output, &html).with_context(|| format!("cannot write {path}"))?;
    output::note(&format!(
        "{path}: {}, {} KiB",
        match analysis.findings.len() {
            0 => "no finding".to_owned(),
            1 => "1 finding".to_owned(),
            n => format!("{n} findings"),
        },
        html.len().div_ceil(1024)
    ));
    Ok(())
}
