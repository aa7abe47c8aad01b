//! `dosmos report`: a run as one HTML page.

use anyhow::Context;
use dosmos_visualizer::report;
use dosmos_visualizer::source::Fused;

use crate::args::ReportArgs;
use crate::{check, output, sources};

pub(crate) async fn run(args: ReportArgs) -> anyhow::Result<()> {
    let opened = sources::open(&args.sources).await?;
    let source = Fused::new(opened.sources);
    let thresholds = check::thresholds(args.thresholds.as_deref())?;
    let (analysis, _) =
        check::analyse(&source, (None, None), &thresholds, args.network.as_deref()).await?;
    let options = report::Options {
        title: args.title.unwrap_or(opened.title),
        variables: args.variables,
        processes: args.processes,
        ..report::Options::default()
    };
    let page = report::report(&source, &analysis, &options).await?;
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
