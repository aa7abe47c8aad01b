//! `dosmos-bench findings`: precision and recall of what `dosmos check` says, by kind, over labelled traces
//! ([`dosmos_testkit::labelled`]). Deterministic: the same seeds give the same table everywhere.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use anyhow::ensure;
use dosmos_analysis::{Finding, Kind, Thresholds};
use dosmos_cli::args::Format;
use dosmos_cli::output::{self, Table};
use dosmos_client::Run;
use dosmos_model::inputs::NetworkRecord;
use dosmos_testkit::Memory;
use dosmos_testkit::labelled::{
    KindScore, Labelled, Loss, Score, VARIED, Variation, generate, racing, score_by,
    score_with_times, varied,
};
use serde_json::json;
use tokio::runtime::Builder;

use crate::args::{FindingsArgs, Form};

/// Of traces with many processes, which are long, one in this number.
const FEWER: u64 = 10;

/// Application processes of the forms in which their number does not follow from the seed.
const FEW: usize = 8;
const MANY: usize = 64;

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
    let mut scores = Vec::new();
    for form in &args.forms {
        scores.push((*form, on_all_processors(args, *form, &thresholds)?));
    }
    let mut all = Score::default();
    for (_, score) in &scores {
        all.merge(score.clone());
    }
    let seconds = start.elapsed().as_secs_f64();
    if args.format == Format::Json {
        let mut forms: Vec<_> = scores
            .iter()
            .map(|(form, score)| as_json(Some(*form), score))
            .collect();
        forms.push(as_json(None, &all));
        output::text(&(serde_json::to_string_pretty(&forms)? + "\n"));
        return Ok(());
    }
    output::text(&table(&scores, &all).render(args.format));
    for (form, score) in &scores {
        let form = json!(form);
        output::note(&format!(
            "{}: {} traces, {} records; {} of {} with nothing planted had a finding",
            form.as_str().unwrap_or_default(),
            score.traces,
            score.records,
            score.healthy_with_finding,
            score.healthy
        ));
        for mistake in score.mistakes.iter().filter(|_| args.mistakes) {
            output::note(&format!("  seed {}: {}", mistake.seed, mistake.what));
        }
    }
    output::note(&format!("{seconds:.0} s"));
    Ok(())
}

/// Every processor takes the next trace when it has time.
fn on_all_processors(
    args: &FindingsArgs,
    form: Form,
    thresholds: &Thresholds,
) -> anyhow::Result<Score> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let count = match form {
        Form::Many => args.traces.div_ceil(FEWER),
        _ => args.traces,
    };
    let next = AtomicU64::new(0);
    let share = || -> anyhow::Result<Score> {
        let seeds = std::iter::from_fn(|| {
            let i = next.fetch_add(1, Ordering::Relaxed);
            (i < count).then(|| args.seed.saturating_add(i))
        });
        let loss = Loss {
            dropped: args.drop,
            one_in: args.sample,
        };
        let traces = seeds.map(|seed| {
            let mut trace = trace(form, seed);
            loss.apply(&mut trace);
            trace
        });
        if args.without_replay && form != Form::Racing {
            return Ok(score_with_times(traces, thresholds));
        }
        let runtime = Builder::new_current_thread().build()?;
        let failed = RefCell::new(None);
        let score = score_by(traces, |trace| {
            let found = runtime.block_on(checked(trace, thresholds));
            let found = found.unwrap_or_else(|error| {
                failed.replace(Some(error));
                Vec::new()
            });
            let of_form = |f: &Finding| (f.kind == Kind::DataRace) == (form == Form::Racing);
            found.into_iter().filter(of_form).collect()
        });
        match failed.into_inner() {
            Some(error) => Err(error.into()),
            None => Ok(score),
        }
    };
    std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(share)).collect();
        let mut all = share()?;
        for other in others {
            match other.join() {
                Ok(score) => all.merge(score?),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        all.mistakes.sort_by_key(|m| m.seed);
        Ok(all)
    })
}

/// The trace of this seed.
fn trace(form: Form, seed: u64) -> Labelled {
    let one = |processes| {
        let in_turn = VARIED.len() as u64 + 2;
        let kind = match VARIED.get((seed % in_turn) as usize) {
            Some(kind) => Some(*kind),
            None => (seed % in_turn + 1 == in_turn).then_some(Kind::SlowProcess),
        };
        varied(seed, Variation::of_seed(kind, seed, processes))
    };
    match form {
        Form::Mixed => generate(seed),
        Form::Varied => one(FEW),
        Form::Many => one(MANY),
        Form::Racing => racing(seed / 2, seed.is_multiple_of(2)),
    }
}

/// What `dosmos check` finds, with what messages cost on the simulated machine.
async fn checked(
    trace: &Labelled,
    thresholds: &Thresholds,
) -> Result<Vec<Finding>, dosmos_client::Error> {
    let mut source = Memory::new(trace.catalog.clone(), trace.records.clone());
    source.times = trace.times.clone();
    let run = Run::of(Arc::new(source), "");
    let analysed = run.analyse(None, thresholds, network(trace)).await?;
    Ok(analysed.analysis.findings)
}

/// What `dosmos-bench network` would measure there: each process has a processor of its own, and a message takes its time on the
/// way. What it takes of a processor, of which a read has four ends and serving, is a tenth of the way to the own memory process.
fn network(trace: &Labelled) -> NetworkRecord {
    let topology = &trace.catalog.topology;
    let [own, group, _] = trace.trips.map(|ns| ns / 1e3);
    let mut network = NetworkRecord {
        processors: topology.application_processes().len() + topology.memory_processes().len(),
        ..NetworkRecord::typical()
    };
    for segment in &mut network.network.segments {
        segment.total_us = [own / 10.0, 0.0];
        segment.syscall_us = [own / 20.0, 0.0];
    }
    network.network.interface_us = (group - own) / 4.0;
    (network.hop.read_us, network.hop.write_us) = ([own, 0.0], [own, 0.0]);
    network
}

fn as_json(form: Option<Form>, score: &Score) -> serde_json::Value {
    let kinds: Vec<_> = score
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
    json["form"] = json!(form);
    json["kinds"] = kinds.into();
    json
}

/// What became of each kind, in each form and altogether.
fn table(scores: &[(Form, Score)], all: &Score) -> Table {
    let mut table = Table::new(&[
        "traces",
        "kind",
        "planted",
        "found",
        "wrong",
        "slight",
        "precision",
        "recall",
    ]);
    let forms = scores.iter().map(|(form, score)| (json!(form), score));
    let altogether = (scores.len() > 1).then_some((json!("all"), all));
    for (form, score) in forms.chain(altogether) {
        let there = |k: &&KindScore| k.planted + k.slight + k.wrong > 0;
        for k in score.kinds.iter().filter(there) {
            table.row([
                form.as_str().unwrap_or_default().to_owned(),
                k.kind.to_string(),
                k.planted.to_string(),
                k.found.to_string(),
                k.wrong.to_string(),
                k.slight.to_string(),
                format!("{:.3}", k.precision()),
                format!("{:.3}", k.recall()),
            ]);
        }
    }
    table
}
