//! `dosmos query`: questions to running event managers or stores, answered as tables, JSON or CSV.
//!
//! Every JSON answer is one object with the keys `completeness` (what is missing: see
//! `dosmos_trace::query::Completeness`) and `run` (how the run was started and how it ended: see
//! `dosmos_trace::store::RunMetadata`; null if nobody wrote it); times are nanoseconds since the Unix epoch, durations
//! nanoseconds. Both are said on standard error as well.

mod accesses;
mod answer;
mod breakdown;
mod efficiency;
mod objects;
mod options;
mod times;

use dosmos_client::Run;
use dosmos_trace::query::TraceSource;

use crate::args::{Format, QueryArgs, Question};
use crate::output;

pub(crate) use accesses::listed;
use answer::Answer;
pub(crate) use objects::totals;
pub(crate) use times::share;

pub(crate) async fn run(args: QueryArgs) -> anyhow::Result<()> {
    options::check(&args)?;
    let run = Run::open(&args.sources.target()).await?;
    let answer = answer(run.source(), &args).await?;
    let (launch, troubles) = run.launch_and_troubles().await?;
    output::note(&launch.line());
    let lacking = answer.completeness.reasons().into_iter();
    for line in lacking.chain(troubles) {
        output::note(&format!("incomplete: {line}"));
    }
    if answer.matches_nothing {
        output::note("warning: no record matches the selection");
    }
    match args.format {
        Format::Json => {
            let mut json = answer.json;
            json["completeness"] = serde_json::to_value(&answer.completeness)?;
            json["run"] = serde_json::to_value(launch.metadata())?;
            output::text(&(serde_json::to_string_pretty(&json)? + "\n"));
        }
        format => output::text(&answer.table.render(format)),
    }
    Ok(())
}

async fn answer(source: &dyn TraceSource, args: &QueryArgs) -> anyhow::Result<Answer> {
    let catalog = source.catalog().await?;
    match args.question {
        Question::Variables => objects::variables(source, &catalog, args).await,
        Question::Times => times::answer(source, &catalog, args).await,
        Question::Processes => objects::processes(source, &catalog).await,
        Question::Groups => Ok(objects::groups(&catalog)),
        Question::Meta => objects::meta(source, &catalog, args).await,
        Question::Histogram => accesses::histogram(source, &catalog, args).await,
        Question::History => accesses::history(source, &catalog, args).await,
        Question::Breakdown => breakdown::answer(source, &catalog, args).await,
        Question::Efficiency => efficiency::answer(source, &catalog, args).await,
        Question::Events => accesses::events(source, &catalog, args).await,
    }
}
