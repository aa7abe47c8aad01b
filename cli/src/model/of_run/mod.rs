//! `dosmos model inputs` and `dosmos model predict`: from a run to the models.
//!
//! Schema of `inputs`: `about` (name, processes, phases, run_us, notes), `network` (the network record),
//! `lopc` (`n`, measured figures, and under `homogeneous` and `general` what those models read; null if
//! nothing left its memory process), `dvsm` (what that model reads), `locality` (per process what
//! `fit` reads). Schema of `predict`: `about`, `delays`, `measured`, `modelled`, `changed` (times in µs),
//! `error`, `gain`, `expected_us` (of the phase model: null with the delays of the run, which would tell it the answer), `change` (the
//! keys and values asked for), `replay`.

mod replayed;
mod what_if;

use anyhow::{Context, bail};
use dosmos_client::{Run, read_network};
use dosmos_model::inputs::{DelayModel, Measured, NetworkRecord, Prediction};
use serde_json::{Value, json};

use replayed::Replayed;

use crate::args::{Format, InputsArgs, InputsFor, PredictArgs, RunArgs};
use crate::output::{self, Cell, Column, Table};

/// `dosmos model inputs`.
pub(super) async fn inputs(args: &InputsArgs) -> anyhow::Result<()> {
    if args.process.is_some() && args.wanted != InputsFor::Fit {
        bail!(
            "--process has no effect without --for fit; the other documents are of all processes"
        );
    }
    if args.run.no_delays && !matches!(args.wanted, InputsFor::All | InputsFor::Dvsm) {
        bail!("--no-delays has no effect on this document; only --for dvsm has delays");
    }
    let run = measured(&args.run).await?;
    // What is handed to a model as it is has no place for it.
    if args.wanted != InputsFor::All {
        for reason in run.about().notes {
            output::note(&reason);
        }
    }
    let document = match args.wanted {
        InputsFor::All => all(&run, delays(&args.run))?,
        InputsFor::Lopc => contention(&run)?["homogeneous"].take(),
        InputsFor::General => contention(&run)?["general"].take(),
        InputsFor::Dvsm => dvsm(&run, delays(&args.run))?,
        InputsFor::Fit => {
            let ap = match &args.process {
                Some(name) => run.process(name)?,
                None => run.first()?,
            };
            let references = run
                .references(ap)
                .context("it read and wrote nothing shared")?;
            serde_json::to_value(references)?
        }
    };
    anyhow::ensure!(
        !document.is_null(),
        "one thread has no contention: the homogeneous model needs at least two"
    );
    output::text(&(serde_json::to_string_pretty(&document)? + "\n"));
    Ok(())
}

/// `dosmos model predict`.
pub(super) async fn predict(args: &PredictArgs) -> anyhow::Result<()> {
    let (source, run) = opened(&args.run).await?;
    let change = what_if::parse(&args.what_if, run.catalog())?;
    let prediction = run.predict(delays(&args.run), change.as_ref())?;
    let replayed = match &change {
        Some(change) => match Replayed::of(&source, run.network(), change, run.catalog()).await? {
            Ok(replayed) => Some(replayed),
            Err(_) if args.run.no_delays => None,
            Err(reason) => bail!(
                "--what-if {}: a replay of the run cannot say what this does: {reason}; \
                 --no-delays asks the phase model, which knows what messages cost and nothing of waiting for a processor",
                args.what_if.join(",")
            ),
        },
        None => None,
    };
    match args.format {
        Format::Json => {
            let mut document = serde_json::to_value(&prediction)?;
            document["about"] = serde_json::to_value(run.about())?;
            document["delays"] = serde_json::to_value(delays(&args.run))?;
            document["change"] = json!(args.what_if);
            document["replay"] = serde_json::to_value(&replayed)?;
            if !args.run.no_delays {
                for key in ["error", "gain", "expected_us"] {
                    document[key] = Value::Null;
                }
            }
            output::text(&(serde_json::to_string_pretty(&document)? + "\n"));
        }
        format => {
            let headline = args.run.no_delays.then_some(&prediction);
            let mut text = table(&prediction, format);
            if format != Format::Csv {
                text += &summary(&run, headline, replayed.as_ref());
            }
            output::text(&text);
        }
    }
    Ok(())
}

fn delays(args: &RunArgs) -> DelayModel {
    match args.no_delays {
        true => DelayModel::None,
        false => DelayModel::Measured,
    }
}

/// Reads a run.
async fn measured(args: &RunArgs) -> anyhow::Result<Measured> {
    Ok(opened(args).await?.1)
}

/// A run, and what is read of it.
async fn opened(args: &RunArgs) -> anyhow::Result<(Run, Measured)> {
    let network = match &args.network {
        Some(path) => read_network(path)?,
        None => {
            output::note(
                "message costs are a typical machine's; measure: dosmos-bench network -o FILE, then --network FILE",
            );
            NetworkRecord::typical()
        }
    };
    let run = Run::open(&args.sources.target()).await?;
    let measured = run.measure(network).await?;
    Ok((run, measured))
}

fn all(run: &Measured, delays: DelayModel) -> anyhow::Result<Value> {
    let about = run.about();
    let mut locality = Vec::new();
    for name in &about.processes {
        let references = run.references(run.process(name)?);
        locality.push(json!({ "process": name, "fit": references }));
    }
    Ok(json!({
        "about": about,
        "network": run.network(),
        "lopc": run.contention()?,
        "dvsm": dvsm(run, delays)?,
        "locality": locality,
    }))
}

fn contention(run: &Measured) -> anyhow::Result<Value> {
    let contention = run.contention()?;
    let contention = contention.context("no access left its memory process: no contention")?;
    Ok(serde_json::to_value(contention)?)
}

fn dvsm(run: &Measured, delays: DelayModel) -> anyhow::Result<Value> {
    let mut document = serde_json::to_value(run.application(delays)?)?;
    document["network"] = serde_json::to_value(&run.network().network)?;
    Ok(document)
}

fn table(prediction: &Prediction, format: Format) -> String {
    let mut columns = vec![
        Column::named("mean of a process", "component"),
        Column::time("measured"),
        Column::time("modelled"),
    ];
    if prediction.changed.is_some() {
        columns.push(Column::time("changed"));
    }
    let mut table = Table::of(columns);
    let modelled = prediction.modelled.rows();
    let changed = prediction.changed.map(|c| c.rows());
    for (i, (name, measured)) in prediction.measured.rows().iter().enumerate() {
        let mut cells = vec![(*name).into(), time(*measured), time(modelled[i].1)];
        cells.extend(changed.map(|c| time(c[i].1)));
        table.row(cells);
    }
    table.render(format)
}

/// What is said below the table. The phase model says something only without the delays of the run: they would tell it the answer.
fn summary(run: &Measured, model: Option<&Prediction>, replayed: Option<&Replayed>) -> String {
    let about = run.about();
    let mut text = format!(
        "\n{}: {} processes, {} phases",
        about.name,
        about.processes.len(),
        about.phases,
    );
    text += &match model {
        Some(model) => format!("; the model is off by {:+.1} %\n", 100.0 * model.error),
        None => "; the model has the delays of this run, so it says nothing that its run does not (--no-delays: without them)\n".to_owned(),
    };
    let gain = model.and_then(|m| Some((m.gain?, m.expected_us?)));
    if let Some(replayed) = replayed {
        text += &replayed.line();
    } else if let Some((gain, expected)) = gain {
        let (percent, verb) = replayed::in_words(gain);
        let expected = time(expected);
        let expected = expected.shown();
        text += &format!(
            "by the phase model, without delays, the change {verb} {percent:.1} %: expect {expected}\n"
        );
    }
    for note in about.notes {
        text += &format!("note: {note}\n");
    }
    text
}

/// A length of time in microseconds, as the models have it; milliseconds for people.
fn time(us: f64) -> Cell {
    Cell::two(format!("{:.3} ms", us / 1e3), format!("{:.0}", 1e3 * us))
}
