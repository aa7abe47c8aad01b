//! The report of a run: one page with what is wrong, what to change, and the diagrams of DOSMOS-Trace (figures 8 to 11) that
//! show it.
//!
//! [`brief`] and [`document`] say the same without pictures. [`report`] asks a source and lays out a [`Page`]; it reads each diagram's records, never the whole run.
//! Invariant: what the data lack stands at the top of the page.

mod asked;
mod brief;
mod figures;
mod findings;
mod groups;
mod lanes;
mod options;
mod path;
mod phases;
mod summary;
mod time;

use dosmos_analysis::Analysis;
use dosmos_plot::{Block, Page};
use dosmos_proto::{ApId, Nanos, VarId, Variable};
use dosmos_trace::query::{Filter, QueryError, TraceSource};

use asked::Asked;
pub use brief::{brief, document};
pub use options::Options;
pub use time::breakdown;

/// Lays out the report of what `source` holds, with the findings of `analysis`.
///
/// # Errors
/// If the source has no answer at all. A source that lacks something makes the page say so.
pub async fn report(
    source: &dyn TraceSource,
    analysis: &Analysis,
    options: &Options,
) -> Result<Page, QueryError> {
    let asked = Asked::of(source, options.accesses).await?;
    let mut page = Page::new(&options.title, summary::subtitle(&asked));
    page.section(
        "Summary",
        summary::blocks(&asked, analysis, &options.launch).await?,
    );
    if asked.catalog.extent.is_some() {
        page.section("Findings", findings::blocks(analysis));
        let mut time = time::blocks(&asked).await?;
        time.extend(path::blocks(analysis));
        page.section("Where the time goes", time);
        page.section("Accesses over time", over_time(&asked).await?);
        page.section("Variables", variables(&asked, analysis, options).await?);
        page.section("Processes", processes(&asked, analysis, options).await?);
        page.section("Groups", groups::blocks(&analysis.groups));
        page.section("Phases", phases::blocks(&asked, analysis));
    }
    Ok(page)
}

/// The diagrams of one variable: accesses over time by origin (DOSMOS-Trace, figures 8 and 9), and a closer look from the
/// middle of the run (DOSMOS-Trace, figure 10). None if there is no such variable.
///
/// # Errors
/// If the source has no answer.
pub async fn of_variable(source: &dyn TraceSource, name: &str) -> Result<Vec<Block>, QueryError> {
    let asked = Asked::of(source, Options::default().accesses).await?;
    match asked.catalog.variable(name).map(Variable::id) {
        Some(var) => variable(&asked, var, asked.middle()).await,
        None => Ok(Vec::new()),
    }
}

/// The diagram of one process: a closer look from the middle of the run (DOSMOS-Trace, figure 11).
///
/// # Errors
/// If the source has no answer.
pub async fn of_process(source: &dyn TraceSource, ap: ApId) -> Result<Option<Block>, QueryError> {
    let asked = Asked::of(source, Options::default().accesses).await?;
    process(&asked, ap).await
}

async fn over_time(asked: &Asked<'_>) -> Result<Vec<Block>, QueryError> {
    figures::histograms(asked, &Filter::default(), "All variables").await
}

async fn variables(
    asked: &Asked<'_>,
    analysis: &Analysis,
    options: &Options,
) -> Result<Vec<Block>, QueryError> {
    let mut blocks = vec![figures::table(asked), Block::text(lanes::LEGEND)];
    for var in asked.interesting_variables(analysis, options.variables) {
        let name = asked.catalog.name_of(var);
        let moment = asked.moment_of(&name, analysis);
        let inside = variable(asked, var, moment).await?;
        blocks.push(card(name, asked.layout_of(var), inside));
    }
    Ok(blocks)
}

async fn variable(asked: &Asked<'_>, var: VarId, at: Nanos) -> Result<Vec<Block>, QueryError> {
    let filter = Filter {
        variables: vec![var],
        ..Filter::default()
    };
    let name = asked.catalog.name_of(var);
    let mut blocks = figures::histograms(asked, &filter, &name).await?;
    let records = asked.closer_look(&filter, at).await?;
    blocks.extend(lanes::of_variable(asked, &name, &records));
    Ok(blocks)
}

async fn processes(
    asked: &Asked<'_>,
    analysis: &Analysis,
    options: &Options,
) -> Result<Vec<Block>, QueryError> {
    let mut blocks = vec![Block::text(lanes::LEGEND)];
    for ap in asked.interesting_processes(analysis, options.processes) {
        blocks.extend(process(asked, ap).await?);
    }
    Ok(blocks)
}

async fn process(asked: &Asked<'_>, ap: ApId) -> Result<Option<Block>, QueryError> {
    let filter = Filter {
        aps: vec![ap],
        ..Filter::default()
    };
    let records = asked.closer_look(&filter, asked.middle()).await?;
    let name = asked.catalog.topology.ap_name(ap);
    Ok(lanes::of_process(asked, &name, &records))
}

fn card(heading: String, badge: String, blocks: Vec<Block>) -> Block {
    Block::Card {
        heading,
        badge,
        color: dosmos_plot::Color::Faint,
        blocks,
    }
}
