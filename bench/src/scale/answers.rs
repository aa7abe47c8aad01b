//! How long many event managers take to answer together, as the terminal asks them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::ensure;
use dosmos_cli::output;
use dosmos_client::{Fused, RemoteSource};
use dosmos_trace::query::table::TableQuery;
use dosmos_trace::query::{Filter, HistogramQuery, HistoryQuery, TraceSource};
use serde::Serialize;

use crate::args::ScaleArgs;
use crate::load::{Load, Size};
use crate::statistics::spread;
use crate::store::usage::thread_time;

/// Records per second of each event manager.
const RATE: u32 = 200;
/// For so long they record before they are asked.
const RECORDED: Duration = Duration::from_secs(3);
/// What fits on a screen.
const COLUMNS: u32 = 200;
const POINTS: u32 = 500;
const ROWS: u32 = 50;

#[derive(Debug, Serialize)]
pub(super) struct Answer {
    pub(super) managers: u32,
    pub(super) question: &'static str,
    pub(super) least_ms: f64,
    pub(super) median_ms: f64,
    pub(super) most_ms: f64,
    /// Median of the processor time of who asks: of its thread, not of the event managers' in this process.
    pub(super) asker_ms: f64,
    /// Bytes of one answer, of all event managers together.
    pub(super) received: u64,
}

const QUESTIONS: [&str; 4] = ["outline", "histogram", "history", "variables"];

pub(super) async fn all(args: &ScaleArgs) -> anyhow::Result<Vec<Answer>> {
    let mut answers = Vec::new();
    for &managers in &args.managers {
        output::note(&format!("answers of {managers} event managers"));
        let dir = tempfile::Builder::new().prefix("dosmos-bench").tempdir()?;
        let load = Load::start(
            dir.path(),
            Size {
                managers,
                variables: managers * args.variables,
                rate: managers * RATE,
            },
        )?;
        tokio::time::sleep(RECORDED).await;
        let named = |name: &str| Arc::new(RemoteSource::named(name.to_owned(), load.book.clone()));
        let sources = load.topology.event_managers().iter();
        let sources = sources.map(|e| named(&e.name) as _).collect();
        let source = Fused::new(sources);
        for question in QUESTIONS {
            answers.push(measured(&source, managers, question, args.rounds).await?);
        }
        drop(source);
        load.stop()?;
    }
    Ok(answers)
}

async fn measured(
    source: &Fused,
    managers: u32,
    question: &'static str,
    rounds: usize,
) -> anyhow::Result<Answer> {
    let (mut times, mut own) = (Vec::new(), Vec::new());
    let mut received = 0;
    for round in 0..=rounds {
        let before = source.received_bytes();
        let (begin, used) = (Instant::now(), thread_time());
        ask(source, question).await?;
        // The first one connects.
        if round > 0 {
            times.push(begin.elapsed().as_secs_f64() * 1e3);
            own.push((thread_time() - used).as_secs_f64() * 1e3);
            received = source.received_bytes() - before;
        }
    }
    let [least_ms, median_ms, most_ms] = spread(times);
    Ok(Answer {
        managers,
        question,
        least_ms,
        median_ms,
        most_ms,
        asker_ms: spread(own)[1],
        received,
    })
}

async fn ask(source: &Fused, question: &str) -> anyhow::Result<()> {
    let filter = Filter::default();
    let lacking = match question {
        "outline" => source.outline(false).await?.completeness,
        "histogram" => {
            let buckets = COLUMNS;
            let query = HistogramQuery { filter, buckets };
            source.histogram(&query).await?.completeness
        }
        "history" => {
            let query = HistoryQuery {
                filter,
                max_points: POINTS,
            };
            source.history(&query).await?.completeness
        }
        _ => {
            let query = TableQuery {
                limit: ROWS,
                ..TableQuery::default()
            };
            source.table(&query).await?.completeness
        }
    };
    ensure!(
        lacking.missing.is_empty(),
        "no answer of {}",
        lacking.missing.join(", ")
    );
    Ok(())
}
