//! The report without pictures: for comments in continuous integration, and for programs.

use dosmos_analysis::Analysis;
use dosmos_plot::{Block, Page};
use dosmos_trace::query::{QueryError, TraceSource};
use serde_json::{Value, json};

use crate::asked::Asked;
use crate::options::Options;
use crate::{figures, findings, path, summary};

/// The verdict, the findings, where the time went, the variables and how the run was started, as a page without charts.
///
/// # Errors
/// If the source has no answer at all.
pub async fn brief(
    source: &dyn TraceSource,
    analysis: &Analysis,
    options: &Options,
) -> Result<Page, QueryError> {
    let asked = Asked::of(source, options.accesses).await?;
    let mut page = Page::new(&options.title, summary::subtitle(&asked));
    page.section("Summary", summary::head(&asked, analysis, &options.launch));
    if asked.catalog.extent.is_some() {
        page.section("Findings", found(analysis));
        let lost = summary::lost(analysis).map(Block::Table);
        let mut time: Vec<Block> = lost.into_iter().collect();
        time.extend(path::blocks(analysis));
        page.section("Where the time goes", time);
        page.section("Variables", vec![figures::table(&asked)]);
    }
    let facts = summary::facts(&asked, &options.launch);
    page.section("Run", vec![Block::Table(facts)]);
    Ok(page)
}

fn found(analysis: &Analysis) -> Vec<Block> {
    let table = findings::table(analysis);
    let mut blocks: Vec<Block> = table.into_iter().collect();
    let patches = analysis.findings.iter().filter_map(|f| {
        let patch = f.patch_in_short()?;
        Some(Block::Details {
            summary: format!("{} of {}", f.kind, f.target()),
            blocks: vec![Block::Verbatim(patch)],
        })
    });
    blocks.extend(patches);
    if blocks.is_empty() {
        blocks.push(Block::text("No finding."));
    }
    blocks
}

/// The same for programs: the answer of `dosmos check --format json`, with the title, what is missing and where the time of each
/// process went.
///
/// # Errors
/// If the source has no answer at all.
pub async fn document(
    source: &dyn TraceSource,
    analysis: &Analysis,
    options: &Options,
) -> Result<Value, QueryError> {
    let asked = Asked::of(source, options.accesses).await?;
    let breakdown = source.breakdown().await?;
    let processes = breakdown.by_process().into_iter().map(|times| {
        let name = asked.catalog.topology.ap_name(times.ap);
        let parts = dosmos_proto::Component::ALL.into_iter();
        let parts = parts.map(|of| (of.name().to_owned(), json!(times.spent.time(of))));
        let parts: serde_json::Map<_, _> = parts.collect();
        json!({ "process": name, "wall_ns": times.wall, "time_ns": parts })
    });
    let mut document = json!(analysis);
    document["title"] = json!(options.title);
    document["run"] = json!(options.launch.metadata());
    document["incomplete"] = json!(summary::lacking(&asked, &options.launch));
    document["breakdown"] = processes.collect();
    Ok(document)
}
