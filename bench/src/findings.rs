//! `dosmos-bench findings`: precision and recall of the detectors, by kind, over labelled traces
//! ([`dosmos_testkit::labelled`]). Deterministic: the same seeds give the same table everywhere.

use std::time::Instant;

use anyhow::ensure;
use dosmos_analysis::Thresholds;
use dosmos_cli::args::Format;
use dosmos_cli::output::{self, Table};
use dosmos_testkit::labelled::{Loss, Score, generate, score};
use serde_json::json;

use crate::args::FindingsArgs;

pub(super) fn run(args: &FindingsArgs) -> anyhow::Result<()> {
    ensure!(
        (0.0..1.0).contains(&args.drop),
        "--drop {} is not a fraction from 0 to below 1",
        args.drop
    );
    ensure!(
        args.sample > 0,
        "--sample 0: at least one record in 1 is kept"
    );
    let thresholds = dosmos_client::read_thresholds(args.thresholds.as_deref())?;
    let start = Instant::now();
    let score = on_all_processors(args, &thresholds);
    let seconds = start.elapsed().as_secs_f64();
    match args.format {
        Format::Json => {
            let rows: Vec<_> = score
                .kinds
                .iter()
                .map(|k| {
                    let mut row = json!(k);
                    row["precision"] = k.precision().into();
                    row["recall"] = k.recall().into();
                    row
                })
                .collect();
            let mut json = json!(score);
            json["kinds"] = rows.into();
            output::text(&(serde_json::to_string_pretty(&json)? + "\n"));
        }
        format => {
            output::text(&table(&score).render(format));
            output::note(&format!(
                "{} traces, {} records, {seconds:.0} s; {} of {} traces with nothing planted had a finding",
                score.traces, score.records, score.healthy_with_finding, score.healthy
            ));
            for mistake in score.mistakes.iter().filter(|_| args.mistakes) {
                output::note(&format!("seed {}: {}", mistake.seed, mistake.what));
            }
        }
    }
    Ok(())
}

/// A share of the traces on each processor.
fn on_all_processors(args: &FindingsArgs, thresholds: &Thresholds) -> Score {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let loss = Loss {
        dropped: args.drop,
        one_in: args.sample,
    };
    let share = |first: usize| {
        let seeds = (args.seed..args.seed.saturating_add(args.traces)).skip(first);
        let traces = seeds.step_by(threads).map(|seed| {
            let mut trace = generate(seed);
            loss.apply(&mut trace);
            trace
        });
        score(traces, thresholds)
    };
    std::thread::scope(|scope| {
        let share = &share;
        let others: Vec<_> = (1..threads)
            .map(|i| scope.spawn(move || share(i)))
            .collect();
        let mut all = share(0);
        for other in others {
            match other.join() {
                Ok(score) => all.merge(score),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        all.mistakes.sort_by_key(|m| m.seed);
        all
    })
}

fn table(score: &Score) -> Table {
    let mut table = Table::new(&[
        "kind",
        "planted",
        "found",
        "wrong",
        "slight",
        "precision",
        "recall",
    ]);
    for k in &score.kinds {
        table.row([
            k.kind.to_string(),
            k.planted.to_string(),
            k.found.to_string(),
            k.wrong.to_string(),
            k.slight.to_string(),
            format!("{:.3}", k.precision()),
            format!("{:.3}", k.recall()),
        ]);
    }
    table
}
